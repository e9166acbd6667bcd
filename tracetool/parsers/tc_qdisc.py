"""Router counters: ``tc -s qdisc`` polled in a loop that also writes the time.

A queue is three lines or more (``print_tcstats2_attr`` in iproute2's ``tc/tc_util.c``): what it is, what it sent and
dropped, its backlog, and what its discipline adds. Linux counts a packet as sent when it leaves the queue.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tracetool import tables
from tracetool.parsers.listings import Listings
from tracetool.parsers.logged import PIECE_ROWS, Rows, summary
from tracetool.parsers.stamps import split_prefix, stamp_of
from tracetool.sources import lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Line, Stream

NAME = "tc_qdisc"
DESCRIPTION = "tc -s qdisc listings (with the times that date or ts put in)"

_QUEUE = re.compile(
    r"qdisc (?P<kind>[\w-]{1,32}) (?P<handle>[0-9a-f]{1,8}:)(?: \[\w+\])? dev (?P<device>\S{1,64})"
    r"(?: (?:(?P<top>root|ingress)|parent (?P<parent>[0-9a-f]{0,8}:[0-9a-f]{0,8})))?(?=\s|$)"
)
_SENT = re.compile(
    r"Sent (?P<sent_bytes>\d{1,19}) bytes (?P<sent_packets>\d{1,19}) pkts? "
    r"\(dropped (?P<dropped_packets>\d{1,10}), overlimits (?P<overlimits>\d{1,10}) requeues (?P<requeues>\d{1,10})\)"
)
_BACKLOG = re.compile(r"backlog (?P<size>\d{1,15})(?P<unit>[KMG]?)b (?P<packets>\d{1,15})p")
# fq_codel, codel, pie and fq write ecn_mark, red and gred write marked.
_MARKED = re.compile(r"(?:^|\s)(?:ecn_mark|marked) (\d{1,10})(?=\s|$)")
_UNITS = {"": 1, "K": 1000, "M": 10**6, "G": 10**9}
_COUNTERS_MAX = (1 << 63) - 1
_COLUMNS = (
    "time",
    "device",
    "kind",
    "handle",
    "parent",
    "is_root",
    "sent_bytes",
    "sent_packets",
    "dropped_packets",
    "overlimits",
    "requeues",
    "backlog_bytes",
    "backlog_packets",
    "marked_packets",
)


def sniff(head: bytes) -> bool:
    """Whether it is text with a queue's line and its counters."""
    rows = head.decode("utf-8", "replace").splitlines()[:500]
    return any(_QUEUE.search(row) for row in rows) and any(_SENT.search(row) for row in rows)


def parse(stream: Stream, log: DiagnosticLog, options: ParseOptions) -> Iterator[tuple[str, pa.Table]]:
    """Read polled counters of queues.

    Parameters
    ----------
    stream
        The text.
    log
        Takes what is odd: listings without a time, counters without their queue.
    options
        Not used.

    Yields
    ------
    tuple of str and pyarrow.Table
        Pieces of `queue_counters`, `flows` (none) and `inputs`.

    Examples
    --------
    >>> import io
    >>> from tracetool.diagnostics import DiagnosticLog
    >>> from tracetool.parsers.options import ParseOptions
    >>> text = b'''1796026431.5
    ... qdisc tbf 1: dev eth0 root refcnt 2 rate 8Mbit burst 1514b limit 80000b
    ...  Sent 15140 bytes 10 pkt (dropped 2, overlimits 5 requeues 0)
    ...  backlog 1514b 1p requeues 0
    ... '''
    >>> pieces = dict(parse(io.BytesIO(text), DiagnosticLog("log"), ParseOptions()))
    >>> pieces["queue_counters"].select(["device", "dropped_packets", "backlog_bytes"]).to_pylist()
    [{'device': 'eth0', 'dropped_packets': 2, 'backlog_bytes': 1514}]
    """
    del options
    reader = _Reader(log)
    for line in lines(stream):
        reader.read(line)
        if len(reader.rows) >= PIECE_ROWS:
            yield from reader.rows.take()
    yield from reader.finish()


class _Reader:
    """Lines to rows: which queue a line is about."""

    def __init__(self, log: DiagnosticLog) -> None:
        self.log = log
        self.listings = Listings(log, self._deliver)
        self.rows = Rows("queue_counters", _COLUMNS, input=log.input)
        self.queue: dict[str, Any] | None = None
        self.records = 0
        self.skipped = 0
        self.times: tuple[int, int] | None = None

    def read(self, line: Line) -> None:
        """Take one line."""
        text = line.text
        if text[:1] not in " \t" and not text.startswith("qdisc"):
            if text == "---":
                self._release()
                self.listings.end_of_block()
                return
            if stamp := stamp_of(text):
                self._release()
                self.listings.stamp(stamp, line)
                return
        if (prefix := split_prefix(text)) is not None:
            stamp, text = prefix
            if _QUEUE.match(text.lstrip()):
                self._release()
                self.listings.line_stamp(stamp, line)
        body = text.strip()
        if found := _QUEUE.match(body):
            self._release()
            parent = found["top"] or found["parent"] or "none"
            self.queue = {**found.groupdict(), "parent": parent, "is_root": found["top"] == "root"}
        elif self.queue is not None:
            self._detail(body)
        elif _SENT.search(body):
            message = f"line {line.number} left out: counters without their queue's line before them"
            self.log.add("torn_line", message, severity="error", line=line.number, offset_bytes=line.offset_bytes)
        elif body:
            self.skipped += 1

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Give what is left, and the summary."""
        self._release()
        self.listings.finish()
        if self.skipped:
            self.log.add("other_lines", "lines that are not of tc", severity="info", count=self.skipped)
        if not self.records:
            self.log.add("no_records", "no counters in it: tc needs -s")
        yield from self.rows.take()
        yield "flows", tables.empty("flows")
        first, last = self.times or (None, None)
        if self.listings.numbered:
            first = last = None
        facts = {"first_time": first, "last_time": last, "time_resolution_ns": self.listings.resolution_ns}
        yield summary(self.log.input, NAME, self.records, **facts)

    def _detail(self, text: str) -> None:
        """Take a line that says more of the queue."""
        queue = self.queue
        if queue is None:
            return
        if found := _SENT.match(text):
            counts = {name: int(value) for name, value in found.groupdict().items()}
            if max(counts.values()) <= _COUNTERS_MAX:
                queue.update(counts)
        elif found := _BACKLOG.match(text):
            queue["backlog_bytes"] = int(found["size"]) * _UNITS[found["unit"]]
            queue["backlog_packets"] = int(found["packets"])
        elif found := _MARKED.search(text):
            queue["marked_packets"] = int(found[1])

    def _release(self) -> None:
        """Take the queue as it is: another one follows."""
        queue, self.queue = self.queue, None
        if queue is None or "sent_bytes" not in queue:
            return
        self.records += 1
        self.listings.add((queue["device"], queue["handle"], queue["parent"]), queue)

    def _deliver(self, queue: dict[str, Any], time: int) -> None:
        self.times = (min(self.times[0], time), max(self.times[1], time)) if self.times else (time, time)
        self.rows.rows.append((time, *(queue.get(name) for name in _COLUMNS[1:])))
