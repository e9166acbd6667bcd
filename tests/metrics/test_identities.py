"""The seed documents' own identities, for any rates."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetool.metrics import convergence, fairness, jain_by_scale, protocol_fairness, variation

RATES = st.lists(st.integers(0, 10**15), min_size=1, max_size=12).filter(any)
PAIRS = st.tuples(st.integers(1, 10**15), st.integers(1, 10**15))


@given(RATES)
def test_jain_lies_between_one_nth_and_one(rates):
    index = fairness.jain_index(rates).value
    assert 1 / len(rates) * (1 - 1e-12) <= index <= 1


@given(PAIRS)
def test_jain_of_two_flows_follows_from_their_ratio(pair):
    ratio = fairness.throughput_ratio(pair).value
    expected = (1 + ratio) ** 2 / (2 * (1 + ratio**2))
    assert math.isclose(fairness.jain_index(pair).value, expected, rel_tol=1e-12)


@given(RATES, st.integers(1, 10**6))
def test_scale_does_not_matter(rates, factor):
    scaled = [rate * factor for rate in rates]
    assert fairness.jain_index(scaled) == fairness.jain_index(rates)
    assert fairness.throughput_ratio(scaled) == fairness.throughput_ratio(rates)


@given(st.floats(0.5, 1))
def test_thresholds_invert_the_index(jain):
    found = fairness.fairness_thresholds(jain)
    assert math.isclose(fairness.jain_index([1, found.ratio]).value, jain, rel_tol=1e-9)


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=40))
def test_jain_at_the_whole_interval_is_jain(windows):
    flows = [[window[0] for window in windows], [window[1] for window in windows]]
    found = jain_by_scale.fairness_over_time_scale(flows, [len(windows)])[len(windows)]
    assert found.jain.value == fairness.jain_index([sum(flow) for flow in flows]).value


@given(st.integers(2, 60), st.integers(1, 10**6))
def test_a_scale_finer_than_alternating_data_is_reported_not_printed(bins, size):
    flows = [[size * (k % 2 == 0) for k in range(2 * bins)], [size * (k % 2 == 1) for k in range(2 * bins)]]
    fine, coarse = (jain_by_scale.fairness_over_time_scale(flows, [1, 2])[factor] for factor in (1, 2))
    assert (fine.jain.value, fine.jain.reason, fine.mean_of_defined) == (None, "degenerate", 0.5)
    assert coarse.jain.value == 1


@given(st.lists(st.integers(1, 10**9), min_size=4, max_size=60))
def test_real_starvation_is_a_finding(sizes):
    found = jain_by_scale.fairness_over_time_scale([sizes, [0] * len(sizes)], [1])[1]
    assert found.jain.value == 0.5


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=60).filter(any), st.integers(1, 1000))
def test_variation_does_not_depend_on_the_unit(bins, factor):
    plain, scaled = variation.cov(bins).value, variation.cov([size * factor for size in bins]).value
    assert math.isclose(plain, scaled, rel_tol=1e-12)


@given(st.lists(st.floats(0.5, 1), max_size=40), st.integers(1, 4))
def test_a_longer_hold_never_converges_sooner(jain, hold):
    shorter = convergence.convergence_time(jain, 5, hold=hold)
    longer = convergence.convergence_time(jain, 5, hold=hold + 1)
    assert longer.value is None or (shorter.value is not None and shorter.value <= longer.value)


@given(st.floats(0.01, 100))
def test_a_ratio_and_its_inverse_are_equally_far_from_fair(ratio):
    found = dict(protocol_fairness.rank({"there": ratio, "back": 1 / ratio}))
    assert math.isclose(found["there"], found["back"], rel_tol=1e-12)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=8), st.integers(0, 5000))
def test_max_min_allocation_is_feasible_and_nobody_can_gain(demand, capacity):
    share = fairness.maxmin_allocation(demand, capacity)
    assert math.isclose(sum(share), min(capacity, sum(demand)), abs_tol=1e-6)
    unmet = [got for got, want in zip(share, demand, strict=True) if got < want - 1e-9]
    assert all(got <= want for got, want in zip(share, demand, strict=True))
    assert not unmet or min(unmet) >= max(share) - 1e-9


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_nan_and_infinity_are_errors_that_name_the_series(bad):
    with pytest.raises(ValueError, match=r"x\[1\]"):
        fairness.jain_index([1, bad])
    with pytest.raises(ValueError, match="negative"):
        fairness.jain_index([1, -1])
