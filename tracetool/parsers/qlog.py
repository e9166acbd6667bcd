"""qlog, the event log of QUIC stacks: drafts 00 to 02, 0.3 and later, as JSON, JSON-SEQ or JSON lines.

Each change of the recovery metrics becomes a sample, with what did not change carried forward; lost packets and changes
of the congestion state become events. Each trace is a flow, named by its addresses where an event tells them.

* Windows are **bytes**. Segments are bytes over the largest datagram: the one that ``recovery:parameters_set`` names
  (for the samples before it, too), else the largest packet sent so far, else the 1200 bytes of RFC 9000; `mss_bytes`
  has what was used.
* What a trace says of itself may stand after its events: up to 16,384 of them wait for it.
* Times are milliseconds, or microseconds where an old trace's configuration says so; RTTs are in the same unit.
* The reference time stands in seconds, milliseconds or microseconds; without one, times count from 1970.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tracetool.parsers.json_text import JsonDamageError, members, number
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
from tracetool.parsers.qlog_values import ends, reference_ns, signed_ns, size_bytes
from tracetool.sources import lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Stream

NAME = "qlog"
DESCRIPTION = "qlog of QUIC connections (JSON, JSON-SEQ, JSON lines)"

_UNSET = (1 << 32) - 1  # stacks write this, or 2^64 - 1, for a threshold that is not set
LEAST_DATAGRAM = 1200  # RFC 9000, section 14
HELD = 1 << 14  # events of a trace that wait for its fields: a writer may put those after the events
_SET = "parameters_set"
_ENTERED = ((), ("traces",), ("traces", "*"), ("traces", "*", "events"))
_SNIFF = re.compile(rb'[\x1e\s]*\{(?=.{0,2000}"(?:qlog_version|qlog_format|file_schema)"\s*:)', re.DOTALL)
_SEQUENCE = re.compile(rb'\x1e|\s*\{[^\n]{0,4000}"(?:qlog_format|serialization_format)"\s*:\s*"[^"]*(?:SEQ|NDJSON|seq)')
_FIELDS = ("relative_time", "category", "event", "data")  # of an event without names, where the trace names none
_METRICS = {
    "cwnd": "cwnd", "congestion_window": "cwnd", "ssthresh": "ssthresh", "bytes_in_flight": "inflight",
    "smoothed_rtt": "srtt", "rtt_variance": "rttvar", "min_rtt": "min_rtt", "pacing_rate": "pacing",
}  # fmt: skip
_TIMES = ("srtt", "rttvar", "min_rtt")
_PHASES = {"slow_start": "slow_start", "congestion_avoidance": "congestion_avoidance", "recovery": "recovery"}
_SAMPLE = (
    "flow", "time", "cwnd_segments", "ssthresh_segments", "srtt_ns", "rttvar_ns", "min_rtt_ns", "inflight_bytes",
    "mss_bytes", "pacing_rate_bps", "phase", "limited_by",
)  # fmt: skip


def sniff(head: bytes) -> bool:
    """Whether it is JSON that says to be qlog."""
    return bool(_SNIFF.match(head))


def parse(stream: Stream, log: DiagnosticLog, options: ParseOptions) -> Iterator[tuple[str, pa.Table]]:
    """Read a qlog file.

    Parameters
    ----------
    stream
        The text.
    log
        Takes what is odd: a file that ends early, records that cannot be read, a missing reference time.
    options
        Not used.

    Yields
    ------
    tuple of str and pyarrow.Table
        Pieces of `samples`, `events`, `flows`, `metadata` and `inputs`.

    Examples
    --------
    >>> import io
    >>> from tracetool.diagnostics import DiagnosticLog
    >>> from tracetool.parsers.options import ParseOptions
    >>> text = b'''{"qlog_version": "0.3", "traces": [{"common_fields": {"reference_time": 1796026431000}, "events": [
    ...   {"time": 5, "name": "recovery:metrics_updated",
    ...    "data": {"congestion_window": 12000, "smoothed_rtt": 20.5}}]}]}'''
    >>> pieces = dict(parse(io.BytesIO(text), DiagnosticLog("run"), ParseOptions()))
    >>> pieces["samples"].select(["cwnd_segments", "srtt_ns", "mss_bytes"]).to_pylist()
    [{'cwnd_segments': 10, 'srtt_ns': 20500000, 'mss_bytes': 1200}]
    """
    del options
    reader = _Reader(log)
    head = stream.head() if hasattr(stream, "head") else _peek(stream)
    feed = _records(stream, reader, log) if _SEQUENCE.match(head) else _document(stream, reader, log)
    for _ in feed:
        if len(reader.samples) >= PIECE_ROWS or len(reader.events) >= PIECE_ROWS:
            yield from reader.samples.take()
            yield from reader.events.take()
    yield from reader.finish()


def _peek(stream: Any) -> bytes:
    head: bytes = stream.read(4096)
    stream.seek(0)
    return head


def _document(stream: Stream, reader: _Reader, log: DiagnosticLog) -> Iterator[None]:
    try:
        for path, value in members(stream, _ENTERED):
            if path == ("traces", "*", "events", "*"):
                reader.event(value)
            elif len(path) == 3 and path[:2] == ("traces", "*") and value is not None:
                reader.trace_says(path[2], value)
            elif path == ("traces", "*"):
                reader.next_trace()
            elif len(path) == 1 and value is not None:
                reader.file_says(path[0], value)
            yield
    except JsonDamageError as error:
        log.add("damaged_json", f"{error}: what came before is kept", severity="error", offset_bytes=error.offset_bytes)


def _records(stream: Stream, reader: _Reader, log: DiagnosticLog) -> Iterator[None]:
    """JSON-SEQ (RFC 7464) and JSON lines: the first record is about the file, each other one an event."""
    for line in lines(stream):
        text = line.text.strip("\x1e \t")
        if not text:
            continue
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            log.add(
                "torn_line",
                f"line {line.number} left out: no JSON",
                severity="error",
                line=line.number,
                offset_bytes=line.offset_bytes,
            )
            continue
        if isinstance(record, dict) and ("qlog_version" in record or "file_schema" in record or "trace" in record):
            for key, value in record.items():
                reader.file_says(key, value)
            trace = record.get("trace")
            for key, value in trace.items() if isinstance(trace, dict) else ():
                reader.trace_says(key, value)
        else:
            reader.event(record)
        yield


class _Reader:
    def __init__(self, log: DiagnosticLog) -> None:
        self.log = log
        self.book = FlowBook(log.input, "quic")
        self.samples = Rows("samples", _SAMPLE, input=log.input, origin=NAME, direction="a2b")
        self.events = Rows(
            "events", ("flow", "time", "kind", "bytes", "evidence"), input=log.input, origin=NAME, direction="a2b"
        )
        self.facts: dict[str, Any] = {}
        self.records = 0
        self.traces = 0
        self.undated = False
        self.odd = 0
        self._new_trace()

    def _new_trace(self) -> None:
        self.held: list[Any] | None = []
        self.fields: tuple[str, ...] = _FIELDS
        self.unit_ns = 1_000_000
        self.reference_ns = 0
        self.offset_ns = 0
        self.format = ""
        self.first_ns: int | None = None
        self.now_ns: int | None = None
        self.ends: tuple[str, str] | None = None
        self.flow: LoggedFlow | None = None
        self.datagram: int | None = None
        self.largest = 0
        self.metrics: dict[str, int] = {}
        self.state: str | None = None

    def next_trace(self) -> None:
        """Take the end of a trace; one without metrics is a flow too."""
        if self.held is not None:
            self._release()
        if self.first_ns is not None and self.now_ns is not None:
            self._flow(self.first_ns).seen(self.now_ns)
        self.traces += 1
        self._new_trace()

    def file_says(self, key: str, value: Any) -> None:
        """Take what stands beside the traces."""
        if isinstance(value, (str, int, float)):
            self.facts[f"qlog.{key}"] = str(value)[:1000]

    def trace_says(self, key: str, value: Any) -> None:
        """Take what a trace says of itself."""
        if key in ("event_fields", "configuration", "common_fields") and self.first_ns is not None:
            message = f"a trace's {key} stands after its events: their times and fields may be read wrongly"
            self.log.add("late_fields", message)
        if key == "event_fields" and isinstance(value, list):
            self.fields = tuple(str(field).lower() for field in value)
        elif key == "configuration" and isinstance(value, dict):
            if str(value.get("time_units", "ms")).lower() == "us":
                self.unit_ns = 1000
            self.offset_ns = number(value.get("time_offset"), self.unit_ns) or 0
        elif key == "common_fields" and isinstance(value, dict):
            self.reference_ns = reference_ns(value.get("reference_time"))
            self.format = str(value.get("time_format", "")).lower()
        elif key in ("title", "description") and isinstance(value, str):
            self.facts[f"trace.{self.traces}.{key}"] = value[:1000]
        elif key == "vantage_point" and isinstance(value, dict):
            self.facts[f"trace.{self.traces}.vantage_point"] = str(value.get("type", ""))[:100].lower()

    def event(self, event: Any) -> None:
        """Take one event, in any draft's form; the first ones of a trace wait for what is told after them."""
        if self.held is None:
            self._event(event)
            return
        self.held.append(event)
        if len(self.held) >= HELD:
            self._release()

    def _release(self) -> None:
        """Read the events that waited; until the datagram's size is set, it is what it is first set to."""
        held, self.held = self.held or [], None
        sizes = (number(data.get("max_datagram_size")) for what, data, _ in map(self._parts, held) if what == _SET)
        self.datagram = next((size for size in sizes if size), None)
        for event in held:
            self._event(event)

    def _parts(self, event: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """What an event is, its data, and the whole of it as names and values; nothing where it is none."""
        if isinstance(event, list):
            event = dict(zip(self.fields, event, strict=False))
        if not isinstance(event, dict):
            return "", {}, {}
        category, kind = event.get("category", ""), event.get("event") or event.get("event_type") or event.get("type")
        name = str(event.get("name") or f"{category}:{kind}").lower()
        data = event.get("data")
        what = name.rpartition(":")[2].removeprefix("recovery_")
        return (what, data, event) if isinstance(data, dict) else ("", {}, event)

    def _event(self, event: Any) -> None:
        what, data, fields = self._parts(event)
        time = self._time(fields)
        if not what or time is None:
            self.odd += bool(event)
            return
        if what in ("metrics_updated", "metric_update"):
            self._metrics(data, time)
        elif what in ("congestion_state_updated", "congestion_state_update"):
            self._state(data, time)
        elif what == "packet_lost":
            size = size_bytes(data)
            evidence = f"packet_lost, {str(data.get('trigger', 'no trigger told'))[:100]}"
            self.events.rows.append((self._flow(time).number, time, "packet_lost", size, evidence))
            self.records += 1
        elif what == "packet_sent":
            self.largest = max(self.largest, min(size_bytes(data) or 0, 65535))
        elif what == _SET:
            self.datagram = number(data.get("max_datagram_size")) or self.datagram
        elif self.ends is None and self.flow is None:
            self.ends = ends(data, sent="sent" in what)

    def _time(self, event: dict[str, Any]) -> int | None:
        """Nanoseconds of an event since the epoch."""
        for key in ("time", "relative_time", "delta_time", "delta"):
            if key in event:
                told = signed_ns(event[key], self.unit_ns)
                break
        else:
            return None
        if told is None:
            return None
        if key in ("delta_time", "delta") or self.format in ("delta", "relative_to_previous_event"):
            told += self.now_ns if self.now_ns is not None else self.reference_ns + self.offset_ns
        elif self.format != "absolute" and told < EPOCH_SECONDS * 1_000_000_000:
            told += self.reference_ns + self.offset_ns
        if not 0 <= told <= TIME_MAX_NS:
            return None
        self.now_ns = told
        self.first_ns = told if self.first_ns is None else self.first_ns
        self.undated = self.undated or told < EPOCH_SECONDS * 1_000_000_000
        return told

    def _flow(self, time: int) -> LoggedFlow:
        if self.flow is None:
            if self.ends is not None:
                try:
                    self.flow = self.book.find(*self.ends, f"{self.traces:x}")
                except ValueError:
                    self.ends = None
            if self.flow is None:
                self.flow = self.book.labelled(f"{self.log.input}#{self.traces}", "unknown")
        self.flow.seen(time)
        return self.flow

    def _metrics(self, data: dict[str, Any], time: int) -> None:
        for key, value in data.items():
            metric = _METRICS.get(key)
            told = number(value, self.unit_ns if metric in _TIMES else 1) if metric else None
            if metric and told is not None:
                self.metrics[metric] = told
        self._sample(time)

    def _state(self, data: dict[str, Any], time: int) -> None:
        new = str(data.get("new", ""))[:100].lower()
        self.state = new or None
        self.events.rows.append((self._flow(time).number, time, "cong_state", None, new or "unknown"))
        self._sample(time)

    def _sample(self, time: int) -> None:
        if not self.metrics:
            return
        metrics, flow = self.metrics, self._flow(time)
        mss = self.datagram or self.largest or LEAST_DATAGRAM
        cwnd, ssthresh = metrics.get("cwnd"), metrics.get("ssthresh")
        self.records += 1
        self.samples.rows.append(
            (
                flow.number,
                time,
                round(cwnd / mss) if cwnd else None,
                round(ssthresh / mss) if ssthresh and ssthresh < _UNSET else None,
                metrics.get("srtt"),
                metrics.get("rttvar"),
                metrics.get("min_rtt"),
                metrics.get("inflight"),
                mss,
                metrics.get("pacing"),
                _PHASES.get(self.state or ""),
                "app" if self.state == "application_limited" else None,
            )
        )

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield what is left, and what is known at the end only."""
        self.next_trace()  # one that broke off, or that of a sequence of records
        if self.undated and self.records:
            message = "no reference time: times count from the start of the connection, shown as after 1970"
            self.log.add("clock_not_utc", message, severity="info")
        if self.odd:
            self.log.add("odd_events", "events without a time or data", severity="info", count=self.odd)
        if not self.records:
            self.log.add("no_records", "no recovery metrics in it: does the stack log recovery events?")
        yield from self.samples.take()
        yield from self.events.take()
        yield "flows", self.book.table()
        yield metadata(self.log.input, self.facts)
        first, last = self.book.span()
        resolution = self.unit_ns if self.records else None
        yield summary(
            self.log.input, NAME, self.records, first_time=first, last_time=last, time_resolution_ns=resolution
        )
