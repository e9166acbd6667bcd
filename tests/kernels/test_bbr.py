"""BBR's estimates do what their slow twins do, and what they are for."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.bbr import Policer, WindowedMax
from tracetool.kernels import replay_columns as rc
from tracetool.kernels import window_columns as wc
from tracetool.kernels._jit import kernel
from tracetool.kernels.bbr import bdp
from tracetool.kernels.bbr_policer import BW_UNIT, watch_policer
from tracetool.kernels.window_pace import LONGEST_NS, watch_pace
from tracetool.kernels.windowed_max import running_max

MSS = 1448
HIGH_GAIN = 739  # 2/ln 2, in 1/256


@kernel
def take(w, window, time, value):
    running_max(w, 0, window, time, value)
    return w[1]


@kernel
def product(w, rate, gain):
    return bdp(w, rate, gain)


@kernel
def watch(w, h, e, lost, limited):
    return watch_policer(w, h, e, lost, limited)


@kernel
def pace(w, h, e, until):
    watch_pace(w, h, e, until)


samples = st.lists(st.tuples(st.integers(0, 15), st.integers(1, 60)), min_size=1, max_size=200)


@given(st.integers(1, 20), samples)
@settings(max_examples=200)
def test_the_windowed_maximum_is_the_twins(window, steps):
    w, twin, time = np.zeros(6, np.int64), WindowedMax(window), 0
    for pause, value in steps:
        time += pause
        assert take(w, window, time, value) == twin.take(time, value)
        assert [(int(w[i]), int(w[i + 1])) for i in (0, 2, 4)] == twin.best


@given(st.integers(4, 40), samples)
@settings(max_examples=200)
def test_the_windowed_maximum_is_a_sample_of_the_window_and_no_less_than_the_last(window, steps):
    w, seen, time = np.zeros(6, np.int64), [], 0
    for pause, value in steps:
        time += pause
        seen.append((time, value))
        best = take(w, window, time, value)
        within = [v for t, v in seen if time - t <= window]
        assert value <= best <= max(within)
        assert best in within


@given(st.integers(2, 40), st.lists(st.integers(1, 60), min_size=1, max_size=120))
@settings(max_examples=200)
def test_what_only_rises_or_only_falls_is_followed(window, values):
    rising, falling = np.zeros(6, np.int64), np.zeros(6, np.int64)
    for time, value in enumerate(sorted(values)):
        assert take(rising, window, time, value) == value
    fallen = sorted(values, reverse=True)
    for time, value in enumerate(fallen):
        best = take(falling, window, time, value)
        assert value <= best <= fallen[max(0, time - window)]


def acks(seed, size, loss, rate, wobble):
    """ACKs of a path that lets about `rate` segments per second through and drops part of the rest."""
    rng = np.random.default_rng(seed)
    time = 0
    for _ in range(size):
        took = int(rng.integers(1, 30))
        time += took
        delivered = int(rng.poisson(took * rate * rng.uniform(1 - wobble, 1 + wobble) / 1000))
        lost = int(rng.poisson(max(delivered, 1) * loss)) if rng.random() < 0.5 else 0
        yield time, delivered, lost, rng.random() < 0.3, rng.random() < 0.002


@given(
    st.integers(0, 1 << 32),
    st.integers(1, 900),
    st.sampled_from([0.0, 0.1, 0.4, 0.6, 1.0]),
    st.sampled_from([50, 400, 5000]),
    st.sampled_from([0.0, 0.3, 1.0]),
)
@settings(max_examples=150)
def test_the_model_of_a_policer_is_the_twins(seed, size, loss, rate, wobble):
    w, h, twin = np.zeros(wc.WINDOW_WIDTH, np.int64), np.zeros(wc.HYPOTHESIS_WIDTH, np.int64), Policer(MSS)
    h[wc.MSS] = MSS
    w[wc.BBR_MODE] = wc.PROBE_BW
    e = np.zeros(rc.EVENT_WIDTH, np.int64)
    for time, delivered, lost, new_round, limited in acks(seed, size, loss, rate, wobble):
        e[rc.TIME], e[rc.NEWLY_DELIVERED] = 10**18 + time * 1_000_000, delivered
        w[wc.LT_LOST_TOTAL] += lost
        w[wc.BBR_ROUND_START] = new_round
        anew = watch(w, h, e, lost, limited)
        assert anew == twin.ack(time, delivered, lost, new_round=new_round, limited=limited, probing=True)
        assert (w[wc.LT_USED] != 0, w[wc.LT_BW]) == (twin.used, twin.rate or 0)
        e[rc.DELIVERED_BEFORE] += delivered


def test_a_policer_is_found_after_two_like_intervals_and_forgotten_after_48_rounds():
    w, h = np.zeros(wc.WINDOW_WIDTH, np.int64), np.zeros(wc.HYPOTHESIS_WIDTH, np.int64)
    h[wc.MSS], w[wc.BBR_MODE] = MSS, wc.PROBE_BW
    e = np.zeros(rc.EVENT_WIDTH, np.int64)
    used = []
    for round_number in range(70):  # each a round of 50 ms, 100 segments delivered and 30 lost
        e[rc.TIME], e[rc.NEWLY_DELIVERED] = 10**18 + round_number * 50_000_000, 100
        w[wc.LT_LOST_TOTAL] += 30
        w[wc.BBR_ROUND_START] = 1
        if watch(w, h, e, 30, False):
            break
        used.append(int(w[wc.LT_USED]))
        e[rc.DELIVERED_BEFORE] += 100
        if used[-1]:
            assert abs(w[wc.LT_BW] * 1e6 / 2**24 - 2000) < 1  # segments per second
    assert used.index(1) == 7  # the interval that begins with the first loss, and the next: four rounds each
    assert sum(used) == 48


@given(st.one_of(st.integers(-(10**18), 10**18), st.integers(5_000_000, LONGEST_NS)))
@settings(max_examples=300)
def test_a_pause_of_any_length_leaves_the_pace_in_bounds(pause):
    """At 100 Gbit/s, where a product of the rate and the hours of an idle connection would overflow."""
    w, h, e = (np.zeros(width, np.int64) for width in (wc.WINDOW_WIDTH, wc.HYPOTHESIS_WIDTH, rc.EVENT_WIDTH))
    h[wc.MSS], rate = MSS, 12_500_000_000
    w[wc.BBR_MODE], w[wc.BBR_ROUNDS], w[wc.DELAY_MIN], w[wc.CWND] = wc.PROBE_BW, 9, 10_000_000, 1000
    w[wc.BBR_RATE], w[wc.BBR_BW + 1] = rate, rate * BW_UNIT // (MSS * 1_000_000)
    e[rc.TIME], e[rc.SENT_NEW], e[rc.PIPE_SENT], e[rc.ROOM] = 10**18, 500, 500, 1 << 20
    pace(w, h, e, 10**18 + pause)
    assert not w[wc.PHASE_SEEN]  # 500 segments are not more than leave in 5 ms
    assert w[wc.PACE_SINCE] == (10**18 if 0 <= pause < 5_000_000 else 0)
    missing = min(rate * (pause // 1000) * wc.PACE_UNIT // (MSS * 1_000_000) - 500 * wc.PACE_UNIT, 500 * wc.PACE_UNIT)
    expected = missing - (65536 // MSS) * wc.PACE_UNIT if 5_000_000 <= pause <= LONGEST_NS else 0
    assert w[wc.FIT_PACED] == max(expected, 0)


@given(st.integers(0, 1 << 44), st.integers(1, 1 << 62))
def test_a_rate_or_time_that_no_path_has_makes_no_negative_window(rate, rtt):
    """Products are bounded by 64 bits, as the clocks of a capture are not."""
    w = np.zeros(wc.WINDOW_WIDTH, np.int64)
    w[wc.BBR_MIN_RTT] = rtt
    whole = rate * (rtt // 1000) * HIGH_GAIN
    made = product(w, rate, HIGH_GAIN)
    if whole < 1 << 61:
        assert made == -(-(whole >> 8) // BW_UNIT)
    else:
        assert 0 < made <= wc.INFINITE
