"""How the flows of a dataset share: one capture chosen for each connection, then measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.errors import NothingMatchedError
from tracetool.experiments.contenders import contenders
from tracetool.experiments.sharing import Sharing, SharingOptions, share

if TYPE_CHECKING:
    import polars as pl

    from tracetool.dataset import Dataset

# Behind the queue stands what got through: a receiver's capture goes before the others.
PREFERRED = ("receiver", "middle", "unknown", "sender")
CONNECTION = ("protocol", "addr_a", "port_a", "addr_b", "port_b")
#: What the measures read; the rest of `packets` stays on disk.
COLUMNS = (
    "input",
    "flow",
    "direction",
    "protocol",
    "time",
    "seq",
    "ack",
    "payload_bytes",
    "ip_bytes",
    "frame_bytes",
)


def dataset_sharing(dataset: Dataset, options: SharingOptions | None = None) -> Sharing:
    """Measure how the flows of a dataset share their bottleneck.

    Parameters
    ----------
    dataset
        With captures in it; if it was reconstructed, flows are grouped by congestion control.
    options
        See `SharingOptions`.

    Raises
    ------
    NothingMatchedError
        No capture, or no flow that carries data.
    """
    import polars as pl

    chosen = options or SharingOptions()
    flows = once(_with_cc(dataset))
    if flows.is_empty():
        raise NothingMatchedError("no flow in it: fairness needs packet captures")
    names = flows["input"].unique(maintain_order=True).to_list()
    scanned = dataset.scan("packets", names).select(COLUMNS)
    packets = scanned.join(flows.lazy().select("input", "flow"), on=["input", "flow"], how="semi").collect()
    if packets.is_empty():
        raise NothingMatchedError("no packet in it: fairness needs packet captures")
    seen = packets.select("input").unique()
    who = contenders(
        packets,
        flows.filter(pl.col("input").is_in(seen["input"].to_list())),
        min_bytes=chosen.min_bytes,
        group=chosen.group,
        groups=chosen.groups,
        declared_ports=chosen.ports,
    )
    return share(who, chosen)


def once(flows: pl.DataFrame) -> pl.DataFrame:
    """Return each connection once, from the best of the captures that hold it.

    A connection is its addresses and ports; those that overlap in time in two inputs are one.

    Parameters
    ----------
    flows
        Rows of ``flows``.
    """
    import polars as pl

    rank = (
        pl.col("vantage")
        .cast(pl.String)
        .fill_null("unknown")
        .replace_strict(
            list(PREFERRED), list(range(len(PREFERRED))), default=PREFERRED.index("unknown"), return_dtype=pl.Int64
        )
    )
    ranked = flows.with_row_index("place").with_columns(rank=rank)
    best = ranked.group_by(CONNECTION).agg(pl.col("input").sort_by("rank", "place").first().alias("best"))
    kept = ranked.join(best, on=list(CONNECTION), how="left", maintain_order="left").filter(
        pl.col("input") == pl.col("best")
    )
    return kept.drop("place", "rank", "best")


def _with_cc(dataset: Dataset) -> pl.DataFrame:
    """Return the flows with the congestion control of the direction that carries the data."""
    import polars as pl

    flows = dataset.read("flows")
    stats = dataset.read("flow_stats")
    if stats.is_empty():
        return flows
    back = pl.col("payload_bytes_b2a").fill_null(0) > pl.col("payload_bytes_a2b").fill_null(0)
    ways = flows.with_columns(direction=pl.when(back).then(pl.lit("b2a")).otherwise(pl.lit("a2b")))
    named = stats.select("input", "flow", pl.col("direction").cast(pl.String), "cc")
    return ways.join(named, on=["input", "flow", "direction"], how="left", maintain_order="left").drop("direction")
