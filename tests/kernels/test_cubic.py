"""CUBIC's kernels do what their slow twin does, step by step."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.cubic import Cubic, whole_root
from tracetool.kernels import window_columns as wc
from tracetool.kernels._jit import kernel
from tracetool.kernels.cubic import cubic_root, cubic_ssthresh, cubic_update


@kernel
def root(number):
    return cubic_root(number)


@kernel
def threshold(w):
    return cubic_ssthresh(w)


@kernel
def update(w, acked, now):
    cubic_update(w, acked, now)


@given(st.integers(0, 1 << 60))
@settings(max_examples=200)
def test_the_root_is_whole(number):
    assert root(number) == whole_root(number)


@given(
    st.integers(2, 500),
    st.integers(0, 300_000_000),
    st.lists(st.tuples(st.integers(0, 60_000_000), st.integers(1, 300), st.integers(0, 29)), min_size=10, max_size=120),
)
@settings(max_examples=150)
def test_growth_and_reductions_are_the_twins(cwnd, delay_min, steps):
    w = np.zeros(wc.WINDOW_WIDTH, np.int64)
    twin = Cubic(cwnd, delay_min)
    w[wc.CWND], w[wc.DELAY_MIN] = cwnd, delay_min
    now = 10**18
    for pause, acked, what in steps:
        now += pause
        if what == 0:  # a loss, now and then
            twin.cwnd = twin.reduce()
            w[wc.CWND] = threshold(w)
        else:
            need = twin.acked(acked, now)
            update(w, acked, now)
            assert w[wc.CNT] == need
            grown = max(1, acked // need)
            twin.cwnd += grown
            w[wc.CWND] += grown
        state = [int(w[column]) for column in (wc.CWND, wc.LAST_MAX, wc.ORIGIN, wc.K, wc.EPOCH, wc.TCP_CWND)]
        assert state == [twin.cwnd, twin.last_max, twin.origin, twin.k, twin.epoch, twin.line]
