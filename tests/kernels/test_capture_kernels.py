"""The capture kernels and their slow twins say the same."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz import frames as made
from tests.fuzz.captures import START, pcap, pcap_header
from tests.naive import capture as naive
from tests.packets.conftest import read_capture
from tracetool.kernels import gather, pcap_frames, records, sequences, tcp_options
from tracetool.kernels._bare import bare_kernel

COLUMNS = ("frame", "time", "flow", "direction", "seq", "ack", "payload_bytes", "tsval", "sack")
words = st.integers(0, 2**32 - 1)


@given(st.lists(st.binary(max_size=60), max_size=12), st.integers(0, 700))
def test_framing(frames, cut):
    content = pcap(frames)
    content = content[: max(24, len(content) - cut)]
    buffer, listed = np.frombuffer(content, np.uint8), np.empty(32, records.FRAME)
    count, at, status = pcap_frames.walk(buffer, 24, len(buffer), False, 16, 0, 1000, 262_144, 1, listed)
    found = [
        (int(f["time"]), int(f["original"]), content[f["offset"] : f["offset"] + f["captured"]]) for f in listed[:count]
    ]
    assert found == naive.walk_pcap(content)
    assert status == pcap_frames.MORE
    assert at == 24 + sum(16 + len(frame) for *_, frame in found)


@given(words, words, st.integers(-(2**40), 2**40))
def test_unwrap(value, base, near):
    assert sequences.unwrap(value, base, near) == naive.unwrap(value, base, near)


def option_bytes() -> st.SearchStrategy[bytes]:
    known = st.sampled_from(
        [
            made.MSS,
            made.SACK_PERMITTED,
            made.SCALE,
            made.TIMES,
            made.sack(1, 2),
            made.sack(5, 6, 7, 8),
            b"\x1e\x04ab",
            b"\x22\x02",
        ]
    )
    return st.lists(known | st.binary(max_size=6), max_size=5).map(b"".join).map(lambda data: data[:40])


@bare_kernel
def read_options(buffer, end, options, edges):
    tcp_options.read_options(buffer, 0, end, options[0], edges)


@given(option_bytes())
def test_options(data):
    read, edges = np.zeros(1, records.OPTIONS), np.zeros(8, np.int64)
    # Bytes behind the end must not matter.
    read_options(np.frombuffer(data + b"\x02\x04\xff\xff", np.uint8), len(data), read, edges)
    said, expected = read[0], naive.options(data)
    assert (int(said["mss"]), int(said["shift"])) == (expected.get("mss", -1), expected.get("shift", -1))
    assert bool(said["sack_permitted"]) == expected.get("sack_permitted", False)
    assert bool(said["timestamps"]) == ("tsval" in expected)
    if "tsval" in expected:
        assert (int(said["tsval"]), int(said["tsecr"])) == (expected["tsval"], expected["tsecr"])
    assert edges[: int(said["edges"])].tolist() == expected["sack"]
    assert bool(said["mptcp"]) == expected.get("mptcp", False)
    assert bool(said["fast_open"]) == expected.get("fast_open", False)
    assert bool(said["cut"]) == expected.get("cut", False)


@given(st.lists(st.tuples(st.integers(0, 5) | st.integers(0, 2**31 - 1), st.integers(0, 1)), min_size=1, max_size=60))
def test_order(rows):
    packets = np.zeros(len(rows), records.PACKET)
    packets["flow"], packets["direction"] = zip(*rows, strict=True)
    order, keys, spare = (np.zeros(len(rows), np.uint32) for _ in range(3))
    gather.order_by_flow(packets, len(rows), order, keys, spare, np.zeros((1 << gather.BITS) + 1, np.int64))
    assert order.tolist() == naive.order_by_flow(rows)


def random_segments(seed: int) -> bytes:
    """A few connections that send whatever, near the wrap of their numbers."""
    rng = random.Random(seed)
    packets = []
    for _ in range(300):
        pair, up = rng.randrange(4), rng.random() < 0.5
        flags = rng.choice([2, 18, 16, 16, 16, 24, 24, 17, 4])
        isn = 0xFFFFFE00 + 7 * pair
        seq = isn if flags & 2 else (isn + rng.randrange(2000)) & 0xFFFFFFFF
        ack = (isn + rng.randrange(2000)) & 0xFFFFFFFF if flags & 16 else 0
        said = b"".join(rng.sample([made.TIMES, made.sack(seq, ack), made.MSS], rng.randrange(3)))
        ports = (1000 + pair, 80) if up else (80, 1000 + pair)
        body = made.tcp(seq, ack, flags, b"x" * rng.randrange(100) if flags & 8 else b"", said, ports=ports)
        packets.append(made.ip4(body, ends=(made.A, made.B) if up else (made.B, made.A)) if pair else made.ip6(body))
    records = (struct.pack("<IIII", START, k, len(packet), len(packet)) + packet for k, packet in enumerate(packets))
    return pcap_header(link=101) + b"".join(records)


@pytest.mark.parametrize("seed", range(5))
def test_packets(seed):
    content = random_segments(seed)
    found = read_capture(content).packets.select("time", *[c for c in COLUMNS if c != "time"])
    rows = [
        {**row, "time": time} for row, time in zip(found.to_dicts(), found["time"].to_physical().to_list(), strict=True)
    ]
    assert rows == [{key: row[key] for key in rows[0]} for row in naive.packets(naive.walk_pcap(content), link=101)]
