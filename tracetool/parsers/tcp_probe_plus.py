"""Logs of the out-of-tree module tcp_probe_plus: 31 columns, all hexadecimal without 0x.

Beside what tcp_probe tells, a line has the congestion state and the counters of the scoreboard. Lines of type 0 are
written as a segment arrives, before it is processed, those of type 1 as one is sent, those of type 4 as the connection
ends; the address first named is the local one. srtt and mdev are the kernel's own fixed-point numbers (8 and 4 times
microseconds); pacing is in bytes per second; ``ssthresh`` is as the module reads it, 2147483647 for not set.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from tracetool.parsers.logged import FlowBook, Rows, metadata, pieces, summary
from tracetool.parsers.tcp_state import CA_STATES, SenderState, phase_by_window, threshold

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Line, Stream

NAME = "tcp_probe_plus"
DESCRIPTION = "logs of the module tcp_probe_plus (31 hexadecimal columns)"

_WORD = r"([0-9a-f]{1,8})"
_LINE = re.compile(
    rf"([014]) {_WORD} {_WORD} ([0-9a-f]{{1,8}}|[0-9a-f]{{32}}) ([0-9a-f]{{1,4}}) ([0-9a-f]{{1,8}}|[0-9a-f]{{32}}) "
    rf"([0-9a-f]{{1,4}})" + rf" {_WORD}" * 23 + r" ([0-9a-f]{1,16})(?: .*)?\s*$"
)
_BILLION = 1_000_000_000
_UNSET_FROM = 0x7FFFFFFF
_COLUMNS = (
    "flow", "time", "cwnd_segments", "ssthresh_segments", "srtt_ns", "rttvar_ns", "snd_una", "snd_nxt",
    "snd_wnd_bytes", "pacing_rate_bps", "phase", "ca_state", "lost_segments", "sacked_segments",
)  # fmt: skip


def sniff(head: bytes) -> bool:
    """Whether most of its first lines have the module's columns."""
    rows = [row for row in head.decode("ascii", "replace").splitlines()[:100] if row and row[0] != "#"]
    return bool(rows) and 2 * sum(1 for row in rows if _LINE.match(row[:1000])) >= len(rows)


def parse(stream: Stream, log: DiagnosticLog, options: ParseOptions) -> Iterator[tuple[str, pa.Table]]:
    """Read a log of tcp_probe_plus.

    Parameters
    ----------
    stream
        The text.
    log
        Takes what is odd: torn lines, a clock that is not UTC.
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
    >>> text = (b"0 1 5 c0000201 1388 c0000202 50 0 10 5 5 0 9 5 9 0 a 7fffffff 7120 1f40 640 30d40 c9 "
    ...         b"4 0 0 0 0 0 0 f4240\\n")
    >>> pieces = dict(parse(io.BytesIO(text), DiagnosticLog("log"), ParseOptions()))
    >>> pieces["samples"].select(["cwnd_segments", "srtt_ns", "pacing_rate_bps", "ca_state"]).to_pylist()
    [{'cwnd_segments': 10, 'srtt_ns': 1000000, 'pacing_rate_bps': 8000000, 'ca_state': 'open'}]
    """
    del options
    yield from pieces(_Reader(log), stream)


class _Reader:
    def __init__(self, log: DiagnosticLog) -> None:
        self.log = log
        self.book = FlowBook(log.input)
        self.samples = Rows("samples", _COLUMNS, input=log.input, origin=NAME, direction="a2b")
        self.records = 0

    def read(self, line: Line) -> None:
        """Take one line."""
        found = _LINE.match(line.text[:1000])
        if found is None:
            if line.text.strip() and not line.text.startswith("#"):
                reason = "not the module's columns" if line.whole else "the last line ends early"
                self.log.add(
                    "torn_line",
                    f"line {line.number} left out: {reason}",
                    severity="error",
                    line=line.number,
                    offset_bytes=line.offset_bytes,
                )
            return
        words = found.groups()
        ends = [f"[{_address(words[at])}]:{int(words[at + 1], 16)}" for at in (3, 5)]
        kind, seconds, nanoseconds = (int(word, 16) for word in words[:3])
        if kind == 4:  # the sequence numbers of a connection that ended are those of its last line
            return
        numbers = [int(word, 16) for word in words[11:]]
        state, snd_nxt, snd_una, cwnd, ssthresh = numbers[0], numbers[1], numbers[2], numbers[5], threshold(numbers[6])
        time = seconds * _BILLION + nanoseconds % _BILLION
        flow = self.book.find(*ends)
        sender: SenderState | None = flow.state
        if sender is not None and sender.reused(snd_una, ssthresh, cwnd):
            flow, sender = self.book.reused(flow), None
        if sender is None:
            sender = flow.state = SenderState(snd_una, time=time)
            flow.facts["isn_a"] = snd_una
        sender.advance(snd_una, snd_nxt, cwnd, ssthresh)
        flow.seen(time)
        self.records += 1
        ca_state = CA_STATES[state] if state < len(CA_STATES) else None
        phase = ca_state if ca_state in ("recovery", "loss") else phase_by_window(cwnd, ssthresh, (), _UNSET_FROM)
        self.samples.rows.append(
            (
                flow.number,
                time,
                cwnd,
                ssthresh,
                numbers[8] * 1000 // 8 or None,
                numbers[9] * 1000 // 4,
                sender.snd_una,
                sender.snd_nxt,
                numbers[7],
                numbers[19] * 8 if numbers[19] < 1 << 60 else None,
                None if sender.thresholdless else phase,
                ca_state,
                numbers[13],
                numbers[14],
            )
        )

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield what is left, and what is known at the end only."""
        yield from self.samples.take()
        for flow in self.book:
            flow.facts["payload_bytes_a2b"] = flow.state.snd_nxt
        yield "flows", self.book.table()
        if self.records:
            message = "times count from the start of the module, shown as after 1970"
            self.log.add("clock_not_utc", message, severity="info")
        else:
            self.log.add("no_records", "no lines of a connection in the log")
        yield metadata(
            self.log.input, {"clock": "since the module was loaded", "payload_bytes_a2b": "without retransmissions"}
        )
        first, last = self.book.span()
        facts = {"first_time": first, "last_time": last, "time_resolution_ns": 1 if self.records else None}
        yield summary(self.log.input, NAME, self.records, **facts)


def _address(word: str) -> str:
    return str(ipaddress.ip_address(bytes.fromhex(word.zfill(8))))
