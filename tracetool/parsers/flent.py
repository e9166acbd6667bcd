"""Flent's data files (``.flent.gz``, file format versions 1 to 4): raw values, never the interpolated grid.

Each series of a TCP transfer is a flow, each ping series another, in the order of the file; `metadata` names the
series of a flow as ``flow.<number>.series``. What Flent stores beside (``SERIES_META``, sysctls, qdiscs, titles) is
metadata by its dotted path: ``TITLE``, ``SERIES_META.TCP upload.MEAN_VALUE``, and so on.

* Socket statistics that Flent took with ss become samples of origin flent: window in segments, RTT in milliseconds,
  rates in Mbit/s. It keeps no threshold.
* Pings, and other series of round trips, become `rtts` of method ping.
* Totals must come from the tool's own mean (``MEAN_VALUE``) or bytes: sums over the grid are too low where series have
  gaps. `payload_bytes` has the bytes where the tool tells them, else mean times duration.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tracetool.parsers.json_text import JsonDamageError, members, number
from tracetool.parsers.logged import PIECE_ROWS, TIME_MAX_NS, FlowBook, LoggedFlow, Rows, metadata, summary
from tracetool.parsers.tcp_state import bbr_phase

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Stream

NAME = "flent"
DESCRIPTION = "Flent data files (.flent.gz, versions 1 to 4)"

VERSION = 4
_ENTERED = ((), ("raw_values",), ("raw_values", "*"), ("results",), ("results", "*"), ("x_values",))
_SNIFF = re.compile(rb'\s*\{\s*"metadata"\s*:\s*\{')
_KEYS = re.compile(
    rb'"(?:STEP_SIZE|TOTAL_LENGTH|FLENT_VERSION|NETPERF_WRAPPER_VERSION|BATCH_NAME|SERIES_META|DATA_FILENAME)"'
)
_TCP = re.compile(r"\bTCP\b|\bupload\b|\bdownload\b", re.IGNORECASE)
_PING = re.compile(r"\bping\b|\bRTT\b", re.IGNORECASE)
_HOST = re.compile(r"\s-H\s+(\S+)")
_UDP_PING = re.compile(r"\bUDP\b", re.IGNORECASE)
_MS_NS, _MBIT = 1e6, 1e6
_FACT_CHARS = 4096
_MOST_FACTS = 20_000
_SAMPLE = (
    "flow", "time", "cwnd_segments", "srtt_ns", "rttvar_ns", "min_rtt_ns", "pacing_rate_bps", "delivery_rate_bps",
    "phase",
)  # fmt: skip


def sniff(head: bytes) -> bool:
    """Whether it is JSON that begins with Flent's metadata."""
    return bool(_SNIFF.match(head) and _KEYS.search(head))


def parse(stream: Stream, log: DiagnosticLog, options: ParseOptions) -> Iterator[tuple[str, pa.Table]]:
    """Read a data file of Flent.

    Parameters
    ----------
    stream
        The text.
    log
        Takes what is odd: a file that ends early, a later version, values that are no numbers, missing raw values.
    options
        Not used.

    Yields
    ------
    tuple of str and pyarrow.Table
        Pieces of `samples`, `rtts`, `flows`, `metadata` and `inputs`.

    Examples
    --------
    >>> import io
    >>> from tracetool.diagnostics import DiagnosticLog
    >>> from tracetool.parsers.options import ParseOptions
    >>> text = b'''{"metadata": {"NAME": "tcp_1up", "TOTAL_LENGTH": 10, "LOCAL_HOST": "a", "HOST": "b"},
    ...   "raw_values": {"TCP upload": [{"t": 5.0, "tcp_cwnd": 10, "tcp_rtt": 20.5}, {"t": 5.2, "val": 9.5}]},
    ...   "results": {}, "version": 4, "x_values": []}'''
    >>> pieces = dict(parse(io.BytesIO(text), DiagnosticLog("run"), ParseOptions()))
    >>> pieces["samples"].select(["cwnd_segments", "srtt_ns"]).to_pylist()
    [{'cwnd_segments': 10, 'srtt_ns': 20500000}]
    """
    del options
    reader = _Reader(log)
    try:
        for path, value in members(stream, _ENTERED):
            reader.take(path, value)
            if len(reader.samples) >= PIECE_ROWS or len(reader.rtts) >= PIECE_ROWS:
                yield from reader.samples.take()
                yield from reader.rtts.take()
    except JsonDamageError as error:
        log.add("damaged_json", f"{error}: what came before is kept", severity="error", offset_bytes=error.offset_bytes)
    yield from reader.finish()


class _Reader:
    def __init__(self, log: DiagnosticLog) -> None:
        self.log = log
        self.book = FlowBook(log.input)
        self.samples = Rows("samples", _SAMPLE, input=log.input, origin=NAME, direction="a2b")
        self.rtts = Rows("rtts", ("flow", "direction", "time", "rtt_ns"), input=log.input, method="ping")
        self.meta: dict[str, Any] = {}
        self.facts: dict[str, Any] = {}
        self.series: dict[str, LoggedFlow | None] = {}
        self.results: set[str] = set()
        self.records = 0
        self.odd = 0
        self.version: int | None = None

    def take(self, path: tuple[str, ...], value: Any) -> None:
        """Take a member of the file."""
        if len(path) == 3 and path[0] == "raw_values":
            self._value(path[1], value)
        elif len(path) == 2 and path[0] == "results":
            self.results.add(path[1])
        elif path == ("metadata",) and isinstance(value, dict):
            self.meta = value
            self._tell("", value)
            self._old_raw_values()
        elif path == ("version",):
            self.version = number(value)

    def _tell(self, prefix: str, value: Any) -> None:
        """Keep metadata as dotted keys; lists that Flent keeps raw values in are left out."""
        if isinstance(value, dict):
            for key, part in value.items():
                if key != "RAW_VALUES":
                    self._tell(f"{prefix}.{key}" if prefix else str(key), part)
        elif isinstance(value, list):
            self._tell(prefix, dict(enumerate(value[:100])))
        elif value is not None and len(self.facts) < _MOST_FACTS:
            self.facts[prefix] = str(value)[:_FACT_CHARS]

    def _old_raw_values(self) -> None:
        """Version 1 kept raw values among the metadata of a series."""
        for name, facts in self._series_meta().items():
            values = facts.get("RAW_VALUES") if isinstance(facts, dict) else None
            for value in values if isinstance(values, list) else ():
                self._value(name, value)

    def _series_meta(self) -> dict[str, Any]:
        found = self.meta.get("SERIES_META")
        return found if isinstance(found, dict) else {}

    def _facts_of(self, name: str) -> dict[str, Any]:
        found = self._series_meta().get(name)
        return found if isinstance(found, dict) else {}

    def _flow(self, name: str) -> LoggedFlow | None:
        """The flow of a series; None for series that are no transfer and no ping (CPU load, VoIP, ...)."""
        if name not in self.series:
            self.series[name] = flow = self._new_flow(name) if _TCP.search(name) or _PING.search(name) else None
            if flow is not None:
                self.facts[f"flow.{flow.number}.series"] = name
        return self.series[name]

    def _new_flow(self, name: str) -> LoggedFlow:
        facts = self._facts_of(name)
        command = _HOST.search(str(facts.get("COMMAND", "")))
        local, peer = self.meta.get("LOCAL_HOST"), command.group(1) if command else self.meta.get("HOST")
        flow = self.book.labelled(str(local or "unknown"), str(peer or "unknown"))
        ping = _PING.search(name) and not _TCP.search(name)
        flow.facts["protocol"] = ("udp" if _UDP_PING.search(name) else "icmp") if ping else "tcp"
        return flow

    def _value(self, name: str, value: Any) -> None:
        if not isinstance(value, dict):
            return
        flow, time = self._flow(name), number(value.get("t"), 1e6)
        if flow is None:
            return
        if time is None or time > TIME_MAX_NS // 1000:
            self.odd += 1
            return
        time *= 1000  # a float holds microseconds of an epoch, not nanoseconds
        flow.seen(time)
        self.records += 1
        if "tcp_cwnd" in value or "tcp_rtt" in value:
            self._sample(flow, time, value)
        elif flow.facts["protocol"] != "tcp":
            rtt = number(value.get("val"), _MS_NS)
            if rtt is None:  # NaN, null, or lost
                self.odd += 1
            else:
                self.rtts.rows.append((flow.number, "a2b", time, rtt))

    def _sample(self, flow: LoggedFlow, time: int, value: dict[str, Any]) -> None:
        gains = [value.get(f"tcp_bbr_{gain}") for gain in ("pacing_gain", "cwnd_gain")]
        told = all(isinstance(gain, (int, float)) for gain in gains)
        self.samples.rows.append(
            (
                flow.number,
                time,
                number(value.get("tcp_cwnd")),
                number(value.get("tcp_rtt"), _MS_NS),
                number(value.get("tcp_rtt_var"), _MS_NS),
                number(value.get("tcp_bbr_mrtt"), _MS_NS),
                number(value.get("tcp_pacing_rate"), _MBIT),
                number(value.get("tcp_delivery_rate"), _MBIT),
                bbr_phase(gains[0], gains[1]) if told else None,  # type: ignore[arg-type]
            )
        )

    def _note_bytes(self, name: str, flow: LoggedFlow) -> None:
        """Fill in what a transfer moved: the tool's bytes, else its mean over its duration."""
        facts = self._facts_of(name)
        down = "download" in name.lower()
        column = "payload_bytes_b2a" if down else "payload_bytes_a2b"
        moved = number(facts.get("BYTES_RECVD" if down else "BYTES_SENT"))
        mean = number(facts.get("MEAN_VALUE"), _MBIT)
        seconds = number(facts.get("ELAPSED_TIME"), 1e9) or number(self.meta.get("LENGTH"), 1e9)
        if not moved and mean is not None and seconds and facts.get("UNITS", "Mbits/s") == "Mbits/s":
            moved = number(mean * seconds // 8_000_000_000)
        if moved is not None:
            flow.facts[column] = moved
        if "CONG_CONTROL" in facts:
            self.facts[f"flow.{flow.number}.cc"] = str(facts["CONG_CONTROL"])

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield what is left, and what is known at the end only."""
        for name in [*self._series_meta(), *sorted(self.results)]:  # transfers without raw values are flows too
            if _TCP.search(name) and not _computed(name, self._facts_of(name)):
                self._flow(name)
        for name, flow in self.series.items():
            if flow is not None and flow.facts["protocol"] == "tcp":
                self._note_bytes(name, flow)
        if self.version is not None and self.version > VERSION:
            message = f"file format version {self.version}: read as version {VERSION}, which is the latest known"
            self.log.add("unknown_version", message)
        if not self.records:
            self.log.add("no_raw_values", "no raw values of transfers or pings: only metadata is kept")
        if self.odd:
            self.log.add("no_number", "raw values without a time or a number", severity="info", count=self.odd)
        yield from self.samples.take()
        yield from self.rtts.take()
        yield "flows", self.book.table()
        self.facts["flent.file_version"] = self.version or 1
        yield metadata(self.log.input, self.facts)
        first, last = self.book.span()
        times = {"first_time": first, "last_time": last} if first is not None else self._started()
        yield summary(self.log.input, NAME, self.records, **times)

    def _started(self) -> dict[str, Any]:
        """The test's start, where no value tells a time."""
        try:
            start = datetime.fromisoformat(str(self.meta.get("T0") or self.meta.get("TIME")).replace("Z", ""))
        except ValueError:
            return {}
        time = round(start.replace(tzinfo=UTC).timestamp()) * 1_000_000_000
        return {"first_time": time} if abs(time) <= TIME_MAX_NS else {}


def _computed(name: str, facts: dict[str, Any]) -> bool:
    """Whether a series was computed from others: sums, averages, and the parts of socket statistics."""
    runner = str(facts.get("RUNNER", ""))
    last = name.rpartition("::")[2]
    return (
        runner in ("SumRunner", "AverageRunner", "NullRunner", "ComputingRunner", "FairnessRunner")
        or last.startswith("tcp_")
        or bool(re.search(r"\b(?:avg|sum|totals|fairness)\b", name))
    )
