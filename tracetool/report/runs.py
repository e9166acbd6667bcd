"""Runs side by side: the table of a Cake round as a page, and a figure of each number against the parameter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracetool.metrics.runs import NUMBERS
from tracetool.report.figure import Axis, Figure, Panel, Series, Style, floats
from tracetool.report.tables.document import Document, Grid, Heading, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

MISSING = "-"
_UNITS = {"bit/s": (1e6, "Mbit/s", 2), "ns": (1e6, "ms", 2), "segments": (1, "", 0), "1": (1, "", 3)}
_NAMES = {
    "up_bps": "up", "down_bps": "down", "sum_bps": "sum", "ping_mean_ns": "ping mean", "ping_median_ns": "ping median",
    "ping_p95_ns": "ping p95", "ping_p99_ns": "ping p99", "tcp_rtt_mean_ns": "TCP RTT mean",
    "tcp_rtt_p95_ns": "TCP RTT p95", "host_ratio_up": "host ratio up", "host_jain_up": "Jain up",
    "host_ratio_down": "host ratio down", "host_jain_down": "Jain down", "retransmitted_segments": "retransmitted",
    "ssthresh_segments": "ssthresh",
}  # fmt: skip
#: Numbers that share a panel of the figure.
_PANELS = (
    ("bandwidth", ("sum_bps", "up_bps", "down_bps")),
    ("ping", ("ping_mean_ns", "ping_median_ns", "ping_p95_ns", "ping_p99_ns")),
    ("TCP RTT", ("tcp_rtt_mean_ns", "tcp_rtt_p95_ns")),
    ("host ratio", ("host_ratio_up", "host_ratio_down")),
    ("Jain's index over hosts", ("host_jain_up", "host_jain_down")),
    ("retransmitted segments", ("retransmitted_segments",)),
    ("ssthresh", ("ssthresh_segments",)),
)
_MARKS = "*o+x"


def runs_page(table: pl.DataFrame, by: Sequence[str]) -> Document:
    """Lay out runs as a page; numbers that no run has are left out.

    Parameters
    ----------
    table
        As `tracetool.metrics.runs.table` makes it.
    by
        Names of the parameters, which stand first.

    Examples
    --------
    >>> from tracetool.metrics.runs import table
    >>> runs_page(table([{"run": "a", "up_bps": 9.5e6}], []), []).blocks[1].header
    ('run', 'up (Mbit/s)')
    """
    told_apart = bool(by) and bool(table.select(by).is_unique().all())
    left = [*by, *(name for name in ("run", "runs") if name in table.columns and not told_apart)]
    if "run" in left:
        table = table.with_columns(table["run"].str.slice(len(_folder(table["run"].to_list()))))
    shown = [
        name for name in table.columns if name not in (*left, "run", "runs") and table[name].null_count() < len(table)
    ]
    header = (*left, *(_title(name) for name in shown))
    rows = tuple(tuple(Text(_cell(name, row[name])) for name in (*left, *shown)) for row in table.iter_rows(named=True))
    return Document(
        (Heading(1, "1 run" if len(table) == 1 else f"{len(table)} runs"), Grid(header, rows, left=len(left)))
    )


def runs_figure(table: pl.DataFrame, by: str | None) -> Figure:
    """Draw each number against a parameter, or against the number of the run where there is none of numbers.

    Parameters
    ----------
    table
        As `tracetool.metrics.runs.table` makes it.
    by
        Name of the parameter.
    """
    numeric = by is not None and table.schema[by].is_numeric()
    table = table.filter(table[by].is_not_null()) if numeric and by is not None else table.with_row_index("__run", 1)
    x = floats(table[by if numeric and by is not None else "__run"].to_list())
    axis = Axis(by if numeric and by is not None else "run, in the order of the table")
    panels = []
    for title, names in _PANELS:
        known = [name for name in names if table[name].null_count() < len(table)]
        factor, unit, _ = _UNITS[NUMBERS[names[0]]]
        series = tuple(
            Series(
                _NAMES[name],
                "points" if len(set(x.tolist())) < len(x) else "line",
                x,
                floats([None if value is None else value / factor for value in table[name].to_list()]),
                Style(color=place, dash=place, mark=_MARKS[place]),
            )
            for place, name in enumerate(known)
        )
        if series:
            panels.append(Panel(Axis(title, unit, low=0), series))
    return Figure("Runs compared", axis, tuple(panels))


def _folder(names: Sequence[str]) -> str:
    """Folder that all runs are in; not shown."""
    shared = [{str(parent) for parent in Path(name).parents} for name in names]
    common = set.intersection(*shared) - {".", "/"} if shared else set()
    return f"{max(common, key=len)}/" if common else ""


def _title(name: str) -> str:
    unit = _UNITS[NUMBERS[name]][1] if name in NUMBERS else ""
    return f"{_NAMES.get(name, name.replace('_', ' '))}{f' ({unit})' if unit else ''}"


def _cell(name: str, value: Any) -> str:
    if value is None:
        return MISSING
    if name in NUMBERS:
        factor, _, digits = _UNITS[NUMBERS[name]]
        return f"{value / factor:.{digits}f}"
    return f"{value:g}" if isinstance(value, float) else str(value)
