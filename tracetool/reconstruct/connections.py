"""Flows of several inputs that are one connection, and the choice of one of them.

A connection may be seen by a capture at each end, by the kernel's log and by ``ss`` at once. Each of these inputs
numbers its flows on its own; what joins them is the pair of addresses, and the time (or the initial sequence numbers,
where two captures know them).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from tracetool.errors import NothingMatchedError, UsageError

if TYPE_CHECKING:
    import polars as pl

_ENDPOINT = re.compile(r"^(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]]*?))(?::(?P<port>\d{1,5}))?$")
_STREAM = re.compile(r"^(?:(?P<protocol>tcp|udp)\.)?stream\s*(?:[:=]|==|eq)?\s*(?P<number>\d+)$")

REUSE = timedelta(seconds=60)
"""How long a pair of ports stays taken after a connection (TIME_WAIT of Linux, TCP_TIMEWAIT_LEN): views of one pair
that lie closer are of one connection."""
_EPOCH_CLOCK = datetime(2001, 9, 9, tzinfo=UTC)
"""Clocks that show less count from boot, and cannot be compared."""


@dataclass(frozen=True, slots=True)
class Part:
    """One input's view of a connection.

    Attributes
    ----------
    input, flow
        Key of its row in `flows`.
    direction
        Direction, in that row's sense, of the data whose sender is looked at.
    row
        The row itself.
    """

    input: str
    flow: int
    direction: str
    row: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection and all views of it; the first is the one that was selected.

    Attributes
    ----------
    sender, receiver
        ``(address, port)`` of the end whose data is looked at, and of its peer.
    parts
        The views, at most one of each input.
    """

    sender: tuple[str, int | None]
    receiver: tuple[str, int | None]
    parts: tuple[Part, ...]

    @property
    def label(self) -> str:
        """Name for titles: sender, arrow, receiver.

        Examples
        --------
        >>> Connection(("10.0.0.1", 4000), ("::1", 80), ()).label
        '10.0.0.1:4000 > [::1]:80'
        """
        return f"{endpoint(*self.sender)} > {endpoint(*self.receiver)}"


def endpoint(address: str, port: int | None) -> str:
    """Address and port as people write them."""
    host = f"[{address}]" if ":" in address else address
    return host if port is None else f"{host}:{port}"


def select(flows: pl.DataFrame, choice: str | int | None = None) -> Connection:
    """Choose a connection.

    Parameters
    ----------
    flows
        Table `flows` of one or several inputs. A column `weight`, where present, ranks flows without byte counts
        (those of logs).
    choice
        A flow id, ``stream N`` (Wireshark's), an address pair ``HOST[:PORT]-HOST[:PORT]`` (sender of the data first)
        or one end ``HOST:PORT`` or ``:PORT``. None: the flow with the most payload.

    Raises
    ------
    NothingMatchedError
        If no flow is like that.
    UsageError
        If the choice cannot be understood.
    """
    rows = [row for row in flows.iter_rows(named=True) if row["addr_a"] is not None]
    if not rows:
        raise NothingMatchedError("no flow in the inputs: they hold neither TCP nor UDP packets, nor samples")
    chosen = rows if choice is None else _matching(rows, str(choice).strip())
    if not chosen:
        raise NothingMatchedError(f"no flow {choice!r}: `tracetool flows` lists them")
    best = max(chosen, key=_weight)
    return _connection(best, _data_direction(best, choice), rows)


def connections(flows: pl.DataFrame) -> list[Connection]:
    """Return all connections with their views, in the order in which `flows` has their first views.

    Of the two sockets that a log of both ends has, only the sender's is a view. The first view of a connection is the
    one that knows most: a capture before a log, the sender's before others, then the one with the most payload.

    Parameters
    ----------
    flows
        As for `select`.

    Examples
    --------
    >>> import polars as pl
    >>> ends = {"protocol": "tcp", "addr_a": "10.0.0.1", "port_a": 4000, "addr_b": "10.0.0.2", "port_b": 80}
    >>> views = [{"input": name, "flow": 0, "stream": stream, "start": None, "end": None, **ends}
    ...          for name, stream in (("log", None), ("capture", 0))]
    >>> [[part.input for part in each.parts] for each in connections(pl.DataFrame(views))]
    [['capture', 'log']]
    """
    rows = [row for row in flows.iter_rows(named=True) if row["addr_a"] is not None]
    order = {_key(row): number for number, row in enumerate(rows)}
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["protocol"], frozenset((_end(row, "a"), _end(row, "b")))), []).append(row)
    found = []
    for group in groups.values():
        left = {_key(row): row for row in group}
        while left:
            best = max(left.values(), key=_standing)
            connection = _connection(best, _data_direction(best, None), list(left.values()))
            found.append(connection)
            taken = {(part.input, part.flow) for part in connection.parts}
            left = {key: row for key, row in left.items() if key not in taken and not _other_end(row, connection)}
    return sorted(found, key=lambda each: min(order[part.input, part.flow] for part in each.parts))


def _key(row: dict[str, Any]) -> tuple[str, int]:
    return row["input"], row["flow"]


def _standing(row: dict[str, Any]) -> tuple[bool, bool, tuple[int, int, int]]:
    return row.get("stream") is not None, row.get("vantage") == "sender", _weight(row)


def _weight(row: dict[str, Any]) -> tuple[int, int, int]:
    payload = (row.get("payload_bytes_a2b") or 0) + (row.get("payload_bytes_b2a") or 0)
    return (payload, row.get("weight") or 0, -row["flow"])


def _data_direction(row: dict[str, Any], choice: str | int | None) -> str:
    if isinstance(choice, str) and "-" in choice:
        first = choice.split("-", 1)[0].strip()
        if _matches_end(first, row, "a") != _matches_end(first, row, "b"):
            return "a2b" if _matches_end(first, row, "a") else "b2a"
    back, there = row.get("payload_bytes_b2a"), row.get("payload_bytes_a2b")
    return "b2a" if (back or 0) > (there or 0) else "a2b"


def _matching(rows: list[dict[str, Any]], choice: str) -> list[dict[str, Any]]:
    if re.fullmatch(r"\d+", choice):
        return [row for row in rows if row["flow"] == int(choice)]
    if stream := _STREAM.match(choice):
        protocol = stream["protocol"] or "tcp"
        return [row for row in rows if row["stream"] == int(stream["number"]) and row["protocol"] == protocol]
    ends = [end.strip() for end in choice.replace(">", "-").split("-", 1)]
    if not all(_ENDPOINT.match(end) and end for end in ends):
        raise UsageError(f"flow {choice!r}: give a flow id, 'stream N' or HOST:PORT-HOST:PORT")
    if len(ends) == 1:
        return [row for row in rows if any(_matches_end(ends[0], row, side) for side in "ab")]
    return [
        row
        for row in rows
        if any(_matches_end(ends[0], row, near) and _matches_end(ends[1], row, far) for near, far in ("ab", "ba"))
    ]


def _matches_end(text: str, row: dict[str, Any], side: str) -> bool:
    match = _ENDPOINT.match(text)
    host, port = (match["v6"] or match["host"], match["port"]) if match else (text, None)
    if ":" in (text := text.strip("[]")) and not (match and match["v6"]) and text.count(":") > 1:
        host, port = text, None  # an IPv6 address without brackets
    same_host = not host or _canonical(host) == _canonical(row[f"addr_{side}"])
    return same_host and (port is None or row[f"port_{side}"] == int(port))


@lru_cache(maxsize=4096)
def _canonical(address: str) -> str:
    try:
        parsed = ip_address(address.split("%", 1)[0])
    except ValueError:
        return address.lower()
    mapped = getattr(parsed, "ipv4_mapped", None)
    return str(mapped or parsed)


def _end(row: dict[str, Any], side: str) -> tuple[str, int | None]:
    return _canonical(row[f"addr_{side}"]), row[f"port_{side}"]


def _connection(best: dict[str, Any], direction: str, rows: list[dict[str, Any]]) -> Connection:
    near, far = ("a", "b") if direction == "a2b" else ("b", "a")
    sender, receiver = _end(best, near), _end(best, far)
    views: dict[str, list[tuple[dict[str, Any], str]]] = {}
    for row in rows:
        ends = (_end(row, "a"), _end(row, "b"))
        if row["protocol"] == best["protocol"] and row["input"] != best["input"] and {*ends} == {sender, receiver}:
            way = "a2b" if ends == (sender, receiver) else "b2a"
            if _is_one(row, best, turned=(way != direction)):
                views.setdefault(row["input"], []).append((row, way))
    parts = [Part(best["input"], best["flow"], direction, best)]
    for name, same in views.items():
        row, way = max(same, key=lambda item: (_overlap(item[0], best) or 0.0, _weight(item[0])))
        parts.append(Part(name, row["flow"], way, row))
    return Connection(sender, receiver, tuple(parts))


def _other_end(row: dict[str, Any], connection: Connection) -> bool:
    """Whether a row is the other socket of a connection in a log that is among its views."""
    sockets = [part.row for part in connection.parts if part.input == row["input"] and part.row.get("stream") is None]
    return any(_end(row, "a") == _end(one, "b") and _is_one(row, one, turned=True) for one in sockets)


def _is_one(row: dict[str, Any], best: dict[str, Any], *, turned: bool) -> bool:
    """Whether two views of one pair of ends are of one connection: a pair may be used again later."""
    if row.get("handshake") == best.get("handshake") == "full":  # only then do both know the initial numbers
        ends = ("b", "a") if turned else ("a", "b")
        return all(best[f"isn_{one}"] == row[f"isn_{other}"] for one, other in zip("ab", ends, strict=True))
    common = _overlap(row, best)
    return common is None or common > -REUSE.total_seconds()


def _overlap(one: dict[str, Any], other: dict[str, Any]) -> float | None:
    """Seconds that two flows have in common, negative if they lie apart; None where their clocks do not tell."""
    if None in (one["start"], one["end"], other["start"], other["end"]):
        return None
    if (_epoch(one["start"]) < _EPOCH_CLOCK) != (_epoch(other["start"]) < _EPOCH_CLOCK):
        return None
    common = min(one["end"], other["end"]) - max(one["start"], other["start"])
    return float(common.total_seconds())


def _epoch(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)
