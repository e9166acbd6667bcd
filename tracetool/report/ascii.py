"""A figure in 7-bit ASCII, fit for a mailing list: at most 79 columns, the same bytes everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.report.plain import ascii_only
from tracetool.report.raster import series_mask
from tracetool.report.textplot import Border, Cell, Grid, render_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracetool.report.figure import Figure, Panel, Series
    from tracetool.report.ticks import Scale

DEFAULT_WIDTH = 79


def render_ascii(figure: Figure, *, width: int = DEFAULT_WIDTH, height: int | None = None) -> str:
    """Return `figure` as plain text of printable 7-bit characters and newlines.

    Parameters
    ----------
    width
        Columns, at least 40.
    height
        Lines of the whole; by default plot areas of 16 rows (11 each where there are several).

    Examples
    --------
    >>> import numpy as np
    >>> from tracetool.report.figure import Axis, Figure, Panel, Series
    >>> ramp = Series("cwnd", "step", np.arange(5.0), np.arange(5.0))
    >>> text = render_ascii(Figure("a ramp", Axis("time", "s"), (Panel(Axis("window", "segments"), (ramp,)),)))
    >>> text.isascii(), max(map(len, text.splitlines()))
    (True, 79)
    """
    return render_text(figure, _Ascii(), width=width, height=height)


class _Ascii:
    """7-bit cells: one character each, series told apart by their mark."""

    border = Border("|", "+", "|", "-", "+", "+", "+", "+", "+")

    def clean(self, text: str) -> str:
        """Return `text` in printable 7-bit characters."""
        return ascii_only(text)

    def sample(self, series: Series) -> str:
        """Return the mark three times for a curve, once for points."""
        return series.style.mark * (1 if series.kind == "points" else 3)

    def draw(self, panel: Panel, xs: Scale, ys: Scale, width: int, height: int) -> Grid:
        """Draw light series first; where others meet, let them take turns so that none is hidden."""
        grid = Grid(np.full((height, width), " "), np.full((height, width), -1, np.intp))
        for light in (True, False):
            layer = [series for series in panel.series if (series.style.light or series.kind == "band") == light]
            _alternate(grid, layer, xs, ys)
        return grid

    def finish(self, cells: Sequence[Cell]) -> str:
        """Join the line; colour has no place here."""
        return "".join(cell.text for cell in cells).rstrip()


def _alternate(grid: Grid, layer: Sequence[Series], xs: Scale, ys: Scale) -> None:
    """Draw `layer` into `grid`; in a cell that several series share, the turn goes round with column and row."""
    if not layer:
        return
    height, width = grid.chars.shape
    masks = np.stack([series_mask(series, xs, ys, width, height) for series in layer])
    count = masks.sum(axis=0)
    turn = np.add.outer(np.arange(height), np.arange(width)) % np.maximum(count, 1)
    chosen = masks & (masks.cumsum(axis=0) - 1 == turn)
    for series, mask in zip(layer, chosen, strict=True):
        grid.chars[mask], grid.colors[mask] = series.style.mark, series.style.color
