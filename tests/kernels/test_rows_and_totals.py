"""Kernels that make rows of what was replayed, add up packets and reorder records do what their slow twins do."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import samples as naive
from tests.naive import totals as naive_totals
from tests.reconstruct.traffic import Packet, arrays
from tracetool.kernels import flow_totals as ft
from tracetool.kernels import replay_columns as rc
from tracetool.kernels import replay_window as rw
from tracetool.kernels import sample_rows as sr
from tracetool.kernels.rounds import count_rounds
from tracetool.reconstruct.samples import NUMBERS, WORDS

MSS = 1000
SEEDS = st.integers(0, 2**32 - 1)
MANY = settings(max_examples=150, deadline=None)


def replayed(rng, size):
    """Events and windows with every value that matters: unknown, none, small and large."""
    events = rng.integers(-2, 60, (size, rc.EVENT_WIDTH))
    events[:, rc.KIND] = rng.choice([rc.ON_ACK, rc.ON_ACK, rc.ON_RTO], size)
    events[:, rc.STATE_BEFORE] = rng.integers(0, len(naive.STATES), size)
    events[:, rc.ROOM] = rng.choice([-1, 0, MSS - 1, MSS, 50 * MSS], size)
    window = rng.integers(0, 3, (size, rw.OUT_WIDTH))
    window[:, rw.OUT_CWND] = rng.integers(0, 60, size)
    window[:, rw.OUT_SSTHRESH] = rng.choice([0, 20, 40, naive.INFINITE], size)
    low = np.maximum(window[:, rw.OUT_CWND] - rng.integers(0, 20, size), 0)
    return events, window, low, window[:, rw.OUT_CWND] + rng.integers(0, 20, size)


@given(SEEDS, st.integers(0, 30), st.tuples(*[st.booleans()] * 4), st.sampled_from([0.02, 0.04, 0.5]))
@MANY
def test_samples_are_its_twins(seed, size, flags, margin):
    events, window, low, high = replayed(np.random.default_rng(seed), size)
    numbers = np.empty((sr.NUMBERS, size), np.int64)
    words = np.empty((sr.WORDS, size), np.uint8)
    rows = sr.sample_rows(events, window, low, high, MSS, *flags, margin, numbers, words, 0)
    made = [
        {name: int(numbers[at, r]) for at, name in enumerate(NUMBERS)}
        | {name: (*known, None)[min(words[at, r], len(known))] for at, (name, known) in enumerate(WORDS.items())}
        for r in range(rows)
    ]
    paced, bbr, sharp, fits = flags
    options = {"paced": paced, "bbr": bbr, "sharp": sharp, "fits": fits, "margin": margin}
    expected = naive.samples(events, window, low, high, MSS, **options)
    may = {"phase", "limited_by", "ca_state", "ssthresh_basis"}  # words know None; numbers have -1
    assert made == [{k: -1 if v is None and k not in may else v for k, v in row.items()} for row in expected]


def test_the_pace_before_the_first_ack_is_unknown():
    # the row before the first is none: taken by its index, it would be the last
    events, window = np.zeros((3, rc.EVENT_WIDTH), np.int64), np.zeros((3, rw.OUT_WIDTH), np.int64)
    events[:, rc.KIND] = rc.ON_ACK
    window[:, rw.OUT_RATE] = [1000, 2000, 9000]
    cwnd = np.full(3, 10)
    numbers, words = np.empty((sr.NUMBERS, 3), np.int64), np.empty((sr.WORDS, 3), np.uint8)
    sr.sample_rows(events, window, cwnd, cwnd, MSS, True, True, True, True, 0.04, numbers, words, 0)
    assert numbers[sr.S_PACING].tolist() == [-1, 8000, 16000]


@given(SEEDS, st.integers(1, 60), st.integers(1, 30))
@MANY
def test_round_trips_are_its_twins(seed, size, most):
    rng = np.random.default_rng(seed)
    events = np.zeros((size, rc.EVENT_WIDTH), np.int64)
    events[:, rc.UNA_BEFORE] = np.arange(size) + rng.integers(-3, 3, size)  # ACKs may come out of order
    events[:, rc.NXT_BEFORE] = events[:, rc.UNA_BEFORE] + rng.integers(0, 12, size)
    first, end = sorted(rng.integers(0, size, 2).tolist())
    una, nxt = events[:, rc.UNA_BEFORE].tolist(), events[:, rc.NXT_BEFORE].tolist()
    assert count_rounds(events, first, end, most) == naive.rounds(una, nxt, first, end, most)


@dataclass
class Told(Packet):
    """A packet, and what the tracking kernels said of it."""

    frame_bytes: int = 0
    captured: int = 0
    ecn: int = 0
    kind: int = 0
    trigger: int = 0
    again: int = 0
    again_segments: int = 0
    marks: int = 0
    missing: list[int] = field(default_factory=lambda: [0, 0])


def told(rng):
    """Any packet: what it says need not make sense."""

    def some(*values):
        return int(rng.choice(values))

    return Told(
        time=int(rng.integers(0, 200)), way=some(0, 1), ack=int(rng.integers(0, 50)), payload=some(-1, 0, 1, 999, 5000),
        segments=some(0, 1, 3), flags=int(rng.integers(0, 256)), window=some(-1, 0, 7, 65535),
        sack=rng.integers(0, 50, some(0, 0, 1, 2, 4, 6)).tolist(), copy=some(0, 0, 0, 1) == 1,
        frame_bytes=int(rng.integers(0, 1500)), captured=int(rng.integers(0, 1500)), ecn=some(0, 1, 2, 3),
        kind=some(*range(7)), trigger=some(*range(4)), again=int(rng.integers(0, 3000)),
        again_segments=int(rng.integers(0, 3)), marks=int(rng.integers(0, 256)),
        missing=rng.integers(0, 99, 2).tolist(),
    )  # fmt: skip


@given(SEEDS, st.lists(st.integers(1, 25), max_size=4))
@MANY
def test_totals_are_its_twins(seed, sizes):
    rng = np.random.default_rng(seed)
    flows = [[told(rng) for _ in range(size)] for size in sizes]
    packets = [p for flow in flows for p in flow]
    columns = arrays(packets)
    for name, kind in (
        ("frame_bytes", np.int64), ("captured", np.int64), ("ecn", np.uint8), ("kind", np.uint8), ("trigger", np.uint8),
        ("again", np.int64), ("again_segments", np.int64), ("marks", np.uint8), ("missing", np.int64),
    ):  # fmt: skip
        columns[name] = np.array([getattr(p, name) for p in packets], kind)
    columns["missing"] = columns["missing"].reshape(-1, 2)
    names = (
        "way", "time", "ack", "payload", "segments", "flags", "window", "frame_bytes", "captured", "ecn", "sack_at",
        "sacks", "copy", "kind", "trigger", "again", "again_segments", "missing", "marks",
    )  # fmt: skip
    out = np.zeros((len(flows), 2, ft.TOTALS), np.int64)
    ft.flow_totals(np.cumsum([0, *sizes]), *(columns[name] for name in names), out)
    assert out.tolist() == [[naive_totals.row(flow, side) for side in (0, 1)] for flow in flows]
    bounds, sums, spans = np.cumsum([0, *sizes]), np.zeros((len(flows), 2), np.int64), np.empty(len(flows), np.int64)
    ft.payload_bytes(bounds, columns["way"], columns["payload"], sums)
    assert sums.tolist() == [[naive_totals.payload(flow, side) for side in (0, 1)] for flow in flows]
    ft.spans(bounds, columns["time"], columns["copy"], spans)
    assert spans.tolist() == [naive_totals.span(flow) for flow in flows]
