"""What a sender's capture shows of the path: round-trip times, retransmissions, a loss estimate, reordering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracetool.metrics.latency import percentile
from tracetool.metrics.loss import loss
from tracetool.metrics.reordering import reordering
from tracetool.metrics.reordering_by_sack import reordering_by_sack
from tracetool.metrics.rtt import rtt_data_ack

if TYPE_CHECKING:
    import polars as pl

    from tracetool.experiments.contenders import Contenders
    from tracetool.metrics.intervals import Interval


@dataclass(frozen=True, slots=True)
class SenderView:
    """The path as the senders saw it, over all measured flows; null with ``no-input`` without their capture.

    Parameters
    ----------
    rtt_min_s, rtt_mean_s, rtt_p95_s
        Of the samples from data and its ACK, in seconds.
    retransmission_ratio, loss_estimate
        Retransmitted over sent segments, and the same without those shown to be spurious.
    """

    rtt_min_s: float | None = None
    rtt_mean_s: float | None = None
    rtt_p95_s: float | None = None
    retransmission_ratio: float | None = None
    loss_estimate: float | None = None


def sender_view(packets: pl.DataFrame, who: Contenders, span: Interval) -> SenderView:
    """Measure the path from a sender's capture.

    Parameters
    ----------
    packets
        All its packets.
    who
        Its measured flows.
    span
        The interval, by its clock.
    """
    import polars as pl

    inside = packets.filter(pl.col("time").cast(pl.Int64).is_between(span.start_ns, span.end_ns, closed="left"))
    flows = who.flows.filter(pl.col("flow").is_not_null())
    samples = np.sort(np.concatenate([np.empty(0, np.int64), *_samples(inside, flows)]))
    lost = loss(inside).join(flows.select("input", "flow", "direction"), on=["input", "flow", "direction"])
    sent, again, spurious = (int(lost[name].sum()) for name in ("segments", "retransmitted", "spurious"))
    if samples.size == 0:
        least = mean = high = None
    else:
        least, mean = int(samples[0]) / 1e9, float(samples.mean()) / 1e9
        high = (percentile(samples.tolist(), 0.95).value or 0) / 1e9
    if sent == 0:
        return SenderView(least, mean, high)
    return SenderView(least, mean, high, again / sent, max(0, again - spurious) / sent)


def _samples(packets: pl.DataFrame, flows: pl.DataFrame) -> list[np.ndarray]:
    """Return the RTT samples of each measured TCP flow."""
    import polars as pl

    found = []
    for row in flows.filter(pl.col("protocol") == "tcp").iter_rows(named=True):
        own = packets.filter(pl.col("input") == row["input"], pl.col("flow") == row["flow"])
        forward = pl.col("direction").cast(pl.String) == row["direction"]
        data = forward & (pl.col("payload_bytes") > 0)
        own = own.filter(data | (~forward & pl.col("ack").is_not_null())).sort("time", maintain_order=True)
        ends = own.select(
            is_ack=~forward,
            time=pl.col("time").cast(pl.Int64),
            start=pl.col("seq").fill_null(0),
            end=pl.when(forward).then(pl.col("seq") + pl.col("payload_bytes")).otherwise(pl.col("ack")),
        )
        is_ack, time, start, end = (ends[name].to_numpy() for name in ends.columns)
        found.append(np.array(rtt_data_ack(is_ack, time, start, end).samples_ns, np.int64))
    return found


def late_share(who: dict[str, Contenders], packets: pl.DataFrame | None) -> tuple[float | None, str]:
    """Return the share of reordered packets of the measured flows, and how it is known.

    A receiver's capture shows the arrivals; a sender's only what SACKs tell (a lower bound).
    """
    import polars as pl

    keys = ["input", "flow", "direction"]
    behind = next((where for where in ("receiver", "after") if where in who), None)
    if behind is not None:
        own = who[behind].packets.filter(pl.col("entity").is_not_null() & (pl.col("protocol").cast(pl.String) == "tcp"))
        found = reordering(own).select(n="packets", late="reordered")
        label = "RFC 4737"
    elif packets is not None and "sender" in who:
        flows = who["sender"].flows.select(keys)
        found = (
            reordering_by_sack(packets).drop_nulls("ratio").join(flows, on=keys).select(n="segments", late="reordered")
        )
        label = "by SACK, lower bound"
    else:
        return None, "none"
    n = int(found["n"].sum())
    return (int(found["late"].sum()) / n if n else None), label
