"""Plain tables of comma-, tab-, semicolon- or blank-separated values: a time, a window, and what else there is.

For output of bpftrace and BCC scripts, and for tables that people made from logs. Columns are found by the names in the
first line, or are told by the option ``columns``: names of `samples` (or short: time, cwnd, ssthresh, srtt), and of the
flow (src, sport, dst, dport, flow), each with the name or the number (from 1) of a column of the input, and its unit::

    time=1:ms,cwnd=2,src=3,dst=4,sport=5,dport=6        # no header line
    time=when,cwnd=w:bytes,mss=mss,srtt=rtt:us

Units of times are s, ms, us and ns: without one, the name's ending tells (``rtt_us``), else times are seconds, and RTTs
milliseconds. Windows are segments, or ``bytes`` where the input has the MSS too. A time below September 2001 counts
from the start of something, and is stored as such.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

from tracetool.errors import UsageError
from tracetool.parsers.logged import (
    EPOCH_SECONDS,
    PIECE_ROWS,
    TIME_MAX_NS,
    FlowBook,
    LoggedFlow,
    Rows,
    metadata,
    summary,
)
from tracetool.parsers.stamps import stamp_of
from tracetool.parsers.tcp_state import INFINITE_SSTHRESH
from tracetool.sources import lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Line, Stream

NAME = "csv_table"
DESCRIPTION = (
    "tables with a header line that names a time and a cwnd column (any other with --columns time=...,cwnd=...)"
)

#: Columns of `samples` that a table may hold, by their own and by shorter names.
_SAMPLES = (
    "cwnd_segments", "ssthresh_segments", "srtt_ns", "rttvar_ns", "min_rtt_ns", "inflight_bytes", "mss_bytes",
    "snd_una", "snd_nxt", "snd_wnd_bytes", "rcv_wnd_bytes", "pacing_rate_bps", "delivery_rate_bps", "ca_state", "cc",
    "lost_segments", "sacked_segments", "retransmitted_segments", "delivered_segments",
)  # fmt: skip
_FLOW = ("src", "sport", "dst", "dport", "flow")
_SHORT = {re.sub(r"_(?:segments|ns|bytes|bps)$", "", name): name for name in _SAMPLES}
#: Names of columns as scripts write them -> what they are.
_KNOWN = _SHORT | {name: name for name in (*_SAMPLES, *_FLOW, "time")} | {
    "timestamp": "time", "ts": "time", "t": "time", "epoch": "time", "seconds": "time", "sec": "time", "snd_cwnd":
    "cwnd_segments", "congestion_window": "cwnd_segments", "snd_ssthresh": "ssthresh_segments", "rtt": "srtt_ns",
    "saddr": "src", "daddr": "dst", "source": "src", "destination": "dst", "laddr": "src", "raddr": "dst", "lport":
    "sport", "rport": "dport", "mss": "mss_bytes", "snd_mss": "mss_bytes", "minrtt": "min_rtt_ns",
}  # fmt: skip
_UNITS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_RATES = {"bps": 1, "kbps": 1_000, "mbps": 1_000_000}
_ENDING = re.compile(r"[ _(\[](s|sec|ms|msec|us|usec|ns|nsec|bytes|segments|pkts|bps|kbps|mbps)[)\]]?$")
_SPELLED = {"sec": "s", "msec": "ms", "usec": "us", "nsec": "ns", "pkts": "segments"}
_TEXTS = ("ca_state", "cc")
_NUMBER = re.compile(r"-?\d{1,20}(?:\.\d{0,20})?(?:[eE][+-]?\d{1,2})?$")


def sniff(head: bytes) -> bool:
    """Whether its first line names a time and a window."""
    first = next((row for row in head.decode("utf-8", "replace").split("\n")[:5] if row and row[0] != "#"), "")
    if len(first) > 4000:
        return False
    names = {_meaning(cell)[0] for cell in _split(first, _separator(first))}
    return {"time", "cwnd_segments"} <= names


def parse(stream: Stream, log: DiagnosticLog, options: ParseOptions) -> Iterator[tuple[str, pa.Table]]:
    """Read a table.

    Parameters
    ----------
    stream
        The text.
    log
        Takes what is odd: rows with too few cells, cells that are no numbers, a clock that is not UTC.
    options
        ``columns``: which column is what.

    Yields
    ------
    tuple of str and pyarrow.Table
        Pieces of `samples`, `flows`, `metadata` and `inputs`.

    Raises
    ------
    UsageError
        If the option names what there is not, or no time or no window.

    Examples
    --------
    >>> import io
    >>> from tracetool.diagnostics import DiagnosticLog
    >>> from tracetool.parsers.options import ParseOptions
    >>> pieces = dict(parse(io.BytesIO(b"time,cwnd,rtt_us\\n1.5,10,40000\\n"), DiagnosticLog("log"), ParseOptions()))
    >>> pieces["samples"].select(["cwnd_segments", "srtt_ns"]).to_pylist()
    [{'cwnd_segments': 10, 'srtt_ns': 40000000}]
    """
    table = _Table(log, options.columns)
    for line in lines(stream):
        table.read(line)
        if len(table.samples) >= PIECE_ROWS:
            yield from table.samples.take()
    yield from table.finish()


class _Column:
    """Where a value stands in a row, and its unit."""

    def __init__(self, at: int, unit: str | None) -> None:
        self.at = at
        self.unit = unit


class _Table:
    def __init__(self, log: DiagnosticLog, wanted: Mapping[str, str]) -> None:
        self.log = log
        self.wanted = dict(wanted)
        self.book = FlowBook(log.input)
        self.samples = Rows("samples", ("flow", "time", *_SAMPLES), input=log.input, origin=NAME, direction="a2b")
        self.columns: dict[str, _Column] | None = None
        self.separator: str | None = None
        self.records = 0
        self.digits = 0

    def read(self, line: Line) -> None:
        """Take one line."""
        if not line.text.strip() or (line.text.startswith("#") and self.columns is not None):
            return
        if self.columns is None:
            self._begin(line)
            return
        self._row(line, _split(line.text, self.separator))

    def _begin(self, line: Line) -> None:
        """Take the first line: names, or values already."""
        if line.text.startswith("#") and not self.wanted and not sniff(line.text.lstrip("# ").encode()):
            return
        text = line.text.lstrip("# ")
        self.separator = _separator(text)
        cells = _split(text, self.separator)
        self.columns = self._told(cells) if self.wanted else _found(cells)
        missing = {"time", "cwnd_segments"} - set(self.columns)
        if missing:
            names = ", ".join(sorted(name.removesuffix("_segments") for name in missing))
            raise UsageError(f"{self.log.input}: no column for {names}: name it with --columns time=...,cwnd=...")
        if _NUMBER.match(cells[self.columns["time"].at].strip()):
            self._row(line, cells)

    def _told(self, cells: list[str]) -> dict[str, _Column]:
        names = [cell.strip().lower() for cell in cells]
        columns = {}
        for name, told in self.wanted.items():
            meaning = _KNOWN.get(name.strip().lower())
            if meaning is None:
                raise UsageError(f"--columns: no {name!r}: known are {', '.join(sorted({*_KNOWN.values()}))}")
            where, _, unit = told.strip().partition(":")
            if where.isdecimal() and 0 < int(where) <= len(cells):
                at = int(where) - 1
            elif where.lower() in names:
                at = names.index(where.lower())
            else:
                raise UsageError(f"{self.log.input}: no column {where!r}: the first line has {', '.join(names)[:200]}")
            columns[meaning] = _Column(at, _unit(unit, meaning) if unit else _meaning(cells[at])[1])
        return columns

    def _row(self, line: Line, cells: list[str]) -> None:
        assert self.columns is not None
        columns = self.columns
        if len(cells) <= max(column.at for column in columns.values()):
            self._torn(line, f"{len(cells)} columns")
            return
        values = {name: cells[column.at].strip() for name, column in columns.items()}
        time = self._time(values["time"], columns["time"].unit)
        if time is None:
            self._torn(line, f"no time: {values['time'][:40]!r}")
            return
        try:
            flow = self._flow(values)
        except ValueError as error:
            self._torn(line, str(error))
            return
        flow.seen(time)
        self.records += 1
        self.samples.rows.append((flow.number, time, *self._sample(values)))

    def _torn(self, line: Line, reason: str) -> None:
        self.log.add(
            "torn_line",
            f"line {line.number} left out: {reason}",
            severity="error",
            line=line.number,
            offset_bytes=line.offset_bytes,
        )

    def _time(self, text: str, unit: str | None) -> int | None:
        if not _NUMBER.match(text):
            stamp = stamp_of(text)
            return stamp.time if stamp else None
        self.digits = max(self.digits, len(text.partition(".")[2]))
        return _exact(text, _UNITS[unit or "s"]) if (unit or "s") in _UNITS else None

    def _flow(self, values: dict[str, str]) -> LoggedFlow:
        if "src" in values and "dst" in values:
            ends = [f"[{values[end]}]:{values.get(port) or '*'}" for end, port in (("src", "sport"), ("dst", "dport"))]
            return self.book.find(ends[0], ends[1], values.get("flow"))
        return self.book.named(values["flow"][:100]) if values.get("flow") else self.book.named(self.log.input)

    def _sample(self, values: dict[str, str]) -> list[Any]:
        assert self.columns is not None
        sample: dict[str, Any] = {}
        for name in _SAMPLES:
            text = values.get(name, "")
            if name in _TEXTS:
                sample[name] = text[:40].lower() or None
            elif text:
                sample[name] = _number(name, text, self.columns[name].unit)
        for name in ("cwnd_segments", "ssthresh_segments"):
            if name in sample and self.columns[name].unit == "bytes":
                mss = sample.get("mss_bytes")
                sample[name] = round(sample[name] / mss) if mss and sample[name] is not None else None
        if (sample.get("ssthresh_segments") or 0) >= INFINITE_SSTHRESH:
            sample["ssthresh_segments"] = None
        return [sample.get(name) for name in _SAMPLES]

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield what is left, and what is known at the end only."""
        yield from self.samples.take()
        first, last = self.book.span()
        if not self.records:
            self.log.add("no_records", "no rows of values in the table")
        elif first is not None and first < EPOCH_SECONDS * 1_000_000_000:
            message = "times count from the start of something, shown as after 1970"
            self.log.add("clock_not_utc", message, severity="info")
        yield "flows", self.book.table()
        told = {f"column.{name}": column.at + 1 for name, column in (self.columns or {}).items()}
        yield metadata(self.log.input, told)
        yield summary(self.log.input, NAME, self.records, first_time=first, last_time=last)


def _separator(text: str) -> str | None:
    """What separates cells; None for blanks."""
    counts = {mark: text.count(mark) for mark in (",", "\t", ";")}
    best = max(counts, key=lambda mark: counts[mark])
    return best if counts[best] else None


def _split(text: str, separator: str | None) -> list[str]:
    if separator is None:
        return text.split()
    try:
        return next(csv.reader([text.replace("\0", "")], delimiter=separator), [])
    except csv.Error:
        return text.split(separator)


def _meaning(name: str) -> tuple[str | None, str | None]:
    """What a column of the input is by its name, and its unit where the name tells."""
    bare = name.strip().strip("#").strip().lower()
    if bare in _KNOWN:
        return _KNOWN[bare], "ns" if bare.endswith("_ns") else None
    ending = _ENDING.search(bare)
    meaning = _KNOWN.get(bare[: ending.start()].strip()) if ending else None
    if ending is None or meaning is None:
        return None, None
    return meaning, _SPELLED.get(ending.group(1), ending.group(1))


def _found(cells: list[str]) -> dict[str, _Column]:
    columns: dict[str, _Column] = {}
    for at, cell in enumerate(cells):
        meaning, unit = _meaning(cell)
        if meaning is not None:
            columns.setdefault(meaning, _Column(at, unit))
    return columns


def _unit(text: str, meaning: str) -> str:
    unit = _SPELLED.get(text.strip().lower(), text.strip().lower())
    if unit not in (*_UNITS, *_RATES, "bytes", "segments"):
        raise UsageError(
            f"--columns: {meaning}: no unit {text!r}: known are s, ms, us, ns, bytes, segments, bps, kbps, mbps"
        )
    return unit


def _number(name: str, text: str, unit: str | None) -> int | None:
    """A cell's value in the unit of its column; None where it is no number."""
    if not _NUMBER.match(text):
        return None
    if name.endswith("_ns"):
        return _exact(text, _UNITS.get(unit or "ms", 1_000_000))
    return _exact(text, _RATES.get(unit or "bps", 1) if name.endswith("_bps") else 1)


def _exact(text: str, factor: int) -> int | None:
    """A decimal number times a whole one, without the rounding of floats; None where it does not fit or is negative."""
    whole, _, fraction = text.partition(".")
    if "e" in text.lower():
        value = round(float(text) * factor)
    else:
        value = int(whole + fraction) * factor // 10 ** len(fraction) if whole + fraction != "-" else -1
    return value if 0 <= value <= TIME_MAX_NS else None
