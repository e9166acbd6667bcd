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
# Dot columns of a period that are drawn, by dash slot: solid, dashed, dotted, long dash, dash-dot.
_DASHES = ((1,), (1, 1, 1, 0, 0), (1, 0, 0), (1, 1, 1, 1, 1, 1, 0, 0), (1, 1, 1, 1, 0, 1, 0))
# Dots of an area, by dash slot: chequered, lines across, lines upright, rising and falling.
_HATCHES: tuple[Callable[[Rows, Rows], Mask], ...] = (
    lambda rows, columns: (rows + columns) % 2 == 0,
    lambda rows, _: rows % 4 == 1,
    lambda _, columns: columns % 3 == 0,
    lambda rows, columns: (rows + columns) % 4 == 0,
    lambda rows, columns: (rows - columns) % 4 == 0,
)


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
    """Braille cells of 2 x 4 dots, series told apart by dashes, density and (if asked for) colour."""

    border = Border("│", "┤", "│", "─", "┬", "┌", "┐", "└", "┘")

    def __init__(self, *, color: bool) -> None:
        self._color = color

    def clean(self, text: str) -> str:
        """Return `text` without control characters."""
        return printable(text)

    def sample(self, series: Series) -> str:
        """Return three cells of the curve as it is drawn."""
        if series.kind == "points":
            return "⠂⠄⠁"
        dots = np.zeros((4, 6), bool)
        dots[1 : 3 if series.kind == "band" else 2] = True
        return "".join(_braille(dots & _texture(series, dots))[0])

    def draw(self, panel: Panel, xs: Scale, ys: Scale, width: int, height: int) -> Grid:
        """Draw all series into one field of dots; a cell has the colour of the last series that is not light."""
        dots = np.zeros((4 * height, 2 * width), bool)
        colors = np.full((height, width), -1, np.intp)
        for series in sorted(panel.series, key=lambda series: not (series.style.light or series.kind == "band")):
            mask = series_mask(series, xs, ys, 2 * width, 4 * height)
            mask &= _texture(series, mask)
            dots |= mask
            colors[mask.reshape(height, 4, width, 2).any(axis=(1, 3))] = series.style.color
        return Grid(_braille(dots), colors)

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
    """Return which dots may be set: dashes along flat stretches, a sparse grid for bands and light series.

    Bars that are no data proper (they have a dash) are chequered. Steep stretches (more than a cell high in one dot
    column) stay whole, or a riser could fall into a dash's gap.
    """
    rows, columns = np.arange(mask.shape[0])[:, None], np.arange(mask.shape[1])[None, :]
    if series.kind == "bars" and not series.style.dash:
        return np.ones_like(mask)
    if series.kind == "band":
        return np.asarray(_HATCHES[series.style.dash % len(_HATCHES)](rows, columns))
    if series.kind == "bars" or series.style.light:
        return np.asarray((rows + columns) % 2 == 0)
    pattern = np.array(_DASHES[series.style.dash % len(_DASHES)], bool)
    steep = mask.sum(axis=0) > 4
    return np.asarray(pattern[columns % len(pattern)] | steep[None, :])


def _braille(dots: Mask) -> np.ndarray[tuple[int, ...], np.dtype[np.str_]]:
    """Return the characters, of shape (rows / 4, columns / 2), for a field of dots; a cell without dots is a space."""
    height, width = dots.shape[0] // 4, dots.shape[1] // 2
    codes = (dots.reshape(height, 4, width, 2) * _DOTS[None, :, None, :]).sum(axis=(1, 3))
    text = np.array([chr(0x2800 + code) if code else " " for code in codes.ravel()])
    return text.reshape(height, width)
