"""The layout of a figure in a terminal or a mail: title, legend, rails, frame, ticks, notes.

`ascii.py` and `unicode.py` bring a `Medium` each (how cells are drawn and framed); everything about where things stand
is here, so both show the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tracetool.report.plain import ascii_only, clip, display_width, wrap
from tracetool.report.raster import cell_of, point_mask
from tracetool.report.ticks import Scale, scale_of, tick_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracetool.report.figure import Events, Figure, Panel, Series, Span

MIN_WIDTH, MIN_ROWS = 40, 5
SINGLE_ROWS, PANEL_ROWS = 16, 11
MAX_RULES = 12
"""More full-height events than this are shown on their rail only: rules would hatch the plot."""


class Cell(NamedTuple):
    """A piece of text with the palette slot it is drawn in (-1: the terminal's own colour)."""

    text: str
    color: int = -1


class Grid(NamedTuple):
    """Characters and palette slots (-1 none) of a plot area, both of shape (rows, columns)."""

    chars: NDArray[np.str_]
    colors: NDArray[np.intp]


class Border(NamedTuple):
    """Characters of the frame: straight, ticked and corner pieces."""

    left: str
    left_tick: str
    right: str
    across: str
    below_tick: str
    top_left: str
    top_right: str
    bottom_left: str
    bottom_right: str


class Medium(Protocol):
    """What differs between 7-bit text and Unicode."""

    border: Border

    def clean(self, text: str) -> str:
        """Return text from data as this medium may show it."""

    def draw(self, panel: Panel, xs: Scale, ys: Scale, width: int, height: int) -> Grid:
        """Return the series of `panel` drawn into a grid."""

    def sample(self, series: Series) -> str:
        """Return what stands for `series` in the legend."""

    def finish(self, cells: Sequence[Cell]) -> str:
        """Return one line of output."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where a panel's plot area stands: its size and the width of the gutter left of it."""

    width: int
    height: int
    gutter: int


def render_text(figure: Figure, medium: Medium, *, width: int, height: int | None = None) -> str:
    """Return `figure` as lines of text ending in a newline.

    Parameters
    ----------
    width
        Columns of the whole, at least 40.
    height
        Lines of the whole: plot areas grow or shrink to fit, to five rows each at the least. By default a single plot
        area has 16 rows, and each of several has 11.
    """
    width = max(width, MIN_WIDTH)
    head = [Cell(line) for text in (figure.title, figure.subtitle) for line in wrap(medium.clean(text), width)]
    foot = [Cell(line) for note in figure.notes for line in wrap(medium.clean(note), width)]
    legends = [_legend(panel, medium, width) for panel in figure.panels]
    rows = _rows(figure, legends, None if height is None else height - len(head) - len(foot))
    scales = [_scales(figure, panel, count, width) for panel, count in zip(figure.panels, rows, strict=True)]
    labels = [
        label
        for (_, ys), count in zip(scales, rows, strict=True)
        for label in tick_labels(ys.ticks(_tick_count(count)))
    ]
    gutter = max((len(label) for label in labels), default=1) + 2
    lines: list[list[Cell]] = [[cell] for cell in head]
    for index, panel in enumerate(figure.panels):
        frame = _Frame(width - gutter - 2, rows[index], gutter)
        xs, ys = scales[index]
        lines += legends[index] + _rails(panel, xs, frame, medium) + _plot(panel, xs, ys, frame, medium)
        if _shows_x(figure, index):
            lines += _x_labels(figure, panel, xs, frame, medium)
    lines += [[cell] for cell in foot]
    return "\n".join(medium.finish(line) for line in lines) + "\n"


def _rows(figure: Figure, legends: Sequence[Sequence[object]], height: int | None) -> list[int]:
    """Return how many rows each plot area has: the default, or what `height` leaves after all that stands around."""
    if height is None:
        most = max(panel.weight for panel in figure.panels)
        default = SINGLE_ROWS if len(figure.panels) == 1 else PANEL_ROWS
        return [max(MIN_ROWS, round(default * panel.weight / most)) for panel in figure.panels]
    around = sum(len(legend) + _rail_count(panel) + 2 for legend, panel in zip(legends, figure.panels, strict=True))
    around += sum(2 for index in range(len(figure.panels)) if _shows_x(figure, index))
    total = sum(panel.weight for panel in figure.panels)
    return [max(MIN_ROWS, int((height - around) * panel.weight / total)) for panel in figure.panels]


def _rail_count(panel: Panel) -> int:
    return bool(panel.spans) + sum(1 for events in panel.events if events.y is None and len(events.x))


def _tick_count(rows: int) -> int:
    return max(4, rows // 2)


def _shows_x(figure: Figure, index: int) -> bool:
    """Whether the x ticks stand below this panel: panels on one axis show it once, under the last of them."""
    own = figure.panels[index].x
    return own is not None or index + 1 == len(figure.panels) or figure.panels[index + 1].x is not None


def _scales(figure: Figure, panel: Panel, rows: int, width: int) -> tuple[Scale, Scale]:
    axis = figure.x_axis(panel)
    nice_x = width // 10 if axis.scale == "log" else 0
    return (
        scale_of(axis, figure.x_values(panel), nice=nice_x),
        scale_of(panel.y, figure.y_values(panel), nice=2 * _tick_count(rows)),
    )


def _legend(panel: Panel, medium: Medium, width: int) -> list[list[Cell]]:
    """Return the y label at the left and the legend right-aligned beside it, on as many lines as they need."""
    entries = [
        Cell(f"{medium.sample(series)} {medium.clean(series.name)}", series.style.color)
        for series in panel.series
        if len(series.x)
    ]
    entries += [
        Cell(f"{events.style.mark} {medium.clean(events.name)} ({len(events.x)})", events.style.color)
        for events in panel.events
        if len(events.x)
    ]
    marks = {span.mark: span for span in panel.spans}
    entries += [Cell(f"{mark} {medium.clean(span.name)}", span.color) for mark, span in marks.items()]
    label = medium.clean(f"{panel.title}: {panel.y.title}" if panel.title else panel.y.title)
    *above, label = wrap(label, width) or [""]
    rows: list[list[Cell]] = [[]]
    room = width - display_width(label) - 3
    for entry in entries:
        used = sum(display_width(cell.text) + 3 for cell in rows[-1])
        if rows[-1] and used + display_width(entry.text) > room:
            rows.append([])
            room = width
        if not rows[-1] and display_width(entry.text) > room and len(rows) == 1:
            rows.append([])  # not beside the label: below it
            room = width
        rows[-1].append(Cell(clip(entry.text, width), entry.color))
    lines = [[Cell(line)] for line in above]
    for index, row in enumerate(rows):
        spaced = [part for entry in row for part in (entry, Cell("   "))][:-1]
        left = label if index == 0 else ""
        gap = width - display_width(left) - sum(display_width(cell.text) for cell in spaced)
        lines.append([Cell(left), Cell(" " * max(gap, 0)), *spaced] if spaced else [Cell(left)])
    return lines


def _rails(panel: Panel, xs: Scale, frame: _Frame, medium: Medium) -> list[list[Cell]]:
    """Return a line for the phases and one for each kind of full-height moment, aligned with the plot area."""
    rails = [_span_rail(panel.spans, xs, frame.width)] if panel.spans else []
    rails += [
        _event_rail(events, xs, frame.width, medium) for events in panel.events if events.y is None and len(events.x)
    ]
    return [[Cell(" " * (frame.gutter + 1)), *rail] for rail in rails]


def _span_rail(spans: Sequence[Span], xs: Scale, inner: int) -> list[Cell]:
    """Return a line on which each phase is a run of its letter."""
    rail = [Cell(" ")] * inner
    for span in spans:
        ends = np.clip(xs.fractions(np.array([span.start, span.end])), 0.0, 1.0)
        start, end = np.rint(ends * (inner - 1)).astype(int)
        rail[start : end + 1] = [Cell(span.mark, span.color)] * (end + 1 - start)
    return rail


def _event_rail(events: Events, xs: Scale, inner: int, medium: Medium) -> list[Cell]:
    """Return a line with a mark at each moment, and its label beside it where there is room."""
    rail = [Cell(" ")] * inner
    columns = cell_of(xs.fractions(events.x), inner)
    for column in columns[columns >= 0]:
        rail[column] = Cell(events.style.mark, events.style.color)
    for column, label in zip(columns, events.labels, strict=False):
        text = medium.clean(label)
        text = text if display_width(text) == len(text) else ascii_only(text)  # one cell for each character
        for start in (column + 2, column - 1 - len(text)):
            free = rail[max(start - 1, 0) : start + len(text) + 1]
            if (
                column >= 0
                and start >= 0
                and start + len(text) <= inner
                and all(c.text == " " or i == 0 for i, c in enumerate(free))
            ):
                rail[start : start + len(text)] = [Cell(char, events.style.color) for char in text]
                break
    return rail


def _plot(panel: Panel, xs: Scale, ys: Scale, frame: _Frame, medium: Medium) -> list[list[Cell]]:
    """Return the frame with its y ticks and what it holds."""
    border = medium.border
    grid = medium.draw(panel, xs, ys, frame.width, frame.height)
    _draw_events(grid, panel.events, xs, ys)
    if not panel.parts:
        _write(grid, "no data")
    ticks = ys.ticks(_tick_count(frame.height))
    at = dict(
        zip(frame.height - 1 - cell_of(ys.fractions(np.array(ticks)), frame.height), tick_labels(ticks), strict=True)
    )
    columns = set(cell_of(xs.fractions(np.array(xs.ticks(max(2, frame.width // 8)))), frame.width).tolist())
    pad = " " * frame.gutter
    lines = [[Cell(pad + border.top_left + border.across * frame.width + border.top_right)]]
    for row in range(frame.height):
        label = at.get(row)
        edge = border.left if label is None else border.left_tick
        cells = [Cell(str(char), int(color)) for char, color in zip(grid.chars[row], grid.colors[row], strict=True)]
        lines.append([Cell(f"{label or '':>{frame.gutter - 1}} {edge}"), *cells, Cell(border.right)])
    floor = "".join(border.below_tick if column in columns else border.across for column in range(frame.width))
    return [*lines, [Cell(pad + border.bottom_left + floor + border.bottom_right)]]


def _draw_events(grid: Grid, groups: Sequence[Events], xs: Scale, ys: Scale) -> None:
    """Put event marks over the curves, and rules of full-height events where nothing else is drawn."""
    height, width = grid.chars.shape
    for events in groups:
        if events.y is not None:
            seen = np.maximum(events.y, ys.low) if ys.log else events.y  # an event is seen even where its value is not
            mask = point_mask(xs.fractions(events.x), ys.fractions(seen), width, height)
            grid.chars[mask], grid.colors[mask] = events.style.mark, events.style.color
        elif len(events.x) <= MAX_RULES:
            columns = cell_of(xs.fractions(events.x), width)
            mask = np.zeros((height, width), bool)
            mask[:, columns[columns >= 0]] = True
            mask &= grid.chars == " "
            grid.chars[mask], grid.colors[mask] = ":", events.style.color


def _write(grid: Grid, text: str) -> None:
    height, width = grid.chars.shape
    start = (width - len(text)) // 2
    grid.chars[height // 2, start : start + len(text)] = list(text)


def _x_labels(figure: Figure, panel: Panel, xs: Scale, frame: _Frame, medium: Medium) -> list[list[Cell]]:
    """Return the tick labels under a panel, none overlapping, and the axis title centred below."""
    ticks = xs.ticks(max(2, frame.width // 8))
    line = [" "] * (frame.gutter + frame.width + 2)
    last = -1
    for column, label in zip(cell_of(xs.fractions(np.array(ticks)), frame.width), tick_labels(ticks), strict=True):
        start = min(frame.gutter + 1 + int(column) - len(label) // 2, len(line) - len(label))
        if column >= 0 and start > last:
            line[start : start + len(label)] = label
            last = start + len(label)
    title = clip(medium.clean(figure.x_axis(panel).title), frame.width)
    indent = frame.gutter + 1 + max(0, (frame.width - display_width(title)) // 2)
    return [[Cell("".join(line))], [Cell(" " * indent + title)]]
