"""The tracepoint ``tcp:tcp_probe`` as text: ftrace ``trace`` and ``trace_pipe``, ``trace-cmd report``, ``perf script``.

The event fires on entry of ``tcp_rcv_established()`` (``net/ipv4/tcp_input.c``, Linux 4.16 and later): a row is the
sender's state as a segment arrives, before it is processed. Two companions are read with it: ``tcp_retransmit_skb``
and ``tcp_cong_state_set``. What must be known to read the numbers:

* ``src`` is the local end, although the packet travelled the other way; each socket is a flow of its own.
* ``ssthresh`` is ``tcp_current_ssthresh()``: outside recovery the larger of snd_ssthresh and 3/4 of cwnd, so that it
  creeps up with cwnd. It is stored as printed; 2147483647 means not set.
* No event fires while the socket is not ESTABLISHED: after the sender's close() all further ACKs are invisible.
* In recovery ``snd_nxt - snd_una`` exceeds what is in flight; `inflight_bytes` is therefore known in state open only.
* The clock is not named in the text. Times below September 2001 are taken as time since boot and stored as such.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracetool.errors import FormatError
from tracetool.parsers import tracers
from tracetool.parsers.logged import (
    EPOCH_SECONDS,
    LINE_CHARS,
    PIECE_ROWS,
    TIME_MAX_NS,
    FlowBook,
    LoggedFlow,
    Rows,
    metadata,
    summary,
)
from tracetool.parsers.tcp_state import CA_STATES, SenderState, threshold
from tracetool.sources import lines

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    import pyarrow as pa

    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Line, Stream

NAME = "tcp_probe"
DESCRIPTION = "tcp_probe events (ftrace trace or trace_pipe, trace-cmd report, perf script)"

REORDER_NS = 1_000_000  # per-CPU clocks disagree by less; a larger step back is left as it is


def sniff(head: bytes) -> bool:
    """Whether it is what ftrace writes above its lines, or text with tcp events among other lines of tracers.

    Stack traces, which ``perf script`` indents, and comments count as no lines; a text that quotes events is no log.
    """
    text = head.decode("utf-8", "replace")
    if text.startswith("# tracer: "):
        return True
    rows = [row for row in text.splitlines()[:2000] if row and row[0] not in "\t#"]
    own = sum(1 for row in rows if tracers.TCP_EVENT.search(row) or ("snd_cwnd" in row and tracers.unreadable(row)))
    return own > 0 and 10 * (own + sum(1 for row in rows if tracers.EVENT.search(row))) >= len(rows)


def parse(stream: Stream, log: DiagnosticLog, options: ParseOptions) -> Iterator[tuple[str, pa.Table]]:
    """Read a log of tcp_probe events.

    Parameters
    ----------
    stream
        The text.
    log
        Takes what is odd: torn lines, lost events, a clock that is not UTC.
    options
        ``hz`` turns the plain numbers of the trace clock `uptime` into time.

    Yields
    ------
    tuple of str and pyarrow.Table
        Pieces of `samples`, `events`, `flows`, `metadata` and `inputs`.

    Raises
    ------
    FormatError
        If the tracer's layout does not hold what is needed.

    Examples
    --------
    >>> import io
    >>> from tracetool.diagnostics import DiagnosticLog
    >>> from tracetool.parsers.options import ParseOptions
    >>> text = (b"curl-1 [000] b..1. 9.000001: tcp_probe: src=192.0.2.1:5000 dest=192.0.2.2:80 mark=0x0 data_len=0 "
    ...         b"snd_nxt=0x9 snd_una=0x5 snd_cwnd=10 ssthresh=2147483647 snd_wnd=65536 srtt=4000 rcv_wnd=64512\\n")
    >>> pieces = dict(parse(io.BytesIO(text), DiagnosticLog("log"), ParseOptions()))
    >>> pieces["samples"].select(["cwnd_segments", "srtt_ns", "snd_nxt"]).to_pylist()
    [{'cwnd_segments': 10, 'srtt_ns': 4000000, 'snd_nxt': 4}]
    """
    reader = _Reader(log, options)
    for line in lines(stream):
        reader.read(line)
        if len(reader.samples) >= PIECE_ROWS or len(reader.events) >= PIECE_ROWS:
            yield from reader.samples.take()
            yield from reader.events.take()
    yield from reader.finish()


class _Reader:
    def __init__(self, log: DiagnosticLog, options: ParseOptions) -> None:
        self.log = log
        self.tick_ns = 1_000_000_000 // options.hz if options.hz else 1
        self.book = FlowBook(log.input)
        self.samples = Rows(
            "samples",
            (
                "flow", "time", "cwnd_segments", "ssthresh_segments", "srtt_ns", "snd_una", "snd_nxt", "snd_wnd_bytes",
                "rcv_wnd_bytes", "inflight_bytes", "phase", "ca_state",
            ),
            input=log.input, origin=NAME, direction="a2b",
        )  # fmt: skip
        self.events = Rows(
            "events", ("flow", "time", "kind", "trigger", "evidence"), input=log.input, origin=NAME, direction="a2b"
        )
        self.records = 0
        self.others = 0
        self.lost: int | None = None
        self.digits: int | None = None  # of the fraction of a second
        self.cookies = False  # whether lines have one
        self.first_time: int | None = None
        self.last_time: int | None = None

    def read(self, line: Line) -> None:
        """Take one line."""
        found = tracers.PROBE.search(line.text, 0, LINE_CHARS)
        if len(line.text) > LINE_CHARS:
            self._torn(line, f"more than {LINE_CHARS} characters")
        elif found is None:
            self._other(line)
        elif found.start() > 80:  # more than a task's name and number: what is before it was another line
            self._torn(line, "two lines run into each other")
            self._probe(line, found.group(1), found.group(2), found.groups()[2:])
        else:
            self._probe(line, found.group(1), found.group(2), found.groups()[2:])

    def _probe(self, line: Line, seconds: str, fraction: str | None, values: tuple[Any, ...]) -> None:
        src, dest, length_key, length, snd_nxt, snd_una, cwnd, ssthresh, snd_wnd, srtt, rcv_wnd, cookie = values
        if cookie is None and self.cookies:
            return self._torn(line, "a tcp_probe line ends early")
        time = self._time(line, seconds, fraction)
        if time is None:
            return None
        try:
            flow = self.book.find(src, dest, cookie)
        except ValueError as error:
            return self._torn(line, str(error))
        self.cookies = cookie is not None
        window, una, nxt = int(cwnd), int(snd_una, 16), int(snd_nxt, 16)
        known = threshold(int(ssthresh))
        sender: SenderState | None = flow.state
        if sender is not None and cookie is None and time >= sender.time and sender.reused(una, known, window):
            flow = self.book.reused(flow)
            sender = None
        if sender is None or sender.base < 0:
            state = sender.ca_state if sender else None
            sender = flow.state = SenderState(una, time=time, ca_state=state)
            flow.facts["isn_a"] = una
        sender.advance(una, nxt, window, known)
        if length_key == "data_len":
            flow.facts["payload_bytes_b2a"] = flow.facts.get("payload_bytes_b2a", 0) + int(length)
        self._add(
            flow,
            sender,
            (
                flow.number,
                time,
                window,
                known,
                int(srtt) * 1000 or None,
                sender.snd_una,
                sender.snd_nxt,
                int(snd_wnd),
                int(rcv_wnd),
                sender.snd_nxt - sender.snd_una if sender.ca_state == "open" else None,
                sender.phase(window, known),
                sender.ca_state,
            ),
        )
        return None

    def _add(self, flow: LoggedFlow, sender: SenderState, row: tuple[Any, ...]) -> None:
        """Append a sample; the clocks of two CPUs may put it a little before the one above it."""
        rows, time = self.samples.rows, row[1]
        self.records += 1
        flow.seen(time)
        at = len(rows)
        if sender.time - REORDER_NS <= time < sender.time:
            while at and (rows[at - 1][0] != row[0] or rows[at - 1][1] > time) and len(rows) - at < 1000:
                at -= 1
        rows.insert(at, row)
        sender.time = max(sender.time, time)

    def _time(self, line: Line, seconds: str, fraction: str | None) -> int | None:
        if fraction is None:
            time = int(seconds) * self.tick_ns
        else:
            time = int(seconds + fraction) * (1000 if len(fraction) == 6 else 1)
        if time > TIME_MAX_NS:
            self._torn(line, f"no time: {seconds}")
            return None
        if self.first_time is None:
            self.digits = len(fraction) if fraction else 0
            self.first_time = self.last_time = time
        elif time > self.last_time:  # type: ignore[operator]
            self.last_time = time
        elif time < self.first_time:
            self.first_time = time
        return time

    def _other(self, line: Line) -> None:
        text = line.text
        if tracers.COMMENT.match(text):
            self._comment(line)
        elif lost := tracers.LOST.match(text):
            count = int(lost.group(2)) if lost.group(2) else 1
            self.lost = (self.lost or 0) + count
            message = f"the kernel's buffer was full: {lost.group(2) or 'some'} events of CPU {lost.group(1)} are lost"
            self.log.add("lost_events", message, line=line.number, offset_bytes=line.offset_bytes, count=count)
        elif event := tracers.EVENT.search(text):
            self._event(line, event)
        else:
            self._unreadable(line)

    def _comment(self, line: Line) -> None:
        self._reject(line)
        if line.text.startswith("##### CPU "):
            self.log.add("overwritten_events", f"older events are gone: {line.text.strip('# ')}", line=line.number)
        elif (written := tracers.WRITTEN.match(line.text)) and (
            gone := int(written.group(2)) - int(written.group(1))
        ) > 0:
            message = f"the kernel's buffer was full: the oldest {gone} events were overwritten"
            self.log.add("overwritten_events", message, line=line.number, count=min(gone, 1 << 62))

    def _reject(self, line: Line) -> None:
        """Raise where the tracer's layout as a whole cannot be read."""
        if not self.records and (reason := tracers.unreadable(line.text)):
            raise FormatError(f"{self.log.input}: line {line.number}: tcp_probe events, but {reason}")

    def _unreadable(self, line: Line) -> None:
        self._reject(line)
        if line.text.strip():
            self._torn(line, "no tracer's line" if line.whole else "the last line ends early")

    def _torn(self, line: Line, reason: str) -> None:
        self.log.add(
            "torn_line",
            f"line {line.number} left out: {reason}",
            severity="error",
            line=line.number,
            offset_bytes=line.offset_bytes,
        )

    def _event(self, line: Line, event: re.Match[str]) -> None:
        seconds, fraction, name, body = event.groups()
        if name == "tcp_probe":
            self._reject(line)
            pairs = dict(tracers.PAIR.findall(body))
            order = [*tracers.KEYS, "sock_cookie"]
            if found := tracers.PAYLOAD.match(" ".join(f"{key}={pairs[key]}" for key in order if key in pairs)):
                self._probe(line, seconds, fraction, found.groups())
            else:
                self._torn(line, "a tcp_probe line lacks some of its fields")
        elif name in ("tcp_retransmit_skb", "tcp_cong_state_set"):
            self._companion(line, event)
        else:
            self.others += 1

    def _companion(self, line: Line, event: re.Match[str]) -> None:
        seconds, fraction, name, body = event.groups()
        pairs = dict(tracers.PAIR.findall(body))
        time = self._time(line, seconds, fraction)
        if time is None:
            return
        try:
            # Of an IPv6 socket, saddr and daddr hold something unrelated.
            local = f"[{pairs['saddrv6']}]:{int(pairs['sport'])}"
            flow = self.book.find(local, f"[{pairs['daddrv6']}]:{int(pairs['dport'])}")
            state = CA_STATES[int(pairs["cong_state"])] if name == "tcp_cong_state_set" else None
        except (KeyError, ValueError, IndexError):
            self._torn(line, f"a {name} line lacks some of its fields")
            return
        if flow.state is None:
            flow.state = SenderState(-1, time=time)  # its sequence numbers are not known yet
        flow.seen(time)
        self.records += 1
        sender: SenderState = flow.state
        if state is not None:
            sender.ca_state = state
            self.events.rows.append((flow.number, time, "cong_state", None, state))
            return
        failed = pairs.get("err", "0") != "0"
        trigger = {"recovery": "fast", "loss": "rto"}.get(sender.ca_state or "", "unknown")
        evidence = f"tcp_retransmit_skb in state {sender.ca_state or 'unknown'}"
        if failed:  # Linux 6.18 also tells of attempts that sent nothing
            self.events.rows.append(
                (flow.number, time, "retransmission_failed", None, f"{evidence}, err={pairs['err']}")
            )
        else:
            self.events.rows.append((flow.number, time, "retransmission", trigger, evidence))

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield what is left, and what is known at the end only."""
        yield from self.samples.take()
        yield from self.events.take()
        for flow in self.book:
            if flow.state is not None and flow.state.base >= 0:
                flow.facts["payload_bytes_a2b"] = flow.state.snd_nxt
        yield "flows", self.book.table()
        if self.others:
            self.log.add(
                "other_events", "events that say nothing of a sender's state", severity="info", count=self.others
            )
        if not self.records:
            self.log.add("no_records", "no tcp_probe events in it: was the tracepoint enabled, and the port right?")
        yield metadata(
            self.log.input,
            {
                "clock": self._clock(),
                "ssthresh": "tcp_current_ssthresh()",
                "payload_bytes_a2b": "without retransmissions",
            },
        )
        yield summary(
            self.log.input,
            NAME,
            self.records,
            first_time=self.first_time,
            last_time=self.last_time,
            time_resolution_ns={6: 1000, 9: 1}.get(self.digits or 0),
            capture_drops=self.lost,
        )

    def _clock(self) -> str | None:
        if self.first_time is None or self.last_time is None:
            return None
        if self.digits == 0 and self.tick_ns == 1:
            message = "times are ticks of the trace clock, of unknown length: only their order is right"
            self.log.add("clock_not_utc", message)
            return "ticks"
        if self.digits == 0 or self.first_time < EPOCH_SECONDS * 1_000_000_000:
            message = "times count from the start of the machine, shown as after 1970; trace_clock tai shows the time"
            self.log.add("clock_not_utc", message, severity="info")
            return "since boot"
        return "UTC"
