"""The table of flows: one row per connection, however many inputs saw it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.reconstruct.connections import connections

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tracetool.dataset import Dataset

CAPTURE = "capture"
"""The origin of what packets say."""


def flow_table(dataset: Dataset) -> pl.DataFrame:
    """Return the flows of a dataset, those that are one connection joined.

    The row of a connection is that of its capture (the sender's, where there are several), else that of the log that
    knows most; see `tracetool.reconstruct.connections.connections` for what belongs together.

    Returns
    -------
    polars.DataFrame
        Columns of `flows`; ``direction``, the one with the most payload, and the columns of `flow_stats` for it
        (``cc`` of a log is what its samples say);
        ``inputs``, all inputs that saw the connection, that of the row first; ``origins``, what each of them is:
        ``capture``, or the origin of its samples (``tcp_probe``, ``ss``, ``iperf3``, ...).
    """
    import polars as pl

    flows = dataset.read("flows")
    logged = flows["stream"].null_count() > 0
    views = {
        (each.parts[0].input, each.parts[0].flow): [(part.input, part.flow) for part in each.parts]
        for each in (connections(flows) if logged or flows["input"].n_unique() > 1 else ())
    }
    keys = list(flows.select("input", "flow").iter_rows())
    named = flows["addr_a"].is_not_null().to_list() if views else [False] * len(keys)
    origins = _origins(dataset, flows)
    seen = [views.get(key, [key]) for key in keys]
    back = pl.col("payload_bytes_b2a").fill_null(0) > pl.col("payload_bytes_a2b").fill_null(0)
    table = flows.with_columns(
        pl.Series("inputs", [[name for name, _ in parts] for parts in seen], pl.List(pl.String)),
        pl.Series("origins", [[origins[part] for part in parts] for parts in seen], pl.List(pl.String)),
        direction=pl.when(back).then(pl.lit("b2a")).otherwise(pl.lit("a2b")),
    ).filter(pl.Series([key in views or not joins for key, joins in zip(keys, named, strict=True)], dtype=pl.Boolean))
    stats = dataset.read("flow_stats").with_columns(pl.col("direction").cast(pl.String))
    table = table.join(stats, on=["input", "flow", "direction"], how="left", maintain_order="left")
    told = dataset.scan("samples").filter(pl.col("cc").is_not_null() & (pl.col("origin") != "inferred"))
    said = told.group_by("input", "flow").agg(said=pl.col("cc").cast(pl.String).last()).collect()
    table = table.join(said, on=["input", "flow"], how="left", maintain_order="left")
    table = table.with_columns(pl.col("cc").cast(pl.String).fill_null(pl.col("said")))
    return table.select(pl.exclude("inputs", "origins", "said"), "inputs", "origins")


def _origins(dataset: Dataset, flows: pl.DataFrame) -> dict[tuple[str, int], str]:
    """Return what each view is: a capture, or what its samples come from, or else the format of its input."""
    import polars as pl

    formats = dict(dataset.read("inputs").select("input", "format").iter_rows())
    said = (
        dataset.scan("samples")
        .filter(pl.col("origin") != "inferred")
        .group_by("input", "flow")
        .agg(pl.col("origin").unique().sort())
        .collect()
    )
    known = {(name, flow): "+".join(origins) for name, flow, origins in said.iter_rows()}
    return {
        (name, flow): CAPTURE if stream is not None else known.get((name, flow), formats.get(name) or "log")
        for name, flow, stream in flows.select("input", "flow", "stream").iter_rows()
    }


def seen_by(origins: Sequence[str]) -> str:
    """Return the origins of a connection in words.

    Examples
    --------
    >>> seen_by(["capture", "capture", "ss"])
    '2 captures, ss'
    """
    counts = {name: origins.count(name) for name in dict.fromkeys(origins)}
    return ", ".join(
        name if count == 1 else f"{count} {name}{'s' if name == CAPTURE else ' logs'}" for name, count in counts.items()
    )
