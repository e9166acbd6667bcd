"""iperf3's own report: ``--json``, ``--json-stream`` and its full output, with what the other side reported.

Per interval and stream that sends TCP, iperf3 tells what the kernel's tcp_info says at the interval's end
(``src/tcp_info.c``): the congestion window in **bytes** (on Linux segments times MSS), the smoothed RTT and its
variation in microseconds, retransmissions since the interval before. What must be known:

* Times count from the start of a stream. When that was is told in whole seconds only, as of the set-up: the data
  begins up to one second, and a round trip or more, later.
* Of what the other side sends (``-R``, ``--bidir``) only ``--get-server-output`` tells the window.
* Bytes are the application's, as written into the socket buffer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tracetool.parsers.json_text import JsonDamageError, members, number
from tracetool.parsers.logged import PIECE_ROWS, FlowBook, LoggedFlow, Rows, metadata, summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Stream

NAME = "iperf3"
DESCRIPTION = "iperf3 --json or --json-stream reports"

_ENTERED = ((), ("intervals",), ("server_output_json",), ("server_output_json", "intervals"))
_VERSION = re.compile(rb'"version"\s*:\s*"iperf 3')
_START = re.compile(rb'\s*\{\s*"(?:start|title|extra_data)"\s*:')
_STREAMED = re.compile(rb'\s*\{\s*"event"\s*:\s*"(?:start|interval|end|error|server_output_json|server_output_text)"')
_FAILED = re.compile(rb'\s*\{\s*"(?:start|error)"\s*:.{0,4000}"error"\s*:\s*"', re.DOTALL)
_SECOND_NS = 1_000_000_000
_COLUMNS = (
    "flow", "direction", "time", "cwnd_segments", "srtt_ns", "rttvar_ns", "mss_bytes", "snd_wnd_bytes",
    "retransmitted_segments", "cc",
)  # fmt: skip
#: Parts of the report that are kept as metadata.
_TOLD = ("test_start", "sum_sent", "sum_received", "sum", "sum_sent_bidir_reverse", "sum_received_bidir_reverse",
         "cpu_utilization_percent")  # fmt: skip
_HEADERS = (40, 52, 60, 72)  # IPv4 or IPv6 with TCP, without and with timestamps
_HELD_ROWS = 4 * PIECE_ROWS  # samples that wait for the end, which names the congestion control


def sniff(head: bytes) -> bool:
    """Whether it is JSON as iperf3 writes it."""
    if _STREAMED.match(head):
        return True
    return bool(_START.match(head) and (_VERSION.search(head) or b'"intervals"' in head)) or (
        bool(_FAILED.match(head)) and b'"intervals"' in head
    )


def parse(stream: Stream, log: DiagnosticLog, options: ParseOptions) -> Iterator[tuple[str, pa.Table]]:
    """Read a report of iperf3.

    Parameters
    ----------
    stream
        The text.
    log
        Takes what is odd: a run that failed, the coarse start, a report that ends early.
    options
        Not used.

    Yields
    ------
    tuple of str and pyarrow.Table
        Pieces of `samples`, `flows`, `metadata` and `inputs`.

    Examples
    --------
    >>> import io
    >>> from tracetool.diagnostics import DiagnosticLog
    >>> from tracetool.parsers.options import ParseOptions
    >>> text = b'''{"start": {"version": "iperf 3.12", "tcp_mss_default": 1448, "timestamp": {"timesecs": 1796030815},
    ...   "connected": [{"socket": 5, "local_host": "192.0.2.1", "local_port": 4000, "remote_host": "192.0.2.2",
    ...                  "remote_port": 5201}]},
    ...  "intervals": [{"streams": [{"socket": 5, "start": 0, "end": 0.5, "bytes": 777576, "retransmits": 0,
    ...                              "snd_cwnd": 112944, "rtt": 74895, "sender": true}]}]}'''
    >>> pieces = dict(parse(io.BytesIO(text), DiagnosticLog("run"), ParseOptions()))
    >>> pieces["samples"].select(["cwnd_segments", "srtt_ns"]).to_pylist()
    [{'cwnd_segments': 78, 'srtt_ns': 74895000}]
    """
    del options
    book = FlowBook(log.input)
    report = _Report(log, book)
    try:
        for path, value in members(stream, _ENTERED):
            report.take(path, value)
            if len(report.samples) >= _HELD_ROWS:
                yield from report.samples.take()
    except JsonDamageError as error:
        log.add("damaged_json", f"{error}: what came before is kept", severity="error", offset_bytes=error.offset_bytes)
    yield from report.finish()


class _Side:
    """What one end of the test says of itself: its sockets and clock."""

    def __init__(self) -> None:
        self.start_ns: int | None = None
        self.mss: int | None = None
        self.linux = False
        self.reverse = False
        self.sockets: dict[int, tuple[str, str]] = {}  # local and remote end
        self.streams: dict[int, tuple[LoggedFlow, str]] = {}  # socket -> flow, and direction of what this end sends
        self.omitted_s: dict[int, float] = {}  # seconds of warm-up before the clock of a stream starts anew
        self.retransmits: dict[int, int] = {}


class _Report:
    def __init__(self, log: DiagnosticLog, book: FlowBook) -> None:
        self.log = log
        self.book = book
        self.samples = Rows("samples", _COLUMNS, input=log.input, origin=NAME)
        self.local = _Side()
        self.remote = _Side()
        self.facts: dict[str, Any] = {}
        self.intervals = 0
        self.inexact = False
        self.repeated = False  # whether this document tells a run again (--json-stream-full-output)

    def take(self, path: tuple[str, ...], value: Any) -> None:
        """Take a member of the report."""
        if path == ():
            self.repeated = False
        elif path[0] == "server_output_json":
            if value is not None:
                self._part(path[1:], value, self.remote)
        elif path == ("event",):
            self.facts["event"] = value
        elif path == ("data",):
            self._streamed(self.facts.pop("event", None), value)
        elif value is not None:
            self._part(path, value, self.local)

    def _streamed(self, event: Any, data: Any) -> None:
        """One line of --json-stream."""
        parts = {"start": ("start",), "interval": ("intervals", "*"), "end": ("end",), "error": ("error",)}
        if event == "server_output_json" and isinstance(data, dict):
            for key in ("start", "end", "error"):
                if key in data:
                    self._part((key,), data[key], self.remote)
            for interval in data.get("intervals") or ():
                self._part(("intervals", "*"), interval, self.remote)
        elif event in parts:
            self._part(parts[event], data, self.local)

    def _part(self, path: tuple[str, ...], value: Any, side: _Side) -> None:
        if path == ("start",) and isinstance(value, dict):
            self._start(value, side)
        elif path == ("intervals", "*") and isinstance(value, dict):
            self._interval(value, side)
        elif path == ("end",) and isinstance(value, dict):
            self._end(value, side)
        elif path == ("error",) and isinstance(value, str):
            self.log.add("run_failed", f"iperf3 gave up: {value}", severity="error")
        elif path == ("title",) and isinstance(value, str):
            self.facts["title"] = value

    def _start(self, start: dict[str, Any], side: _Side) -> None:
        if side is self.local:
            self.repeated = bool(side.streams) and self._same(start)
            if self.repeated:
                return
            side = self.local = _Side()
            self.remote = _Side()
        stamp = start.get("timestamp")
        if isinstance(stamp, dict):
            millis = number(stamp.get("timemillisecs"), 1_000_000)
            side.start_ns = millis if millis is not None else number(stamp.get("timesecs"), _SECOND_NS)
        side.mss = number(start.get("tcp_mss")) or number(start.get("tcp_mss_default")) or None
        side.linux = str(start.get("system_info", "")).startswith("Linux")
        test = start.get("test_start")
        test = test if isinstance(test, dict) else {}
        side.reverse = bool(test.get("reverse"))
        protocol = str(test.get("protocol", "TCP")).lower()
        self._connect(start, side, protocol)
        if side is self.local:
            keys = ("version", "system_info", "tcp_mss", "tcp_mss_default", "sock_bufsize", "target_bitrate")
            self._tell("start", {key: start.get(key) for key in keys} | {"test_start": test})

    def _same(self, start: dict[str, Any]) -> bool:
        """Whether a start is that of the run at hand."""
        stamp = start.get("timestamp")
        seconds = number(stamp.get("timesecs")) if isinstance(stamp, dict) else None
        return _sockets(start) == self.local.sockets and (self.local.start_ns or 0) // _SECOND_NS == seconds

    def _connect(self, start: dict[str, Any], side: _Side, protocol: str) -> None:
        side.sockets = _sockets(start)
        for socket, ends in side.sockets.items():
            try:
                if side is self.local:
                    flow, direction = self.book.find(*ends), "a2b"
                else:  # the same connection, seen from the other end
                    flow, direction = self.book.find(*reversed(ends)), "b2a"
            except ValueError as error:
                self.log.add("bad_address", f"a stream without address: {error}")
                continue
            flow.facts["protocol"] = protocol if protocol in ("tcp", "udp") else "tcp"
            side.streams[socket] = (flow, direction)

    def _interval(self, interval: dict[str, Any], side: _Side) -> None:
        if self.repeated and side is self.local:
            return
        self.intervals += side is self.local
        streams = interval.get("streams")
        for stream in streams if isinstance(streams, list) else ():
            if isinstance(stream, dict) and (socket := _integer(stream.get("socket"))) in side.streams:
                self._stream(stream, socket, side)

    def _stream(self, stream: dict[str, Any], socket: int, side: _Side) -> None:
        flow, outward = side.streams[socket]
        end = stream.get("end")
        if side.start_ns is None or isinstance(end, bool) or not isinstance(end, (int, float)) or not 0 <= end < 1e9:
            return
        offset = 0.0 if stream.get("omitted") else side.omitted_s.get(socket, 0.0)
        if stream.get("omitted"):
            side.omitted_s[socket] = float(end)
        time = side.start_ns + round((end + offset) * 1e6) * 1000
        begin = number(stream.get("start"), 1e9) or 0
        flow.seen(min(side.start_ns + begin + round(offset * 1e6) * 1000, time))
        flow.seen(time)
        sends = bool(stream.get("sender", not side.reverse))
        direction = outward if sends else {"a2b": "b2a", "b2a": "a2b"}[outward]
        if side is self.local:
            column = f"payload_bytes_{direction}"
            flow.facts[column] = number((flow.facts.get(column) or 0) + (number(stream.get("bytes")) or 0))
        cwnd, rtt = number(stream.get("snd_cwnd")), number(stream.get("rtt"), 1000)
        if (resent := number(stream.get("retransmits"))) is not None:
            side.retransmits[socket] = side.retransmits.get(socket, 0) + resent
        if cwnd is None and rtt is None:
            return
        segments, mss = self._segments(cwnd, number(stream.get("pmtu")), side)
        self.samples.rows.append(
            (
                flow.number,
                direction,
                time,
                segments,
                rtt or None,
                number(stream.get("rttvar"), 1000),
                mss,
                number(stream.get("snd_wnd")),
                side.retransmits.get(socket),
                None,
            )
        )

    def _segments(self, cwnd: int | None, pmtu: int | None, side: _Side) -> tuple[int | None, int | None]:
        """Window in segments, and the MSS.

        On Linux the window is a whole number of segments. Where it is none of the MSS that iperf3 tells, the path's
        MTU less the headers may fit; where nothing fits, both are unknown. Elsewhere windows are counted in bytes.
        """
        if not cwnd:
            return None, side.mss
        if side.mss and (not side.linux or cwnd % side.mss == 0):
            return round(cwnd / side.mss), side.mss
        fitting = [pmtu - size for size in _HEADERS if pmtu and pmtu > 2 * size and cwnd % (pmtu - size) == 0]
        if side.linux and len(fitting) == 1:
            return cwnd // fitting[0], fitting[0]
        self.inexact = True
        return None, None

    def _end(self, end: dict[str, Any], side: _Side) -> None:
        if side is self.local:
            told = {key: end[key] for key in _TOLD if isinstance(end.get(key), dict)}
            names = ("sender_tcp_congestion", "receiver_tcp_congestion")
            self._tell("end", told | {key: end[key] for key in names if isinstance(end.get(key), str)})
            outward, inward = ("b2a", "a2b") if side.reverse else ("a2b", "b2a")
            used = {outward: end.get(names[0]), inward: end.get(names[1])}
            self.samples.rows = [(*row[:-1], row[-1] or _text(used[row[1]])) for row in self.samples.rows]

    def _tell(self, prefix: str, facts: dict[str, Any]) -> None:
        for key, value in facts.items():
            if isinstance(value, dict):
                self._tell(f"{prefix}.{key}", value)
            elif isinstance(value, (str, int, float)):
                self.facts[f"{prefix}.{key}"] = value.strip() if isinstance(value, str) else value

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield what is left, and what is known at the end only."""
        first, last = self.book.span()
        if first is not None:
            message = "times are known to a second: iperf3 tells the start in whole seconds, and data begins later"
            self.log.add("coarse_start", message, severity="info")
        if self.inexact:
            message = "windows that are no whole number of the MSS that iperf3 tells, or tell none, are left out"
            self.log.add("inexact_window", message)
        if not len(self.book) and "run_failed" not in {row["code"] for row in self.log.rows}:
            self.log.add("no_records", "no connection in the report")
        yield from self.samples.take()
        yield "flows", self.book.table()
        yield metadata(self.log.input, self.facts)
        facts = {"first_time": first, "last_time": last, "time_resolution_ns": _SECOND_NS}
        yield summary(self.log.input, NAME, self.intervals, **facts)


def _sockets(start: dict[str, Any]) -> dict[int, tuple[str, str]]:
    """Sockets of a start, with their local and remote ends."""
    connected = start.get("connected")
    return {
        _integer(socket.get("socket")): (
            _end(socket.get("local_host"), socket.get("local_port")),
            _end(socket.get("remote_host"), socket.get("remote_port")),
        )
        for socket in (connected if isinstance(connected, list) else ())
        if isinstance(socket, dict)
    }


def _end(host: Any, port: Any) -> str:
    """An end as `endpoint` takes it; iperf3 writes addresses without brackets."""
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


def _integer(value: Any) -> int:
    return value if isinstance(value, int) else -1


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
