"""Kernels that work on all flows of a batch do what their slow twins do with one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import choice as naive_choice
from tests.naive import episodes as naive_episodes
from tests.naive import rows as naive_rows
from tests.naive import sender as naive_sender
from tests.naive.hystart_plus import HyStartPlus
from tests.reconstruct.packets import FlowPackets, asked, batch_of
from tests.reconstruct.test_replay_kernels import hostile
from tests.reconstruct.test_sender import FACTS, SENDERS
from tracetool.kernels import episodes, event_rows, rtt_rows
from tracetool.kernels import replay_columns as rc
from tracetool.kernels import replay_window as rw
from tracetool.kernels import window_columns as wc
from tracetool.kernels.sorting import sort_positions
from tracetool.reconstruct.hypotheses import choose
from tracetool.reconstruct.models import hypotheses
from tracetool.reconstruct.replayed import replayed
from tracetool.reconstruct.samples import unless_negative

SEEDS = st.integers(0, 2**32 - 1)
MANY = settings(max_examples=100, deadline=None)


@given(SEEDS, st.integers(0, 40), st.sampled_from([np.int8, np.int32, np.int64]))
@MANY
def test_negative_numbers_are_null(seed, size, kind):
    values = np.random.default_rng(seed).integers(-2, 3, size).astype(kind)
    array = unless_negative(values)
    array.validate(full=True)
    assert array.to_pylist() == [value if value >= 0 else None for value in values.tolist()]


@given(SEEDS, st.integers(0, 70))
@MANY
def test_positions_are_sorted_as_numpy_sorts_them(seed, size):
    columns = np.random.default_rng(seed).integers(0, 4, (3, size))
    order = np.empty(size, np.int64)
    sort_positions(*columns, order)
    assert np.array_equal(order, np.lexsort(columns[::-1]))


def told(rng, size, disorder):
    """Packets of three flows, and what the tracking kernels may have said of each."""
    bounds = np.sort(np.append(rng.integers(0, size + 1, 2), [0, size]))
    time = np.sort(rng.integers(0, max(size // 2, 1), size))
    time = rng.permutation(time) if disorder else time
    return bounds, {
        "way": rng.integers(0, 2, size).astype(np.uint8), "time": time, "seq": rng.integers(-3, 9, size),
        "ack": rng.integers(0, 9, size), "payload": rng.integers(0, 9, size), "segments": rng.integers(0, 3, size),
        "copy": (rng.random(size) < 0.1).astype(np.uint8), "kind": rng.integers(0, 7, size).astype(np.uint8),
        "trigger": rng.integers(0, 5, size).astype(np.uint8), "evidence": rng.integers(0, 17, size).astype(np.uint8),
        "again": rng.integers(0, 9, size), "again_segments": rng.integers(0, 3, size),
        "missing_at": rng.integers(0, 9, (size, 2)), "missing": rng.integers(-2, 3, (size, 2)),
        "marks": (rng.integers(0, 64, size) * (rng.random(size) < 0.4)).astype(np.uint8),
    }  # fmt: skip


SIZES = st.sampled_from([0, 1, 5, 40, 900])  # 900 out of order are too many moves


@given(SEEDS, SIZES, st.booleans())
@MANY
def test_events_are_listed_in_the_order_of_the_table(seed, size, disorder):
    bounds, p = told(np.random.default_rng(seed), size, disorder)
    room = event_rows.event_rows(bounds, *p.values(), np.empty((0, event_rows.ROW_WIDTH), np.int64))
    rows = np.full((room, event_rows.ROW_WIDTH), -99)
    assert event_rows.event_rows(bounds, *p.values(), rows) == room
    flow_of = np.repeat(range(3), np.diff(bounds)).tolist()
    assert rows.tolist() == [list(row) for row in naive_rows.events({k: v.tolist() for k, v in p.items()}, flow_of)]


@given(SEEDS, SIZES, st.booleans())
@MANY
def test_round_trip_times_are_listed_in_the_order_of_the_table(seed, size, disorder):
    rng = np.random.default_rng(seed)
    bounds, p = told(rng, size, disorder)
    flags = rng.choice([16, 16, 18], size)
    some = {name: rng.integers(-2, 4, size) for name in ("rtt", "rtt_seq", "rtt_ticks")}
    packet, key = np.empty(2 * size, np.int64), np.empty(2 * size, np.int64)
    rows = rtt_rows.rtt_rows(bounds, p["way"], p["time"], flags, *some.values(), packet, key)
    columns = {k: v.tolist() for k, v in {**p, **some, "flags": flags}.items()}
    expected = naive_rows.rtts(columns, np.repeat(range(3), np.diff(bounds)).tolist())
    assert list(zip(packet[:rows].tolist(), key[:rows].tolist(), strict=True)) == expected
    flow, words = np.empty(rows, np.int32), np.empty((rtt_rows.WORDS, rows), np.int8)
    numbers, flow_of = np.empty((rtt_rows.NUMBERS, rows), np.int64), np.repeat(range(3), np.diff(bounds))
    rtt_rows.rtt_columns(
        packet[:rows], key[:rows], np.array([4, 5, 9]), flow_of, p["way"], p["time"], *some.values(), flow, words,
        numbers,
    )  # fmt: skip
    made = np.stack([flow, *words, *numbers]).T.tolist()
    assert made == naive_rows.rtt_columns(columns, expected, [(4, 5, 9)[k] for k in flow_of])


@given(SEEDS, st.integers(0, 40), st.integers(0, 40))
@MANY
def test_episodes_are_those_of_each_sender_alone(seed, one, other):
    rng = np.random.default_rng(seed)
    size = one + other
    events, window = np.zeros((size, rc.EVENT_WIDTH), np.int64), np.zeros((size, rw.OUT_WIDTH), np.int64)
    events[:, rc.OPS] = rng.integers(0, 256, size) * (rng.random(size) < 0.4)
    events[:, rc.STATE_AFTER] = rng.choice([rc.OPEN, rc.DISORDER, rc.CWR_STATE, rc.RECOVERY, rc.LOSS], size)
    events[:, rc.NEWLY_LOST] = rng.integers(0, 3, size)
    events[:, rc.TIME] = np.cumsum(rng.integers(0, 4, size))
    events[:, rc.DELIVERED_BEFORE] = np.cumsum(rng.integers(0, 9, size))
    events[:, rc.SRTT_AFTER] = rng.integers(0, 4, size)
    events[:, rc.RS_DELIVERED] = rng.integers(-1, 3, size)
    events[:, rc.RS_APP_LIMITED] = rng.integers(0, 2, size) * (rng.random(size) < 0.7)
    window[:, rw.OUT_CWND_AFTER], window[:, rw.OUT_SSTHRESH_AFTER] = rng.integers(0, 3, (2, size))
    window[:, rw.OUT_MODE] = rng.integers(0, 2, size)
    at = np.array([0, one, size])
    table = np.zeros((2, wc.HYPOTHESIS_WIDTH), np.int64)
    table[:, wc.CC] = wc.CUBIC, wc.BBR
    choice = np.array([[0, 0], [1, 0]])
    spans = np.empty((size, episodes.SPAN_WIDTH), np.int64)
    count = episodes.slow_start_spans(events, at, window, table, choice, spans)
    reduced = np.empty((size, episodes.REDUCTION_WIDTH), np.int64)
    reductions = episodes.reductions(events, at, reduced)
    for sender, mine in enumerate((slice(0, one), slice(one, size))):
        expected = naive_episodes.slow_starts(events[mine], window[mine], bbr=sender == 1)
        found = spans[:count][spans[:count, episodes.SENDER] == sender]
        assert [(a, b) for a, b in found[:, [episodes.FIRST, episodes.LAST]].tolist()] == expected
        assert [tuple(row) for row in found[:, [episodes.DELIVERED, episodes.ELAPSED]].tolist()] == [
            naive_episodes.rate_after(events[mine], expected, number) for number in range(len(expected))
        ]
        rows = reduced[:reductions][reduced[:reductions, episodes.SENDER] == sender]
        assert [
            (begin - mine.start, end - mine.start if end >= 0 else -1, lost, bool(undone))
            for _, begin, end, lost, undone in rows.tolist()
        ] == naive_episodes.reductions(events[mine])


def senders():
    """Simulated senders, whole and from the middle on, and packets that no TCP sends."""
    plus = "reno", {"plus": HyStartPlus(1000)}, {"rate": 1000, "delay": 20_000, "queue": 40}
    for cc, more, path in (*SENDERS.values(), plus):
        rows, _ = naive_sender.run(cc, naive_sender.Path(**path), 3, **more)
        yield FlowPackets(**naive_sender.packets(rows)), FACTS
    for seed in range(20):
        yield hostile(np.random.default_rng(seed), 120), FACTS


@pytest.mark.parametrize("tolerance", [0, 3])
def test_the_choice_is_that_of_its_twin(tolerance):
    for packets, facts in senders():
        found = replayed(batch_of(packets), np.zeros(len(packets), bool), asked(facts))
        if not found.begun[0]:
            continue  # their hypotheses depend on a search
        mss = int(found.mss[0])
        chosen = choose(found, np.array([tolerance]))
        expected = naive_choice.choose(found.events, hypotheses(), mss, tolerance, begun=True)
        best, window, low, high, agreed, cc, sure = expected
        assert chosen.best(0) == best
        assert np.array_equal(chosen.window, window)
        assert np.array_equal(chosen.low, low)
        assert np.array_equal(chosen.high, high)
        assert chosen.told[0, 2] == agreed
        assert chosen.cc(0) == (cc, sure)
