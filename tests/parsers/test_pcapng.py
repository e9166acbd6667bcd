"""pcapng: sections, interfaces, clocks, every kind of block, and damage."""

from __future__ import annotations

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import captures as made
from tests.fuzz import frames
from tests.packets.conftest import read_capture
from tracetool.parsers import pcapng as parser

FRAMES = frames.connection()
SECOND = 1_000_000_000


def whole(order: str = "<") -> bytes:
    blocks = [made.enhanced(frame, k, order) for k, frame in enumerate(FRAMES)]
    return b"".join([made.section(order), made.interface(1, order), *blocks])


@pytest.mark.parametrize("order", ["<", ">"])
def test_packets_and_times(order):
    found = read_capture(whole(order))
    assert found.packets["time"].to_physical().to_list() == [
        made.START * SECOND + k * 10**6 for k in range(len(FRAMES))
    ]
    assert found.packets["frame"].to_list() == list(range(1, len(FRAMES) + 1))
    assert found.inputs["format"].item() == "pcapng"
    assert found.flow()["handshake"] == "full"


@pytest.mark.parametrize(
    ("resolution", "stamp", "nanoseconds"),
    [
        (0, 5, 5 * SECOND),
        (3, 5001, 5_001_000_000),
        (6, 5_000_001, 5_000_001_000),
        (9, 5_000_000_001, 5_000_000_001),
        (12, 5_000_000_001_999, 5_000_000_001),
        (0x80, 5, 5 * SECOND),
        (0x80 | 1, 11, 5_500_000_000),
        (0x80 | 20, (5 << 20) + 1, 5_000_000_953),
        (0x80 | 40, (5 << 40) + (1 << 39), 5_500_000_000),
    ],
)
def test_clock_resolutions(resolution, stamp, nanoseconds):
    content = made.section() + made.interface(resolution=resolution) + made.enhanced(FRAMES[0], time=stamp)
    assert read_capture(content).packets["time"].to_physical().item() == nanoseconds


def test_clock_offsets_are_added():
    content = made.section() + made.interface(offset=1000) + made.enhanced(FRAMES[0], time=5)
    assert read_capture(content).packets["time"].to_physical().item() == 1000 * SECOND + 5


def test_interfaces_have_link_types_of_their_own():
    content = made.section() + made.interface(1, snaplen=96) + made.interface(101, snaplen=128)
    content += made.enhanced(frames.FRAME) + made.enhanced(frames.PACKET, place=1)
    found = read_capture(content)
    assert found.packets["seq"].to_list() == [1, 1]
    assert found.packets["frame_bytes"].to_list() == [len(frames.FRAME), len(frames.PACKET)]
    assert found.inputs["link_types"].to_list() == [["ETHERNET", "RAW"]]
    assert found.inputs["snaplen_bytes"].item() == 128


def test_sections_forget_interfaces_and_may_change_byte_order():
    content = whole("<") + made.section(">") + made.interface(101, ">") + made.enhanced(frames.PACKET, 99, ">")
    found = read_capture(content)
    assert found.packets.height == len(FRAMES) + 1
    content = whole("<") + made.section("<") + made.enhanced(frames.PACKET, 99)
    found = read_capture(content)
    assert found.packets.height == len(FRAMES)
    assert "unknown_interface" in found.codes


@pytest.mark.parametrize("order", ["<", ">"])
def test_every_kind_of_block(order):
    found = read_capture(made.pcapng(FRAMES, order))
    assert found.packets.height == len(FRAMES) + 2  # a simple packet block, and an old one
    # Wireshark gives numbers to journal entries and custom blocks, too.
    assert found.inputs["records"].item() == len(FRAMES) + 2 + 3
    assert found.codes.count("no_timestamp") == 1


def test_drop_counters():
    assert read_capture(whole()).inputs["capture_drops"].item() == 3 * len(FRAMES)  # each block says 3
    found = read_capture(made.section() + made.interface() + made.statistics(drops=100) + made.statistics(drops=200))
    assert found.inputs["capture_drops"].item() == 400  # of the interface and of the system; the later block holds
    assert found.codes == ["capture_drops"]
    assert read_capture(made.section() + made.interface()).inputs["capture_drops"].item() is None


def test_simple_packets_are_cut_at_the_snap_length():
    block = made.block(3, struct.pack("<I", len(frames.FRAME)) + frames.FRAME[:80])
    found = read_capture(made.section() + made.interface(snaplen=80) + block)
    assert found.packets["captured_bytes"].item() == 80
    assert found.packets["frame_bytes"].item() == len(frames.FRAME)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=20))
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_any_division_into_reads_gives_the_same_tables(sizes):
    content = made.pcapng(FRAMES)
    found, expected = read_capture(content, sizes), read_capture(content)
    assert found.packets.equals(expected.packets)
    assert found.flows.equals(expected.flows)
    assert found.inputs.equals(expected.inputs)


def test_a_cut_block_keeps_what_was_before_it():
    found = read_capture(whole()[:-5])
    assert found.packets.height == len(FRAMES) - 1
    assert found.codes[0] == "cut_record"


@pytest.mark.parametrize("garbage", [b"\xff" * 100, b"\0" * 37, bytes(range(255)) * 3])
def test_after_garbage_reading_goes_on(garbage):
    blocks = [made.enhanced(frame, k) for k, frame in enumerate(FRAMES)]
    start = b"".join([made.section(), made.interface(), *blocks[:9]])
    expected = read_capture(whole())
    for sizes in ([1 << 20], [5], [64, 3]):
        found = read_capture(start + garbage + b"".join(blocks[9:]), sizes)
        assert found.packets.drop("input").equals(expected.packets.drop("input"))
        (row,) = [row for row in found.diagnostics if row["severity"] == "error"]
        assert (row["code"], row["offset_bytes"]) == ("bad_length", len(start))
        assert f" {len(garbage)} bytes further" in row["message"]


def test_two_lengths_that_differ_are_damage():
    block = bytearray(made.enhanced(FRAMES[3]))
    block[-4] ^= 4
    content = made.section() + made.interface() + made.enhanced(FRAMES[0]) + bytes(block) + made.enhanced(FRAMES[1])
    found = read_capture(content)
    assert found.packets.height == 2
    assert "bad_length" in found.codes


def test_more_interfaces_than_usual():
    content = made.section() + made.interface(101) * 300 + made.enhanced(frames.PACKET, place=299)
    assert read_capture(content).packets.height == 1


def test_only_pcapng_is_pcapng():
    assert parser.sniff(whole("<"))
    assert parser.sniff(whole(">"))
    for head in (b"", b"\n\r\r\n", b"\n\r\r\n" + b"\0" * 20, made.pcap([])):
        assert not parser.sniff(head)
