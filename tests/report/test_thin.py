"""M4 thinning keeps every peak and trough, and says what it did."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracetool.report.figure import Axis, Events, Figure, Panel, Series
from tracetool.report.thin import m4_rows, thin_figure, thin_series

VALUES = st.one_of(st.integers(-50, 50).map(float), st.just(float("nan")))
POINTS = st.lists(st.tuples(st.floats(0, 100, allow_subnormal=False), VALUES), min_size=1, max_size=300)


def naive_m4(x, y, columns):
    """Walk point by point: keep the first, last, lowest and highest of each column, and where a gap begins or ends."""
    if len(x) <= 4 * columns:
        return list(range(len(x)))
    span = x[-1] - x[0]
    kept = set()
    members = {}
    for row, at in enumerate(x):
        column = 0 if span <= 0 else min(max(int((at - x[0]) / span * columns), 0), columns - 1)
        members.setdefault(column, []).append(row)
    for rows in members.values():
        kept |= {rows[0], rows[-1]}
        known = [row for row in rows if not np.isnan(y[row])]
        if known:
            kept |= {min(known, key=lambda row: (y[row], row)), min(known, key=lambda row: (-y[row], row))}
        for opens in (True, False):
            edge = [row for row in rows if row and np.isnan(y[row]) == opens and np.isnan(y[row - 1]) != opens]
            kept |= set(edge[:1])
    return sorted(kept)


@given(POINTS, st.integers(1, 40))
def test_equals_the_naive_twin(points, columns):
    points = sorted(points, key=lambda point: point[0])
    x, y = np.array([p[0] for p in points]), np.array([p[1] for p in points])
    assert m4_rows(x, y, columns).tolist() == naive_m4(x, y, columns)


@given(POINTS, st.integers(1, 40))
def test_no_peak_or_trough_of_any_column_is_lost(points, columns):
    points = sorted(points, key=lambda point: point[0])
    x, y = np.array([p[0] for p in points]), np.array([p[1] for p in points])
    rows = m4_rows(x, y, columns)
    span = x[-1] - x[0]
    bins = np.zeros(len(x), int) if span <= 0 else np.clip((x - x[0]) / span * columns, 0, columns - 1).astype(int)
    for column in np.unique(bins):
        whole, kept = y[bins == column], y[rows][bins[rows] == column]
        if not np.isnan(whole).all():
            assert np.nanmin(kept) == np.nanmin(whole)
            assert np.nanmax(kept) == np.nanmax(whole)
        assert len(kept) <= 4 + 2 or len(x) <= 4 * columns


def test_a_million_points_become_few_and_keep_one_lone_spike():
    x = np.arange(1_000_000) / 1e3
    y = np.sin(x)
    y[123_457] = 99.0
    thin = thin_series(Series("s", "line", x, y), 800)
    assert len(thin.x) <= 6 * 800
    assert thin.y.max() == 99.0


def test_a_band_keeps_both_edges():
    x = np.arange(10_000.0)
    low, high = np.zeros(10_000), np.ones(10_000)
    low[777], high[888] = -5.0, 7.0
    thin = thin_series(Series("b", "band", x, low, y2=high), 50)
    assert thin.y2 is not None
    assert (thin.y.min(), thin.y2.max()) == (-5.0, 7.0)


def test_bars_on_top_of_one_another_stay_one_line():
    low = np.arange(20_000.0)
    thin = thin_series(Series("segments", "bars", low / 7, low, y2=low + 1), 50)
    assert len(thin.x) <= 51
    assert (thin.y[0], thin.y2[-1]) == (0.0, 20_000.0)
    assert np.array_equal(thin.y[1:], thin.y2[:-1])


def test_levels_of_steps_keep_their_ends():
    y = np.repeat([1.0, 5.0, np.nan, 2.0], 25_000)
    thin = thin_series(Series("s", "step", np.arange(100_000.0), y), 100)
    assert thin.x.tolist() == [0, 24_999, 25_000, 49_999, 50_000, 74_999, 75_000, 99_999]


def test_the_subtitle_says_so_and_events_stay_whole():
    x = np.arange(50_000.0)
    events = Events("loss", x, y=x)
    figure = Figure("t", Axis("time", "s"), (Panel(Axis("y"), (Series("s", "line", x, x),), (events,)),), "kernel")
    thin = thin_figure(figure, 100)
    assert thin.subtitle.startswith("kernel; ")
    assert "of 50,000 points" in thin.subtitle
    assert len(thin.panels[0].events[0].x) == 50_000


def test_a_small_figure_is_left_alone():
    figure = Figure("t", Axis("x"), (Panel(Axis("y"), (Series("s", "line", np.arange(5.0), np.arange(5.0)),)),))
    assert thin_figure(figure, 100) is figure


def test_points_out_of_order_are_thinned_by_time():
    x = np.arange(10_000.0)[::-1].copy()
    y = np.zeros(10_000)
    y[4321] = 3.0
    thin = thin_series(Series("p", "points", x, y), 20)
    assert thin.y.max() == 3.0
    assert len(thin.x) <= 6 * 20
