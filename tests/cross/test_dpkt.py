"""`packets` agrees with dpkt, an independent decoder, on the sample traces."""

from __future__ import annotations

import gzip
from pathlib import Path

import dpkt
import pytest

from tests.packets.conftest import read_capture

SAMPLES = sorted(Path(__file__).resolve().parents[2].glob("sample_traces/*.pcap.gz"))


def by_dpkt(content: bytes) -> list[tuple[int, ...]]:
    """(frame, seq, ack, flags, window, payload, tsval) of each TCP segment in plain Ethernet or raw IP."""
    found = []
    link = int.from_bytes(content[20:24], "little")
    at, number = 24, 0
    while at < len(content):
        captured = int.from_bytes(content[at + 8 : at + 12], "little")
        frame, at, number = content[at + 16 : at + 16 + captured], at + 16 + captured, number + 1
        packet = dpkt.ethernet.Ethernet(frame).data if link == 1 else dpkt.ip.IP(frame)
        tcp = packet.data
        if not isinstance(tcp, dpkt.tcp.TCP):
            continue
        length = packet.len if isinstance(packet, dpkt.ip.IP) else packet.plen + 40
        headers = 4 * packet.hl if isinstance(packet, dpkt.ip.IP) else 40
        stamps = [int.from_bytes(value[:4]) for kind, value in dpkt.tcp.parse_opts(tcp.opts) if kind == 8]
        flags = tcp.flags & 0x1FF
        found.append((number, tcp.seq, tcp.ack, flags, tcp.win, length - headers - 4 * tcp.off, *stamps[:1]))
    return found


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name.split(".")[0])
def test_sample(path):
    content = gzip.decompress(path.read_bytes())
    if content[:4] not in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"):
        pytest.skip("not a little-endian pcap")
    found = read_capture(content)
    ends = {row["flow"]: (row["isn_a"], row["isn_b"]) for row in found.flows.to_dicts()}
    rows = []
    for row in found.packets.to_dicts():
        if row["protocol"] != "tcp":
            continue
        mine, peer = ends[row["flow"]] if row["direction"] == "a2b" else reversed(ends[row["flow"]])
        ack = 0 if row["ack"] is None else (row["ack"] + peer) % 2**32
        numbers = (
            row["frame"],
            (row["seq"] + mine) % 2**32,
            ack,
            row["flags"],
            row["window_raw"],
            row["payload_bytes"],
        )
        rows.append(numbers if row["tsval"] is None else (*numbers, row["tsval"]))
    assert rows == by_dpkt(content)


def test_there_are_samples():
    assert len(SAMPLES) >= 8
