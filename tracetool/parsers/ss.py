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
from tracetool.parsers.listings import Listings
from tracetool.parsers.logged import LINE_CHARS, FlowBook, LoggedFlow, Rows, metadata, pieces, summary
from tracetool.parsers.ss_tokens import KEYS, info_of, note_facts, values_of
from tracetool.parsers.stamps import split_prefix, split_suffix, stamp_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers.options import ParseOptions
    from tracetool.parsers.ss_tokens import Info
    from tracetool.parsers.stamps import Stamp
    from tracetool.sources import Line, Stream

NAME = "ss"
DESCRIPTION = "ss -ti listings (with the times that date, ts or Flent put in)"

_STATES = (
    "ESTAB|SYN-SENT|SYN-RECV|FIN-WAIT-1|FIN-WAIT-2|TIME-WAIT|UNCONN|CLOSE-WAIT|LAST-ACK|LISTEN|CLOSING|UNKNOWN|UNDEF"
)
_SOCKET = re.compile(
    rf"(?:(?P<netid>[a-z?][a-z_0-9?]{{1,6}})\s+)?(?:(?P<state>{_STATES})\s+)?(?:\d{{1,10}}\s+\d{{1,10}}\s+)?"
    r"(?P<local>\S{1,60}:[\w*-]{1,40})\s+(?P<peer>\S{1,60}:[\w*-]{1,40})(?:\s+(?P<rest>.*))?$"
)
_HEADER = re.compile(r"Recv-Q\s+Send-Q\s|\bLocal Address:Port\s+Peer Address:Port")
_USERS = re.compile(r'users:\(\(.{0,2000}?"(?:,[\w-]+=[^)]{0,200})?\)\)')
_COOKIE = re.compile(r"(?:^|\s)sk:([0-9a-f]{1,16})(?=\s|$)")
#: One of these stands in every line about a TCP connection.
_INFO = re.compile(r"(?:^|\s)(?:wscale|rto|rtt|mss|cwnd):\d")
_TOKENS = re.compile(r"(?:^|\s)(?:rto:\d[\d.]*|rtt:\d[\d.]*/\d[\d.]*|mss:\d+|cwnd:\d+|wscale:\d+,\d+)(?=\s|$)")
_BARE = frozenset({"send", "pacing_rate", "delivery_rate", "app_limited"})  # tokens without a colon
_COUNTERS = ("bytes_acked:", "bytes_received:", "segs_out:")
_COLUMNS = (
    "flow", "time", "cwnd_segments", "ssthresh_segments", "srtt_ns", "rttvar_ns", "min_rtt_ns", "inflight_bytes",
    "mss_bytes", "snd_una", "snd_wnd_bytes", "rcv_wnd_bytes", "pacing_rate_bps", "delivery_rate_bps", "phase",
    "limited_by", "cc", "lost_segments", "sacked_segments", "retransmitted_segments", "delivered_segments",
)  # fmt: skip


def sniff(head: bytes) -> bool:
    """Whether it is text with the header or the tcp_info tokens of ss, and not much else but times."""
    rows = [row for row in head.decode("utf-8", "replace").splitlines()[:500] if row and not row.isspace()]
    if not any(_HEADER.search(row) or _like_ss(row) for row in rows):
        return False
    own = sum(1 for row in rows if _HEADER.search(row) or _like_ss(row) or _SOCKET.match(row) or stamp_of(row))
    return 4 * own >= len(rows)


def _like_ss(text: str) -> bool:
    return len(_TOKENS.findall(text)) >= 3


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
    yield from pieces(_Reader(log), stream)


class _Reader:
    """Lines to samples: which socket a line is about."""

    def __init__(self, log: DiagnosticLog) -> None:
        self.log = log
        self.book = FlowBook(log.input)
        self.listings = Listings(log, self._deliver)
        self.samples = Rows("samples", _COLUMNS, input=log.input, origin=NAME, direction="a2b")
        self.records = 0
        self.skipped = 0
        self.addresses = False  # whether address lines were met
        self.socket: re.Match[str] | None = None  # whose information the next line holds
        self.held: tuple[Line, str] | None = None  # information that the next line may continue

    def read(self, line: Line) -> None:
        """Take one line."""
        text = line.text
        if len(text) > LINE_CHARS:
            self._torn(line, f"more than {LINE_CHARS} characters")
            return
        if self.held is not None:
            if text[:1] not in "\t " and _continues(text):  # a terminal broke the line at its width
                self.held = (self.held[0], self.held[1] + text)
                return
            self._release()
        if text[:1] in ("\t", " "):
            if _INFO.search(text):
                self._info(line, text)
            elif text.strip():
                self.socket = None  # information on a socket that is no TCP connection
        elif found := _SOCKET.match(text):
            self._socket(line, found)
        elif text == "---":
            self.listings.end_of_block()
        elif stamp := stamp_of(text):
            self.listings.stamp(stamp, line)
        elif prefix := split_prefix(text):
            self._prefixed(line, *prefix)
        else:
            self._other(line, text)

    def _prefixed(self, line: Line, stamp: Stamp, rest: str) -> None:
        self.listings.line_stamp(stamp, line)
        body = rest.lstrip()
        if found := _SOCKET.match(body):
            self._socket(line, found)
        elif _INFO.search(rest):
            self._info(line, rest)
        elif body:
            self._other(line, body)

    def _other(self, line: Line, text: str) -> None:
        if "\x1b[" in text:
            message = f"{self.log.input}: line {line.number}: a screen of watch shows changes only; log ss in a loop"
            raise FormatError(message)
        if _HEADER.search(text):
            self.listings.next()
        elif _like_ss(text):
            self._info(line, text)
        elif re.match(rf"(?:{_STATES})\s", text):
            self._torn(line, "no local and peer address")
        elif text and not text.isspace():
            self.skipped += 1

    def _socket(self, line: Line, found: re.Match[str]) -> None:
        self.addresses = True
        rest = found.group("rest") or ""
        if "users:(" in rest:
            rest = _USERS.sub(" ", rest)
        self.socket = found
        if _INFO.search(rest):
            self._info(line, rest)

    def _info(self, line: Line, text: str) -> None:
        self.held = (line, text)

    def _release(self) -> None:
        if self.held is None:
            return
        (line, text), self.held = self.held, None
        socket, self.socket = self.socket, None
        if socket is None and self.addresses:
            self._torn(line, "information without the socket's line before it")
            return
        if (suffix := split_suffix(text)) is not None:
            stamp, text = suffix
            self.listings.line_stamp(stamp, line)
        if socket is not None and (
            socket.group("netid") not in (None, "tcp") or socket.group("state") in ("LISTEN", "SYN-SENT", "SYN-RECV")
        ):
            return  # nobody sends yet
        info = info_of(text)
        if "rtt:" not in info.tokens and "cwnd:" not in info.tokens:
            self._torn(line, "neither rtt nor cwnd in it")
            return
        try:
            flow = self._flow(socket, info)
        except ValueError as error:
            self._torn(line, str(error))
            return
        note_facts(flow.facts, info)
        self.records += 1
        self.listings.add(flow.number, (flow, values_of(info)))

    def _torn(self, line: Line, reason: str) -> None:
        self.log.add(
            "torn_line",
            f"line {line.number} left out: {reason}",
            severity="error",
            line=line.number,
            offset_bytes=line.offset_bytes,
        )

    def _flow(self, socket: re.Match[str] | None, info: Info) -> LoggedFlow:
        """The flow; a new one where counters that only grow are smaller than before, as the ports were reused."""
        if socket is None:
            flow = self.book.named(self.log.input)
        else:
            cookie = _COOKIE.search(socket.group("rest") or "")
            flow = self.book.find(socket.group("local"), socket.group("peer"), cookie.group(1) if cookie else None)
        now = {key: count for key in _COUNTERS if (count := info.numbers.get(key)) is not None}
        before: dict[str, int] = flow.state or {}
        if flow.cookie is None and before and any(now.get(key, count) < count for key, count in before.items()):
            flow = self.book.reused(flow)
        flow.state = now
        return flow

    def _deliver(self, sample: tuple[LoggedFlow, tuple[Any, ...]], time: int) -> None:
        flow, values = sample
        if not self.listings.numbered:
            flow.seen(time)
        self.samples.rows.append((flow.number, time, *values))

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield what is left, and what is known at the end only."""
        self._release()
        self.listings.finish()
        yield from self.samples.take()
        if not self.addresses and self.records:
            self.log.add("no_addresses", "no address lines: the flow is called as the log is", severity="info")
        if self.skipped:
            self.log.add("other_lines", "lines that are not of ss", severity="info", count=self.skipped)
        if not self.records:
            self.log.add("no_records", "no TCP connection with tcp_info in it: ss needs -t and -i")
        yield "flows", self.book.table()
        clock = "none: listings are numbered" if self.listings.numbered else "of the loop around ss"
        yield metadata(self.log.input, {"clock": clock})
        first, last = self.book.span()
        facts = {"first_time": first, "last_time": last, "time_resolution_ns": self.listings.resolution_ns}
        yield summary(self.log.input, NAME, self.records, **facts)


def _continues(text: str) -> bool:
    """Whether a line is the rest of an information line that was broken: nothing but tokens."""
    if text[:1] in ("\t", " ", "") or len(text) > 10_000:
        return False
    words = text.split()
    if not any(":" in word for word in words):
        return False
    whole = words[1:-1]  # the first and the last may be parts of a word
    if not all(":" in word or word.endswith("bps") or word in _BARE for word in whole):
        return False
    known = any(word.partition(":")[0] in KEYS for word in words[1:])
    return (known or not _SOCKET.match(text)) and stamp_of(text) is None
