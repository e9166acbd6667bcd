"""M4 thinning: as many points as pixels can show, and no peak or trough lost.

Each pixel column keeps its first, last, lowest and highest point (Jugel et al., "M4: A Visualization-Oriented Time
Series Data Aggregation", VLDB 2014). A line through those points covers the same pixels as a line through all of them.
Largest-triangle thinning (LTTB) has no such promise and drops maxima.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracetool.report.ticks import scale_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracetool.report.figure import Figure, FloatArray, Panel, Series


def m4_rows(
    x: FloatArray, y: FloatArray, columns: int, low: float | None = None, high: float | None = None
) -> NDArray[np.intp]:
    """Return the sorted rows to keep: first, last, lowest and highest of each of `columns` equal parts of the x range.

    Parameters
    ----------
    x
        Finite, not decreasing.
    y
        Values; NaN is a gap. The first row of a gap is kept, so that no line is drawn across it.
    columns
        Number of pixel columns, at least 1.
    low, high
        The x range that the columns share; by default that of the data.

    Examples
    --------
    >>> m4_rows(np.arange(8.0), np.array([0.0, 5, 1, 2, 3, 3, -4, 3]), 1).tolist()
    [0, 1, 6, 7]
    """
    if len(x) <= 4 * columns:
        return np.arange(len(x))
    low = float(x[0]) if low is None else low
    high = float(x[-1]) if high is None else high
    span = high - low
    if span > 0:
        bins = np.clip((x - low) / span * columns, 0, columns - 1).astype(np.intp)
        bins[x < low], bins[x > high] = -1, columns  # what a zoomed plot does not show stays apart from what it does
    else:
        bins = np.zeros(len(x), np.intp)
    starts = np.flatnonzero(np.r_[True, bins[1:] != bins[:-1]])
    ends = np.r_[starts[1:], len(x)] - 1
    return np.unique(
        np.concatenate(
            [
                starts,
                ends,
                _extreme_rows(y, starts, ends, np.inf),
                _extreme_rows(-y, starts, ends, np.inf),
                _gap_rows(y, starts),
            ]
        )
    )


def _extreme_rows(y: FloatArray, starts: NDArray[np.intp], ends: NDArray[np.intp], worst: float) -> NDArray[np.intp]:
    """Return the first row of each part that holds its lowest value (NaN is never the lowest)."""
    values = np.where(np.isnan(y), worst, y)
    lowest = np.repeat(np.minimum.reduceat(values, starts), ends - starts + 1)
    hits = np.flatnonzero(values == lowest)
    part = np.searchsorted(starts, hits, side="right")
    return hits[np.r_[True, part[1:] != part[:-1]]]


def _gap_rows(y: FloatArray, starts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return, for each part, the first row where a gap begins and the first where one ends."""
    missing = np.isnan(y)
    if not missing.any():
        return np.empty(0, np.intp)
    rows = []
    for edge in (missing[1:] & ~missing[:-1], ~missing[1:] & missing[:-1]):
        hits = np.flatnonzero(edge) + 1
        if len(hits):
            part = np.searchsorted(starts, hits, side="right")
            rows.append(hits[np.r_[True, part[1:] != part[:-1]]])
    return np.concatenate(rows) if rows else np.empty(0, np.intp)


def thin_series(series: Series, columns: int, low: float | None = None, high: float | None = None) -> Series:
    """Return `series` with at most six points for each pixel column (twice that for a band, which has two edges)."""
    if len(series.x) <= 4 * columns:
        return series
    if series.kind in ("points", "bars") and np.any(series.x[1:] < series.x[:-1]):
        series = series.take(np.argsort(series.x, kind="stable"))
    if series.kind == "bars":
        series = _joined_bars(series, columns, low, high)
    rows = m4_rows(series.x, series.y, columns, low, high)
    if series.y2 is not None:
        rows = np.union1d(rows, m4_rows(series.x, series.y2, columns, low, high))
    thin = series.take(rows)
    return thin.take(_corner_rows(thin)) if series.kind in ("step", "band") else thin


def _joined_bars(series: Series, columns: int, low: float | None, high: float | None) -> Series:
    """Return bars with those joined that stand in one pixel column, each on top of the one before."""
    low = float(series.x[0]) if low is None else low
    width = ((float(series.x[-1]) if high is None else high) - low) / columns
    if width <= 0 or series.y2 is None:
        return series
    column = np.floor((series.x - low) / width)
    begins = np.r_[True, (column[1:] != column[:-1]) | (series.y[1:] != series.y2[:-1])]
    starts = np.flatnonzero(begins)
    return replace(series.take(starts), y2=series.y2[np.r_[starts[1:], len(series.x)] - 1])


def _corner_rows(series: Series) -> NDArray[np.intp]:
    """Return the rows of steps without those in the middle of a level: the picture is the same without them."""
    edges = [edge for edge in (series.y, series.y2) if edge is not None]
    kept = np.ones(len(series.x), bool)
    kept[1:-1] = False
    for edge in edges:
        level = (edge[1:] == edge[:-1]) | (np.isnan(edge[1:]) & np.isnan(edge[:-1]))
        kept[1:-1] |= ~(level[:-1] & level[1:])
    return np.flatnonzero(kept)


def without_levels(figure: Figure) -> Figure:
    """Return `figure` without the points amid the level of a step, which a picture does not show.

    Examples
    --------
    >>> from tracetool.report.figure import Axis, Figure, Panel, Series
    >>> steps = Series("cwnd", "step", np.arange(6.0), np.array([10.0, 10, 10, 10, 20, 20]))
    >>> without_levels(Figure("t", Axis("time"), (Panel(Axis("window"), (steps,)),))).panels[0].series[0].x.tolist()
    [0.0, 3.0, 4.0, 5.0]
    """
    panels = (
        replace(
            panel,
            series=tuple(
                series.take(_corner_rows(series)) if series.kind in ("step", "band") and len(series.x) else series
                for series in panel.series
            ),
        )
        for panel in figure.panels
    )
    return replace(figure, panels=tuple(panels))


def thin_figure(figure: Figure, columns: int) -> Figure:
    """Return `figure` with every series thinned to `columns` pixel columns; events stay whole.

    The subtitle says so, with the number of points before and after, where anything was left out.
    """
    before = sum(len(series.x) for panel in figure.panels for series in panel.series)
    panels = tuple(_thin_panel(figure, panel, columns) for panel in figure.panels)
    after = sum(len(series.x) for panel in panels for series in panel.series)
    if after == before:
        return figure
    said = (
        f"{after:,} of {before:,} points drawn: first, last, lowest and highest per pixel column (M4), every event kept"
    )
    return replace(figure, panels=panels, subtitle=f"{figure.subtitle}; {said}" if figure.subtitle else said)


def _thin_panel(figure: Figure, panel: Panel, columns: int) -> Panel:
    if not panel.parts:
        return panel
    scale = scale_of(figure.x_axis(panel), figure.x_values(panel))
    low, high = scale.low, scale.high
    return replace(panel, series=tuple(thin_series(series, columns, low, high) for series in panel.series))
