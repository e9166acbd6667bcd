"""Oddities met while reading: collected, merged where there are many, never dropped.

Every row of the `diagnostics` table comes from here. A kind that occurs very often would fill the table without
telling more: after ``LIMIT`` rows of one code, further ones are counted in a last row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from tracetool import tables

LIMIT = 100  # rows of one code and input that are kept one by one

Severity = Literal["info", "warning", "error"]


def printable(text: str) -> str:
    r"""Text from an input without anything that a terminal would obey: control characters, overrides of direction.

    Examples
    --------
    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    >>> printable("\u202egpj.exe")
    '\\u202egpj.exe'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(ord(char)) for char in text)


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


@dataclass
class DiagnosticLog:
    """Collects the diagnostics of one input.

    Attributes
    ----------
    input
        Short name of the input.
    damaged
        Whether any row has severity `error`: part of the input could not be read.
    part
        File that is being read, where an input has several: named in what is noted meanwhile.
    """

    input: str
    part: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)
    damaged: bool = False
    _counts: dict[str, int] = field(default_factory=dict)
    _last: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(
        self,
        code: str,
        message: str,
        *,
        severity: Severity = "warning",
        time: int | None = None,
        frame: int | None = None,
        offset_bytes: int | None = None,
        line: int | None = None,
        count: int = 1,
    ) -> None:
        """Note one oddity.

        Parameters
        ----------
        code
            Kind, in lower case with underscores; listed in ``docs/diagnostics.md``.
        message
            What was met, in one line; control characters are escaped here.
        severity
            ``error`` means that something could not be read.
        time, frame, offset_bytes, line
            Where: nanoseconds since the epoch, frame number, byte offset (decompressed), line number.
        count
            How many occurrences this row stands for.
        """
        self.damaged = self.damaged or severity == "error"
        seen = self._counts[code] = self._counts.get(code, 0) + 1
        if seen > LIMIT:
            last = self._last[code]
            last["count"] += count
            last["message"] = f"{last['count']} more of this kind (the first of them at the place given)"
            return
        if self.part:
            message = f"{self.part}: {message}"
        row = {
            "input": self.input,
            "time": time,
            "frame": frame,
            "offset_bytes": offset_bytes,
            "line": line,
            "severity": severity,
            "code": code,
            "message": printable(message),
            "count": count,
        }
        self._last[code] = row
        self.rows.append(row)
        if seen == LIMIT:
            row["count"] = count
            row["message"] = f"{count} more of this kind (the first of them at the place given)"

    def table(self) -> Any:
        """All rows as a `diagnostics` table."""
        return tables.from_rows("diagnostics", self.rows)
