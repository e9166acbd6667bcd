"""A packet captured on two interfaces counts once, and the interface of the copy is named."""

from __future__ import annotations

import struct

from tests.fuzz import captures, frames
from tracetool.ingest import ingest
from tracetool.reconstruct import reconstruct

FRAMES = frames.connection()


def said(tmp_path, content: bytes):
    """Rows of `packets` by frame, and what is said of copies."""
    (tmp_path / "capture").write_bytes(content)
    dataset = reconstruct(ingest(tmp_path / "capture", tmp_path / "dataset"))
    found = dataset.read("diagnostics")
    messages = found.filter(found["code"] == "duplicate_frame")["message"].to_list()
    return dataset.read("packets").sort("frame"), messages


def test_interfaces_of_pcapng(tmp_path):
    stamps = [captures.START * 10**9 + number * 10**7 for number in range(len(FRAMES))]
    packets = [
        captures.enhanced(frame, place=place, time=stamp + 5000 * place)
        for frame, stamp in zip(FRAMES, stamps, strict=True)
        for place in (0, 1)
    ]
    content = b"".join([captures.section(), captures.interface(), captures.interface(), *packets])
    rows, (message,) = said(tmp_path, content)
    assert rows["interface"].to_list() == [0, 1] * len(FRAMES)
    copies = int(message.split()[0])
    assert copies == len(FRAMES)
    assert f"{copies} on interface 1)" in message


def test_interfaces_of_cooked_captures(tmp_path):
    """Linux cooked v2 has the interface's index on the host in each frame."""
    cooked = [
        struct.pack(">HHIHBB8s", 0x0800, 0, index, 1, 0, 6, b"\2\0\0\0\0\1") + frame[14:]
        for frame in FRAMES
        for index in (3, 7)
    ]
    records = b"".join(captures.record(frame, number // 2) for number, frame in enumerate(cooked))
    rows, (message,) = said(tmp_path, captures.pcap_header(link=276) + records)
    assert rows["interface"].to_list() == [3, 7] * len(FRAMES)
    assert "on interface 7)" in message


def test_no_interface_is_made_up(tmp_path):
    twice = b"".join(captures.record(frame, number) * 2 for number, frame in enumerate(FRAMES))
    rows, (message,) = said(tmp_path, captures.pcap_header() + twice)
    assert rows["interface"].null_count() == rows.height == 2 * len(FRAMES)
    assert "interface" not in message


def datagrams(tmp_path, identifications, gap_us: int = 100) -> int:
    """Packets that `flow_stats` counts of datagrams of one length that are sent twice each, 5 us apart."""
    packets = []
    for number, identification in enumerate(identifications):
        frame = bytearray(frames.ether(frames.ip4(frames.udp(b"d" * 100), 17)))
        frame[18:20] = identification.to_bytes(2, "big")
        stamp = captures.START * 10**9 + number * gap_us * 1000
        packets += [captures.enhanced(bytes(frame), time=stamp + late) for late in (0, 5000)]
    content = b"".join([captures.section(), captures.interface(), *packets])
    (tmp_path / "capture").write_bytes(content)
    dataset = reconstruct(ingest(tmp_path / "capture", tmp_path / "dataset"))
    return int(dataset.read("flow_stats").filter(direction="a2b")["packets"].item())


def test_copies_of_datagrams_are_told_by_their_identification(tmp_path):
    assert datagrams(tmp_path, range(1, 41)) == 40


def test_datagrams_that_nothing_tells_apart_all_count(tmp_path):
    for name, identifications, gap in (("none", [0] * 40, 100), ("constant", [77] * 40, 5000)):
        (tmp_path / name).mkdir()
        assert datagrams(tmp_path / name, identifications, gap) == 80
