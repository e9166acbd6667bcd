"""Counters of a host: ``nstat`` listings, and copies of ``/proc/net/netstat`` and ``/proc/net/snmp``.

They count for all connections of a network namespace together; `metadata` has them as ``counter.<name>``, by the names
that nstat prints. Where a log holds several listings, ``counter.<name>`` is what the last one says, and
``increase.<name>`` the difference from the first, if the counters never fall (nstat without ``-a`` prints what was
added since it last ran; such listings are summed up instead). TcpExtTCPHystartTrainDetect and
TcpExtTCPHystartDelayDetect count slow starts that HyStart ended, ...Cwnd the windows in which it did, added up.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracetool.parsers.logged import FlowBook, metadata, summary
from tracetool.parsers.stamps import stamp_of
from tracetool.sources import lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Line, Stream

NAME = "nstat"
DESCRIPTION = "counters: nstat, /proc/net/netstat, /proc/net/snmp"

MOST_COUNTERS = 4096  # the kernel has a few hundred
_COUNTER = re.compile(
    r"((?:Tcp|TcpExt|Ip|IpExt|Udp|UdpLite|Icmp|Ip6|Udp6|Icmp6|MPTcpExt)[A-Z]\w{1,60})\s+(\d{1,18})\s+\d+\.\d+\s*$"
)
_GROUP = re.compile(r"(Tcp|TcpExt|Ip|IpExt|Udp|UdpLite|Icmp|IcmpMsg|MPTcpExt): ([A-Z]\w{1,60}(?: [A-Z]\w{1,60})*)$")
_SNIFF = re.compile(rb"(?:^|\n)(?:Tcp[A-Z]\w+ +\d+ +\d+\.\d+\n|TcpExt: [A-Z]\w+ |Tcp: RtoAlgorithm |#kernel\n)")


def sniff(head: bytes) -> bool:
    """Whether it has lines of nstat or of ``/proc/net``."""
    return bool(_SNIFF.search(head))


def parse(stream: Stream, log: DiagnosticLog, options: ParseOptions) -> Iterator[tuple[str, pa.Table]]:
    """Read a log of counters.

    Parameters
    ----------
    stream
        The text.
    log
        Takes what is odd.
    options
        Not used.

    Yields
    ------
    tuple of str and pyarrow.Table
        Pieces of `metadata`, `flows` (none) and `inputs`.

    Examples
    --------
    >>> import io
    >>> from tracetool.diagnostics import DiagnosticLog
    >>> from tracetool.parsers.options import ParseOptions
    >>> text = b"#kernel\\nTcpRetransSegs                  7                  0.0\\n"
    >>> pieces = dict(parse(io.BytesIO(text), DiagnosticLog("log"), ParseOptions()))
    >>> pieces["metadata"].select(["key", "value"]).to_pylist()
    [{'key': 'counter.TcpRetransSegs', 'value': '7'}]
    """
    del options
    counters = _Counters(log)
    for line in lines(stream):
        counters.read(line)
    yield from counters.finish()


class _Counters:
    def __init__(self, log: DiagnosticLog) -> None:
        self.log = log
        self.first: dict[str, int] = {}
        self.last: dict[str, int] = {}
        self.total: dict[str, int] = {}
        self.listing: set[str] = set()
        self.listings = 0
        self.falls = False
        self.names: tuple[str, list[str]] | None = None  # of a group, whose values follow
        self.times: list[int] = []  # first and last

    def read(self, line: Line) -> None:
        """Take one line."""
        text = line.text.strip()
        if found := _COUNTER.match(text):
            self._count(found.group(1), int(found.group(2)))
        elif self.names and text.startswith(f"{self.names[0]}: "):
            values = text.split()[1:]
            if len(values) != len(self.names[1]):
                message = f"line {line.number} left out: {len(values)} values for {len(self.names[1])} counters"
                self.log.add("torn_line", message, severity="error", line=line.number, offset_bytes=line.offset_bytes)
            else:
                for name, value in zip(self.names[1], values, strict=True):
                    if value.isdecimal() and len(value) < 19:  # some are -1, for unlimited
                        self._count(self.names[0] + name, int(value))
            self.names = None
        elif group := _GROUP.match(text):
            self.names = (group.group(1), group.group(2).split())
        elif stamp := stamp_of(text):
            self.times = [*self.times[:1], stamp.time]
            self._next()
        elif text.startswith("#"):
            self._next()

    def _count(self, name: str, value: int) -> None:
        if name in self.listing:
            self._next()
        self.listing.add(name)
        if len(self.first) >= MOST_COUNTERS and name not in self.first:
            return
        self.falls = self.falls or value < self.last.get(name, 0)
        self.first.setdefault(name, value)
        self.last[name] = value
        self.total[name] = self.total.get(name, 0) + value

    def _next(self) -> None:
        if self.listing:
            self.listings += 1
            self.listing.clear()

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield what is known at the end."""
        self._next()
        if not self.last:
            self.log.add("no_records", "no counters in the log")
        values = self.total if self.falls else self.last
        facts = {f"counter.{name}": value for name, value in values.items()}
        if self.listings > 1 and not self.falls:
            facts |= {f"increase.{name}": value - self.first[name] for name, value in self.last.items()}
        yield metadata(self.log.input, facts)
        yield "flows", FlowBook(self.log.input).table()
        times = {"first_time": self.times[0], "last_time": self.times[-1]} if self.times else {}
        yield summary(self.log.input, NAME, self.listings, **times)
