"""Curves on a grid: steps have filled risers, gaps stay open, nothing that a column holds is lost."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracetool.report.figure import Series
from tracetool.report.raster import cell_of, column_extents, series_mask
from tracetool.report.ticks import Scale

UNIT = st.floats(0, 1, allow_subnormal=False)
MAYBE = st.one_of(UNIT, st.just(float("nan")))


def naive_extents(fx, fy, width, *, step):
    """Walk every column and every point, and (for lines) every piece between two points."""
    low, high = np.full(width, np.nan), np.full(width, np.nan)
    for column in range(width):
        left, right = (column - 0.5) / max(width - 1, 1), (column + 0.5) / max(width - 1, 1)
        values = [y for x, y in zip(fx, fy, strict=True) if left <= x < right]
        before = [i for i, x in enumerate(fx) if x < left]
        if step:
            if before and before[-1] + 1 < len(fx):
                values.append(fy[before[-1]])
        else:
            for edge in (left, right):
                after = [i for i, x in enumerate(fx) if x >= edge]
                if after and after[0] > 0:
                    a, b = after[0] - 1, after[0]
                    share = (edge - fx[a]) / (fx[b] - fx[a]) if fx[b] > fx[a] else 0.0
                    values.append(fy[a] + share * (fy[b] - fy[a]))
        known = [value for value in values if not np.isnan(value)]
        if known:
            low[column], high[column] = min(known), max(known)
    return low, high


@given(st.lists(st.tuples(UNIT, MAYBE), min_size=1, max_size=40), st.integers(1, 30), st.booleans())
def test_extents_equal_the_naive_twin(points, width, step):
    points.sort(key=lambda point: point[0])
    fx, fy = np.array([p[0] for p in points]), np.array([p[1] for p in points])
    for ours, naive in zip(
        column_extents(fx, fy, width, step=step), naive_extents(fx, fy, width, step=step), strict=True
    ):
        np.testing.assert_allclose(ours, naive, atol=1e-9)


def draw(kind, x, y, width=11, height=5, y2=None):
    series = Series("s", kind, np.array(x, float), np.array(y, float), y2=None if y2 is None else np.array(y2, float))
    mask = series_mask(series, Scale(0, 10), Scale(0, 4), width, height)
    return ["".join("#" if cell else "." for cell in row) for row in mask]


def test_a_step_is_level_then_a_filled_riser():
    assert draw("step", [0, 5, 10], [0, 4, 4]) == [
        ".....######",
        ".....#.....",
        ".....#.....",
        ".....#.....",
        "######.....",
    ]


def test_a_gap_is_not_bridged():
    assert draw("step", [0, 3, 7, 10], [2, np.nan, 2, 2])[2] == "####...####"


def test_a_line_slopes_without_holes():
    rows = draw("line", [0, 10], [0, 4])
    assert all("#" in row for row in rows)
    assert all(any(row[column] == "#" for row in rows) for column in range(11))


def test_points_stand_alone():
    assert "".join(draw("points", [0, 5, 10], [0, 2, 4])).count("#") == 3


def test_a_band_is_filled_between_its_edges():
    assert draw("band", [0, 10], [1, 1], y2=[3, 3]) == [
        "...........",
        "###########",
        "###########",
        "###########",
        "...........",
    ]


def test_what_lies_outside_is_cut_and_a_level_that_began_before_is_seen():
    assert draw("step", [-5, 20], [2, 3])[2] == "###########"
    assert draw("points", [-5, 20], [2, 3]) == ["..........."] * 5


def test_cells_of_nan_and_outside_are_minus_one():
    assert cell_of(np.array([np.nan, -0.2, 1.3, 0.5]), 5).tolist() == [-1, -1, -1, 2]
