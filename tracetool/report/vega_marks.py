"""The marks of one panel in Vega-Lite: curves, points, bars, bands, phases, events with their labels.

A panel has up to three legends: filled squares (bands, phases), strokes (curves) and symbols (points, events).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracetool.report.figure import NO_FRAME
from tracetool.report.plain import printable

if TYPE_CHECKING:
    from tracetool.report.figure import Events, Figure, FloatArray, IntArray, Panel, Series, Style

    Spec = dict[str, Any]

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#777777", "#8C6D1F")
DASHES: tuple[list[int], ...] = (
    [1, 0], [7, 3], [2, 2], [10, 3, 2, 3], [5, 2, 1, 2], [14, 4], [4, 4], [10, 2, 2, 2, 2, 2], [7, 1],
)  # fmt: skip
SHAPES = ("triangle-down", "cross", "diamond", "square", "triangle-up")
PAPER = "#FFFFFF"
LETTER_PIXELS, ENTRY_PIXELS = 6.4, 42  # widths of legend text at 11 px, and of a symbol with its padding
LEGENDS = ("fill", "stroke", "color")
"""Channels with a legend each: of bands and phases, of curves, of points and events."""
MAX_LABELS = 24
"""More full-height events than this are drawn as marks at the top edge, without rules and labels."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """What the marks of a panel have in common.

    Attributes
    ----------
    x, y
        The encodings of the axes.
    width, height
        Size of the plot area in pixels.
    index
        Number of the panel: its legends select by a field of its own, or they would select in every panel.
    interactive
        False in a picture: no tooltips, no selections.
    """

    figure: Figure
    panel: Panel
    x: Spec
    y: Spec
    width: int
    height: int
    index: int = 0
    interactive: bool = True

    @property
    def field(self) -> str:
        """Name of the column that holds the series' name."""
        return f"series_{self.index}"

    def picks(self, layers: list[Spec]) -> list[Spec]:
        """Return the selections that clicks on the legends make: one for each legend, on the first layer that has it.

        The layers chosen get a name.
        """
        found = []
        for channel in LEGENDS:
            number = next((n for n, layer in enumerate(layers) if channel in layer["encoding"]), None)
            if number is not None:
                view = layers[number].setdefault("name", f"panel_{self.index}_{channel}")
                select = {"type": "point", "fields": [self.field]}
                found.append({"name": self._pick(channel), "select": select, "bind": "legend", "views": [view]})
        return found

    def layers(self) -> list[Spec]:
        """Return all layers, the lowest first."""
        series = [part for part in self.panel.series if len(part.x)]
        taken: list[list[tuple[float, float]]] = [[] for _ in range(max(1, min(6, self.height // 35)))]
        layers = [self._spans()] if self.panel.spans else []
        layers += [self._band(part) for part in series if part.kind == "band"]
        layers += [
            self._cloud(part) if part.kind == "points" else self._curve(part) for part in series if part.kind != "band"
        ]
        moments = [events for events in self.panel.events if len(events.x)]
        for events in moments:
            if events.y is None:  # the marks at the top edge come first, so that no label covers one
                taken[0] += [(at - 8, at + 8) for at in self._pixels(events.x)]
        for events in moments:
            layers += self._moments(events, taken)
        return layers

    def _pixels(self, x: FloatArray) -> list[float]:
        low, high = self.x["scale"]["domain"]
        if self.x["scale"].get("type") == "log":
            x, low, high = np.log10(np.maximum(x, 1e-300)), np.log10(low), np.log10(high)
        return [float(at) for at in (x - low) / ((high - low) or 1) * self.width]

    def _data(self, part: Series) -> Spec:
        """Return the columns as CSV text; NaN and `NO_FRAME` become empty, which is null.

        So does what has no logarithm on a logarithmic axis: Vega would draw it at the far end.
        """
        import polars as pl

        columns = {"x": part.x, "y": part.y, "y2": part.y2, "frame": part.frame}
        kept = {name: values for name, values in columns.items() if values is not None}
        table = pl.DataFrame(kept).with_columns(pl.selectors.float().fill_nan(None).round(9))
        for name, axis in (("x", self.x), ("y", self.y), ("y2", self.y)):
            if name in kept and axis["scale"].get("type") == "log":
                table = table.with_columns(pl.when(pl.col(name) > 0).then(pl.col(name)).alias(name))
        if "frame" in kept:
            table = table.with_columns(pl.col("frame").replace(NO_FRAME, None))
        return {"values": table.write_csv(), "format": {"type": "csv", "parse": dict.fromkeys(kept, "number")}}

    def _event_rows(self, events: Events) -> list[Spec]:
        rows: list[Spec] = [{"x": round(float(x), 9)} for x in events.x]
        floor = self.y["scale"]["domain"][0] if self.y["scale"].get("type") == "log" else -np.inf
        for index, row in enumerate(rows):
            if events.y is not None:
                row["y"] = None if np.isnan(events.y[index]) else max(float(events.y[index]), floor)
            if events.frame is not None:
                row["frame"] = None if events.frame[index] == NO_FRAME else int(events.frame[index])
            if events.labels:
                row["label"] = printable(events.labels[index])
            if events.details:
                row["detail"] = printable(events.details[index])
        return rows

    def _pick(self, channel: str) -> str:
        return f"pick_{self.index}_{channel}"

    def _opacity(self, full: float, channel: str) -> Spec:
        if not self.interactive:
            return {"value": full}
        return {"condition": {"param": self._pick(channel), "value": full}, "value": 0.06}

    def _nominal(self, domain: list[str], values: list[Any], legend: Spec) -> Spec:
        return {"field": self.field, "type": "nominal", "scale": {"domain": domain, "range": values}, "legend": legend}

    def _legend(self, names: list[str], **symbols: Any) -> Spec:
        longest = max((len(name) for name in names), default=1)
        columns = max(1, min(len(names), int(self.width / (longest * LETTER_PIXELS + ENTRY_PIXELS))))
        return {"orient": "top", "title": None, "columns": columns, "labelLimit": 420, "symbolOpacity": 1, **symbols}

    def _strokes(self) -> dict[str, Style]:
        return {
            part.name: part.style for part in self.panel.series if len(part.x) and part.kind not in ("band", "points")
        }

    def _symbols(self) -> dict[str, Style]:
        clouds = {part.name: part.style for part in self.panel.series if len(part.x) and part.kind == "points"}
        return clouds | {part.name: part.style for part in self.panel.events if len(part.x)}

    def _shape(self) -> Spec:
        """Return the shapes of points (circles) and of each kind of event, with the legend they share with colour."""
        styles = self._symbols()
        clouds = {part.name for part in self.panel.series if part.kind == "points"}
        kinds = [name for name in styles if name not in clouds]
        shapes = ["circle" if name in clouds else SHAPES[kinds.index(name) % len(SHAPES)] for name in styles]
        legend = self._legend(list(styles), symbolStrokeWidth=1.6)
        return self._nominal([printable(name) for name in styles], shapes, legend)

    def _color(self) -> Spec:
        styles = self._symbols()
        legend = self._legend(list(styles), symbolStrokeWidth=1.6)
        return self._nominal(
            [printable(name) for name in styles], [_paint(style.color) for style in styles.values()], legend
        )

    def _fill(self) -> Spec:
        bands = {part.name: part.style.color for part in self.panel.series if len(part.x) and part.kind == "band"}
        colors = bands | {span.name: span.color for span in self.panel.spans}
        legend = self._legend(list(colors), symbolType="square", symbolOpacity=0.4, symbolStrokeWidth=0)
        return self._nominal([printable(name) for name in colors], [_paint(slot) for slot in colors.values()], legend)

    def _tooltip(self, frame: IntArray | None, *extra: str, y: bool = True) -> list[Spec]:
        x = self.figure.x_axis(self.panel)
        exact = ".9f" if x.unit == "s" else ".12~g"
        rows: list[Spec] = [{"field": self.field, "type": "nominal", "title": "series"}]
        rows.append({"field": "x", "type": "quantitative", "title": printable(x.title), "format": exact})
        if y:
            title = printable(self.panel.y.title)
            rows.append({"field": "y", "type": "quantitative", "title": title, "format": ",.12~g"})
        if frame is not None:
            rows.append({"field": "frame", "type": "quantitative", "title": "frame"})
            rows.append({"field": "filter", "type": "nominal", "title": "Wireshark filter"})
        return rows + [{"field": name, "type": "nominal", "title": name} for name in extra]

    def _transform(self, name: str, frame: IntArray | None = None) -> list[Spec]:
        """Give every row the series' name, as a constant and not as data, and the Wireshark filter of its frame."""
        named: list[Spec] = [{"calculate": json.dumps(printable(name)), "as": self.field}]
        if frame is None:
            return named
        prefix = f"{printable(self.figure.display_filter)} and " if self.figure.display_filter else ""
        text = json.dumps(prefix + "frame.number == ")
        return [*named, {"calculate": f"datum.frame === null ? '' : {text} + datum.frame", "as": "filter"}]

    def _curve(self, part: Series) -> Spec:
        styles = self._strokes()
        names = [printable(name) for name in styles]
        legend = self._legend(names, symbolType="stroke", symbolStrokeWidth=2.2)
        strokes = self._nominal(names, [_paint(style.color) for style in styles.values()], legend)
        dashes = self._nominal(names, [DASHES[style.dash % len(DASHES)] for style in styles.values()], legend)
        # strokeOpacity, not opacity: the points that carry the tooltips must stay invisible.
        opacity = self._opacity(0.6 if part.style.light else 1, "stroke")
        encoding: Spec = {"x": self.x, "y": self.y, "stroke": strokes, "strokeOpacity": opacity}
        if part.kind == "bars":
            mark: Spec = {"type": "rule", "strokeWidth": 1.6, "strokeCap": "square", "clip": True}
            encoding["y2"] = {"field": "y2"}
        else:
            mark = {"type": "line", "strokeWidth": 1 if part.style.light else 1.8, "clip": True, "strokeJoin": "round"}
            mark |= {"interpolate": "step-after"} if part.kind == "step" else {}
            mark |= {"point": "transparent"} if self.interactive else {}
            encoding["strokeDash"] = dashes
        if self.interactive:
            encoding["tooltip"] = self._tooltip(part.frame)
        return {
            "data": self._data(part),
            "transform": self._transform(part.name, part.frame),
            "mark": mark,
            "encoding": encoding,
        }

    def _cloud(self, part: Series) -> Spec:
        encoding: Spec = {"x": self.x, "y": self.y, "color": self._color(), "shape": self._shape()}
        encoding["opacity"] = self._opacity(0.75 if part.style.light else 1, "color")
        if self.interactive:
            encoding["tooltip"] = self._tooltip(part.frame)
        mark = {"type": "point", "size": 14, "strokeWidth": 0.9, "clip": True}
        return {
            "data": self._data(part),
            "transform": self._transform(part.name, part.frame),
            "mark": mark,
            "encoding": encoding,
        }

    def _band(self, part: Series) -> Spec:
        return {
            "data": self._data(part),
            "transform": self._transform(part.name),
            "mark": {"type": "area", "interpolate": "step-after", "clip": True, "strokeWidth": 0},
            "encoding": {
                "x": self.x,
                "y": self.y,
                "y2": {"field": "y2"},
                "fill": self._fill(),
                "opacity": self._opacity(0.28 if part.style.light else 0.65, "fill"),
            },
        }

    def _spans(self) -> Spec:
        rows = [
            {"x": round(span.start, 9), "x2": round(span.end, 9), self.field: printable(span.name)}
            for span in self.panel.spans
        ]
        encoding = {"x": self.x, "x2": {"field": "x2"}, "fill": self._fill(), "opacity": self._opacity(0.14, "fill")}
        return {"data": {"values": rows}, "mark": {"type": "rect", "clip": True}, "encoding": encoding}

    def _moments(self, events: Events, taken: list[list[tuple[float, float]]]) -> list[Spec]:
        """Return points at their height, or rules with a mark at the top edge and their labels."""
        rows = self._event_rows(events)
        base: Spec = {"data": {"values": rows}, "transform": self._transform(events.name, events.frame)}
        channels: Spec = {"x": self.x, "color": self._color(), "opacity": self._opacity(0.95, "color")}
        if self.interactive:
            extra = [name for name in ("label", "detail") if name in rows[0]]
            channels["tooltip"] = self._tooltip(events.frame, *extra, y=events.y is not None)
        y = self.y if events.y is not None else {"value": 6}
        point = {"type": "point", "size": 48, "strokeWidth": 1.5, "clip": True}
        layers = [{**base, "mark": point, "encoding": {**channels, "y": y, "shape": self._shape()}}]
        if events.y is None and len(events.x) <= MAX_LABELS:
            layers.insert(
                0,
                {
                    **base,
                    "mark": {"type": "rule", "strokeWidth": 1.2, "clip": True, "strokeDash": [3, 2]},
                    "encoding": channels,
                },
            )
            layers += self._labels(events, base, channels, taken)
        return layers

    def _labels(self, events: Events, base: Spec, rule: Spec, taken: list[list[tuple[float, float]]]) -> list[Spec]:
        """Return the text beside rules: left of those near the right edge, on the first line where it has room."""
        layers: list[Spec] = []
        for index, (at, label) in enumerate(zip(self._pixels(events.x), events.labels, strict=False)):
            length = LETTER_PIXELS * len(label) + 10
            left = at + length > self.width
            extent = (at - length, at - 8) if left else (at + 8, at + length)
            line = next((n for n, used in enumerate(taken) if not _collides(extent, used)), len(taken) - 1)
            if not label or at < 0 or at > self.width:
                continue
            taken[line].append(extent)
            words: Spec = {
                "data": {"values": [base["data"]["values"][index]]},
                "transform": base["transform"][:1],
                "mark": {"type": "text", "align": "right" if left else "left", "dx": -9 if left else 9, "fontSize": 11},
                "encoding": {
                    "x": rule["x"],
                    "y": {"value": 8 + 14 * line},
                    "text": {"field": "label", "type": "nominal"},
                    "color": rule["color"],
                    "opacity": rule["opacity"],
                },
            }
            halo = {"stroke": PAPER, "strokeWidth": 3, "strokeJoin": "round"}  # keeps curves away from the letters
            around = {
                **words,
                "mark": words["mark"] | halo,
                "encoding": words["encoding"] | {"color": {"value": PAPER}},
            }
            layers += [around, words]
        return layers


def legend_names(panel: Panel) -> set[str]:
    """Return the names that stand in a panel's legends."""
    return {part.name for part in panel.parts} | {span.name for span in panel.spans}


def _paint(slot: int) -> str:
    return PALETTE[slot % len(PALETTE)]


def _collides(extent: tuple[float, float], used: list[tuple[float, float]]) -> bool:
    return any(extent[0] < end and start < extent[1] for start, end in used)
