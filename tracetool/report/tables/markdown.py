"""Tables as Markdown (GitHub's pipe tables)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.diagnostics import printable
from tracetool.report.tables.document import Document, Grid, Heading, Lines

if TYPE_CHECKING:
    from collections.abc import Iterator


def render(document: Document) -> str:
    """Return a page as Markdown.

    Examples
    --------
    >>> render(Document((Heading(2, "Rates"),)))
    '## Rates\\n'
    """
    return "\n".join("".join(f"{line}\n" for line in _block(block)) for block in document.blocks)


def _block(block: Heading | Lines | Grid) -> Iterator[str]:
    match block:
        case Heading(level=level, text=text):
            yield f"{'#' * level} {_escaped(text)}"
        case Lines(lines=lines):
            for number, line in enumerate(lines):
                yield _escaped(line) + ("  " if number < len(lines) - 1 else "")
        case Grid(header=header, rows=rows, left=left):
            yield _row(header)
            yield _row(["---" if number < left else "---:" for number in range(len(header))])
            for row in rows:
                yield _row([_escaped(str(cell)) for cell in row])


def _row(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Keep a text from being read as markup: brackets would be links, pipes cells."""
    plain = printable(text)
    for mark in "\\`*_[]|<>":
        plain = plain.replace(mark, f"\\{mark}")
    return plain
