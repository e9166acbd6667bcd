"""Loss seen in one trace: an estimate of the loss ratio, loss events and intervals, synchronisation.

Sources: RFC 5348 section 5 (loss events and intervals), RFC 5166 section 2.1.3, RFC 7928
section 2.4, and RFC 2883 with RFC 3708 for what a DSACK says.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tracetool.measures import Measure, Number, mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

# RFC 5348 section 5.4, for the last eight intervals, newest first.
INTERVAL_WEIGHTS = (
    Fraction(1),
    Fraction(1),
    Fraction(1),
    Fraction(1),
    Fraction(4, 5),
    Fraction(3, 5),
    Fraction(2, 5),
    Fraction(1, 5),
)


@dataclass(frozen=True, slots=True)
class LossEstimate:
    """The retransmission ratio (upper bound) and the estimate without spurious retransmissions."""

    upper: Measure
    estimate: Measure


def loss_estimate(segments: int, retransmitted: int, spurious: int = 0) -> LossEstimate:
    """Estimate the path loss ratio of a flow from its sender's packets.

    Parameters
    ----------
    segments
        Data segments sent, retransmissions included.
    retransmitted, spurious
        Of these, retransmissions, and retransmissions shown to be spurious.

    Examples
    --------
    >>> loss_estimate(10_000, 30, 4).estimate.value
    0.0026
    """
    if segments == 0:
        nothing = Measure.undefined("all-zero")
        return LossEstimate(nothing, nothing)
    return LossEstimate(Measure(retransmitted / segments), Measure(max(0, retransmitted - spurious) / segments))


@dataclass(frozen=True, slots=True)
class LossEvents:
    """Starts of the loss events, losses per packet and events per packet."""

    events: tuple[Number, ...]
    loss_rate: Measure
    event_rate: Measure


def loss_events(loss_times: Sequence[Number], *, rtt: Number, packets: int) -> LossEvents:
    """Group losses into events: a loss within one RTT of an event's start belongs to it.

    Parameters
    ----------
    loss_times, rtt
        In one unit.
    packets
        Packets sent, for the rates.

    References
    ----------
    RFC 5348 section 5.2.

    Examples
    --------
    >>> loss_events([0, 5, 30], rtt=10, packets=100).events
    (0, 30)
    """
    events: list[Number] = []
    for time in sorted(loss_times):
        if not events or Fraction(events[-1]) + Fraction(rtt) < Fraction(time):
            events.append(time)
    if packets == 0:
        nothing = Measure.undefined("all-zero")
        return LossEvents(tuple(events), nothing, nothing)
    return LossEvents(tuple(events), Measure(len(loss_times) / packets), Measure(len(events) / packets))


@dataclass(frozen=True, slots=True)
class LossInterval:
    """TFRC's mean loss interval in packets, and its inverse, the loss event rate."""

    mean: Measure
    event_rate: Measure


def average_loss_interval(intervals: Sequence[Number], *, n: int = 8) -> LossInterval:
    """Return TFRC's weighted mean of the last loss intervals.

    Parameters
    ----------
    intervals
        Packets between loss events, newest first; the first is the open one, still running.
    n
        How many closed intervals count.

    References
    ----------
    RFC 5348 section 5.4.

    Examples
    --------
    >>> average_loss_interval([10] + [100] * 8).mean.value
    100.0
    """
    if not 1 <= n <= len(INTERVAL_WEIGHTS):
        raise ValueError(f"n={n}: expected 1 to {len(INTERVAL_WEIGHTS)} intervals")
    sizes = [Fraction(value) for value in intervals[: n + 1]]
    if len(sizes) < 2:
        # RFC 5348: not calculated before the first loss event has closed an interval.
        return LossInterval(Measure.undefined("no-input"), Measure(0.0))
    weights = INTERVAL_WEIGHTS[: len(sizes) - 1]
    with_open = sum(size * weight for size, weight in zip(sizes, weights, strict=False))
    closed = sum(size * weight for size, weight in zip(sizes[1:], weights, strict=True))
    average = max(with_open, closed) / sum(weights)
    rate = Measure(float(1 / average)) if average else Measure.undefined("all-zero")
    return LossInterval(Measure(float(average)), rate)


def loss_synchronisation(flows_losing_per_event: Sequence[int], flows: int) -> Measure:
    """Return the mean share of flows that lose in a loss event (RFC 7928 section 2.4).

    Examples
    --------
    >>> round(loss_synchronisation([2, 1, 4], 4).value, 6)
    0.583333
    """
    if flows == 0:
        return Measure.undefined("no-flows")
    share = mean([Fraction(losing, flows) for losing in flows_losing_per_event])
    return Measure(share) if share is not None else Measure.undefined("all-zero")


def synchronised_events(losses: Sequence[tuple[Number, object]], *, rtt: Number) -> list[int]:
    """Return how many different flows lose in each loss event of the aggregate.

    Parameters
    ----------
    losses
        Time and flow of each loss, of all flows together.
    rtt
        An event lasts this long from its first loss.

    Examples
    --------
    >>> synchronised_events([(0, "a"), (1, "b"), (50, "a")], rtt=10)
    [2, 1]
    """
    sizes: list[set[object]] = []
    start: Fraction | None = None
    for time, flow in sorted(losses, key=lambda loss: Fraction(loss[0])):
        if start is None or start + Fraction(rtt) < Fraction(time):
            start = Fraction(time)
            sizes.append(set())
        sizes[-1].add(flow)
    return [len(losing) for losing in sizes]


def sender_losses(packets: pl.DataFrame) -> pl.DataFrame:
    """Return each retransmission in a sender's capture, with the time when the lost copy was sent.

    A retransmission is a data segment that starts below the highest sequence number sent before.
    One-byte probes below that are keep-alives and left out.

    Parameters
    ----------
    packets
        Rows of ``packets``, captured at the sender.

    Returns
    -------
    polars.DataFrame
        ``input``, ``flow``, ``direction``, ``time_ns`` (of the retransmission), ``lost_ns`` (of the
        copy before it; null where that one had other bounds), ``segments``, ``payload_bytes``.
    """
    import polars as pl

    flow = ["input", "flow", "direction"]
    end = pl.col("seq") + pl.col("payload_bytes").cast(pl.Int64)
    highest = pl.col("end").cum_max().shift(1).over(flow)
    return (
        packets.lazy()
        .filter(pl.col("payload_bytes") > 0, pl.col("seq").is_not_null())
        .with_columns(
            pl.col("direction").cast(pl.String), end.alias("end"), pl.col("time").cast(pl.Int64).alias("time_ns")
        )
        .sort("time_ns", maintain_order=True)
        .with_columns(
            (pl.col("seq") < highest).fill_null(value=False).alias("again"),
            pl.col("time_ns").shift(1).over([*flow, "seq", "end"]).alias("lost_ns"),
            (end == highest).alias("at_edge"),
        )
        .filter(pl.col("again") & ~((pl.col("payload_bytes") == 1) & pl.col("at_edge")))
        .select(
            *flow,
            "time_ns",
            "lost_ns",
            pl.col("segments").cast(pl.Int64).clip(1),
            pl.col("payload_bytes").cast(pl.Int64),
        )
        .collect()
    )


def reported_duplicates(packets: pl.DataFrame) -> pl.DataFrame:
    """Return the bytes that receivers reported as received twice, by DSACK (RFC 2883).

    The first SACK block is a duplicate's if it lies at or below the cumulative ACK, or within the
    second block.

    Returns
    -------
    polars.DataFrame
        ``input``, ``flow``, ``direction`` (of the data), ``duplicate_bytes``.
    """
    import polars as pl

    turned = pl.when(pl.col("direction").cast(pl.String) == "a2b").then(pl.lit("b2a")).otherwise(pl.lit("a2b"))
    left, right = pl.col("sack").list.get(0, null_on_oob=True), pl.col("sack").list.get(1, null_on_oob=True)
    outer_left = pl.col("sack").list.get(2, null_on_oob=True)
    outer_right = pl.col("sack").list.get(3, null_on_oob=True)
    below = right <= pl.col("ack")
    within = ((left >= outer_left) & (right <= outer_right)).fill_null(value=False)
    return (
        packets.lazy()
        .filter(pl.col("sack").is_not_null(), below | within)
        .group_by("input", "flow", turned.alias("direction"))
        .agg((right - left).clip(0).sum().alias("duplicate_bytes"))
        .collect()
    )


def loss(packets: pl.DataFrame, *, rtt_ns: int | None = None) -> pl.DataFrame:
    """Measure loss of each flow and direction from a sender's capture.

    Parameters
    ----------
    packets
        Rows of ``packets``, captured at the sender.
    rtt_ns
        One round-trip time, which joins losses into events; null leaves the events null.

    Returns
    -------
    polars.DataFrame
        ``input``, ``flow``, ``direction``, ``segments``, ``retransmitted``, ``spurious``,
        ``retransmission_ratio`` (upper bound), ``estimate``, ``evidence`` (``dsack`` or ``none``),
        ``events``, ``event_rate``.
    """
    import polars as pl

    flow = ["input", "flow", "direction"]
    again = sender_losses(packets)
    sent = (
        packets.filter(pl.col("payload_bytes") > 0)
        .with_columns(pl.col("direction").cast(pl.String))
        .group_by(flow)
        .agg(
            pl.col("segments").cast(pl.Int64).clip(1).sum().alias("segments"),
            pl.col("payload_bytes").max().alias("largest"),
        )
    )
    resent = again.group_by(flow).agg(
        pl.col("segments").sum().alias("retransmitted"),
        pl.col("payload_bytes").max().alias("mss"),
        pl.col("lost_ns").drop_nulls().alias("times"),
    )
    table = sent.join(resent, on=flow, how="left").join(reported_duplicates(packets), on=flow, how="left").sort(flow)
    rows = []
    for row in table.iter_rows(named=True):
        retransmitted = row["retransmitted"] or 0
        reported = row["duplicate_bytes"] or 0
        spurious = min(retransmitted, -(-reported // (row["mss"] or row["largest"])))
        found = loss_estimate(row["segments"], retransmitted, spurious)
        events = None if rtt_ns is None else loss_events(row["times"] or [], rtt=rtt_ns, packets=row["segments"])
        rows.append(
            (
                *(row[name] for name in flow),
                row["segments"],
                retransmitted,
                spurious,
                found.upper.value,
                found.estimate.value,
                "dsack" if spurious else "none",
                None if events is None else len(events.events),
                None if events is None else events.event_rate.value,
            )
        )
    names = ("segments", "retransmitted", "spurious")
    schema = {name: table.schema[name] for name in flow} | {
        **dict.fromkeys(names, pl.Int64()),
        "retransmission_ratio": pl.Float64(),
        "estimate": pl.Float64(),
        "evidence": pl.String(),
        "events": pl.Int64(),
        "event_rate": pl.Float64(),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")
