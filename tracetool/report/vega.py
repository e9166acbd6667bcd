"""A figure as Vega-Lite, through Altair.

`to_spec` writes the specification as plain data; `chart` hands it to Altair, so that users get an `alt.Chart` they
can change. The numbers travel as CSV text inside the specification, a third of the size of JSON rows; names travel as
constants. Colours are Okabe and Ito's (2008), readable with every common colour blindness, and each series has a dash
pattern of its own besides.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from tracetool.report.figure import NO_FRAME
from tracetool.report.plain import printable, wrap
from tracetool.report.thin import thin_figure
from tracetool.report.ticks import scale_of

if TYPE_CHECKING:
    import altair as alt

    from tracetool.report.figure import Axis, Events, Figure, FloatArray, IntArray, Panel, Series, Span, Style

    Spec = dict[str, Any]

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#777777", "#8C6D1F")
DARK_PALETTE = ("#4FA8E0", "#F0803C", "#2FC79A", "#E39AC4", "#F0B429", "#8FD0F5", "#A8A8A8", "#CDB060")
DASHES: tuple[list[int], ...] = ([1, 0], [7, 3], [2, 2], [10, 3, 2, 3], [5, 2, 1, 2])
SHAPES = ("triangle-down", "cross", "diamond", "square", "triangle-up", "circle")
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
DEFAULT_WIDTH, PANEL_HEIGHT = 760, 300
MAX_LABELS = 24
"""More full-height events than this are drawn as ticks at the top edge, without their labels."""

_LETTER_PIXELS, _ENTRY_PIXELS = 6.4, 42  # widths of legend text at 11 px, and of a symbol with its padding
INK, GRID = "#222222", "#DDDDDD"
DARK_INK, DARK_GRID = "#E4E4E4", "#3A3A3A"


def chart(figure: Figure, *, width: int = DEFAULT_WIDTH, height: int | None = None) -> alt.Chart:
    """Return `figure` as an interactive Altair chart (a layered or concatenated one).

    Legend entries isolate a series when clicked; dragging and the wheel move and zoom along x, in all panels at once.

    Parameters
    ----------
    width
        Width of the plot areas in pixels.
    height
        Height of all plot areas together in pixels; by default 300 for one panel, 180 each for more.
    """
    import altair as alt

    made: alt.Chart = alt.Chart.from_dict(to_spec(figure, width=width, height=height))
    return made


def to_spec(figure: Figure, *, width: int = DEFAULT_WIDTH, height: int | None = None, interactive: bool = True) -> Spec:
    """Return `figure` as a Vega-Lite specification.

    Parameters
    ----------
    width, height
        As in `chart`.
    interactive
        False leaves out tooltips, zoom and legend selection, for images and print.
    """
    figure = thin_figure(figure, width)
    count = len(figure.panels)
    height = height or (PANEL_HEIGHT if count == 1 else 190 * count)
    total = sum(panel.weight for panel in figure.panels)
    panels = [
        _panel(figure, index, width, max(80, round(height * panel.weight / total)), interactive=interactive)
        for index, panel in enumerate(figure.panels)
    ]
    body: Spec = panels[0] if count == 1 else {"vconcat": panels, "spacing": 14}
    spec: Spec = {
        "$schema": SCHEMA,
        "config": _config(stacked=_legends_overflow(figure, width)),
        "background": "white",
        "title": _title(figure, width),
        **body,
    }
    spec["padding"] = 8
    if count > 1:
        spec["resolve"] = {
            "legend": {"stroke": "independent", "fill": "independent", "color": "independent"},
            "scale": {
                "stroke": "independent",
                "fill": "independent",
                "color": "independent",
                "strokeDash": "independent",
                "shape": "independent",
            },
        }
    if interactive:
        spec["params"] = _params(figure)
    return spec


def _title(figure: Figure, width: int) -> Spec:
    lines = [line for text in (figure.subtitle, *figure.notes) if text for line in wrap(printable(text), width // 6)]
    title: Spec = {"text": wrap(printable(figure.title), width // 8) or [""], "anchor": "start", "offset": 10}
    return {**title, "subtitle": lines} if lines else title


def _params(figure: Figure) -> list[Spec]:
    """Return the selections: one zoom for the panels on the common x axis and one for each other, and the legend's."""
    groups: dict[str, list[str]] = {}
    for index, panel in enumerate(figure.panels):
        groups.setdefault("zoom" if panel.x is None else f"zoom_{index}", []).append(f"panel_{index}")
    zooms = [
        {"name": name, "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales", "views": views}
        for name, views in groups.items()
    ]
    picks = [
        {
            "name": f"pick_{index}",
            "select": {"type": "point", "fields": ["series"]},
            "bind": "legend",
            "views": [f"panel_{index}"],
        }
        for index in range(len(figure.panels))
    ]
    return [*zooms, *picks]


def _panel(figure: Figure, index: int, width: int, height: int, *, interactive: bool) -> Spec:
    panel = figure.panels[index]
    pick = f"pick_{index}" if interactive else ""
    axes = {"x": _x_encoding(figure, panel, last=index + 1 == len(figure.panels)), "y": _y_encoding(panel)}
    curves = [series for series in panel.series if len(series.x) and series.kind != "band"]
    bands = [series for series in panel.series if len(series.x) and series.kind == "band"]
    moments = [events for events in panel.events if len(events.x)]
    layers = [_spans(panel, bands, axes, width)] if panel.spans else []
    layers += [_band(series, panel, bands, axes, width, pick) for series in bands]
    layers += [_curve(series, curves, figure, panel, axes, width, pick) for series in curves]
    for events in moments:
        layers += _moments(events, moments, figure, panel, axes, width, height, pick)
    if not layers:
        layers = [{"data": {"values": []}, "mark": "point", "encoding": axes}]
    layers[0] = {"name": f"panel_{index}", **layers[0]}
    body: Spec = {"width": width, "height": height, "layer": layers}
    if panel.title:
        body["title"] = {"text": printable(panel.title), "anchor": "start", "frame": "group", "fontSize": 12}
    return body


def _x_encoding(figure: Figure, panel: Panel, *, last: bool) -> Spec:
    axis = figure.x_axis(panel)
    names = last or panel.x is not None or figure.panels[-1].x is not None
    return {
        "field": "x",
        "type": "quantitative",
        "title": printable(axis.title) if names else None,
        "axis": {"labelFlush": False},
        **_scale(axis, figure.x_values(panel), 0),
    }


def _y_encoding(panel: Panel) -> Spec:
    title = printable(panel.y.title)
    return {"field": "y", "type": "quantitative", "title": title, **_scale(panel.y, panel.values, 8)}


def _scale(axis: Axis, arrays: list[FloatArray], nice: int) -> Spec:
    scale = scale_of(axis, arrays, nice=nice)
    kind = {"type": "log"} if scale.log else {}
    return {"scale": {**kind, "domain": [scale.low, scale.high], "nice": False, "zero": False}}


def _data(**columns: FloatArray | IntArray | None) -> Spec:
    """Return the columns as CSV text; NaN and `NO_FRAME` become empty, which is null."""
    import polars as pl

    kept = {name: values for name, values in columns.items() if values is not None}
    frame = pl.DataFrame(kept).with_columns(pl.selectors.float().fill_nan(None).round(9))
    if "frame" in kept:
        frame = frame.with_columns(pl.col("frame").replace(NO_FRAME, None))
    return {"values": frame.write_csv(), "format": {"type": "csv", "parse": dict.fromkeys(kept, "number")}}


def _named(name: str) -> Spec:
    """Return the transform that gives every row the series' name, as a constant and not as data."""
    return {"calculate": json.dumps(printable(name)), "as": "series"}


def _legend(names: list[str], width: int, **symbols: Any) -> Spec:
    longest = max((len(name) for name in names), default=1)
    columns = max(1, min(len(names), int(width / (longest * _LETTER_PIXELS + _ENTRY_PIXELS))))
    return {"orient": "top", "title": None, "columns": columns, "labelLimit": 420, "symbolOpacity": 1, **symbols}


def _channel(styles: dict[str, Style], values: tuple[Any, ...], slot: str, legend: Spec | None) -> Spec:
    names = [printable(name) for name in styles]
    colors = [values[getattr(style, slot) % len(values)] for style in styles.values()]
    return {"field": "series", "type": "nominal", "scale": {"domain": names, "range": colors}, "legend": legend}


def _opacity(pick: str, full: float) -> Spec:
    return {"condition": {"param": pick, "value": full}, "value": 0.06} if pick else {"value": full}


def _tooltip(figure: Figure, panel: Panel, frame: IntArray | None, extra: tuple[str, ...] = ()) -> list[Spec]:
    x = figure.x_axis(panel)
    rows: list[Spec] = [{"field": "series", "type": "nominal", "title": "series"}]
    exact = ".9f" if x.unit == "s" else ".12~g"
    rows.append({"field": "x", "type": "quantitative", "title": printable(x.title), "format": exact})
    rows.append({"field": "y", "type": "quantitative", "title": printable(panel.y.title), "format": ",.12~g"})
    if frame is not None:
        rows.append({"field": "frame", "type": "quantitative", "title": "frame"})
        rows.append({"field": "filter", "type": "nominal", "title": "Wireshark filter"})
    return rows + [{"field": name, "type": "nominal", "title": name} for name in extra]


def _filter(figure: Figure, frame: IntArray | None) -> list[Spec]:
    if frame is None:
        return []
    prefix = f"{figure.display_filter} and " if figure.display_filter else ""
    text = json.dumps(prefix + "frame.number == ")
    return [{"calculate": f"datum.frame === null ? '' : {text} + datum.frame", "as": "filter"}]


def _curve(
    series: Series, curves: list[Series], figure: Figure, panel: Panel, axes: Spec, width: int, pick: str
) -> Spec:
    styles = {peer.name: peer.style for peer in curves}
    style = series.style
    clouds = [peer for peer in curves if peer.kind == "points"]
    symbols = (
        {"symbolType": "circle"} if len(clouds) == len(curves) else {"symbolType": "stroke", "symbolStrokeWidth": 2.2}
    )
    legend = _legend(list(styles), width, **symbols)
    stroke = _channel(styles, PALETTE, "color", legend)
    # strokeOpacity, not opacity: the points that carry the tooltips must stay invisible.
    encoding = {**axes, "stroke": stroke, "strokeOpacity": _opacity(pick, 0.6 if style.light else 1)}
    if series.kind == "points":
        mark: Spec = {"type": "point", "size": 14, "strokeWidth": 0.9, "clip": True, "filled": False}
    else:
        mark = {"type": "line", "strokeWidth": 1 if style.light else 1.8, "clip": True, "strokeJoin": "round"}
        if series.kind == "step":
            mark["interpolate"] = "step-after"
        encoding["strokeDash"] = _channel(styles, DASHES, "dash", legend)
    if pick:
        encoding["tooltip"] = _tooltip(figure, panel, series.frame)
        if series.kind != "points":
            mark["point"] = "transparent"
    return {
        "data": _data(x=series.x, y=series.y, frame=series.frame),
        "transform": [_named(series.name), *_filter(figure, series.frame)],
        "mark": mark,
        "encoding": encoding,
    }


def _fill_channel(bands: list[Series], spans: tuple[Span, ...], width: int) -> Spec:
    """Return the channel that bands and phases share, so that both stand in one legend of filled squares."""
    colors = {printable(band.name): PALETTE[band.style.color % len(PALETTE)] for band in bands}
    colors |= {printable(span.name): PALETTE[span.color % len(PALETTE)] for span in spans}
    legend = _legend(list(colors), width, symbolType="square", symbolOpacity=0.35, symbolStrokeWidth=0)
    return {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": list(colors), "range": list(colors.values())},
        "legend": legend,
    }


def _band(series: Series, panel: Panel, bands: list[Series], axes: Spec, width: int, pick: str) -> Spec:
    return {
        "data": _data(x=series.x, y=series.y, y2=series.y2),
        "transform": [_named(series.name)],
        "mark": {"type": "area", "interpolate": "step-after", "clip": True, "strokeWidth": 0},
        "encoding": {
            **axes,
            "y2": {"field": "y2"},
            "fill": _fill_channel(bands, panel.spans, width),
            "opacity": _opacity(pick, 0.28),
        },
    }


def _spans(panel: Panel, bands: list[Series], axes: Spec, width: int) -> Spec:
    rows = [
        {"x": round(span.start, 9), "x2": round(span.end, 9), "series": printable(span.name)} for span in panel.spans
    ]
    x = {key: value for key, value in axes["x"].items() if key != "title"}
    return {
        "data": {"values": rows},
        "mark": {"type": "rect", "clip": True},
        "encoding": {
            "x": {**x, "title": axes["x"]["title"]},
            "x2": {"field": "x2"},
            "fill": _fill_channel(bands, panel.spans, width),
            "opacity": {"value": 0.13},
        },
    }


def _moments(
    events: Events, moments: list[Events], figure: Figure, panel: Panel, axes: Spec, width: int, height: int, pick: str
) -> list[Spec]:
    """Return the layers of one kind of event: points at their height, or rules (ticks if many) and labels."""
    styles = {peer.name: peer.style for peer in moments}
    shapes = {
        "domain": [printable(name) for name in styles],
        "range": [SHAPES[i % len(SHAPES)] for i in range(len(styles))],
    }
    legend = _legend(list(styles), width, symbolStrokeWidth=1.6)
    rows = _event_rows(events)
    tip: Spec = {}
    if pick:
        extra = tuple(name for name in ("label", "detail") if rows and name in rows[0])
        tip = {
            "tooltip": [
                row
                for row in _tooltip(figure, panel, events.frame, extra)
                if events.y is not None or row["field"] != "y"
            ]
        }
    base: Spec = {"data": {"values": rows}, "transform": [_named(events.name), *_filter(figure, events.frame)]}
    channels = {
        "x": axes["x"],
        "color": _channel(styles, PALETTE, "color", legend),
        "shape": {"field": "series", "type": "nominal", "scale": shapes, "legend": legend},
        "opacity": _opacity(pick, 0.95),
        **tip,
    }
    y = axes["y"] if events.y is not None else {"value": 5}
    layers = [
        {
            **base,
            "mark": {"type": "point", "size": 48, "strokeWidth": 1.5, "clip": True},
            "encoding": {**channels, "y": y},
        }
    ]
    if events.y is None and len(events.x) <= MAX_LABELS:
        rule = {key: value for key, value in channels.items() if key != "shape"}
        layers.insert(0, {**base, "mark": {"type": "rule", "strokeWidth": 1.2, "strokeDash": [3, 2]}, "encoding": rule})
        if events.labels:
            layers += _labels(base, rule, events, axes, width, height)
    return layers


def _event_rows(events: Events) -> list[Spec]:
    rows: list[Spec] = [{"x": round(float(x), 9)} for x in events.x]
    for row, index in zip(rows, range(len(rows)), strict=True):
        if events.y is not None:
            row["y"] = None if np.isnan(events.y[index]) else float(events.y[index])
        if events.frame is not None:
            row["frame"] = None if events.frame[index] == NO_FRAME else int(events.frame[index])
        if events.labels:
            row["label"] = printable(events.labels[index])
        if events.details:
            row["detail"] = printable(events.details[index])
    return rows


def _labels(base: Spec, rule: Spec, events: Events, axes: Spec, width: int, height: int) -> list[Spec]:
    """Return the text beside rules: left of those near the right edge, on the first line where it has room."""
    low, high = axes["x"]["scale"]["domain"]
    layers = []
    free = [-np.inf] * max(1, min(5, height // 40))  # where each line of text is free again
    for index, (x, label) in enumerate(zip(events.x, events.labels, strict=True)):
        if not label:
            continue
        at, length = (x - low) / (high - low or 1) * width, _LETTER_PIXELS * len(label) + 10
        left = at + length > width
        start = at - length if left else at
        line = next((number for number, taken in enumerate(free) if taken <= start), int(np.argmin(free)))
        free[line] = start + length
        mark = {"type": "text", "align": "right" if left else "left", "dx": -8 if left else 8, "fontSize": 11}
        layers.append(
            {
                "data": {"values": [base["data"]["values"][index]]},
                "transform": [base["transform"][0]],
                "mark": mark,
                "encoding": {
                    "x": rule["x"],
                    "y": {"value": 8 + 14 * line},
                    "text": {"field": "label", "type": "nominal"},
                    "color": rule["color"],
                    "opacity": rule["opacity"],
                },
            }
        )
    return layers


def _legends_overflow(figure: Figure, width: int) -> bool:
    """Whether some panel's legends (of bands and phases, of curves, of events) are too wide to stand side by side."""
    for panel in figure.panels:
        names = {part.name for part in panel.parts} | {span.name for span in panel.spans}
        if sum(_ENTRY_PIXELS + _LETTER_PIXELS * len(name) for name in names) > width:
            return True
    return False


def _config(*, stacked: bool) -> Spec:
    """Return fonts and light-theme colours; the HTML page swaps ink, grid and palette for the dark ones."""
    direction = "vertical" if stacked else "horizontal"
    axis = {
        "labelColor": INK,
        "titleColor": INK,
        "gridColor": GRID,
        "domainColor": INK,
        "tickColor": INK,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelOverlap": True,
    }
    return {
        "font": "Helvetica Neue, Arial, DejaVu Sans, sans-serif",
        "axis": axis,
        "legend": {
            "labelColor": INK,
            "labelFontSize": 11,
            "symbolSize": 120,
            "rowPadding": 2,
            "columnPadding": 14,
            "offset": 6,
            "layout": {"expr": f"{{top: {{direction: '{direction}', anchor: 'start', margin: 4}}}}"},
        },
        "title": {"color": INK, "subtitleColor": INK, "fontSize": 15, "subtitleFontSize": 11, "subtitlePadding": 4},
        "view": {"stroke": GRID},
    }
