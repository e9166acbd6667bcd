"""``/proc/net/tcpprobe``: the log of the old module ``net/ipv4/tcp_probe.c`` (Linux 2.6.18 to 4.15).

A line has 9 (up to 2.6.21), 10 (up to 3.11) or 11 columns: time since the file was opened, local end, peer, length,
snd_nxt, snd_una, cwnd, ssthresh, send window, and later srtt and receive window. What must be known:

* From 2.6.22 on a line is the state as a segment arrives, before it is processed; before, as data is sent.
* ``ssthresh`` is ``tcp_current_ssthresh()``, as in the tracepoint; 2147483647 (0 in copies of the module) is not set.
* srtt is in jiffies up to 3.14 and in microseconds from 3.15 on, in the same column. The option ``hz`` says jiffies;
  without it the log's own round trips (from snd_nxt to the ACK of it) choose the unit, and the choice is noted.
* By default the module logs changes of cwnd only, so that much can lie between two lines.
"""

from __future__ import annotations

import re
from statistics import median
from typing import TYPE_CHECKING, Any

from tracetool.parsers.logged import (
    PIECE_ROWS,
    FlowBook,
    LoggedFlow,
    Rows,
    decimal_ns,
    metadata,
    summary,
)
from tracetool.parsers.tcp_state import SenderState, threshold
from tracetool.sources import lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Line, Stream

NAME = "tcp_probe"
DESCRIPTION = "/proc/net/tcpprobe of old kernels (9, 10 or 11 columns)"

_NUMBER, _SEQUENCE, _END = (
    r"(\d{1,10})",
    r"(?:0x)?([0-9a-f]{1,8})",
    r"(\d{1,3}(?:\.\d{1,3}){3}:\d{1,5}|\[[0-9a-f:.]{2,45}\]:\d{1,5})",
)
_LINE = re.compile(
    rf"(\d{{1,10}})\.(\d{{9}}|\d{{6}}) {_END} {_END} {_NUMBER} {_SEQUENCE} {_SEQUENCE} {_NUMBER} {_NUMBER} {_NUMBER}"
    rf"(?: {_NUMBER}(?: {_NUMBER})?)?\s*$"
)
#: Candidates for the unit of srtt: microseconds, and jiffies at the values of HZ that kernels are built with.
_UNITS_NS = {"microseconds": 1000} | {f"jiffies (HZ={hz})": 1_000_000_000 // hz for hz in (1000, 300, 250, 100)}
_BULK_BYTES = 8 * 1448  # a flight worth timing: new data was sent as an ACK came in, not by a slow application
_SAMPLES = 4096  # round trips that are timed
_LIKELY = 2.0  # a unit is believed if it explains the round trips up to this factor
_US_MEDIAN = 2000  # without round trips: larger srtt than this are no jiffies, but for very long paths
_SRTT = 4  # column of a row


def sniff(head: bytes) -> bool:
    """Whether most of its first lines have the module's columns."""
    rows = [row for row in head.decode("ascii", "replace").splitlines()[:100] if row and row[0] != "#"]
    return bool(rows) and 2 * sum(1 for row in rows if _LINE.match(row)) >= len(rows)


def parse(stream: Stream, log: DiagnosticLog, options: ParseOptions) -> Iterator[tuple[str, pa.Table]]:
    """Read a log of the old module.

    Parameters
    ----------
    stream
        The text.
    log
        Takes what is odd: torn lines, the unit of srtt, a clock that is not UTC.
    options
        ``hz``: srtt is in jiffies of this length.

    Yields
    ------
    tuple of str and pyarrow.Table
        Pieces of `samples`, `flows`, `metadata` and `inputs`.

    Examples
    --------
    >>> import io
    >>> from tracetool.diagnostics import DiagnosticLog
    >>> from tracetool.parsers.options import ParseOptions
    >>> text = b"1.000000005 192.0.2.1:5000 192.0.2.2:80 32 0x9 0x5 11 2147483647 14592 21 29696\\n"
    >>> pieces = dict(parse(io.BytesIO(text), DiagnosticLog("log"), ParseOptions(hz=250)))
    >>> pieces["samples"].select(["cwnd_segments", "ssthresh_segments", "srtt_ns"]).to_pylist()
    [{'cwnd_segments': 11, 'ssthresh_segments': None, 'srtt_ns': 84000000}]
    """
    reader = _Reader(log, options)
    for line in lines(stream):
        reader.read(line)
        if len(reader.samples) >= PIECE_ROWS:
            yield from reader.take()
    yield from reader.finish()


class _Reader:
    def __init__(self, log: DiagnosticLog, options: ParseOptions) -> None:
        self.log = log
        self.book = FlowBook(log.input)
        self.samples = Rows(
            "samples",
            (
                "flow", "time", "cwnd_segments", "ssthresh_segments", "srtt_ns", "snd_una", "snd_nxt", "snd_wnd_bytes",
                "rcv_wnd_bytes", "phase",
            ),
            input=log.input, origin=NAME, direction="a2b",
        )  # fmt: skip
        self.columns: int | None = None
        self.digits = 0
        self.unit = f"jiffies (HZ={options.hz})" if options.hz else None
        self.unit_ns: int | None = 1_000_000_000 // options.hz if options.hz else None
        self.marks: dict[int, tuple[int, int, int]] = {}  # flow -> snd_nxt, when it was sent, and how surely
        self.ratios: list[float] = []  # nanoseconds of a round trip for one unit of srtt
        self.records = 0

    def read(self, line: Line) -> None:
        """Take one line."""
        found = _LINE.match(line.text)
        if found is None:
            if line.text.strip() and not line.text.startswith("#"):
                self._torn(line, "not the module's columns" if line.whole else "the last line ends early")
            return
        seconds, fraction, local, peer, _, snd_nxt, snd_una, cwnd, ssthresh, snd_wnd, srtt, rcv_wnd = found.groups()
        columns = 9 + (srtt is not None) + (rcv_wnd is not None)
        if self.columns is None:
            self.columns, self.digits = columns, len(fraction)
        elif columns != self.columns:
            self._torn(line, f"{columns} columns, where the first line has {self.columns}")
            return
        time = decimal_ns(seconds, fraction)
        try:
            flow = self.book.find(local, peer)
        except ValueError as error:
            self._torn(line, str(error))
            return
        if time is None:
            self._torn(line, f"no time: {seconds}")
            return
        window, known, una = int(cwnd), threshold(int(ssthresh)), int(snd_una, 16)
        sender: SenderState | None = flow.state
        if sender is not None and sender.reused(una, known, window):
            self.marks.pop(flow.number, None)
            flow = self.book.reused(flow)
            sender = None
        if sender is None:
            sender = flow.state = SenderState(una, time=time)
            flow.facts["isn_a"] = una
        sender.advance(una, int(snd_nxt, 16), window, known)
        if self.unit_ns is None and srtt:
            self._time_round_trip(flow, sender, int(srtt), time)
        sender.time = time
        flow.seen(time)
        self.records += 1
        self.samples.rows.append(
            (
                flow.number,
                time,
                window,
                known,
                int(srtt) if srtt else None,
                sender.snd_una,
                sender.snd_nxt,
                int(snd_wnd),
                int(rcv_wnd) if rcv_wnd else None,
                sender.phase(window, known),
            )
        )

    def _torn(self, line: Line, reason: str) -> None:
        self.log.add(
            "torn_line",
            f"line {line.number} left out: {reason}",
            severity="error",
            line=line.number,
            offset_bytes=line.offset_bytes,
        )

    def _time_round_trip(self, flow: LoggedFlow, sender: SenderState, srtt: int, time: int) -> None:
        """Time one flight of a flow at a time, as old TCPs timed one segment.

        A line is written before its ACK is processed: snd_nxt was sent, and snd_una was acknowledged, between the
        line before it (``sender.time``) and this one. Where lines are sparse, that says too little.
        """
        mark = self.marks.get(flow.number)
        if mark and sender.snd_una >= mark[0]:
            rtt = sender.time - mark[1]
            if srtt and len(self.ratios) < _SAMPLES and max(mark[2], time - sender.time) * 4 < rtt:
                self.ratios.append(rtt / (srtt + 0.5))
            mark = None
        if mark is None:
            if sender.snd_nxt - sender.snd_una >= _BULK_BYTES:
                self.marks[flow.number] = (sender.snd_nxt, sender.time, time - sender.time)
            else:
                self.marks.pop(flow.number, None)

    def take(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield the samples collected, srtt in nanoseconds."""
        if self.unit is None:
            self._choose_unit()
        unit = self.unit_ns
        self.samples.rows = [
            (*row[:_SRTT], row[_SRTT] * unit if unit and row[_SRTT] else None, *row[_SRTT + 1 :])
            for row in self.samples.rows
        ]
        yield from self.samples.take()

    def _choose_unit(self) -> None:
        values = [row[_SRTT] for row in self.samples.rows if row[_SRTT]]
        if not values:
            return
        reason = "its median is above 2000"
        if len(self.ratios) >= 3:
            ratio = median(self.ratios)
            name, unit = min(_UNITS_NS.items(), key=lambda item: max(item[1] / ratio, ratio / item[1]))
            if max(unit / ratio, ratio / unit) <= _LIKELY:
                self.unit, self.unit_ns = name, unit
                reason = f"of the units kernels use it fits the {len(self.ratios)} round trips in the log best"
        if self.unit is None and median(values) > _US_MEDIAN:
            self.unit, self.unit_ns = "microseconds", 1000
        if self.unit is None:
            self.unit = "unknown"
            message = "srtt left out: nothing tells whether it is in jiffies or microseconds; give --hz"
            self.log.add("srtt_unit", message)
        else:
            self.log.add("srtt_unit", f"srtt taken to be in {self.unit}: {reason}", severity="info")

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield what is left, and what is known at the end only."""
        yield from self.take()
        for flow in self.book:
            flow.facts["payload_bytes_a2b"] = flow.state.snd_nxt
        yield "flows", self.book.table()
        if self.records:
            message = "times count from the opening of /proc/net/tcpprobe, shown as time after 1970"
            self.log.add("clock_not_utc", message, severity="info")
        facts: dict[str, Any] = {
            "clock": "since /proc/net/tcpprobe was opened",
            "columns": self.columns,
            "srtt_unit": self.unit,
            "ssthresh": "tcp_current_ssthresh()",
            "payload_bytes_a2b": "without retransmissions",
        }
        yield metadata(self.log.input, facts)
        first, last = self.book.span()
        resolution = {6: 1000, 9: 1}.get(self.digits)
        facts = {"first_time": first, "last_time": last, "time_resolution_ns": resolution}
        yield summary(self.log.input, NAME, self.records, **facts)
