"""Timestamp clocks, and times that no clock of a network shows: a capture may hold any."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetool.kernels import window_columns as wc
from tracetool.kernels._jit import kernel
from tracetool.kernels.clocks import TICKS_NS, after, nearest_tick
from tracetool.kernels.cubic import LONGEST_NS, cubic_update
from tracetool.kernels.track_memory import add

WORD = 1 << 32


@kernel
def ticks_after(clock, base):
    return after(clock, base)


@kernel
def tick_of(ticks, elapsed):
    return nearest_tick(ticks, elapsed)


@kernel
def add_time(total, value):
    add(total, 0, 1, value)


@kernel
def update(w, now):
    cubic_update(w, 1, now)


@given(st.integers(0, WORD - 1), st.integers(-(1 << 31), (1 << 31) - 1))
def test_a_clock_that_wraps_goes_on(base, gone):
    assert ticks_after((base + gone) % WORD, base) == gone


@given(st.integers(1, 1 << 31), st.integers(0, 1 << 62))
def test_the_tick_is_the_one_that_is_off_by_the_least_factor(ticks, elapsed):
    off = {known: abs(math.log(known * ticks / max(elapsed, 1))) for known in TICKS_NS}
    assert off[tick_of(ticks, elapsed)] == pytest.approx(min(off.values()))


@given(st.lists(st.integers(0, 1 << 59), min_size=1, max_size=8))
def test_sums_of_squares_stop_where_they_would_overflow(values):
    total = np.zeros(5, np.int64)
    for value in values:
        add_time(total, value)
    squares = sum((value // 1000) ** 2 for value in values)
    assert total.tolist()[:4] == [len(values), min(values), max(values), sum(values)]
    assert total[4] == min(squares, (1 << 62) - 1)


@given(st.integers(LONGEST_NS, 1 << 62), st.integers(2, 1 << 20))
def test_a_pause_of_any_length_leaves_cubics_growth_at_its_limit(pause, cwnd):
    found = []
    for now in (LONGEST_NS, pause):
        w = np.zeros(wc.WINDOW_WIDTH, np.int64)
        w[wc.CWND] = w[wc.TCP_CWND] = cwnd
        w[wc.LAST_MAX] = w[wc.ORIGIN] = cwnd
        w[wc.EPOCH] = 1
        update(w, now)
        found.append(int(w[wc.CNT]))
    assert found[0] == found[1] == max(cwnd // ((410 << 51) >> 40), 2)
