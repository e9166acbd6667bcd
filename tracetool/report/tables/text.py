"""Tables as plain text, aligned, at most 80 columns wide: wider ones continue below with their row names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.diagnostics import printable
from tracetool.report.tables.document import Document, Grid, Heading, Lines

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 80
GAP = 2


def render(document: Document, *, width: int = WIDTH) -> str:
    """Return a page as text.

    Examples
    --------
    >>> print(render(Document((Heading(2, "Rates"),))), end="")
    Rates
    """
    return "\n".join("\n".join(line.rstrip() for line in _block(block, width)) + "\n" for block in document.blocks)


def _block(block: Heading | Lines | Grid, width: int) -> list[str]:
    match block:
        case Heading(text=text):
            return [printable(text)]
        case Lines(lines=lines):
            return [printable(line) for line in lines]
        case Grid():
            return grid_lines(block, width)


def grid_lines(grid: Grid, width: int = WIDTH) -> list[str]:
    """Return the lines of a table; what does not fit beside the row names continues in another block of lines."""
    cells = [[printable(cell) for cell in grid.header], *([printable(str(cell)) for cell in row] for row in grid.rows)]
    widths = [max(len(row[number]) for row in cells) for number in range(len(grid.header))]
    names = list(range(grid.left))
    room = width - sum(widths[number] + GAP for number in names)
    blocks: list[list[int]] = [[]]
    used = 0
    for number in range(grid.left, len(widths)):
        need = widths[number] + (GAP if blocks[-1] else 0)
        if blocks[-1] and used + need > room:
            blocks.append([])
            used, need = 0, widths[number]
        blocks[-1].append(number)
        used += need
    lines: list[str] = []
    for position, block in enumerate(blocks):
        lines += [""] if position else []
        lines += [_line(row, [*names, *block], widths) for row in cells]
    return lines


def _line(row: Sequence[str], columns: Sequence[int], widths: Sequence[int]) -> str:
    return (" " * GAP).join(row[number].ljust(widths[number]) for number in columns).rstrip()
