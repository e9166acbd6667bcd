"""A part of a figure along x: what stands outside is left out, so that the other axis fits what is shown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracetool.errors import NothingMatchedError

if TYPE_CHECKING:
    from tracetool.report.figure import Events, Figure, FloatArray, Panel, Series


def zoomed(figure: Figure, start: float | None = None, stop: float | None = None) -> Figure:
    """Return `figure` with what lies in [`start`, `stop`] on its common x axis; panels with an axis of their own stay.

    A curve that crosses an end is cut there: a step with the value that holds, a line with the one in between.

    Parameters
    ----------
    start, stop
        Ends of the axis, in its unit; None: where the data ends.

    Raises
    ------
    NothingMatchedError
        If all of the figure lies outside.

    Examples
    --------
    >>> from tracetool.report.figure import Axis, Figure, Panel, Series
    >>> ramp = Series("ramp", "line", np.array([0.0, 10.0]), np.array([0.0, 100.0]))
    >>> part = zoomed(Figure("ramp", Axis("time", "s"), (Panel(Axis("height"), (ramp,)),)), 2, 4)
    >>> part.panels[0].series[0].x.tolist(), part.panels[0].series[0].y.tolist()
    ([2.0, 4.0], [20.0, 40.0])
    """
    if start is None and stop is None:
        return figure
    low, high = -np.inf if start is None else start, np.inf if stop is None else stop
    _refuse_outside(figure, low, high)
    axis = replace(figure.x, low=figure.x.low if start is None else start, high=figure.x.high if stop is None else stop)
    panels = tuple(panel if panel.x is not None else _panel(panel, low, high) for panel in figure.panels)
    return _without_hidden(replace(figure, x=axis, panels=panels))


def _refuse_outside(figure: Figure, low: float, high: float) -> None:
    """Raise an error that tells where the figure has something, if that is not in [`low`, `high`]."""
    values = [np.empty(0), *(x for panel in figure.panels if panel.x is None for x in figure.x_values(panel))]
    x = np.concatenate(values)
    x = x[np.isfinite(x)]
    if len(x) and (low > x.max() or high < x.min()):
        unit = figure.x.unit and f" {figure.x.unit}"
        asked = f"after {low:g}{unit}" if low > x.max() else f"before {high:g}{unit}"
        raise NothingMatchedError(f"nothing {asked}: the chart runs from {x.min():.6g} to {x.max():.6g}{unit}")


def _without_hidden(figure: Figure) -> Figure:
    """Leave out background that the part shown has moved out of the picture, and say so in a note."""
    panels: list[Panel] = []
    notes: list[str] = []
    for panel in figure.panels:
        values = np.concatenate([np.empty(0), *figure.y_values(panel)])
        hidden = [_hidden(series, values[np.isfinite(values)]) for series in panel.series]
        notes += [
            f"{series.name}: {side} the picture" for series, side in zip(panel.series, hidden, strict=True) if side
        ]
        kept = tuple(series for series, side in zip(panel.series, hidden, strict=True) if not side)
        panels.append(panel if len(kept) == len(panel.series) else replace(panel, series=kept))
    return replace(figure, panels=tuple(panels), notes=(*figure.notes, *notes))


def _hidden(series: Series, shown: FloatArray) -> str:
    """Return on which side of what is shown the whole of a light series lies; empty where it is seen."""
    values = series.y[np.isfinite(series.y)]
    if not series.style.light or not len(values) or not len(shown):
        return ""
    return "above" if values.min() > shown.max() else "below" if values.max() < shown.min() else ""


def _panel(panel: Panel, low: float, high: float) -> Panel:
    spans = (
        replace(span, start=max(span.start, low), end=min(span.end, high))
        for span in panel.spans
        if span.end > low and span.start < high
    )
    return replace(
        panel,
        series=tuple(_series(series, low, high) for series in panel.series),
        events=tuple(_events(events, low, high) for events in panel.events),
        spans=tuple(spans),
    )


def _series(series: Series, low: float, high: float) -> Series:
    inside = (series.x >= low) & (series.x <= high)
    rows = np.flatnonzero(inside)
    if series.kind in ("points", "bars"):
        return series.take(rows)
    first, after = int(np.searchsorted(series.x, low, "left")), int(np.searchsorted(series.x, high, "right"))
    begins = 0 < first < len(series.x) and (first == after or series.x[first] > low)
    ends = 0 < after < len(series.x) and series.x[after - 1] < high
    before, behind = ([first - 1] if begins else []), ([after - 1] if ends else [])
    cut = series.take(np.array([*before, *range(first, after), *behind], np.intp))
    x = cut.x.copy()
    x[:1] = low if begins else x[:1]
    x[-1:] = high if ends else x[-1:]
    if series.kind != "line":
        return replace(cut, x=x)
    y = cut.y.copy()
    for at in (*(0 for _ in before), *(-1 for _ in behind)):
        y[at] = np.interp(x[at], series.x, series.y)
    return replace(cut, x=x, y=y)


def _events(events: Events, low: float, high: float) -> Events:
    rows = np.flatnonzero((events.x >= low) & (events.x <= high))
    return replace(
        events,
        x=events.x[rows],
        y=None if events.y is None else events.y[rows],
        frame=None if events.frame is None else events.frame[rows],
        labels=tuple(events.labels[row] for row in rows) if events.labels else (),
        details=tuple(events.details[row] for row in rows) if events.details else (),
    )
