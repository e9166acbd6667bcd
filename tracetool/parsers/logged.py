"""What text logs of sockets have in common: flows by address pair and cookie, numbers as text, rows to tables.

A kernel log names sockets, not connections: side a is the local end, and the data it sends goes ``a2b``. Where both
ends of a connection are on the host, they are two flows. Ports get reused: a cookie (unique per socket and boot) or a
sequence number that cannot belong to the same connection starts a new flow.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tracetool import tables
from tracetool.sources import lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from tracetool.sources import Line, Stream

PIECE_ROWS = 65_536
LINE_CHARS = 65_536  # no tool writes longer lines; patterns are not tried on them
#: Clocks that count from the Unix epoch show at least this (September 2001); kernel clocks since boot show less.
EPOCH_SECONDS = 1_000_000_000
TIME_MAX_NS = (1 << 63) - 1
_NUMBER = re.compile(r"\d{1,18}(?:\.\d{1,18})?(?:e[+-]\d{1,2})?\Z")


def endpoint(text: str) -> tuple[str, int | None]:
    """Address and port of one end as kernel logs print it; IPv4 addresses mapped into IPv6 become plain ones.

    Parameters
    ----------
    text
        ``192.0.2.1:80``, ``[2001:db8::1]:80``, ``2001:db8::1:80`` (split at the last colon); a scope
        (``fe80::1%eth0``, ``[fe80::1]%eth0``) is kept, and the port is None where it is a name or a wildcard.

    Raises
    ------
    ValueError
        If it is no such thing.

    Examples
    --------
    >>> endpoint("[::ffff:192.0.2.1]:443")
    ('192.0.2.1', 443)
    >>> endpoint("[fe80::1]%eth0:22")
    ('fe80::1%eth0', 22)
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port:
        raise ValueError(f"no address and port: {text!r}")
    if host.startswith("["):
        host = host[1:].replace("]", "", 1)
    host, _, scope = host.partition("%")
    number = int(port) if port.isdecimal() else None
    if number is not None and number > 65535:
        raise ValueError(f"no port: {port!r}")
    return address(host) + (f"%{scope}" if scope else ""), number


def address(text: str) -> str:
    """An IP address in its shortest form, mapped IPv4 as plain IPv4; a host name or ``*`` as it is.

    Raises
    ------
    ValueError
        If it looks like an address and is none.
    """
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        if ":" in text or (text[:1].isdigit() and text.replace(".", "").isdigit()):
            raise
        return text
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)


def _host(text: str) -> str:
    try:
        return address(text)
    except ValueError:
        return text


def decimal_ns(seconds: str, fraction: str = "") -> int | None:
    """Nanoseconds of a decimal number of seconds; None where 64 bits do not hold them.

    Examples
    --------
    >>> decimal_ns("12", "25")
    12250000000
    """
    value = int(seconds + fraction[:9].ljust(9, "0"))
    return value if value <= TIME_MAX_NS else None


def scaled(text: str, factor: float) -> int | None:
    """A printed number times a factor, rounded; None where it is none or does not fit.

    Examples
    --------
    >>> scaled("1e+03", 1_000), scaled("0.275", 1_000_000), scaled("???", 1)
    (1000000, 275000, None)
    """
    if not _NUMBER.match(text):
        return None
    value = round(float(text) * factor)
    return value if value <= TIME_MAX_NS else None


@dataclass(slots=True, eq=False)
class LoggedFlow:
    """One socket of a log.

    Attributes
    ----------
    number
        In the order of first lines.
    cookie
        The kernel's name of the socket; None where the log does not tell.
    start, end
        First and last time seen, nanoseconds; None where the log has no times.
    facts
        Further columns of `flows`.
    state
        What the parser keeps for the socket.
    """

    number: int
    side_a: tuple[str, int | None]
    side_b: tuple[str, int | None]
    cookie: str | None = None
    start: int | None = None
    end: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    state: Any = None

    def seen(self, time: int) -> None:
        """Take note that the log has a line of this flow at a time."""
        if self.start is None or time < self.start:
            self.start = time
        if self.end is None or time > self.end:
            self.end = time


@dataclass(slots=True)
class _Pair:
    """The flows of one ordered pair of ends."""

    side_a: tuple[str, int | None]
    side_b: tuple[str, int | None]
    latest: LoggedFlow | None = None
    by_cookie: dict[str, LoggedFlow] = field(default_factory=dict)


class FlowBook:
    """Numbers the flows of a log.

    Examples
    --------
    >>> book = FlowBook("log")
    >>> book.find("192.0.2.1:5000", "192.0.2.2:80").number, book.find("192.0.2.1:5001", "192.0.2.2:80").number
    (0, 1)
    """

    def __init__(self, input_name: str, protocol: str = "tcp") -> None:
        self._input = input_name
        self._protocol = protocol
        self._flows: list[LoggedFlow] = []
        self._texts: dict[tuple[str, str], _Pair] = {}  # as printed
        self._pairs: dict[tuple[Any, Any], _Pair] = {}  # as parsed

    def find(self, local: str, peer: str, cookie: str | None = None) -> LoggedFlow:
        """The flow of a socket; a new one where it was not met before.

        Parameters
        ----------
        local, peer
            Its ends as printed; see `endpoint`.
        cookie
            The kernel's name of the socket; None: the latest flow of this address pair.

        Raises
        ------
        ValueError
            If an end is no address and port.
        """
        pair = self._texts.get((local, peer)) or self._pair(local, peer)
        if cookie is None:
            return pair.latest or self._new(pair, None)
        found = pair.by_cookie.get(cookie)
        if found is None:
            # A line without a cookie may have come first: it meant this socket.
            adopt = pair.latest is not None and pair.latest.cookie is None
            found = pair.latest if adopt and pair.latest is not None else self._new(pair, cookie)
            found.cookie = cookie
            pair.by_cookie[cookie] = found
        return found

    def named(self, name: str) -> LoggedFlow:
        """The flow of a log that names no addresses: it is called as the log is."""
        side_a, side_b = (name, None), ("unknown", None)
        pair = self._pairs.setdefault((side_a, side_b), _Pair(side_a, side_b))
        return pair.latest or self._new(pair, None)

    def labelled(self, side_a: str, side_b: str) -> LoggedFlow:
        """A new flow between two hosts whose ports are not told."""
        return self._new(_Pair((_host(side_a), None), (_host(side_b), None)), None)

    def reused(self, flow: LoggedFlow) -> LoggedFlow:
        """A new flow with the same ends and no cookie: the address pair serves another connection from here on."""
        return self._new(self._pairs[flow.side_a, flow.side_b], None)

    def _pair(self, local: str, peer: str) -> _Pair:
        side_a, side_b = endpoint(local), endpoint(peer)
        pair = self._pairs.setdefault((side_a, side_b), _Pair(side_a, side_b))
        self._texts[local, peer] = pair
        return pair

    def _new(self, pair: _Pair, cookie: str | None) -> LoggedFlow:
        flow = pair.latest = LoggedFlow(len(self._flows), pair.side_a, pair.side_b, cookie)
        self._flows.append(flow)
        return flow

    def __iter__(self) -> Iterator[LoggedFlow]:
        return iter(self._flows)

    def __len__(self) -> int:
        return len(self._flows)

    def span(self) -> tuple[int | None, int | None]:
        """First and last time of all flows."""
        starts = [flow.start for flow in self._flows if flow.start is not None]
        ends = [flow.end for flow in self._flows if flow.end is not None]
        return min(starts, default=None), max(ends, default=None)

    def table(self) -> pa.Table:
        """The rows of `flows`."""
        return tables.from_rows(
            "flows",
            [
                {
                    "input": self._input,
                    "flow": flow.number,
                    "protocol": self._protocol,
                    "addr_a": flow.side_a[0],
                    "port_a": flow.side_a[1],
                    "addr_b": flow.side_b[0],
                    "port_b": flow.side_b[1],
                    "start": flow.start,
                    "end": flow.end,
                    **flow.facts,
                }
                for flow in self._flows
            ],
        )


class Rows:
    """Rows of one table, handed on in pieces.

    Parameters
    ----------
    table
        Its name.
    columns
        Names of a row's values.
    constants
        Columns with the same value in every row.
    """

    def __init__(self, table: str, columns: Sequence[str], **constants: str) -> None:
        self.table = table
        self.columns = tuple(columns)
        self._constants = constants
        self.rows: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self.rows)

    def take(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield what was collected, in pieces of at most `PIECE_ROWS` rows, and start anew."""
        import pyarrow as pa

        schema = tables.schema(self.table)
        rows, self.rows = self.rows, []
        for first in range(0, len(rows), PIECE_ROWS):
            piece = rows[first : first + PIECE_ROWS]
            columns = dict(zip(self.columns, zip(*piece, strict=True), strict=True))
            arrays = {name: _array(values, schema.field(name).type) for name, values in columns.items()}
            for name, value in self._constants.items():
                arrays[name] = pa.repeat(pa.scalar(value, schema.field(name).type), len(piece))
            yield self.table, tables.cast(self.table, pa.table(arrays))


class LineReader(Protocol):
    """A parser's state: takes lines, collects samples."""

    samples: Rows

    def read(self, line: Line, /) -> None:
        """Take one line."""

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield what is left at the end of the input."""


def pieces(reader: LineReader, stream: Stream) -> Iterator[tuple[str, pa.Table]]:
    """Feed a log to its reader line by line, and hand samples on in pieces of bounded size."""
    for line in lines(stream):
        reader.read(line)
        if len(reader.samples) >= PIECE_ROWS:
            yield from reader.samples.take()
    yield from reader.finish()


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array; numbers that 64 bits do not hold, as damaged lines may tell them, are null."""
    import pyarrow as pa

    try:
        return pa.array(values, kind)
    except OverflowError:
        return pa.array([value if value is None or abs(value) <= TIME_MAX_NS else None for value in values], kind)


def metadata(input_name: str, facts: Mapping[str, object]) -> tuple[str, pa.Table]:
    """A piece of the `metadata` table; facts that are None are left out."""
    return "metadata", tables.from_rows(
        "metadata",
        [{"input": input_name, "key": key, "value": str(value)} for key, value in facts.items() if value is not None],
    )


def summary(input_name: str, format_name: str, records: int, **facts: Any) -> tuple[str, pa.Table]:
    """The row of `inputs`."""
    row = {"input": input_name, "format": format_name, "records": records, "damaged": False, **facts}
    return "inputs", tables.from_rows("inputs", [row])
