"""How the flows of one capture share their bottleneck: rates, shares, indices, convergence, curves over scales."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracetool.errors import NothingMatchedError
from tracetool.experiments.contenders import INITIAL_WINDOW_BYTES, Contenders, contenders
from tracetool.measures import Absent  # noqa: TC001 - dataclass fields are read at run time by the cache
from tracetool.metrics import bins, convergence, fairness, intervals, jain_by_scale, protocol_fairness, variation
from tracetool.metrics.throughput import throughput

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

SECOND_NS = 10**9


@dataclass(frozen=True, slots=True)
class SharingOptions:
    """What the numbers are computed with; every one of them is printed beside the tables.

    Parameters
    ----------
    interval
        ``overlap``, ``whole`` or ``steady``.
    from_s, to_s
        A stated interval instead, in seconds from the first payload packet of any measured flow.
    scales_ns
        Time scales of both curves.
    layer
        Whose bytes count: ``payload`` (retransmissions included), ``ip``, ``frame`` or ``wire``.
    absent
        Whether a silent flow counts as zero or leaves the set.
    ddof
        0 for the population's standard deviation.
    theta, hold, bin_ns, stamp
        Of the convergence time.
    min_bytes, group, groups, ports
        Which flows compete, and how they are grouped; see `contenders`.
    """

    interval: str = "overlap"
    from_s: float | None = None
    to_s: float | None = None
    scales_ns: tuple[int, ...] = tuple(scale * SECOND_NS for scale in jain_by_scale.SCALES_S)
    layer: str = "payload"
    absent: Absent = "zero"
    ddof: int = 0
    theta: float = convergence.THETA
    hold: int = 1
    bin_ns: int = convergence.BIN_NS
    stamp: convergence.Stamp = "end"
    min_bytes: int = INITIAL_WINDOW_BYTES
    group: str = "cc"
    groups: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the measured flows share.

    Parameters
    ----------
    flows
        One row per flow: ``entity``, ``label``, ``group``, ``protocol``, ``start_s``, ``end_s`` (from the first
        payload packet), ``bytes`` (in the interval, at the layer), ``rate_bps``, ``share``, ``goodput_bps``.
    summary
        Jain's index and its relatives (`tracetool.metrics.fairness.fairness`).
    groups
        The groups against each other (`tracetool.metrics.protocol_fairness.groups`).
    convergence
        By all definitions.
    jain_by_scale, cov_by_scale
        The curves over time scales; the second for the total (all captured traffic that way) and each flow.
    interval
        The interval they are computed over.
    total_bytes
        Bytes of all captured packets that way, in the interval, by layer.
    notes
        What a reader should know.
    """

    flows: pl.DataFrame
    summary: pl.DataFrame
    groups: pl.DataFrame
    convergence: pl.DataFrame
    jain_by_scale: pl.DataFrame
    cov_by_scale: pl.DataFrame
    interval: intervals.Interval
    total_bytes: dict[str, int]
    notes: tuple[str, ...]


def sharing(packets: pl.DataFrame, flows: pl.DataFrame, options: SharingOptions | None = None) -> Sharing:
    """Measure how the flows of one capture share their bottleneck.

    Parameters
    ----------
    packets, flows
        The tables of these names, of one input; ``flows`` may carry a column ``cc``.
    options
        See `SharingOptions`.

    Raises
    ------
    NothingMatchedError
        No flow carries data, or the flows never overlap.
    """
    chosen = options or SharingOptions()
    who = contenders(
        packets,
        flows,
        min_bytes=chosen.min_bytes,
        group=chosen.group,
        groups=chosen.groups,
        declared_ports=chosen.ports,
    )
    return share(who, chosen)


def share(who: Contenders, options: SharingOptions) -> Sharing:
    """Measure contenders that are known; see `sharing`."""
    import polars as pl

    span = interval_of(who.flows, options)
    inside = who.packets.filter(pl.col("time_ns").is_between(span.start_ns, span.end_ns, closed="left"))
    sizes = (
        inside.filter(pl.col("entity").is_not_null())
        .group_by("entity")
        .agg(bins.layer_bytes(options.layer).sum().alias("bytes"))
    )
    rows = _rates(who, sizes, span)
    entities = rows["entity"].to_list()
    base_ns = math.gcd(*options.scales_ns)
    limits = {"start_ns": span.start_ns, "end_ns": span.end_ns}
    binned = bins.binned(inside, entities, bin_ns=base_ns, layer=options.layer, **limits)
    by_scale = jain_by_scale.jain_by_scale(binned, bin_ns=base_ns, scales_ns=options.scales_ns, absent=options.absent)
    everyone = bins.binned(inside.with_columns(entity=pl.lit("all")), ["all"], bin_ns=base_ns, layer="frame", **limits)
    total = variation.cov_by_scale(everyone, bin_ns=base_ns, scales_ns=options.scales_ns, ddof=options.ddof)
    each = variation.cov_by_scale(binned, bin_ns=base_ns, scales_ns=options.scales_ns, ddof=options.ddof)
    notes = [*who.notes, *_warnings(everyone["all"].to_list())]
    return Sharing(
        rows.drop("start_ns", "end_ns"),
        fairness.fairness(rows, absent=options.absent),
        protocol_fairness.groups(rows),
        _convergence(who, options),
        by_scale,
        pl.concat([total.filter(pl.col("entity") == "total"), each.filter(pl.col("entity") != "total")]),
        span,
        {layer: int(inside.select(bins.layer_bytes(layer).sum()).item()) for layer in bins.LAYERS},
        tuple(notes),
    )


def interval_of(flows: pl.DataFrame, options: SharingOptions) -> intervals.Interval:
    """Return the interval that the options name.

    Raises
    ------
    NothingMatchedError
        The flows never overlap, or nothing lies between ``from`` and ``to``.
    """
    starts, ends = flows["start_ns"].to_list(), flows["end_ns"].to_list()
    whole = intervals.interval(starts, ends, "whole")
    if whole is None:
        raise NothingMatchedError("no flow carries payload: nothing to compare")
    if options.from_s is not None or options.to_s is not None:
        start = whole.start_ns + round((options.from_s or 0) * SECOND_NS)
        end = whole.end_ns if options.to_s is None else whole.start_ns + round(options.to_s * SECOND_NS)
        if end <= start:
            raise NothingMatchedError(f"nothing lies between {options.from_s} s and {options.to_s} s")
        return intervals.Interval(start, end, "given")
    span = intervals.interval(starts, ends, options.interval)
    if span is None:
        raise NothingMatchedError("the flows never overlap: --interval whole measures them all the same")
    return span


def _rates(who: Contenders, sizes: pl.DataFrame, span: intervals.Interval) -> pl.DataFrame:
    """Return each flow's bytes, rate, share and goodput over the interval."""
    import polars as pl

    first = who.flows["start_ns"].min()
    good = throughput(
        who.packets.filter(pl.col("entity").is_not_null()), start_ns=span.start_ns, end_ns=span.end_ns
    ).select("input", "flow", "direction", "goodput_bps")
    total = pl.col("bytes").sum()
    return (
        who.flows.join(sizes, on="entity", how="left", maintain_order="left")
        .join(good, on=["input", "flow", "direction"], how="left", maintain_order="left")
        .with_columns(pl.col("bytes").fill_null(0))
        .select(
            "entity",
            "label",
            "group",
            "protocol",
            ((pl.col("start_ns") - first) / 1e9).alias("start_s"),
            ((pl.col("end_ns") - first) / 1e9).alias("end_s"),
            "bytes",
            (pl.col("bytes") * (8e9 / span.length_ns)).alias("rate_bps"),
            pl.when(total > 0).then(pl.col("bytes") / total).alias("share"),
            "goodput_bps",
            "start_ns",
            "end_ns",
        )
    )


def _convergence(who: Contenders, options: SharingOptions) -> pl.DataFrame:
    """Return the convergence time from the latest start to the earliest end, whatever the interval."""
    moving = who.flows.filter(who.flows["start_ns"].is_not_null())
    span = intervals.interval(moving["start_ns"].to_list(), moving["end_ns"].to_list(), "overlap")
    start = end = 0
    if span is not None:
        start, end = span.start_ns, span.end_ns
    binned = bins.binned(
        who.packets,
        who.flows["entity"].to_list(),
        start_ns=start,
        end_ns=end,
        bin_ns=options.bin_ns,
        layer=options.layer,
    )
    return convergence.convergence(
        binned,
        bin_ns=options.bin_ns,
        theta=options.theta,
        hold=options.hold,
        stamp=options.stamp,
        observed_ns=end - start,
    )


def _warnings(total: list[int]) -> list[str]:
    head, tail = variation.idle_edges(total)
    where = [name for name, idle in (("start", head), ("end", tail)) if idle]
    return [f"the traffic is nearly idle at the {name} of the interval: it dominates the variation" for name in where]
