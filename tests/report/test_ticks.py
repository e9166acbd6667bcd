"""Ticks are round numbers inside the range, never more than asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetool.report.figure import Axis
from tracetool.report.ticks import Scale, linear_ticks, log_ticks, scale_of, step_for, tick_labels

FINITE = st.floats(-1e9, 1e9, allow_nan=False)


@given(st.floats(1e-6, 1e12), st.integers(2, 20))
def test_steps_are_one_two_or_five_times_a_power_of_ten(span, count):
    step = step_for(span, count)
    leading = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert min(abs(leading - factor) for factor in (1, 2, 5, 10)) < 1e-6
    assert span / step <= count * (1 + 1e-6)


@given(FINITE, st.floats(1e-3, 1e9), st.integers(2, 20))
def test_linear_ticks_lie_inside_and_are_few(low, span, count):
    ticks = linear_ticks(low, low + span, count)
    assert all(low - 1e-6 * span <= tick <= low + span * (1 + 1e-6) for tick in ticks)
    assert len(ticks) <= count
    assert ticks == sorted(set(ticks))


@pytest.mark.parametrize(
    ("low", "high", "count", "expected"),
    [(0, 2.5, 6, [0, 0.5, 1, 1.5, 2, 2.5]), (0, 2100, 6, [0, 500, 1000, 1500, 2000]), (3, 3, 5, [3])],
)
def test_linear_examples(low, high, count, expected):
    assert linear_ticks(low, high, count) == expected


def test_log_ticks_thin_out_over_many_decades():
    assert log_ticks(1, 1e9, 5) == [1, 100, 10_000, 1e6, 1e8]
    assert log_ticks(1, 10, 6) == [1, 2, 5, 10]


def test_a_fixed_end_stays_and_a_free_one_is_widened_to_a_round_number():
    scale = scale_of(Axis("y", low=0.0), [np.array([3.0, 208.0, np.nan])], nice=10)
    assert (scale.low, scale.high) == (0.0, 250.0)


def test_log_scale_ignores_what_has_no_logarithm():
    scale = scale_of(Axis("y", scale="log"), [np.array([0.0, -5.0, 3.0, 40.0, np.inf])], nice=5)
    assert (scale.low, scale.high) == (1.0, 100.0)
    assert np.isnan(scale.fractions(np.array([0.0]))[0])


@pytest.mark.parametrize("values", [[], [7.0], [0.0], [np.nan], [-3.0, -3.0]])
@pytest.mark.parametrize("kind", ["linear", "log"])
def test_no_data_or_one_value_still_gives_a_range(values, kind):
    scale = scale_of(Axis("y", scale=kind), [np.array(values)], nice=5)
    assert scale.high > scale.low
    assert np.isfinite(scale.fractions(np.array([scale.low, scale.high]))).all()


def test_labels_are_short_and_share_a_suffix():
    assert tick_labels([0.0, 0.5, 1.0]) == ["0", "0.5", "1"]
    assert tick_labels([0.0, 5e6, 1e7]) == ["0", "5M", "10M"]
    assert tick_labels([0.1 + 0.2]) == ["0.3"]


def test_fractions_run_from_zero_to_one():
    assert Scale(10, 1000, log=True).fractions(np.array([10.0, 100.0, 1000.0])).tolist() == [0, 0.5, 1]
