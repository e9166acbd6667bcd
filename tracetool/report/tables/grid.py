"""How a cell is printed: the mean with six decimals, then one link per repetition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.measures import Number, mean
from tracetool.report.tables.document import Link, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracetool.experiments.cells import Cell

MISSING = "-"
UNDEFINED = "n/a"


def format_number(value: float | None, *, digits: int = 6) -> str:
    """Print a number with fixed decimals; ``n/a`` where there is none.

    Examples
    --------
    >>> format_number(0.9945), format_number(None)
    ('0.994500', 'n/a')
    """
    return UNDEFINED if value is None else f"{value:.{digits}f}"


def format_cell(values: Sequence[Number | None], names: Sequence[str] = ()) -> str:
    """Print the mean of the repetitions that have a value, and a bracket for each repetition.

    Examples
    --------
    >>> format_cell([0.991, 0.995, 0.9975])
    '0.994500 [1] [2] [3]'
    """
    shown = format_number(mean([value for value in values if value is not None]))
    brackets = names or [str(number + 1) for number in range(len(values))]
    return " ".join([shown, *(f"[{name}]" for name in brackets)])


def cell_text(cell: Cell | None, *, factor: float = 1, digits: int = 6, links: bool = True) -> Text:
    """Return a cell as it is printed.

    A cell without runs is ``-``; one whose repetitions are not all defined says ``(m of n)``; an estimate has a ``~``.

    Parameters
    ----------
    cell
        The cell, or nothing where the experiment has no such run.
    factor, digits
        From the cell's unit to the printed one, and its decimals.
    links
        Whether the repetitions are linked.
    """
    if cell is None:
        return Text(MISSING)
    shown = format_number(None if cell.value is None else factor * cell.value, digits=digits)
    if cell.label == "sender-capture" and cell.value is not None:
        shown += "~"
    after = f"({cell.n_defined} of {cell.n})" if cell.value is not None and cell.n_defined < cell.n else ""
    runs = tuple(Link(name, run) for name, run in cell.repetitions) if links else ()
    return Text(shown, runs, after)
