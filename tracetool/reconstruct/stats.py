"""Totals of each flow and direction of a batch, as rows of `flow_stats`: what tcptrace tells, and more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tracetool.kernels import track, track_acks, track_reasons, track_window
from tracetool.reconstruct.batch import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracetool.reconstruct.batch import Batch
    from tracetool.reconstruct.tracking import Tracked

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = 1, 2, 4, 8, 16, 32, 64, 128
CE = 3
BITS, SECOND, US = 8, 1_000_000_000, 1_000
KEYS = ("flow", "direction")


def flow_stats(batch: Batch, tracked: Tracked, flows: Sequence[dict[str, Any]], places: Sequence[str]) -> pl.DataFrame:
    """Two rows for each flow of a batch: a2b and b2a.

    Parameters
    ----------
    batch
        Packets of whole flows.
    tracked
        What the kernels found in them.
    flows
        Row of the table `flows` for each flow of the batch.
    places
        Vantage of each.

    Returns
    -------
    polars.DataFrame
        Columns of `flow_stats` without `input`, `cc` and `cc_confidence`. Frames captured twice are left out; what
        only TCP has is null for other protocols.

    Examples
    --------
    >>> flow_stats(batch, tracked, rows, ["sender"])["retransmitted_segments"].to_list()  # doctest: +SKIP
    [29, 0]
    """
    sent = _packets(batch, tracked)
    own = sent.group_by("at", "way").agg(_counted()).join(_acknowledged(batch, tracked), ["at", "way"], how="left")
    rows = (
        _kernel_totals(batch, tracked)
        .join(_asked(flows, places), ["at", "way"])
        .join(own, ["at", "way"], how="left")
        .sort("at", "way")
    )
    return _derived(rows)


def _packets(batch: Batch, tracked: Tracked) -> pl.DataFrame:
    edges = np.diff(batch.sack_at)
    sacks = np.append(batch.sacks, np.zeros(4, np.int64))  # room to look past the end
    first = batch.sack_at[:-1]
    left, right = sacks[first], sacks[first + 1]
    inside = (edges >= 4) & (left >= sacks[first + 2]) & (right <= sacks[first + 3])
    return pl.DataFrame(
        {
            "at": batch.flow,
            "way": batch.way,
            "time": batch.time,
            "seq": batch.seq,
            "payload": batch.payload,
            "segments": batch.segments,
            "flags": batch.flags,
            "window": batch.window,
            "raw": batch.window_raw,
            "cut": np.clip(batch.frame_bytes - batch.captured, 0, batch.payload),
            "ecn": batch.ecn,
            "blocks": edges // 2,
            "dsack": (edges >= 2) & (left < right) & ((right <= batch.ack) | inside),
            "kind": tracked.kind,
            "trigger": tracked.trigger,
            "again": tracked.again,
            "again_segments": tracked.again_segments,
            "missing": tracked.missing[:, 0],
            "marks": tracked.marks,
        }
    ).filter(~tracked.copy)


def _counted() -> list[pl.Expr]:
    col = pl.col
    flags, payload, segments = col("flags"), col("payload"), col("segments")
    data = payload > 0
    again = col("kind").is_in([track.RETRANSMISSION, track.SPURIOUS])

    def has(bit: int) -> pl.Expr:
        return flags & bit != 0

    def count(condition: pl.Expr) -> pl.Expr:
        return condition.sum().cast(pl.Int64)

    def again_for(trigger: int) -> pl.Expr:
        return col("again_segments").filter(again & (col("trigger") == trigger)).sum()

    ends = has(SYN) | has(FIN) | has(RST)
    wire = (payload + segments - 1) // segments
    window = col("window").filter(has(ACK) & ~has(SYN) & ~has(RST) & (col("window") >= 0))
    return [
        pl.len().cast(pl.Int64).alias("packets"),
        count(has(RST)).alias("resets_sent"),
        count(has(ACK)).alias("ack_packets"),
        count(has(ACK) & ~data & ~ends).alias("pure_acks"),
        count(col("blocks") > 0).alias("sack_packets"),
        count(col("dsack")).alias("dsack_packets"),
        col("blocks").max().alias("max_sack_blocks"),
        count(data).alias("data_packets"),
        payload.sum().alias("data_bytes"),
        segments.filter(data).sum().alias("data_segments"),
        col("missing").sum(),
        count(again).alias("retransmitted_packets"),
        col("again_segments").filter(again).sum().alias("retransmitted_segments"),
        col("again").filter(again).sum().alias("retransmitted_bytes"),
        col("again_segments").filter(col("kind") == track.SPURIOUS).sum().alias("spurious_segments"),
        again_for(track_reasons.FAST).alias("fast_retransmissions"),
        again_for(track_reasons.RTO).alias("rto_retransmissions"),
        again_for(track_reasons.TLP).alias("tail_loss_probes"),
        count(col("kind") == track.OUT_OF_ORDER).alias("out_of_order_packets"),
        count(col("kind") == track.WINDOW_PROBE).alias("window_probes"),
        payload.filter(col("kind") == track.WINDOW_PROBE).sum().alias("window_probe_bytes"),
        count(col("kind") == track.KEEP_ALIVE).alias("keep_alives"),
        count(has(PSH)).alias("push_packets"),
        count(has(URG)).alias("urgent_packets"),
        count(has(SYN)).alias("syn_packets"),
        count(has(FIN)).alias("fin_packets"),
        wire.filter(data).max().alias("max_segment_bytes"),
        wire.filter(data).min().alias("min_segment_bytes"),
        window.max().alias("max_window_bytes"),
        window.min().alias("min_window_bytes"),
        window.mean().alias("mean_window_bytes"),
        count(col("marks") & track_acks.ZERO_WINDOW != 0).alias("zero_windows"),
        col("cut").sum().alias("truncated_bytes"),
        count(col("cut") > 0).alias("truncated_packets"),
        (col("time").filter(data).max() - col("time").filter(data).min()).alias("data_transmit_ns"),
        col("time").diff().max().alias("idle_max_ns"),
        count(col("ecn") == CE).alias("ce_packets"),
        count(has(ECE) & ~has(SYN)).alias("ece_packets"),
        count(has(CWR) & ~has(SYN)).alias("cwr_packets"),
    ]


def _acknowledged(batch: Batch, tracked: Tracked) -> pl.DataFrame:
    """What the acknowledgements of the other side tell of a direction's data."""
    col = pl.col
    rtt, full = col("rtt").filter(col("rtt") >= 0), col("rtt").filter(col("full"))
    return (
        pl.DataFrame(
            {
                "at": batch.flow,
                "way": 1 - batch.way,
                "rtt": tracked.rtt,
                "full": tracked.rtt_full,
                "marks": tracked.marks,
                "missing_other": tracked.missing[:, 1],
            }
        )
        .filter(~tracked.copy)
        .group_by("at", "way")
        .agg(
            (col("marks") & track_acks.DUPLICATE != 0).sum().cast(pl.Int64).alias("duplicate_acks"),
            (col("marks") & track_acks.THIRD != 0).sum().cast(pl.Int64).alias("triple_duplicate_acks"),
            col("missing_other").sum(),
            *_spread(rtt, "rtt"),
            *_spread(full, "rtt_full"),
        )
    )


def _spread(values: pl.Expr, name: str) -> list[pl.Expr]:
    return [
        values.len().cast(pl.Int64).alias(f"{name}_samples"),
        values.min().alias(f"{name}_min_ns"),
        values.max().alias(f"{name}_max_ns"),
        values.mean().alias(f"{name}_mean_ns"),
        values.std().alias(f"{name}_stdev_ns"),
    ]


def _kernel_totals(batch: Batch, tracked: Tracked) -> pl.DataFrame:
    flows = len(batch.flows)
    window = np.zeros((flows, 2, track_window.FIELDS))
    track_window.measure_window(
        batch.bounds, batch.time, batch.way, batch.seq, batch.ack, batch.payload, batch.flags,
        tracked.skip.astype(np.uint8), window,
    )  # fmt: skip
    levels, totals = window.reshape(2 * flows, -1), tracked.totals.reshape(2 * flows, -1)
    time = batch.time[~tracked.copy]
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(~tracked.copy)])[batch.bounds]  # the first is no copy
    span = np.maximum.reduceat(time, bounds[:-1]) - np.minimum.reduceat(time, bounds[:-1])
    sent = levels[:, track_window.COUNT]
    whole = np.clip(levels, -(2.0**62), 2.0**62).astype(np.int64)  # times at the ends of 64 bits
    return pl.DataFrame(
        {
            "at": np.repeat(np.arange(flows), 2),
            "flow": np.repeat(batch.flows.astype(np.int32), 2),
            "way": np.tile(np.arange(2, dtype=np.uint8), flows),
            "duration_ns": np.repeat(span, 2),
            "unique": totals[:, track.UNIQUE],
            "timeouts": totals[:, track.TIMEOUTS],
            "segments_cum_acked": totals[:, track.CUM_ACKED],
            "ambiguous_acks": totals[:, track.AMBIGUOUS],
            "rtt_last_min_ns": totals[:, track.LAST_MIN],
            "rtt_last_max_ns": totals[:, track.LAST_MAX],
            "last_sum": totals[:, track.LAST_SUM],
            "last_squares": totals[:, track.LAST_SQUARES],
            "post_loss_acks": totals[:, track.POST_LOSS],
            "max_retransmissions": totals[:, track.MOST_RETRANSMISSIONS],
            "gaps": totals[:, track.GAPS],
            "retransmit_min_ns": totals[:, track.GAP_MIN],
            "retransmit_max_ns": totals[:, track.GAP_MAX],
            "gap_sum": totals[:, track.GAP_SUM],
            "gap_squares": totals[:, track.GAP_SQUARES],
            "max_owin_bytes": whole[:, track_window.MOST],
            "min_owin_bytes": whole[:, track_window.LEAST],
            "mean_owin_bytes": levels[:, track_window.SUM] / np.maximum(sent, 1),
            "byte_time": levels[:, track_window.BYTE_TIME],
            "initial_window_bytes": whole[:, track_window.INITIAL_BYTES],
            "initial_window_packets": whole[:, track_window.INITIAL_PACKETS],
            "syn_at": whole[:, track_window.SYN_AT],
            "fin_at": whole[:, track_window.FIN_AT],
            "rtt_handshake_ns": tracked.handshake.reshape(-1),
        }
    )


def _asked(flows: Sequence[dict[str, Any]], places: Sequence[str]) -> pl.DataFrame:
    """What each side asked for in its SYN, from `flows`."""
    rows = [
        {
            "at": at,
            "way": way,
            "tcp": row["protocol"] == "tcp",
            "window_scale": row[f"window_scale_{side}"],
            "mss_requested_bytes": row[f"mss_{side}_bytes"],
            "sack_permitted": row["sack_permitted"],
            "timestamps": row["timestamps"],
            "vantage": place,
        }
        for at, (row, place) in enumerate(zip(flows, places, strict=True))
        for way, side in enumerate("ab")
    ]
    kinds = {
        "at": pl.Int64, "way": pl.UInt8, "tcp": pl.Boolean, "window_scale": pl.UInt8, "mss_requested_bytes": pl.Int32,
        "sack_permitted": pl.Boolean, "timestamps": pl.Boolean, "vantage": pl.String,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=kinds)


#: Columns that hold for every protocol; the others are null unless it is TCP.
_ANY = frozenset(
    {
        "flow", "direction", "duration_ns", "packets", "data_packets", "data_bytes", "data_segments", "truncated_bytes",
        "truncated_packets", "data_transmit_ns", "idle_max_ns", "throughput_bps", "goodput_bps", "ce_packets",
        "max_segment_bytes", "min_segment_bytes", "mean_segment_bytes", "vantage",
    }
)  # fmt: skip
_HELPERS = (
    "at", "way", "tcp", "unique", "gaps", "gap_sum", "gap_squares", "last_sum", "last_squares", "byte_time", "syn_at",
    "fin_at", "missing_other", "sack_permitted", "timestamps", "missing",
)  # fmt: skip


def _may_be_unknown(name: str) -> bool:
    """Whether a column is null, not 0, where a direction has no packets."""
    counted = name.endswith(("_samples", "_retransmissions"))
    measured = name.startswith(("max_", "min_", "rtt_", "retransmit_")) and not counted
    return measured or name.endswith("_ns") or name in {"window_scale", "mss_requested_bytes"}


def _derived(rows: pl.DataFrame) -> pl.DataFrame:
    col = pl.col
    counters = [name for name, kind in rows.schema.items() if kind.is_integer() and not _may_be_unknown(name)]
    unique = pl.when("tcp").then("unique").otherwise("data_bytes")
    asked = col("syn_packets") > 0
    made = rows.with_columns(col(counters).fill_null(0)).with_columns(
        direction=pl.when(col("way") == 0).then(pl.lit(DIRECTIONS[0])).otherwise(pl.lit(DIRECTIONS[1])),
        unique_bytes=unique,
        lost_segments=(col("retransmitted_segments") - col("spurious_segments")),
        not_captured_bytes=col("missing") + col("missing_other"),
        mean_segment_bytes=_ratio(col("data_bytes"), col("data_segments")),
        sack_requested=pl.when(asked).then("sack_permitted"),
        timestamps_requested=pl.when(asked).then("timestamps"),
        stream_bytes=pl.when((col("syn_at") >= 0) & (col("fin_at") >= 0)).then(col("fin_at") - col("syn_at") - 1),
        throughput_bps=_ratio(unique.cast(pl.Float64) * (BITS * SECOND), col("duration_ns")),
        goodput_bps=_ratio(unique.cast(pl.Float64) * (BITS * SECOND), col("data_transmit_ns")),
        retransmit_stdev_ns=_deviation(col("gap_sum"), col("gap_squares"), col("gaps")),
        retransmit_mean_ns=_ratio(col("gap_sum"), col("gaps")),
        rtt_last_mean_ns=_ratio(col("last_sum"), col("ambiguous_acks")),
        rtt_last_stdev_ns=_deviation(col("last_sum"), col("last_squares"), col("ambiguous_acks")),
        rtt_last_min_ns=pl.when(col("ambiguous_acks") > 0).then("rtt_last_min_ns"),
        rtt_last_max_ns=pl.when(col("ambiguous_acks") > 0).then("rtt_last_max_ns"),
        weighted_owin_bytes=_ratio(col("byte_time"), col("duration_ns")),
        rtt_handshake_ns=pl.when(col("rtt_handshake_ns") >= 0).then("rtt_handshake_ns"),
        retransmit_min_ns=pl.when(col("gaps") > 0).then("retransmit_min_ns"),
        retransmit_max_ns=pl.when(col("gaps") > 0).then("retransmit_max_ns"),
        max_owin_bytes=pl.when(col("max_owin_bytes") > 0).then("max_owin_bytes"),
        min_owin_bytes=pl.when(col("min_owin_bytes") > 0).then("min_owin_bytes"),
    )
    made = made.with_columns(missed_bytes=col("stream_bytes") - col("unique_bytes")).drop(_HELPERS[3:])
    return made.with_columns(
        pl.when("tcp").then(col(c)).alias(c) for c in made.columns if c not in _ANY and c not in _HELPERS
    ).drop("at", "way", "tcp")


def _deviation(total: pl.Expr, squares_us: pl.Expr, count: pl.Expr) -> pl.Expr:
    """Standard deviation of a sample from its sums."""
    mean_us = total / US / count
    return pl.when(count > 1).then((((squares_us - count * mean_us**2) / (count - 1)).clip(0)).sqrt() * US)


def _ratio(above: pl.Expr, below: pl.Expr) -> pl.Expr:
    return pl.when(below > 0).then(above.cast(pl.Float64) / below)
