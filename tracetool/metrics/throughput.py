"""Throughput, goodput and their ratio, per flow and direction, over a stated interval.

Throughput counts payload as sent, retransmissions included; goodput counts each byte once
(RFC 3148's bulk transfer capacity; RFC 5166 sections 2.1.1 and 2.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tracetool.measures import Measure

if TYPE_CHECKING:
    import polars as pl

FLOW = ("input", "flow", "direction")


@dataclass(frozen=True, slots=True)
class Goodput:
    """Throughput and goodput in bit/s, and goodput over throughput."""

    throughput_bps: Measure
    goodput_bps: Measure
    goodput_ratio: Measure


def rate_bps(size_bytes: int, interval_ns: int) -> Measure:
    """Return a size over an interval in bit/s; null for an empty interval.

    Examples
    --------
    >>> rate_bps(1_500_000, 1_200_000_000).value
    10000000.0
    """
    if interval_ns <= 0:
        return Measure.undefined("no-input")
    return Measure(float(Fraction(8 * 10**9 * size_bytes, interval_ns)))


def goodput(sent_bytes: int, distinct_bytes: int, interval_ns: int) -> Goodput:
    """Return throughput, goodput and their ratio.

    Parameters
    ----------
    sent_bytes
        Payload bytes seen, retransmissions included.
    distinct_bytes
        The same, each byte of the stream once.
    interval_ns
        The stated interval, not the flow's own life.

    Examples
    --------
    >>> goodput(1_545_000, 1_500_000, 1_200_000_000).throughput_bps.value
    10300000.0
    """
    ratio = Measure(distinct_bytes / sent_bytes) if sent_bytes else Measure.undefined("all-zero")
    return Goodput(rate_bps(sent_bytes, interval_ns), rate_bps(distinct_bytes, interval_ns), ratio)


def throughput(packets: pl.DataFrame, *, start_ns: int, end_ns: int) -> pl.DataFrame:
    """Measure each flow and direction that sent payload in ``[start_ns, end_ns)``.

    Goodput is what the other side acknowledged in the interval where its ACKs are seen, else the
    distinct payload seen. SYN and FIN take a sequence number but are no payload; keep-alives and
    zero-window probes repeat or precede acknowledged bytes and add nothing.

    Parameters
    ----------
    packets
        Rows of ``packets``.
    start_ns, end_ns
        The interval, nanoseconds since 1970.

    Returns
    -------
    polars.DataFrame
        ``input``, ``flow``, ``direction``, ``packets``, ``sent_bytes``, ``distinct_bytes``,
        ``goodput_source`` (``acks`` or ``payload``), ``throughput_bps``, ``goodput_bps``,
        ``goodput_ratio``, ``active_s`` (first to last payload packet in the interval).
    """
    import polars as pl

    time = pl.col("time").cast(pl.Int64)
    rows = packets.lazy().with_columns(pl.col("direction").cast(pl.String), time.alias("time_ns"))
    inside = pl.col("time_ns").is_between(start_ns, end_ns, closed="left")
    data = rows.filter(pl.col("payload_bytes") > 0, inside)
    interval_ns = end_ns - start_ns
    sizes = data.group_by(FLOW).agg(
        pl.len().cast(pl.Int64).alias("packets"),
        pl.col("payload_bytes").cast(pl.Int64).sum().alias("sent_bytes"),
        ((pl.col("time_ns").max() - pl.col("time_ns").min()) / 1e9).alias("active_s"),
    )
    table = (
        sizes.join(_distinct(data), on=FLOW, how="left")
        .join(_acknowledged(rows, start_ns, end_ns), on=FLOW, how="left")
        .with_columns(
            pl.when(pl.col("acked_bytes").is_not_null())
            .then(pl.lit("acks"))
            .otherwise(pl.lit("payload"))
            .alias("goodput_source"),
            pl.coalesce("acked_bytes", "seen_bytes", "sent_bytes").alias("distinct_bytes"),
        )
    )
    per_second = 8e9 / interval_ns if interval_ns > 0 else None
    return (
        table.with_columns(
            (pl.col("sent_bytes") * per_second).cast(pl.Float64).alias("throughput_bps"),
            (pl.col("distinct_bytes") * per_second).cast(pl.Float64).alias("goodput_bps"),
            (pl.col("distinct_bytes") / pl.col("sent_bytes")).alias("goodput_ratio"),
        )
        .select(
            *FLOW,
            "packets",
            "sent_bytes",
            "distinct_bytes",
            "goodput_source",
            "throughput_bps",
            "goodput_bps",
            "goodput_ratio",
            "active_s",
        )
        .sort(FLOW)
        .collect()
    )


def _distinct(data: pl.LazyFrame) -> pl.LazyFrame:
    """Return the distinct payload bytes seen: the length of the union of the sequence ranges."""
    import polars as pl

    end = pl.col("seq") + pl.col("payload_bytes").cast(pl.Int64)
    # Sorted by start, each range adds what lies beyond the furthest end before it.
    before = pl.col("end").cum_max().shift(1).over(FLOW)
    fresh = pl.col("end") - pl.max_horizontal(pl.col("seq"), before)
    return (
        data.filter(pl.col("seq").is_not_null())
        .with_columns(end.alias("end"))
        .sort(*FLOW, "seq")
        .with_columns(fresh.clip(0).alias("fresh"))
        .group_by(FLOW)
        .agg(pl.col("fresh").sum().alias("seen_bytes"))
    )


def _acknowledged(rows: pl.LazyFrame, start_ns: int, end_ns: int) -> pl.LazyFrame:
    """Return the payload bytes that the other side acknowledged within the interval."""
    import polars as pl

    end = pl.col("seq") + pl.col("payload_bytes").cast(pl.Int64)
    reach = (
        rows.filter(pl.col("payload_bytes") > 0, pl.col("seq").is_not_null(), pl.col("time_ns") < end_ns)
        .group_by(FLOW)
        .agg(pl.col("seq").min().alias("first"), end.max().alias("last"))
    )
    turned = pl.when(pl.col("direction") == "a2b").then(pl.lit("b2a")).otherwise(pl.lit("a2b"))
    before = pl.col("ack").filter(pl.col("time_ns") < start_ns).max()
    acks = (
        rows.filter(pl.col("ack").is_not_null(), pl.col("time_ns") < end_ns)
        .with_columns(turned.alias("direction"))
        .group_by(FLOW)
        .agg(before.alias("ack_start"), pl.col("ack").max().alias("ack_end"))
    )
    # Clipped to the payload's range, so that the numbers of SYN and FIN do not count.
    low = pl.max_horizontal(pl.col("ack_start"), pl.col("first"))
    high = pl.min_horizontal(pl.col("ack_end"), pl.col("last"))
    return reach.join(acks, on=FLOW, how="inner").select(*FLOW, (high - low).clip(0).alias("acked_bytes"))
