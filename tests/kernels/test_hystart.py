"""HyStart's kernels and the rate reduction do what their slow twins do, ACK by ACK."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.hystart import MS, HyStart, Reduction
from tests.naive.hystart_plus import HyStartPlus
from tracetool.kernels import window_columns as wc
from tracetool.kernels._jit import kernel
from tracetool.kernels.hystart import hystart_plus_growth, hystart_plus_update, hystart_reset, hystart_update
from tracetool.kernels.window_react import prr

NAMES = {wc.TRAIN: "train", wc.DELAY: "delay", 0: ""}


@kernel
def begin(w, now, nxt):
    hystart_reset(w, now, nxt)


@kernel
def update(w, h, now, delay, una, nxt, srtt, out):
    hystart_update(w, h, now, delay, una, nxt, srtt, out)


@kernel
def plus_growth(w, acked, paced):
    return hystart_plus_growth(w, acked, paced)


@kernel
def plus_update(w, now, delay, una, nxt):
    hystart_plus_update(w, now, delay, una, nxt)


@kernel
def reduce(w, delivered, lost, advanced, pipe):
    prr(w, delivered, lost, advanced, pipe)


ACKS = st.lists(
    st.tuples(
        st.sampled_from([100_000, 300_000, 500_000] * 5 + [2_000_000] * 3 + [2_000_001]),  # pause
        st.sampled_from([0, 1, 2]),  # ms of queue beside what stands there
        st.integers(1, 4),  # segments
    ),
    min_size=40,
    max_size=120,
)


@given(
    ACKS,
    st.integers(1, 60),
    st.integers(0, 20),
    st.integers(10, 40),
    st.sampled_from([1448, 8948]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=200)
def test_hystart_fires_when_its_twin_does(acks, least, standing, cwnd, mss, paced, late_rounds):
    w, h = np.zeros(wc.WINDOW_WIDTH, np.int64), np.zeros(wc.HYPOTHESIS_WIDTH, np.int64)
    h[wc.HYSTART], h[wc.PACED], h[wc.MSS] = wc.TRAIN | wc.DELAY, paced, mss
    h[wc.HYSTART_ERA] = wc.ERA_LATE_ROUNDS if late_rounds else wc.ERA_ALL_ROUNDS
    w[wc.CWND], w[wc.SSTHRESH] = cwnd, wc.INFINITE
    twin = HyStart(paced, mss, late_rounds)
    now, una, nxt = 10**18, 0, cwnd * mss
    begin(w, now, nxt)
    twin.begin(now, nxt)
    for pause, queue, segments in acks:
        now += pause
        una += segments * mss
        rtt = (least + queue + (standing if una > cwnd * mss else 0)) * MS
        w[wc.DELAY_MIN] = rtt if w[wc.DELAY_MIN] == 0 else min(rtt, w[wc.DELAY_MIN])
        fired = twin.acked(now, rtt, una, nxt, int(w[wc.CWND]), int(w[wc.SSTHRESH]), rtt, cwnd)
        update(w, h, now, rtt, una, nxt, rtt, cwnd)
        assert NAMES[int(w[wc.FOUND_BY])] == fired.split(" ")[0]
        assert bool(w[wc.FOUND]) == bool(fired)
        if fired:
            assert w[wc.SSTHRESH] == w[wc.CWND]
            break
        w[wc.CWND] += segments
        nxt = una + int(w[wc.CWND]) * mss


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12)), min_size=300, max_size=600),  # ms of noise; segments
    st.lists(st.integers(0, 12), min_size=12, max_size=12),  # ms of queue, of each round
    st.integers(1, 200),
    st.integers(10, 40),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_hystart_plus_is_its_twin(acks, queues, least, cwnd, paced):
    w = np.zeros(wc.WINDOW_WIDTH, np.int64)
    w[wc.CWND], w[wc.SSTHRESH] = cwnd, wc.INFINITE
    twin = HyStartPlus(MS, paced, window_end=cwnd)
    begin(w, 0, cwnd)
    now, una, nxt = 10**18, 0, cwnd
    for noise, segments in acks:
        now += MS
        una += segments
        rtt = (least + queues[min(len(twin.rounds), len(queues)) - 1] + noise) * MS
        growth = twin.growth(segments)
        assert plus_growth(w, segments, paced) == growth
        w[wc.CWND] += growth
        over = twin.sample(rtt, una, nxt)
        plus_update(w, now, rtt, una, nxt)
        assert w[wc.CSS_ROUNDS] == twin.css
        assert bool(w[wc.FOUND]) == over
        if twin.css:
            assert w[wc.CSS_BASE] == twin.baseline
        if over:
            assert w[wc.FOUND_BY] == wc.PLUS_PLUS
            assert w[wc.SSTHRESH] == w[wc.CWND]
            break
        nxt = max(nxt, una + min(int(w[wc.CWND]), 400))


@given(st.integers(2, 1000), st.integers(1, 5), st.integers(1, 40))
@settings(max_examples=20, deadline=None)
def test_hystart_plus_leaves_a_later_slow_start_alone(ssthresh, css, acked):
    w = np.zeros(wc.WINDOW_WIDTH, np.int64)
    w[wc.CWND], w[wc.SSTHRESH], w[wc.CSS_ROUNDS], w[wc.CSS_BASE] = 1, ssthresh, css, 50 * MS
    before = w.copy()
    plus_update(w, 10**18, 40 * MS, 100, 200)
    assert plus_growth(w, acked, False) == acked
    assert (w == before).all()


@given(
    st.integers(4, 2000),
    st.sampled_from([717, 512]),
    st.fractions(0, 1),
    st.lists(st.tuples(st.integers(1, 5), st.sampled_from([0, 0, 2]), st.booleans(), st.integers(0, 3)), min_size=10),
)
@settings(max_examples=200)
def test_the_rate_reduction_is_its_twins(prior, beta, part, acks):
    w = np.zeros(wc.WINDOW_WIDTH, np.int64)
    w[wc.PRIOR_CWND], w[wc.SSTHRESH] = prior, max(2, prior * beta // 1024)
    twin = Reduction(prior, int(w[wc.SSTHRESH]))
    pipe = int(prior * part)
    for delivered, lost, advanced, less in acks:
        pipe = max(0, pipe - delivered - lost)
        cwnd = twin.acked(delivered, lost, advanced, pipe)
        reduce(w, delivered, lost, advanced, pipe)
        assert w[wc.CWND] == cwnd
        sent = max(0, cwnd - pipe - less)  # what there is room for, or less
        twin.sent += sent
        w[wc.PRR_OUT] += sent
        pipe += sent
