"""A figure as Vega-Lite, through Altair.

`to_spec` writes the specification as plain data; `to_chart` hands it to Altair, so that users get an `alt.Chart` they
can change. The numbers travel as CSV text inside the specification, a third of the size of JSON rows; names travel as
constants. Colours are Okabe and Ito's (2008), readable with every common colour blindness, and each series has a dash
pattern of its own besides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracetool.report.plain import printable, wrap
from tracetool.report.thin import thin_figure, without_levels
from tracetool.report.ticks import scale_of
from tracetool.report.vega_marks import ENTRY_PIXELS, LETTER_PIXELS, Canvas, legend_names

if TYPE_CHECKING:
    import altair as alt

    from tracetool.report.figure import Axis, Figure, FloatArray, Panel

    Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
DEFAULT_WIDTH, SINGLE_HEIGHT, PANEL_HEIGHT = 760, 300, 190
INK, GRID = "#222222", "#DDDDDD"
TICK_PIXELS = 85
"""Room for a tick on the x axis with its label."""
MARGIN = 0.02
"""Share of the height that stays free above the highest value, so that its mark is seen whole."""


def to_chart(figure: Figure, *, width: int = DEFAULT_WIDTH, height: int | None = None) -> alt.Chart:
    """Return `figure` as an interactive Altair chart (a layered or concatenated one).

    Legend entries isolate a series when clicked; dragging and the wheel move and zoom along x, in all panels at once.

    Parameters
    ----------
    width
        Width of the plot areas in pixels.
    height
        Height of all plot areas together in pixels; by default 300 for one panel, 190 each for more.
    """
    import altair as alt

    chart: alt.Chart = alt.Chart.from_dict(to_spec(figure, width=width, height=height))
    return chart


def to_spec(
    figure: Figure,
    *,
    width: int = DEFAULT_WIDTH,
    height: int | None = None,
    interactive: bool = True,
    columns: int | None = None,
) -> Spec:
    """Return `figure` as a Vega-Lite specification.

    Parameters
    ----------
    width, height
        As in `to_chart`.
    interactive
        False leaves out tooltips, zoom and legend selection, for images and print.
    columns
        Pixel columns that curves are thinned to; by default `width`.
    """
    figure = thin_figure(figure, columns or width)
    if not interactive:  # where there are tooltips, every point has one
        figure = without_levels(figure)
    count = len(figure.panels)
    height = height or (SINGLE_HEIGHT if count == 1 else PANEL_HEIGHT * count)
    total = sum(panel.weight for panel in figure.panels)
    drawn = [
        _panel(figure, index, width, max(80, round(height * panel.weight / total)), interactive=interactive)
        for index, panel in enumerate(figure.panels)
    ]
    panels = [body for body, _ in drawn]
    spec: Spec = {
        "$schema": SCHEMA,
        "config": _config(stacked=_legends_overflow(figure, width)),
        "background": "white",
        "padding": 8,
        "title": _title(figure, width),
        **(panels[0] if count == 1 else {"vconcat": panels, "spacing": 14}),
    }
    if count > 1:
        own = dict.fromkeys(("stroke", "fill", "color"), "independent")
        spec["resolve"] = {"legend": own, "scale": own | dict.fromkeys(("strokeDash", "shape"), "independent")}
    if not interactive:
        spec["config"]["aria"] = False  # a label on every point would be most of the picture
    else:
        spec["params"] = _zooms(figure) + [pick for _, picks in drawn for pick in picks]
    return spec


def _title(figure: Figure, width: int) -> Spec:
    lines = [line for text in (figure.subtitle, *figure.notes) if text for line in wrap(printable(text), width // 6)]
    title: Spec = {"text": wrap(printable(figure.title), width // 8) or [""], "anchor": "start", "offset": 10}
    return {**title, "subtitle": lines} if lines else title


def _zooms(figure: Figure) -> list[Spec]:
    """Return the selections that move and zoom: one for the panels on the common x axis, one for each other."""
    groups: dict[str, list[str]] = {}
    for index, panel in enumerate(figure.panels):
        groups.setdefault("zoom" if panel.x is None else f"zoom_{index}", []).append(f"panel_{index}")
    select = {"type": "interval", "encodings": ["x"]}
    return [{"name": name, "select": select, "bind": "scales", "views": views} for name, views in groups.items()]


def _panel(figure: Figure, index: int, width: int, height: int, *, interactive: bool) -> tuple[Spec, list[Spec]]:
    """Return a panel, and the selections that its legends make."""
    panel = figure.panels[index]
    x = _x_encoding(figure, panel, width, last=index + 1 == len(figure.panels))
    y = {"field": "y", "type": "quantitative", "title": printable(panel.y.title)}
    y |= _scale(panel.y, figure.y_values(panel), nice=8, ticks=max(3, height // 34))
    canvas = Canvas(figure, panel, x, y, width, height, index, interactive=interactive)
    layers = canvas.layers() or [{"data": {"values": []}, "mark": "point", "encoding": {"x": x, "y": y}}]
    layers[0] = {"name": f"panel_{index}", **layers[0]}
    picks = canvas.picks(layers) if interactive else []
    body: Spec = {"width": width, "height": height, "layer": layers}
    if panel.title:
        body["title"] = {"text": printable(panel.title), "anchor": "start", "frame": "group", "fontSize": 12}
    return body, picks


def _x_encoding(figure: Figure, panel: Panel, width: int, *, last: bool) -> Spec:
    """Return the x axis; panels that share it show its title once, below the last of them."""
    axis = figure.x_axis(panel)
    named = last or panel.x is not None or figure.panels[-1].x is not None
    title = printable(axis.title) if named else None
    scale = _scale(axis, figure.x_values(panel), nice=0, ticks=max(3, width // TICK_PIXELS))
    return {"field": "x", "type": "quantitative", "title": title, **scale}


def _scale(axis: Axis, arrays: list[FloatArray], *, nice: int, ticks: int) -> Spec:
    """Return the scale and its ticks: those of linear axes follow a zoom, those of logarithmic ones are 1, 2, 5, 10."""
    scale = scale_of(axis, arrays, nice=nice, margin=MARGIN if nice else 0.0)
    shape: Spec = {"domain": [scale.low, scale.high], "nice": False}
    if scale.log:
        return {"scale": {"type": "log", **shape}, "axis": {"labelFlush": False, "values": scale.ticks(ticks)}}
    return {"scale": {**shape, "zero": False}, "axis": {"labelFlush": False, "tickCount": ticks}}


def _legends_overflow(figure: Figure, width: int) -> bool:
    """Whether some panel's legends are too wide to stand side by side."""
    return any(
        sum(ENTRY_PIXELS + LETTER_PIXELS * len(name) for name in legend_names(panel)) > width for panel in figure.panels
    )


def _config(*, stacked: bool) -> Spec:
    """Return fonts and light-theme colours; the HTML page swaps ink, grid and palette for the dark ones."""
    direction, gap = ("vertical", 4) if stacked else ("horizontal", 14)
    axis = dict.fromkeys(("labelColor", "titleColor", "domainColor", "tickColor"), INK) | {"gridColor": GRID}
    text = {"labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal"}
    return {
        "font": "Helvetica Neue, Arial, DejaVu Sans, sans-serif",
        "axis": {**axis, **text, "labelOverlap": True, "labelSeparation": 4},
        "legend": {
            "labelColor": INK,
            "labelFontSize": 11,
            "symbolSize": 90,
            "rowPadding": 2,
            "columnPadding": 14,
            "offset": 6,
            # As an expression, because Vega-Lite's schema knows the layout of legends in no other form.
            "layout": {"expr": f"{{top: {{direction: '{direction}', anchor: 'start', margin: {gap}}}}}"},
        },
        "title": {"color": INK, "subtitleColor": INK, "fontSize": 15, "subtitleFontSize": 11, "subtitlePadding": 4},
        "view": {"stroke": GRID},
    }
