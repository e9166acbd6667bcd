"""A figure in braille lines, eight dots to a cell, coloured by ANSI escapes only when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.report.plain import printable
from tracetool.report.raster import series_mask
from tracetool.report.textplot import Border, Cell, Grid, render_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tracetool.report.figure import Figure, Panel, Series
    from tracetool.report.raster import Mask
    from tracetool.report.ticks import Scale

    Rows = NDArray[np.intp]

DEFAULT_WIDTH = 79
# Middle tones of the 256-colour palette, near Okabe-Ito's, that read on dark and on light terminals alike.
_ANSI = (32, 166, 35, 169, 172, 38, 244, 136)
# Weight of each dot of a 4 x 2 cell in the code point (Unicode block U+2800).
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
# Dot columns of a period that are drawn, by dash slot. The legend shows six columns: they differ within these.
_DASHES = (
    (1,),
    (1, 1, 1, 0, 0),
    (1, 0, 0),
    (1, 1, 1, 1, 0, 0),
    (1, 1, 1, 1, 0, 1, 0),
    (1, 0),
    (1, 1, 0),
    (1, 1, 0, 1, 0, 0),
    (1, 1, 1, 1, 1, 0),
)
_LIGHT = (1, 0, 0, 0)
# Dots of an area, by dash slot: chequered, lines across, lines upright, rising, falling, sparse, upright pairs, bricks.
_HATCHES: tuple[Callable[[Rows, Rows], Mask], ...] = (
    lambda rows, columns: (rows + columns) % 2 == 0,
    lambda rows, _: rows % 4 < 2,
    lambda _, columns: columns % 3 == 0,
    lambda rows, columns: (rows + columns) % 4 == 0,
    lambda rows, columns: (rows - columns) % 4 == 0,
    lambda rows, columns: (rows % 4 == 0) & (columns % 2 == 0),
    lambda _, columns: columns % 4 < 2,
    lambda rows, columns: (rows % 4 == 0) | ((columns + 2 * (rows // 4)) % 4 == 0),
)
SPARSE = 12
"""So few points are never hidden by a curve."""


def render_unicode(
    figure: Figure, *, width: int = DEFAULT_WIDTH, height: int | None = None, color: bool = False
) -> str:
    """Return `figure` as text in braille and box-drawing characters.

    Parameters
    ----------
    width, height
        As in `render_ascii`.
    color
        Add ANSI colour escapes (256 colours). Without it the output holds no escape at all.
    """
    return render_text(figure, _Braille(color=color), width=width, height=height)


class _Braille:
    """Braille cells of 2 x 4 dots, series told apart by dashes, hatches, marks and (if asked for) colour."""

    border = Border("│", "┤", "│", "─", "┬", "┌", "┐", "└", "┘")

    def __init__(self, *, color: bool) -> None:
        self._color = color

    def clean(self, text: str) -> str:
        """Return `text` without control characters."""
        return printable(text)

    def sample(self, series: Series) -> str:
        """Return three cells of the curve as it is drawn."""
        if series.kind == "points":
            return series.style.mark if self._has_marks(series) else "⠂⠄⠁"
        dots = np.ones((4, 6), bool)
        if series.kind not in ("band", "bars"):
            dots[[0, 2, 3]] = False
        return "".join(_braille(dots & _texture(series, dots))[0])

    def draw(self, panel: Panel, xs: Scale, ys: Scale, width: int, height: int) -> Grid:
        """Draw all series into one field of dots; a cell has the colour of the last series that is not light."""
        dots = np.zeros((4 * height, 2 * width), bool)
        colors = np.full((height, width), -1, np.intp)
        marked = [series for series in panel.series if self._has_marks(series)]
        drawn = [series for series in panel.series if series not in marked]
        for series in sorted(drawn, key=lambda series: not (series.style.light or series.kind == "band")):
            mask = series_mask(series, xs, ys, 2 * width, 4 * height)
            mask &= _texture(series, mask)
            dots |= mask
            colors[mask.reshape(height, 4, width, 2).any(axis=(1, 3))] = series.style.color
        grid = Grid(_braille(dots), colors)
        for series in marked:
            mask = series_mask(series, xs, ys, width, height) & ((grid.chars == " ") | (len(series.x) <= SPARSE))
            grid.chars[mask], grid.colors[mask] = series.style.mark, series.style.color
        return grid

    def _has_marks(self, series: Series) -> bool:
        """Whether points are drawn by their mark: where no colour tells them from others, dots would not."""
        return series.kind == "points" and series.style.dash > 0 and not self._color

    def finish(self, cells: Sequence[Cell]) -> str:
        """Join the line, one escape per run of a colour."""
        if not self._color:
            return "".join(cell.text for cell in cells).rstrip()
        parts, current = [], -1
        for text, color in cells:
            if color != current and text.strip():
                parts.append(f"\x1b[38;5;{_ANSI[color % len(_ANSI)]}m" if color >= 0 else "\x1b[0m")
                current = color
            parts.append(text)
        return "".join(parts).rstrip() + ("\x1b[0m" if current >= 0 else "")


def _texture(series: Series, mask: Mask) -> Mask:
    """Return which dots may be set: dashes along flat stretches, a hatch for areas, sparse dots for light series.

    Bars that are data proper have no dash, and are whole. Steep stretches (more than a cell high in one dot column)
    stay whole, or a riser could fall into a dash's gap; those of light series are chequered.
    """
    rows, columns = np.arange(mask.shape[0])[:, None], np.arange(mask.shape[1])[None, :]
    dash = series.style.dash
    if series.kind == "band" or (series.kind == "bars" and dash):
        return np.asarray(_HATCHES[(dash if series.kind == "band" else dash - 1) % len(_HATCHES)](rows, columns))
    if series.kind in ("bars", "points"):
        return np.ones_like(mask)
    pattern = np.array(_LIGHT if series.style.light else _DASHES[dash % len(_DASHES)], bool)
    steep = (mask.sum(axis=0) > 4)[None, :]
    if series.style.light:
        steep = steep & ((rows + columns) % 2 == 0)
    return np.asarray(pattern[columns % len(pattern)] | steep)


def _braille(dots: Mask) -> np.ndarray[tuple[int, ...], np.dtype[np.str_]]:
    """Return the characters, of shape (rows / 4, columns / 2), for a field of dots; a cell without dots is a space."""
    height, width = dots.shape[0] // 4, dots.shape[1] // 2
    codes = (dots.reshape(height, 4, width, 2) * _DOTS[None, :, None, :]).sum(axis=(1, 3))
    text = np.array([chr(0x2800 + code) if code else " " for code in codes.ravel()])
    return text.reshape(height, width)
