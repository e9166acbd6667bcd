"""How commands print: tables on standard output, notes on standard error."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TextIO

from tracetool.diagnostics import printable
from tracetool.errors import TracetoolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from tracetool.ingest import Ingested

_SEVERITIES = ("error", "warning", "info")


def note(text: str) -> None:
    """Print a line on standard error."""
    print(printable(text), file=sys.stderr)


def write(text: str) -> None:
    """Print on standard output; a reader that has gone away ends the program silently."""
    with _output() as out:
        out.write(text)
        out.flush()


def write_bytes(content: bytes) -> None:
    """Write a picture on standard output."""
    with _output() as out:
        out.buffer.write(content)
        out.buffer.flush()


@contextlib.contextmanager
def _output() -> Iterator[TextIO]:
    if sys.stdout is None:
        raise TracetoolError("standard output is closed")
    try:
        yield sys.stdout
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left in the buffer goes there
        if isinstance(error, BrokenPipeError):
            raise SystemExit(0) from None
        raise TracetoolError(f"standard output: cannot be written: {error.strerror or error}") from None


def plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Frame with times as ISO 8601 in nanoseconds and lists as text, for CSV and JSON."""
    import polars as pl
    import polars.selectors as cs

    return frame.with_columns(
        cs.datetime().dt.to_string("%Y-%m-%dT%H:%M:%S%.9fZ"),
        cs.list().cast(pl.List(pl.String)).list.join(" "),
    )


def table(frame: pl.DataFrame, text: str, *, as_json: bool, as_csv: bool) -> None:
    """Print a frame as JSON (one document), as CSV, or as the text given."""
    if as_json and as_csv:
        raise UsageError("--json and --csv exclude each other")
    if as_json:
        rows = plain(frame).to_dicts()
        write(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    elif as_csv:
        write(plain(frame).write_csv())
    else:
        write(text)


def columns(headers: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> str:
    """Lay out cells in columns two blanks apart, numbers to the right, the columns named in ``left`` to the left."""
    cells = [list(headers), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headers))]
    lines = (
        "  ".join(
            cell.ljust(w) if i in left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    )
    return "".join(line.rstrip() + "\n" for line in lines)


def number(value: float | None, unit: str = "", *, digits: int = 3) -> str:
    """Number with an SI prefix, at least ``digits`` significant digits; a dash for null.

    Examples
    --------
    >>> number(1_234_567, "B"), number(None), number(12)
    ('1.23 MB', '-', '12')
    """
    if value is None:
        return "-"
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{_significant(value / factor, digits)} {prefix}{unit}"
    return f"{_significant(value, digits)}{' ' if unit else ''}{unit}"


def _significant(value: float, digits: int) -> str:
    if value == int(value) and abs(value) < 10**digits:
        return str(int(value))
    whole = len(str(int(abs(value))))
    return f"{value:.{max(0, digits - whole)}f}"


def counted(count: int, things: str) -> str:
    """Number of things, whose name ends with an s.

    Examples
    --------
    >>> counted(1, "flows"), counted(1200, "flows")
    ('1 flow', '1,200 flows')
    """
    return f"{count:,} {things.removesuffix('s') if count == 1 else things}"


def form_of(out: str | None) -> str:
    """Form of tables that the name of a file asks for: text, unless it ends otherwise.

    Examples
    --------
    >>> form_of("rates.csv"), form_of("rates.md"), form_of(None)
    ('csv', 'markdown', 'text')
    """
    suffixes = {".csv": "csv", ".json": "json", ".md": "markdown", ".html": "html", ".htm": "html"}
    return suffixes.get(PurePath(out or "").suffix.lower(), "text")


def milliseconds(ns: float | None) -> str:
    """Duration in milliseconds; a dash for null.

    Examples
    --------
    >>> milliseconds(40_250_000)
    '40.25'
    """
    return "-" if ns is None else f"{ns / 1e6:.2f}"


def told(result: Ingested) -> None:
    """Tell on standard error what became of an input, with one line per kind of diagnostic."""
    if result.error is not None:
        note(f"tracetool: {' '.join(str(result.error).split())}")
        return
    counts: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in result.diagnostics:
        counts.setdefault((row["severity"], row["code"]), []).append(row)
    for (severity, code), rows in sorted(counts.items(), key=lambda item: _SEVERITIES.index(item[0][0])):
        first, count = rows[0], sum(row["count"] for row in rows)
        more = f" (and {count - first['count']} more)" if count > first["count"] else ""
        note(f"{result.source}: {severity}: {code}: {_where(first)}{first['message']}{more}")


def summary(result: Ingested) -> str:
    """One line on an input that was read: its format and what it holds."""
    if result.status == "present":
        return f"{result.source}: already there as {result.input!r}, skipped"
    rows = result.rows or {}
    counts = ", ".join(counted(rows[t], t) for t in ("packets", "samples", "events", "flows") if rows.get(t))
    return f"{result.source}: {result.format}, {counts or 'no packets'}: input {result.input!r}"


def _where(row: dict[str, Any]) -> str:
    if row["line"] is not None:
        return f"line {row['line']}: "
    if row["offset_bytes"] is not None:
        return f"byte {row['offset_bytes']}: "
    return f"frame {row['frame']}: " if row["frame"] is not None else ""
