"""Series onto a grid of cells: which cells a curve passes through.

A column shows everything between the lowest and the highest value that the curve takes inside it, so steps have filled
risers and no peak is lost however many points share the column. All work is vectorised over points and columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracetool.report.figure import FloatArray, Series
    from tracetool.report.ticks import Scale

    Mask = NDArray[np.bool_]


def cell_of(fractions: FloatArray, cells: int) -> NDArray[np.intp]:
    """Return the cell (0 .. cells-1) of each fraction in [0, 1]; -1 where it lies outside or is NaN.

    Examples
    --------
    >>> cell_of(np.array([0.0, 0.5, 1.0, 1.2, np.nan]), 11).tolist()
    [0, 5, 10, -1, -1]
    """
    scaled = np.asarray(fractions, np.float64) * (cells - 1)
    inside = (scaled > -0.5) & (scaled < cells - 0.5)  # False for NaN
    return np.where(inside, np.rint(np.where(inside, scaled, 0.0)), -1).astype(np.intp)


def series_mask(series: Series, xs: Scale, ys: Scale, width: int, height: int) -> Mask:
    """Return a bool array of shape (height, width), row 0 at the top: the cells that `series` covers."""
    if not len(series.x):
        return np.zeros((height, width), bool)
    fx, fy = xs.fractions(series.x), ys.fractions(series.y)
    if series.kind == "points":
        return point_mask(fx, fy, width, height)
    if series.kind == "bars" and series.y2 is not None:
        return bar_mask(fx, fy, ys.fractions(series.y2), width, height)
    if series.kind == "band":
        low, _ = column_extents(fx, fy, width, step=True)
        _, high = column_extents(fx, ys.fractions(series.y if series.y2 is None else series.y2), width, step=True)
        return _fill(low, high, height)
    return _fill(*column_extents(fx, fy, width, step=series.kind == "step"), height)


def point_mask(fx: FloatArray, fy: FloatArray, width: int, height: int) -> Mask:
    """Return the cells (row 0 at the top) that hold at least one of the points given as fractions of the axes."""
    mask = np.zeros((height, width), bool)
    column, row = cell_of(fx, width), cell_of(fy, height)
    seen = (column >= 0) & (row >= 0)
    mask[height - 1 - row[seen], column[seen]] = True
    return mask


def bar_mask(fx: FloatArray, low: FloatArray, high: FloatArray, width: int, height: int) -> Mask:
    """Return the cells of upright bars given as fractions of the axes."""
    column = cell_of(fx, width)
    seen = (column >= 0) & (high >= 0) & (low <= 1)  # False for NaN
    column = column[seen]
    bottom = np.rint(np.clip(low[seen], 0, 1) * (height - 1)).astype(np.intp)
    top = np.rint(np.clip(high[seen], 0, 1) * (height - 1)).astype(np.intp)
    edges = np.zeros((height + 1, width), np.intp)  # +1 where a bar begins, -1 above where it ends
    np.add.at(edges, (bottom, column), 1)
    np.add.at(edges, (top + 1, column), -1)
    mask: Mask = edges.cumsum(axis=0)[height - 1 :: -1] > 0
    return mask


def column_extents(fx: FloatArray, fy: FloatArray, width: int, *, step: bool) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and highest value of a curve within each of `width` columns (NaN where there is none).

    Parameters
    ----------
    fx, fy
        Points as fractions of the axes; `fx` not decreasing, NaN in `fy` is a gap.
    step
        True if a value holds until the next point, False if points are joined by straight lines.
    """
    edges = (np.arange(width + 1) - 0.5) / max(width - 1, 1)
    bounds = np.searchsorted(fx, edges, side="left")
    first, after = bounds[:-1], bounds[1:]
    low, high = np.full(width, np.nan), np.full(width, np.nan)
    filled = np.flatnonzero(after > first)
    if len(filled):
        inside = fy[: after[-1]]
        low[filled] = np.fmin.reduceat(inside, first[filled])
        high[filled] = np.fmax.reduceat(inside, first[filled])
    for at_edge in _carried(fx, fy, first, after, edges, step=step):
        low, high = np.fmin(low, at_edge), np.fmax(high, at_edge)
    return low, high


def _carried(
    fx: FloatArray, fy: FloatArray, first: NDArray[np.intp], after: NDArray[np.intp], edges: FloatArray, *, step: bool
) -> list[FloatArray]:
    """Return the values that the curve has where it enters (and, for lines, leaves) each column."""
    if step:
        held = (first > 0) & (first < len(fx))
        return [np.where(held, fy[np.clip(first - 1, 0, None)], np.nan)]
    return [_interpolated(fx, fy, first, edges[:-1]), _interpolated(fx, fy, after, edges[1:])]


def _interpolated(fx: FloatArray, fy: FloatArray, right: NDArray[np.intp], at: FloatArray) -> FloatArray:
    """Return the value at `at` of the line from point `right - 1` to point `right`."""
    known = (right > 0) & (right < len(fx))
    b = np.where(known, right, 0)
    a = np.where(known, right - 1, 0)
    width = fx[b] - fx[a]
    share = np.divide(at - fx[a], width, out=np.zeros_like(at), where=width > 0)
    return np.where(known, fy[a] + share * (fy[b] - fy[a]), np.nan)


def _fill(low: FloatArray, high: FloatArray, height: int) -> Mask:
    """Return the cells between `low` and `high` of each column."""
    seen = ~np.isnan(low) & ~np.isnan(high)
    bottom = np.rint(np.clip(np.where(seen, low, 2.0), -1, 2) * (height - 1))
    top = np.rint(np.clip(np.where(seen, high, -1.0), -1, 2) * (height - 1))
    rows = np.arange(height - 1, -1, -1)[:, None]
    mask: Mask = (rows >= bottom) & (rows <= top)
    return mask
