"""The layout of the testbed pages: one TAB between cells; and a reader of their tables that drops nothing."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tracetool.diagnostics import printable
from tracetool.report.tables.document import Document, Grid, Heading, Lines

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = 2


def render(document: Document) -> str:
    """Return a page with TABs between the cells of its tables.

    Examples
    --------
    >>> from tracetool.report.tables.document import Text
    >>> render(Document((Grid(("Delay", "cubic"), ((Text("16ms"), Text("1.000000")),)),)))
    'Delay\\tcubic\\n16ms\\t1.000000\\n'
    """
    return "\n".join("".join(f"{line}\n" for line in _block(block)) for block in document.blocks)


def _block(block: Heading | Lines | Grid) -> Iterator[str]:
    match block:
        case Heading(text=text):
            yield printable(text)
        case Lines(lines=lines):
            yield from (printable(line) for line in lines)
        case Grid(header=header, rows=rows):
            yield "\t".join(printable(cell) for cell in header)
            for row in rows:
                yield "\t".join(printable(str(cell)) for cell in row)


def parse_scale_table(text: str) -> list[dict[str, Any]]:
    """Read a table of protocols and time scales as such pages print it.

    A value beyond the headings is kept under ``extra_1``, ``extra_2``, … and warned of: nothing is shifted, padded or
    dropped.

    Parameters
    ----------
    text
        The header and the rows, TABs between cells; the protocol stands on its first row only.

    Returns
    -------
    list of dict
        One per value: ``protocol``, ``scale``, ``column``, ``value``.

    Raises
    ------
    ValueError
        There is no header, or a value is no number.

    Examples
    --------
    >>> parse_scale_table("Protocol\\t\\t16ms\\nCUBIC\\t1sec\\t0.5")
    [{'protocol': 'CUBIC', 'scale': '1sec', 'column': '16ms', 'value': 0.5}]
    """
    lines = [line.rstrip("\n") for line in text.splitlines() if line.strip()]
    if not lines:
        raise ValueError("no table: expected a header and rows")
    header = lines[0].split("\t")[NAMES:]
    found: list[dict[str, Any]] = []
    protocol, headless = "", 0
    for number, line in enumerate(lines[1:], 2):
        first, scale, *values = line.split("\t")
        protocol = first or protocol
        for position, value in enumerate(values):
            named = position < len(header)
            headless += not named
            column = header[position] if named else f"extra_{position - len(header) + 1}"
            try:
                found.append({"protocol": protocol, "scale": scale, "column": column, "value": float(value)})
            except ValueError:
                raise ValueError(f"line {number}: {value!r}: expected a number") from None
    if headless:
        warnings.warn(f"{headless} values stand in columns without a heading", UserWarning, stacklevel=2)
    return found
