"""pcap: variants, damage, and any division of the bytes into reads."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import frames as made
from tests.fuzz.captures import START, pcap, pcap_header, record
from tests.packets.conftest import read_capture
from tracetool.parsers import pcap as parser

FRAMES = made.connection()
WHOLE = pcap(FRAMES)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "tick"), [(0xA1B2C3D4, 1000), (0xA1B23C4D, 1)])
def test_byte_orders_and_clocks(order, magic, tick):
    found = read_capture(pcap(FRAMES, order, magic=magic))
    times = found.packets["time"].to_physical().to_list()
    assert times == [START * 10**9 + k * 1000 * tick for k in range(len(FRAMES))]
    assert found.inputs["time_resolution_ns"].item() == tick
    assert found.inputs["snaplen_bytes"].item() == 262_144
    assert found.inputs["link_types"].to_list() == [["ETHERNET"]]
    assert found.inputs["capture_drops"].item() is None
    assert found.diagnostics == []


def test_the_modified_format_has_longer_record_headers():
    assert read_capture(pcap(FRAMES, magic=0xA1B2CD34, extra=8)).packets.equals(read_capture(WHOLE).packets)


@pytest.mark.parametrize("version", [(2, 2), (2, 3), (543, 0)])
def test_old_files_have_the_two_lengths_swapped(version):
    frame = FRAMES[0]
    head = struct.pack("<IIII", START, 0, len(frame) + 50, len(frame))
    found = read_capture(pcap_header(version=version) + head + frame)
    assert found.packets["frame_bytes"].item() == len(frame) + 50
    assert found.packets["captured_bytes"].item() == len(frame)


def test_an_empty_capture_has_no_packets():
    found = read_capture(pcap([]))
    assert found.packets.is_empty()
    assert found.flows.is_empty()
    assert found.inputs["records"].item() == 0
    assert found.inputs["first_time"].item() is None


@pytest.mark.parametrize(
    "head",
    [
        b"",
        WHOLE[:23],
        b"\n\r\r\n" + b"\0" * 30,
        pcap_header(magic=0xA12B3C4D),
        pcap_header(version=(3, 0)),
        b"ESTAB 0 0",
    ],
)
def test_only_pcap_is_pcap(head):
    assert not parser.sniff(head)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=20))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_any_division_into_reads_gives_the_same_tables(sizes):
    found, expected = read_capture(WHOLE, sizes), read_capture(WHOLE)
    assert found.packets.equals(expected.packets)
    assert found.flows.equals(expected.flows)
    assert found.inputs.equals(expected.inputs)


def test_a_cut_record_keeps_what_was_before_it():
    found = read_capture(WHOLE[:-10])
    assert found.packets.height == len(FRAMES) - 1
    (row,) = found.diagnostics
    assert (row["code"], row["severity"], row["frame"]) == ("cut_record", "error", len(FRAMES))
    assert row["offset_bytes"] == len(WHOLE) - 16 - len(FRAMES[-1])


@pytest.mark.parametrize("garbage", [b"\xff" * 100, b"\0" * 37, bytes(range(256)) * 3, b"\x7f" * 5000])
def test_after_garbage_reading_goes_on(garbage):
    half = 9
    records = [record(frame, k) for k, frame in enumerate(FRAMES)]
    start = pcap_header() + b"".join(records[:half])
    if garbage[0] == 0:  # zeros would be records without bytes
        garbage = b"\xff" * 16 + garbage
    damaged = start + garbage + b"".join(records[half:])
    expected = read_capture(WHOLE)
    for sizes in ([1 << 20], [7], [100, 3]):
        found = read_capture(damaged, sizes)
        assert found.packets.height == len(FRAMES)
        assert found.packets["seq"].equals(expected.packets["seq"])
        (row,) = [row for row in found.diagnostics if row["severity"] == "error"]
        assert row["code"] == "bad_length"
        assert row["offset_bytes"] == len(start)
        assert f" {len(garbage)} bytes further" in row["message"]


def test_garbage_to_the_end_is_told():
    found = read_capture(WHOLE + b"\xff" * 3000)
    assert found.packets.height == len(FRAMES)
    assert "up to the end" in found.diagnostics[0]["message"]


def test_damage_in_a_large_file_gives_the_same_for_any_block(monkeypatch):
    """Damage at the seams of blocks, where the rest is carried over."""
    from tracetool.packets import blocks

    rng = random.Random(3)
    records = [record(FRAMES[k % len(FRAMES)], k) for k in range(400)]
    for place in (50, 200, 300):
        records.insert(place, rng.randbytes(rng.randrange(16, 900)) + b"\xff" * 16)
    content = pcap_header() + b"".join(records)
    expected = read_capture(content)
    assert expected.packets.height >= 400
    for block in (64, 1000, 4096):
        monkeypatch.setattr(blocks.Blocks.__init__, "__defaults__", (block,))
        found = read_capture(content)
        assert found.packets.equals(expected.packets)
        assert found.diagnostics == expected.diagnostics


def test_times_that_run_backwards_are_told():
    frames = pcap_header() + record(FRAMES[0], 5) + record(FRAMES[1], 4)
    assert "time_backwards" in read_capture(frames).codes
