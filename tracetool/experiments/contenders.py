"""Who competes: the flows of a dataset that carry data in one direction, and their packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracetool.errors import NothingMatchedError, UsageError
from tracetool.metrics.intervals import active_spans

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

# A flow that fits into the initial window (RFC 6928: 10 segments of 1460 bytes) never met congestion control, so it
# competes for nothing. Such are the control connections beside a bulk transfer.
INITIAL_WINDOW_BYTES = 14_600
GROUPS = ("cc", "host", "port", "protocol")


@dataclass(frozen=True, slots=True)
class Contenders:
    """The measured flows and the packets that travel their way.

    Parameters
    ----------
    flows
        One row per measured flow, by start: ``entity``, ``label``, ``group``, ``protocol``, ``input``, ``flow``,
        ``direction``, ``src``, ``src_port``, ``dst``, ``dst_port``, ``start_ns``, ``end_ns`` (of its payload; null for
        a declared flow that stayed silent).
    packets
        All packets towards the measured flows' receivers, others' included, with ``entity`` (null for others),
        ``src``, ``dst`` (address and port) and ``time_ns``.
    notes
        What was left out, in words.
    """

    flows: pl.DataFrame
    packets: pl.DataFrame
    notes: tuple[str, ...]


def directed(flows: pl.DataFrame) -> pl.DataFrame:
    """Return flows with sender and receiver of the direction that carries more payload."""
    import polars as pl

    back = pl.col("payload_bytes_b2a").fill_null(0) > pl.col("payload_bytes_a2b").fill_null(0)

    def end(column: str, *, sender: bool) -> pl.Expr:
        a, b = pl.col(f"{column}_a"), pl.col(f"{column}_b")
        return pl.when(back == sender).then(b).otherwise(a)

    return flows.with_columns(
        pl.when(back).then(pl.lit("b2a")).otherwise(pl.lit("a2b")).alias("direction"),
        end("addr", sender=True).alias("src"),
        end("port", sender=True).alias("src_port"),
        end("addr", sender=False).alias("dst"),
        end("port", sender=False).alias("dst_port"),
        pl.max_horizontal(pl.col("payload_bytes_a2b").fill_null(0), pl.col("payload_bytes_b2a").fill_null(0)).alias(
            "payload_bytes"
        ),
    )


def contenders(
    packets: pl.DataFrame,
    flows: pl.DataFrame,
    *,
    min_bytes: int = INITIAL_WINDOW_BYTES,
    group: str = "cc",
    groups: Mapping[str, str] | None = None,
    declared_ports: Sequence[int] = (),
) -> Contenders:
    """Choose the flows that compete in one capture.

    Parameters
    ----------
    packets, flows
        The tables of one input; ``flows`` may carry a column ``cc``.
    min_bytes
        A flow with no more payload than this does not compete.
    group
        What the flows are grouped by: one of `GROUPS`.
    groups
        Labels by receiver's port, sender's address, or ``address:port``; they replace ``group`` where they match.
    declared_ports
        Receiver ports of the flows that take part; one that carried nothing then counts as silent.

    Raises
    ------
    NothingMatchedError
        No flow carries data.
    UsageError
        There is no such grouping.
    """
    import polars as pl

    if group not in GROUPS:
        raise UsageError(f"group {group!r}: expected one of {', '.join(GROUPS)}")
    known = directed(flows)
    big = known.filter(pl.col("payload_bytes") > min_bytes)
    if declared_ports:
        big = big.filter(pl.col("dst_port").is_in(list(declared_ports)))
    if big.is_empty():
        raise NothingMatchedError(f"no flow carries more than {min_bytes} bytes of payload: nothing to compare")
    notes = []
    largest = big.sort("payload_bytes", descending=True).row(0, named=True)
    against = (pl.col("src") == largest["dst"]) | (pl.col("dst") == largest["src"])
    opposite = big.filter(against)
    if len(opposite):
        notes.append(f"left out: {_flows(len(opposite))} in the other direction, which do not share the bottleneck")
    chosen = big.filter(~against)
    small = len(known) - len(big)
    if small:
        notes.append(f"left out: {_flows(small)} of at most {min_bytes} bytes of payload")
    chosen = chosen.sort("start", "flow", maintain_order=True).with_columns(
        pl.int_range(pl.len()).cast(pl.String).alias("entity"),
        pl.format("{}:{} > {}:{}", "src", "src_port", "dst", "dst_port").alias("label"),
    )
    towards = _towards(packets, known, chosen)
    spans = active_spans(towards.filter(pl.col("entity").is_not_null()))
    chosen = chosen.join(spans, on="entity", how="left", maintain_order="left").with_columns(
        pl.Series("group", [_group(row, group, groups or {}) for row in chosen.iter_rows(named=True)], pl.String)
    )
    silent = [port for port in declared_ports if port not in set(chosen["dst_port"])]
    chosen = pl.concat([_columns(chosen), *(_silent(chosen, port, groups or {}) for port in silent)], how="vertical")
    return Contenders(chosen, towards, tuple(notes))


COLUMNS = (
    "entity",
    "label",
    "group",
    "protocol",
    "input",
    "flow",
    "direction",
    "src",
    "src_port",
    "dst",
    "dst_port",
    "start_ns",
    "end_ns",
)


def _columns(flows: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    return flows.select(COLUMNS).with_columns(pl.col("protocol").cast(pl.String))


def _flows(count: int) -> str:
    return f"{count} flow{'' if count == 1 else 's'}"


def _silent(flows: pl.DataFrame, port: int, labels: Mapping[str, str]) -> pl.DataFrame:
    """Return a row for a declared flow that never sent."""
    import polars as pl

    name = labels.get(str(port), str(port))
    row = dict.fromkeys(COLUMNS) | {"entity": f"port {port}", "label": f"silent > port {port}", "group": name}
    row["dst_port"] = port
    return pl.DataFrame([row], schema=_columns(flows).schema)


def _group(row: Mapping[str, object], group: str, labels: Mapping[str, str]) -> str:
    """Return a flow's group: its label if one fits, else the value of the grouping column."""
    for key in (f"{row['dst']}:{row['dst_port']}", f"{row['src']}:{row['src_port']}", str(row["dst_port"])):
        if key in labels:
            return labels[key]
    if str(row["src"]) in labels:
        return labels[str(row["src"])]
    match group:
        case "host":
            return str(row["src"])
        case "port":
            return str(row["dst_port"])
        case "cc" if str(row["protocol"]) != "udp":
            return str(row.get("cc") or "unknown")
    return str(row["protocol"])


def _towards(packets: pl.DataFrame, known: pl.DataFrame, chosen: pl.DataFrame) -> pl.DataFrame:
    """Return the packets that travel from the measured flows' senders, whatever flow they belong to."""
    import polars as pl

    a = pl.format("{}:{}", "addr_a", "port_a")
    b = pl.format("{}:{}", "addr_b", "port_b")
    ends = known.select("input", "flow", a.alias("end_a"), b.alias("end_b"), "addr_a", "addr_b")
    ahead = pl.col("direction").cast(pl.String) == "a2b"
    senders = chosen["src"].unique().to_list()
    entities = chosen.select("input", "flow", "direction", "entity")
    return (
        packets.lazy()
        .join(ends.lazy(), on=["input", "flow"], how="left")
        .with_columns(
            pl.col("direction").cast(pl.String),
            pl.when(ahead).then(pl.col("end_a")).otherwise(pl.col("end_b")).alias("src"),
            pl.when(ahead).then(pl.col("end_b")).otherwise(pl.col("end_a")).alias("dst"),
            pl.when(ahead).then(pl.col("addr_a")).otherwise(pl.col("addr_b")).alias("host"),
            pl.col("time").cast(pl.Int64).alias("time_ns"),
        )
        .filter(pl.col("host").is_in(senders))
        .join(entities.lazy(), on=["input", "flow", "direction"], how="left")
        .drop("end_a", "end_b", "addr_a", "addr_b", "host")
        .collect()
    )
