"""A figure in the language of xplot, the viewer that tcptrace users know.

The file has a header (types of the axes, title, labels) and one drawing command a line, in the data's own units; the
viewer scales. Only commands that tcptrace itself writes are used, so `xpl2gpl` reads the files too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.report.plain import ascii_only

if TYPE_CHECKING:
    from tracetool.report.figure import Events, Figure, FloatArray, Panel, Series

COLORS = ("blue", "red", "green", "magenta", "orange", "purple", "white", "yellow")


def render_xplot(figure: Figure) -> str:
    """Return the figure's panels as xplot commands, one after the other in one drawing.

    xplot has no panels: those after the first are written only if they measure the same as the first.

    Examples
    --------
    >>> from tracetool.report.figure import Axis, Figure, Panel, Series
    >>> ramp = Series("cwnd", "line", np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    >>> print(render_xplot(Figure("ramp", Axis("time", "s"), (Panel(Axis("window"), (ramp,)),))), end="")
    dtime double
    title
    ramp
    xlabel
    time (s)
    ylabel
    window
    blue
    line 0.000000000 1 1.000000000 2
    go
    """
    first = figure.panels[0]
    lines = ["dtime double", "title", ascii_only(figure.title), "xlabel", ascii_only(figure.x_axis(first).title)]
    lines += ["ylabel", ascii_only(first.y.title)]
    for panel in figure.panels:
        if panel.y.title == first.y.title and panel.x == first.x:
            for series in panel.series:
                lines += [COLORS[series.style.color % len(COLORS)], *_series(series)]
            for events in panel.events:
                lines += [COLORS[events.style.color % len(COLORS)], *_events(events, panel)]
    return "\n".join([*lines, "go"]) + "\n"


def _number(value: float) -> str:
    return f"{value:.9g}" if value != int(value) else f"{int(value)}"


def _series(series: Series) -> list[str]:
    if series.kind == "points":
        return [f"dot {x:.9f} {_number(y)}" for x, y in zip(series.x, series.y, strict=True) if np.isfinite(y)]
    if series.kind == "bars" and series.y2 is not None:
        bars = zip(series.x, series.y, series.y2, strict=True)
        return [f"line {x:.9f} {_number(y)} {x:.9f} {_number(y2)}" for x, y, y2 in bars if np.isfinite(y + y2)]
    if series.kind == "band":
        return _path(series.x, series.y, step=True) + _path(
            series.x, series.y if series.y2 is None else series.y2, step=True
        )
    return _path(series.x, series.y, step=series.kind == "step")


def _path(x: FloatArray, y: FloatArray, *, step: bool) -> list[str]:
    """Return lines from point to point, or a level and a riser for each step; gaps stay open."""
    lines = []
    for x0, y0, x1, y1 in zip(x[:-1], y[:-1], x[1:], y[1:], strict=True):
        if not np.isfinite(y0):
            continue
        if step:
            lines.append(f"line {x0:.9f} {_number(y0)} {x1:.9f} {_number(y0)}")
            if np.isfinite(y1) and y1 != y0:
                lines.append(f"line {x1:.9f} {_number(y0)} {x1:.9f} {_number(y1)}")
        elif np.isfinite(y1):
            lines.append(f"line {x0:.9f} {_number(y0)} {x1:.9f} {_number(y1)}")
    return lines


def _events(events: Events, panel: Panel) -> list[str]:
    """Return each event as a letter at its height, or at the foot of the plot with a tick upwards.

    An arrow would do for the latter, but `xpl2gpl` takes the line behind one for its second half.
    """
    floor = (
        panel.y.low
        if panel.y.low is not None
        else min((float(np.nanmin(series.y)) for series in panel.series if np.isfinite(series.y).any()), default=0.0)
    )
    heights = events.y if events.y is not None else np.full(len(events.x), floor)
    texts = events.labels or (events.style.mark,) * len(events.x)
    lines = []
    for x, y, text in zip(events.x, heights, texts, strict=True):
        if np.isfinite(y):
            lines += [f"{'utick' if events.y is None else 'dtick'} {x:.9f} {_number(y)}"]
            lines += [f"atext {x:.9f} {_number(y)}", ascii_only(text)]
    return lines
