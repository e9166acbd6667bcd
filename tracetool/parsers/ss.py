"""Socket statistics: ``ss -ti`` of all iproute2 eras, as people log it in loops.

One line names a socket, the next (or the same, with ``-O``) holds what the kernel's tcp_info says of it
(``tcp_stats_print`` in iproute2's ``misc/ss.c``). ss leaves tokens out instead of printing zero or "unknown":

* no ``ssthresh``: 65535 or more, set or not; it is the true snd_ssthresh (tcp_probe prints another quantity).
* no ``cwnd`` although ``send`` (which needs one) is there: 2 segments, which iproute2 up to 4.0 does not print.
* no ``unacked``, ``lost``, ``sacked``, ``retrans``: none, if the era prints them at all (3.10 and later).

The time is what the loop around ss wrote: before a listing (``date``), after it (Flent's ``Time:`` and ``---``), or in
every line (``ts``). In a listing without a time the samples are numbered instead.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tracetool.errors import FormatError
from tracetool.parsers.logged import PIECE_ROWS, FlowBook, LoggedFlow, Rows, metadata, scaled, summary
from tracetool.parsers.stamps import split_prefix, split_suffix, stamp_of
from tracetool.parsers.tcp_state import bbr_phase, in_flight, limited_by, phase_by_window
from tracetool.sources import lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers.options import ParseOptions
    from tracetool.parsers.stamps import Stamp
    from tracetool.sources import Line, Stream

NAME = "ss"
DESCRIPTION = "ss -ti listings (with the times that date, ts or Flent put in)"

_SSTHRESH_PRINTED = 65535  # ss leaves a threshold out from here on
UNTIMED_ROWS = 1 << 18  # samples that wait for a time stamp to follow
_STATES = (
    "ESTAB|SYN-SENT|SYN-RECV|FIN-WAIT-1|FIN-WAIT-2|TIME-WAIT|UNCONN|CLOSE-WAIT|LAST-ACK|LISTEN|CLOSING|UNKNOWN|UNDEF"
)
_SOCKET = re.compile(
    rf"(?:(?P<netid>[a-z?][a-z_0-9?]{{1,6}})\s+)?(?:(?P<state>{_STATES})\s+)?(?:\d{{1,10}}\s+\d{{1,10}}\s+)?"
    r"(?P<local>\S{1,60}:[\w*-]{1,40})\s+(?P<peer>\S{1,60}:[\w*-]{1,40})(?:\s+(?P<rest>.*))?$"
)
_HEADER = re.compile(r"Recv-Q\s+Send-Q|Local\s?Address")
_USERS = re.compile(r'users:\(\(.*?"(?:,[\w-]+=[^)]*)?\)\)')
#: Tokens one of which every line about a TCP socket has; they follow the congestion control's name.
_AFTER_CC = ("wscale", "rto", "backoff", "rtt", "ato", "mss", "pmtu", "rcvmss", "advmss", "cwnd")
_INFO = re.compile(r"(?:^|\s)(?:wscale|rto|rtt|mss|cwnd):\d")
_FLAGS = frozenset({"ts", "usec_ts", "sack", "ecn", "ecnseen", "fastopen", "qack", "bidir", "app_limited"})
_RATE = re.compile(r"([\d.]+(?:e[+-]\d+)?)([TGMKk]?)bps")
_FACTORS = {"": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
#: Printed by iproute2 3.15 and later only: where one of them stands, no `unacked` means that nothing is.
_LATER_THAN_3_10 = ("lastsnd", "lastrcv", "lastack", "pacing_rate", "bytes_acked", "bytes_sent", "segs_out", "pmtu")
_BBR = re.compile(r"pacing_gain:([\d.]+),cwnd_gain:([\d.]+)")
_COLUMNS = (
    "flow", "time", "cwnd_segments", "ssthresh_segments", "srtt_ns", "rttvar_ns", "min_rtt_ns", "inflight_bytes",
    "mss_bytes", "snd_una", "snd_wnd_bytes", "rcv_wnd_bytes", "pacing_rate_bps", "delivery_rate_bps", "phase",
    "limited_by", "cc", "lost_segments", "sacked_segments", "retransmitted_segments", "delivered_segments",
)  # fmt: skip


def sniff(head: bytes) -> bool:
    """Whether it is text with tcp_info tokens in lines of ss."""
    text = head.decode("utf-8", "replace")
    rows = text.splitlines()[:500]
    return any(_header(row) for row in rows) or any(_tokens_of_ss(row) for row in rows)


def _header(text: str) -> bool:
    return ("Local Address:Port" in text and "Peer Address:Port" in text) or bool(
        re.search(r"Recv-Q\s+Send-Q\s+Local", text)
    )


def _tokens_of_ss(text: str) -> bool:
    return (
        len(re.findall(r"(?:^|\s)(?:rto:\d[\d.]*|rtt:\d[\d.]*/\d[\d.]*|mss:\d+|cwnd:\d+|wscale:\d+,\d+)(?=\s|$)", text))
        >= 3
    )


def parse(stream: Stream, log: DiagnosticLog, options: ParseOptions) -> Iterator[tuple[str, pa.Table]]:
    """Read listings of ss.

    Parameters
    ----------
    stream
        The text.
    log
        Takes what is odd: listings without a time, torn lines, a time zone that is not given.
    options
        Not used.

    Yields
    ------
    tuple of str and pyarrow.Table
        Pieces of `samples`, `flows`, `metadata` and `inputs`.

    Raises
    ------
    FormatError
        If the log is the screen of ``watch`` rather than text.

    Examples
    --------
    >>> import io
    >>> from tracetool.diagnostics import DiagnosticLog
    >>> from tracetool.parsers.options import ParseOptions
    >>> text = b'''1796026431.5
    ... ESTAB 0 0 192.0.2.1:5000 192.0.2.2:80
    ... \\t cubic wscale:7,7 rto:204 rtt:4/2 mss:1448 cwnd:10 send 28960000bps lastsnd:4 unacked:2
    ... '''
    >>> pieces = dict(parse(io.BytesIO(text), DiagnosticLog("log"), ParseOptions()))
    >>> pieces["samples"].select(["cwnd_segments", "srtt_ns", "inflight_bytes", "cc"]).to_pylist()
    [{'cwnd_segments': 10, 'srtt_ns': 4000000, 'inflight_bytes': 2896, 'cc': 'cubic'}]
    """
    del options
    reader = _Reader(log)
    for line in lines(stream):
        reader.read(line)
        if len(reader.samples) >= PIECE_ROWS:
            yield from reader.samples.take()
    yield from reader.finish()


class _Reader:
    """Lines to samples: which socket a line is about, and when."""

    def __init__(self, log: DiagnosticLog) -> None:
        self.log = log
        self.book = FlowBook(log.input)
        self.samples = Rows("samples", _COLUMNS, input=log.input, origin=NAME, direction="a2b")
        self.records = 0
        self.skipped = 0
        self.named = False  # whether address lines were met
        self.socket: re.Match[str] | None = None  # whose information the next line holds
        self.socket_line: Line | None = None
        self.stamp: Stamp | None = None
        self.waiting: list[tuple[Any, ...]] = []  # samples whose time is to follow
        self.stamped = False
        self.after = False  # times follow their listings
        self.numbered = False  # no times: listings are counted
        self.listing = 0
        self.listed: set[int] = set()
        self.digits: int | None = None
        self.first_time: int | None = None
        self.last_time: int | None = None
        self.missing: set[str] = set()

    # -- lines

    def read(self, line: Line) -> None:
        """Take one line."""
        text = line.text
        if text[:1] in ("\t", " "):
            if _INFO.search(text):
                self._info(line, text)
            elif self.socket is not None and text.strip():
                self.socket = self.socket_line = None  # information on a socket that is no TCP connection
            return
        if found := _SOCKET.match(text):
            self._socket(line, found)
        elif text == "" or text.isspace():
            pass
        elif text == "---":
            self._end_of_block()
        elif stamp := stamp_of(text):
            self._stamp(line, stamp)
        elif prefix := split_prefix(text):
            self._prefixed(line, *prefix)
        elif "\x1b[" in text:
            raise FormatError(
                f"{self.log.input}: line {line.number}: a screen of watch shows changes only; log ss in a loop"
            )
        elif _INFO.search(text) and _tokens_of_ss(text):
            self._info(line, text)
        elif _HEADER.search(text):
            self._new_listing()
        elif not self.records and not self.named:
            self.skipped += 1  # what a script wrote before the first listing
        elif re.match(rf"(?:{_STATES})\s", text):
            self._torn(line, "no local and peer address")
        else:
            self.skipped += 1

    def _prefixed(self, line: Line, stamp: Stamp, rest: str) -> None:
        body = rest.lstrip()
        self.stamp = stamp
        self._note(line, stamp)
        if found := _SOCKET.match(body):
            self._socket(line, found)
        elif _INFO.search(rest):
            self._info(line, rest)
        elif _HEADER.search(body):
            self._new_listing()
        elif body:
            self.skipped += 1

    def _socket(self, line: Line, found: re.Match[str]) -> None:
        self._unfinished()
        self.named = True
        rest = found.group("rest") or ""
        if "users:(" in rest:
            rest = _USERS.sub(" ", rest)
        if _INFO.search(rest):
            self._sample(line, found, rest)
        else:
            self.socket, self.socket_line = found, line

    def _unfinished(self) -> None:
        """An address line that no information followed (as for sockets in TIME-WAIT)."""
        if self.socket is not None and (self.socket.group("state") or "ESTAB") == "ESTAB":
            self.skipped += 1
        self.socket = self.socket_line = None

    def _info(self, line: Line, text: str) -> None:
        if self.socket is not None or not self.named:
            self._sample(line, self.socket, text)
        else:
            self._torn(line, "information without the socket's line before it")
        self.socket = self.socket_line = None

    def _torn(self, line: Line, reason: str) -> None:
        self.log.add(
            "torn_line",
            f"line {line.number} left out: {reason}",
            severity="error",
            line=line.number,
            offset_bytes=line.offset_bytes,
        )

    # -- times

    def _note(self, line: Line, stamp: Stamp) -> None:
        self.stamped = True
        self.digits = stamp.digits if self.digits is None else max(self.digits, stamp.digits)
        if stamp.missing and stamp.missing not in self.missing:
            self.missing.add(stamp.missing)
            message = f"times have no {stamp.missing}: their differences are right, the date is not"
            self.log.add("clock_not_utc", message, severity="info", line=line.number)

    def _stamp(self, line: Line, stamp: Stamp) -> None:
        self._unfinished()
        self._note(line, stamp)
        self._new_listing()
        if stamp.after or self.after:
            self._settle(stamp)
        else:
            self.stamp = stamp

    def _end_of_block(self) -> None:
        """Take Flent's ``---``: the time that came last belongs to what was listed before it."""
        self._unfinished()
        if self.stamp is not None and self.waiting:
            self._settle(self.stamp)
        self.after = self.after or self.stamp is None or not self.records
        if self.after:
            self.stamp = None

    def _settle(self, stamp: Stamp) -> None:
        waiting, self.waiting = self.waiting, []
        for row in waiting:
            self._timed(row, stamp.time)

    def _timed(self, row: tuple[Any, ...], time: int) -> None:
        flow: LoggedFlow = row[0]
        flow.seen(time)
        if self.first_time is None or time < self.first_time:
            self.first_time = time
        if self.last_time is None or time > self.last_time:
            self.last_time = time
        self.samples.rows.append((flow.number, time, *row[2:]))

    def _new_listing(self) -> None:
        if self.listed:
            self.listing += 1
            self.listed.clear()

    def _place(self, row: tuple[Any, ...]) -> None:
        """Give a sample its time, or let it wait for one."""
        flow: LoggedFlow = row[0]
        if flow.number in self.listed:
            self._new_listing()
        self.listed.add(flow.number)
        self.records += 1
        if self.numbered:
            self.samples.rows.append((flow.number, self.listing, *row[2:]))
        elif self.stamp is not None:
            if self.waiting:  # what came before the first time stamp of all
                self._untimed()
            self._timed(row, self.stamp.time)
        else:
            self.waiting.append((flow, self.listing, *row[2:]))
            if len(self.waiting) >= UNTIMED_ROWS:
                self._number()

    def _untimed(self) -> None:
        count = len(self.waiting)
        self.log.add("no_time", f"{count} samples before the first time stamp left out", count=count)
        self.waiting.clear()

    def _number(self) -> None:
        self.numbered = True
        self.log.add("no_time", "no time stamps: listings are numbered (1 ns apart), so only their order is right")
        for row in self.waiting:
            self.samples.rows.append((row[0].number, *row[1:]))
        self.waiting.clear()

    # -- samples

    def _sample(self, line: Line, socket: re.Match[str] | None, text: str) -> None:
        if suffix := split_suffix(text):
            self.stamp, text = suffix
            self._note(line, self.stamp)
        state = socket.group("state") if socket else None
        if (socket and (socket.group("netid") or "tcp") != "tcp") or state in (
            "LISTEN",
            "SYN-SENT",
            "SYN-RECV",
            "UNCONN",
        ):
            return  # nobody sends yet
        words = text.split()
        info = _tokens(words)
        try:
            flow = self._flow(socket, text)
        except ValueError as error:
            self._torn(line, str(error))
            return
        flow = self._same_connection(flow, info)
        if "rtt" not in info and "cwnd" not in info:
            self._torn(line, "neither rtt nor cwnd in it")
            return
        self._facts(flow, info, words)
        self._place((flow, None, *_values(info, words)))

    def _flow(self, socket: re.Match[str] | None, text: str) -> LoggedFlow:
        if socket is None:
            return self.book.named(self.log.input)
        rest = socket.group("rest") or ""
        cookie = re.search(r"(?:^|\s)sk:([0-9a-f]{1,16})(?=\s|$)", rest)
        del text
        return self.book.find(socket.group("local"), socket.group("peer"), cookie.group(1) if cookie else None)

    def _same_connection(self, flow: LoggedFlow, info: dict[str, str]) -> LoggedFlow:
        """The flow, or a new one where counters that only grow are smaller than before: the ports were reused."""
        before: dict[str, int] = flow.state or {}
        now = {
            key: int(info[key])
            for key in ("bytes_acked", "bytes_received", "segs_out")
            if info.get(key, "").isdecimal()
        }
        if flow.cookie is None and any(now.get(key, value) < value for key, value in before.items()):
            flow = self.book.reused(flow)
        flow.state = now
        return flow

    def _facts(self, flow: LoggedFlow, info: dict[str, str], words: list[str]) -> None:
        facts = flow.facts
        if "payload_bytes_a2b" not in facts:
            scale = re.fullmatch(r"(\d{1,2}),(\d{1,2})", info.get("wscale", ""))
            if scale:
                facts["window_scale_b"], facts["window_scale_a"] = int(scale.group(1)), int(scale.group(2))
            facts.update(
                {
                    column: True
                    for flag, column in (("sack", "sack_permitted"), ("ts", "timestamps"), ("ecn", "ecn"))
                    if flag in words
                }
            )
        # Without bytes_sent (iproute2 before 4.20), what was acknowledged is what is known to be sent.
        sent = info.get("bytes_sent") or info.get("bytes_acked")
        facts["payload_bytes_a2b"] = _whole(sent) if sent else facts.get("payload_bytes_a2b")
        facts["payload_bytes_b2a"] = (
            _whole(info["bytes_received"]) if "bytes_received" in info else facts.get("payload_bytes_b2a")
        )

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield what is left, and what is known at the end only."""
        self._unfinished()
        if self.waiting and not self.stamped:
            self._number()
        elif self.waiting:
            count = len(self.waiting)
            self.log.add("no_time", f"{count} samples after the last time stamp left out", count=count)
        yield from self.samples.take()
        if not self.named and self.records:
            self.log.add("no_addresses", "no address lines: the flow is called as the log is", severity="info")
        if self.skipped:
            message = "lines that are no socket's, or sockets without tcp_info"
            self.log.add("other_lines", message, severity="info", count=self.skipped)
        if not self.records:
            self.log.add("no_records", "no TCP connection with tcp_info in it: ss needs -t and -i")
        yield "flows", self.book.table()
        yield metadata(self.log.input, {"clock": "numbered listings" if self.numbered else "of the loop around ss"})
        yield summary(
            self.log.input,
            NAME,
            self.records,
            first_time=self.first_time,
            last_time=self.last_time,
            time_resolution_ns=None if self.digits is None else 10 ** (9 - self.digits),
        )


def _tokens(words: list[str]) -> dict[str, str]:
    """``key:value`` tokens, the first of each key; rates (``send``, ``pacing_rate``) with the word that follows."""
    info: dict[str, str] = {}
    before = ""
    for word in words:
        key, colon, value = word.partition(":")
        if colon:
            if key in _AFTER_CC and "cc" not in info:
                info["cc"] = before
            info.setdefault(key, value)
        elif before in ("send", "pacing_rate", "delivery_rate"):
            info.setdefault(before, word)
        before = word
    return info


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) <= 18 else None


def _rate(text: str | None) -> int | None:
    found = _RATE.match(text) if text else None
    return scaled(found.group(1), _FACTORS[found.group(2)]) if found else None


def _milliseconds(text: str | None) -> int | None:
    return scaled(text, 1_000_000) if text else None


def _values(info: dict[str, str], words: list[str]) -> tuple[Any, ...]:
    """Values of a sample from cwnd on, in the order of `_COLUMNS`."""
    zero = 0 if any(key in info for key in _LATER_THAN_3_10) else None  # what no token means
    cwnd = _whole(info.get("cwnd")) or (2 if "send" in info and "cwnd" not in info else None)
    ssthresh, mss, snd_wnd = (_whole(info.get(key)) for key in ("ssthresh", "mss", "snd_wnd"))
    srtt, _, rttvar = info.get("rtt", "").partition("/")
    now, _, retransmitted = info.get("retrans", "").partition("/")
    unacked, lost, sacked = (_whole(info[key]) if key in info else zero for key in ("unacked", "lost", "sacked"))
    retrans = _whole(now) if now else zero
    flight = in_flight(unacked, sacked, lost, retrans)
    cc = _algorithm(info.get("cc"))
    if cc == "bbr":
        phase = _bbr_phase(info.get("bbr"))
    elif "backoff" in info:  # only a timeout backs off
        phase = "loss"
    else:
        phase = phase_by_window(cwnd, ssthresh, (lost, sacked, retrans), _SSTHRESH_PRINTED)
    return (
        cwnd,
        ssthresh,
        _milliseconds(srtt),
        _milliseconds(rttvar),
        _milliseconds(info.get("minrtt")),
        flight * mss if flight is not None and mss else None,
        mss,
        _whole(info.get("bytes_acked")),
        snd_wnd,
        _whole(info.get("rcv_wnd")),
        _rate(info.get("pacing_rate")),
        _rate(info.get("delivery_rate")),
        phase,
        limited_by(flight, cwnd, unacked, mss, snd_wnd, app_limited="app_limited" in words),
        cc,
        lost,
        sacked,
        _whole(retransmitted) if retransmitted else zero,
        _whole(info.get("delivered")),
    )


def _algorithm(word: str | None) -> str | None:
    return word if word and word not in _FLAGS and re.fullmatch(r"[a-z][\w-]{0,15}", word) else None


def _bbr_phase(block: str | None) -> str | None:
    found = _BBR.search(block) if block else None
    gains = [scaled(gain, 100) for gain in found.groups()] if found else []
    return bbr_phase(*(gain / 100 for gain in gains if gain is not None)) if None not in gains and gains else None
