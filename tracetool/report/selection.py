"""Rows of a dataset that belong to a connection, in the form that charts take them.

The inputs that see one connection number its flows on their own. Charts want one flow: here `flow` becomes the number
of the connection among those drawn, and `direction` that of the data, `a2b`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracetool.errors import NothingMatchedError
from tracetool.reconstruct.connections import Connection
from tracetool.reconstruct.connections import connections as connections_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tracetool.dataset import Dataset
    from tracetool.reconstruct.connections import Part

BBR_PHASES = ("startup", "drain", "probe_bw", "probe_rtt")
"""Phases of samples that no other congestion control has."""


def rows(
    dataset: Dataset,
    table: str,
    connections: Connection | Sequence[Connection],
    *,
    both: bool = False,
    columns: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Return the rows of a table that belong to connections, sorted by time where the table has one.

    Parameters
    ----------
    connections
        One connection, or several: `flow` of the result counts them from 0.
    both
        Rows of both directions, as the packets of a time-sequence plot need them: `direction` is then ``a2b`` for the
        data looked at and ``b2a`` for the other, whatever the input called them.
    columns
        Columns to read; by default all.
    """
    import polars as pl

    group = (connections,) if isinstance(connections, Connection) else tuple(connections)
    parts = [
        {
            "input": part.input,
            "flow": part.flow,
            "direction": way,
            "to_flow": number,
            "to_direction": "a2b" if way == part.direction else "b2a",
        }
        for number, connection in enumerate(group)
        for part in connection.parts
        for way in (("a2b", "b2a") if both else (part.direction,))
    ]
    schema = {
        "input": pl.String,
        "flow": pl.Int32,
        "direction": pl.String,
        "to_flow": pl.Int32,
        "to_direction": pl.String,
    }
    wanted = pl.LazyFrame(parts, schema=schema)
    views = [part for connection in group for part in connection.parts]
    frame = dataset.scan(table, {part.input: None for part in views})
    frame = frame.filter(pl.col("flow").is_in(sorted({part.flow for part in views})))
    known = frame.collect_schema().names()
    keys = [key for key in ("input", "flow", "direction") if key in known]
    if "direction" not in keys:
        wanted = wanted.unique(["input", "flow"], keep="first", maintain_order=True)
    joined = frame.join(wanted, on=keys, how="inner").with_columns(flow=pl.col("to_flow"))
    if "direction" in keys:
        joined = joined.with_columns(direction=pl.col("to_direction"))
    order = next((name for name in ("time", "start") if name in known), None)
    result = joined.select(known if columns is None else list(dict.fromkeys([*columns, *([order] if order else [])])))
    return (result.sort(order, maintain_order=True) if order else result).collect()


def capture_of(connection: Connection, vantage: str = "sender") -> Connection:
    """Return the connection as one capture sees it: the one taken at `vantage`, else the first.

    Numbers from two captures of one connection must not be mixed: each packet would count twice.

    Raises
    ------
    NothingMatchedError
        If no capture sees the connection (kernel logs alone).
    """
    parts = _captures(connection)
    if not parts:
        raise NothingMatchedError(f"{connection.label}: no capture of it, and packets are needed")
    best = next((part for part in parts if part.row.get("vantage") == vantage), parts[0])
    return replace(connection, parts=(best,))


def one_view(connection: Connection) -> Connection:
    """Return the connection as one input sees it: a capture, at the sender if there is one, else the first log.

    What happened once (a loss, the end of slow start) is then told once.
    """
    return capture_of(connection) if _captures(connection) else replace(connection, parts=connection.parts[:1])


def samples_of(
    dataset: Dataset, connections: Connection | Sequence[Connection], *, every_input: bool = False
) -> pl.DataFrame:
    """Return the samples of connections: all that logs say, and what was inferred from one capture of each.

    With `every_input`, what was inferred from other captures too (the receiver's sees the sender from afar). Inferred
    phases that BBR alone has are left out where nobody says that the sender is BBR.
    """
    import polars as pl

    group = (connections,) if isinstance(connections, Connection) else tuple(connections)
    table = _bbr_phases_of_bbr(dataset, group, rows(dataset, "samples", group))
    if every_input:
        return table
    nearest = {number: one_view(connection).parts[0].input for number, connection in enumerate(group)}
    best = pl.col("flow").replace_strict(nearest, return_dtype=pl.String, default=None)
    return table.filter((pl.col("origin") != "inferred") | (pl.col("input") == best))


def _bbr_phases_of_bbr(dataset: Dataset, group: tuple[Connection, ...], table: pl.DataFrame) -> pl.DataFrame:
    """Samples without inferred phases of BBR where neither the kernel nor the inference names it.

    Where nothing fits, the hypothesis that fits least badly gives bounds of cwnd; its phases tell nothing.
    """
    import polars as pl

    inferred, bbr = pl.col("origin") == "inferred", pl.col("cc") == "bbr"
    named = {*rows(dataset, "flow_stats", group).filter(bbr)["flow"], *table.filter(bbr & ~inferred)["flow"]}
    guessed = inferred & pl.col("phase").cast(pl.String).is_in(BBR_PHASES) & ~pl.col("flow").is_in(named)
    return table.with_columns(phase=pl.when(~guessed.fill_null(value=False)).then(pl.col("phase")))


def _captures(connection: Connection) -> list[Part]:
    return [part for part in connection.parts if part.row.get("stream") is not None]


PACKET_COLUMNS = (
    "flow",
    "direction",
    "time",
    "frame",
    "protocol",
    "seq",
    "ack",
    "payload_bytes",
    "window_bytes",
    "sack",
    "tsval",
    "ip_id",
)
"""Columns of `packets` that charts are drawn from."""


def packets(
    dataset: Dataset, connections: Sequence[Connection], *, both: bool = True, vantage: str = "sender"
) -> pl.DataFrame:
    """Return the packets of connections, each from one capture; `flow` counts the connections from 0.

    Columns: `PACKET_COLUMNS`.

    Raises
    ------
    NothingMatchedError
        If no capture sees any of them.
    """
    seen = []
    for number, connection in enumerate(connections):
        if _captures(connection):
            seen.append((number, capture_of(connection, vantage)))
    if not seen:
        capture_of(connections[0])
    import polars as pl

    table = rows(dataset, "packets", [connection for _, connection in seen], both=both, columns=PACKET_COLUMNS)
    numbers = pl.Series([number for number, _ in seen], dtype=pl.Int32)
    return table.with_columns(flow=numbers.gather(table["flow"].cast(pl.UInt32)))


def weighted_flows(dataset: Dataset) -> pl.DataFrame:
    """Return table `flows` with a column `weight` that ranks the flows of logs, which have no byte counts."""
    import polars as pl

    samples = (
        dataset.scan("samples")
        .group_by("input", "flow")
        .agg(weight=pl.col("snd_una").n_unique() + pl.col("cwnd_segments").n_unique())
    )
    return dataset.scan("flows").join(samples, on=["input", "flow"], how="left", maintain_order="left").collect()


def heaviest(dataset: Dataset, limit: int, *, share: float = 0.01) -> list[Connection]:
    """Return up to `limit` connections in order of their first packets: those that carry the most.

    Parameters
    ----------
    share
        Connections that carry less than this share of the heaviest one's payload (control connections) are left out.

    Raises
    ------
    NothingMatchedError
        If there is no flow at all.
    """
    found = sorted(connections_of(weighted_flows(dataset)), key=_weight, reverse=True)[:limit]
    if not found:
        raise NothingMatchedError("no flow in the inputs: they hold neither TCP nor UDP packets, nor samples")
    payload, weight = _weight(found[0])
    least = (share * payload, 0 if payload else share * weight)
    kept = (each for each in found if all(has >= low for has, low in zip(_weight(each), least, strict=True)))
    return sorted(kept, key=_first_time)


def _weight(connection: Connection) -> tuple[int, int]:
    row = connection.parts[0].row
    return (row.get("payload_bytes_a2b") or 0) + (row.get("payload_bytes_b2a") or 0), row.get("weight") or 0


def _first_time(connection: Connection) -> tuple[bool, object]:
    start = connection.parts[0].row.get("start")
    return (start is None, start)


def congestion_control(dataset: Dataset, connection: Connection) -> str:
    """Return the name of the congestion control: the kernel's word, else what was inferred, else nothing."""
    import polars as pl

    said = rows(dataset, "samples", connection).filter(pl.col("origin") != "inferred")["cc"].drop_nulls()
    if len(said):
        return str(said[0])
    inferred = rows(dataset, "flow_stats", connection)["cc"].drop_nulls()
    return f"{inferred[0]} (inferred)" if len(inferred) and inferred[0] != "unknown" else ""


def title_of(dataset: Dataset, connection: Connection) -> str:
    """Return a connection's name for titles: flow number, addresses, congestion control."""
    control = congestion_control(dataset, connection)
    several = bool(set(dataset.inputs) - {part.input for part in connection.parts})
    return f"{_number(connection, several=several)}, {connection.label}" + (f", {control}" if control else "")


def _number(connection: Connection, *, several: bool) -> str:
    """A connection's number, with the input whose number that is if there are several."""
    part = connection.parts[0]
    return f"flow {part.flow}" + (f" of {part.input}" if several else "")


def short_names(dataset: Dataset, connections: Sequence[Connection]) -> dict[int, str]:
    """Return a short name for each of several connections: its congestion control and the port that tells it apart."""
    names = {}
    several = len({connection.parts[0].input for connection in connections}) > 1
    for number, connection in enumerate(connections):
        control = congestion_control(dataset, connection).removesuffix(" (inferred)")
        names[number] = _number(connection, several=several) + (f" {control}" if control else "")
    if len(set(names.values())) < len(names):
        return {number: f"{name} {connections[number].label}" for number, name in names.items()}
    return names


def display_filter(connection: Connection) -> str:
    """Return Wireshark's filter for the flow, empty where no input is a capture.

    Frame numbers of a figure belong to the first capture of the connection.
    """
    for part in connection.parts:
        if part.row.get("stream") is not None:
            return f"{part.row.get('protocol') or 'tcp'}.stream eq {part.row['stream']}"
    return ""
