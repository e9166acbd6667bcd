"""Oddities met while reading: collected, merged where there are many, never dropped.

Every row of the `diagnostics` table comes from here. A kind that occurs very often would fill the table without
telling more: after ``LIMIT`` rows of one code, further ones are counted in a last row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tracetool import tables

if TYPE_CHECKING:
    import polars as pl

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


def note_flows(flows: Any, log: DiagnosticLog) -> None:
    """Note what the flows of a capture tell about it: one row of each kind, with their number.

    Parameters
    ----------
    flows
        Rows of `flows` of one capture.
    log
        Takes ``one_direction``, ``mid_connection``, ``ports_reused`` and ``same_addresses``.
    """
    import polars as pl

    end_a, end_b = (pl.format("{} {}", f"addr_{side}", f"port_{side}") for side in "ab")
    connections = (
        pl.DataFrame(flows)
        .filter(pl.col("protocol").cast(pl.String) == "tcp")
        .select(
            "flow",
            time=pl.col("start").cast(pl.Int64),
            handshake=pl.col("handshake").cast(pl.String),
            closed=pl.col("close").cast(pl.String) == "fin",
            payload=pl.col("payload_bytes_a2b") + pl.col("payload_bytes_b2a"),
            silent=pl.min_horizontal("packets_a2b", "packets_b2a") == 0,
            low=pl.min_horizontal(end_a, end_b),
            high=pl.max_horizontal(end_a, end_b),
            around=pl.col("encapsulation").fill_null(""),
        )
    )
    seen = (pl.col("payload") > 0) | (pl.col("handshake") == "none") | pl.col("closed")
    low_high = ("low", "high")
    kinds: tuple[tuple[tuple[str, Severity, str], pl.Expr], ...] = (
        (
            ("one_direction", "warning", "have packets in one direction only: the other way was not captured"),
            pl.col("silent") & seen,
        ),
        (
            ("mid_connection", "warning", "were under way when the capture began: window scales are unknown"),
            (pl.col("handshake") == "none") & (pl.col("payload") > 0),
        ),
        (
            ("ports_reused", "info", "have the addresses and ports of an earlier one; each is a flow of its own"),
            pl.col("flow").cum_count().over(*low_high, "around") > 1,
        ),
        (
            ("same_addresses", "info", "have the addresses and ports of another one in another VLAN or tunnel"),
            pl.col("around").n_unique().over(*low_high) > 1,
        ),
    )
    for (code, severity, text), condition in kinds:
        odd = connections.filter(condition)
        if odd.height:
            flow, time = odd.row(0)[:2]
            message = f"{odd.height} connections {text} (first: flow {flow})"
            log.add(code, message, severity=severity, time=time, count=odd.height)
