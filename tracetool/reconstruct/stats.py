"""Totals of each flow and direction of a batch, as rows of `flow_stats`: what tcptrace tells, and more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from tracetool import tables
from tracetool.kernels import flow_totals, track, track_window
from tracetool.reconstruct.batch import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tracetool.reconstruct.batch import Batch
    from tracetool.reconstruct.tracking import Tracked

    Ints = npt.NDArray[np.int64]

BITS, SECOND, US = 8, 1_000_000_000, 1_000


class Counted(NamedTuple):
    """What was counted and timed of the flows of one batch: not yet in columns of `flow_stats`.

    Attributes
    ----------
    flows
        Their numbers.
    totals
        ``(2 * flows, TOTALS)``, see `kernels.flow_totals`.
    tracked
        ``(2 * flows, TOTALS)``, see `kernels.track`.
    window
        ``(2 * flows, FIELDS)``, see `kernels.track_window`.
    span
        Nanoseconds from the first packet of each flow to the last.
    handshake
        ``(2 * flows)``: nanoseconds, -1 unknown.
    rtt_at, rtt, rtt_full
        Of each RTT sample: ``2 * flow + direction``, nanoseconds, and whether a full segment was timed.
    """

    flows: Ints
    totals: Ints
    tracked: Ints
    window: npt.NDArray[np.float64]
    span: Ints
    handshake: Ints
    rtt_at: Ints
    rtt: Ints
    rtt_full: npt.NDArray[np.bool_]


def counted(batch: Batch, tracked: Tracked) -> Counted:
    """Count what `flow_stats` tells of the flows of a batch.

    Parameters
    ----------
    batch
        Packets of whole flows.
    tracked
        What the kernels found in them. Frames captured twice are left out.
    """
    flows = len(batch.flows)
    copy, skip = tracked.copy.view(np.uint8), tracked.skip.view(np.uint8)
    totals = np.zeros((flows, 2, flow_totals.TOTALS), np.int64)
    flow_totals.flow_totals(
        batch.bounds, batch.way, batch.time, batch.ack, batch.payload, batch.segments, batch.flags, batch.window,
        batch.frame_bytes, batch.captured, batch.ecn, batch.sack_at, batch.sacks, copy, tracked.kind, tracked.trigger,
        tracked.again, tracked.again_segments, tracked.missing, tracked.marks, totals,
    )  # fmt: skip
    span = np.zeros(flows, np.int64)
    flow_totals.spans(batch.bounds, batch.time, copy, span)
    window = np.zeros((flows, 2, track_window.FIELDS))
    track_window.measure_window(
        batch.bounds, batch.time, batch.way, batch.seq, batch.ack, batch.payload, batch.flags, skip, window
    )
    at = np.flatnonzero((tracked.rtt >= 0) & ~tracked.copy)
    return Counted(
        batch.flows,
        totals.reshape(2 * flows, -1),
        tracked.totals.reshape(2 * flows, -1),
        window.reshape(2 * flows, -1),
        span,
        tracked.handshake.reshape(-1),
        2 * batch.flow[at] + 1 - batch.way[at],
        tracked.rtt[at],
        tracked.rtt_full[at],
    )


def payload_bytes(batch: Batch) -> Ints:
    """Bytes of payload of each flow and direction, those of copies, too: ``(flows, 2)``."""
    out = np.zeros((len(batch.flows), 2), np.int64)
    flow_totals.payload_bytes(batch.bounds, batch.way, batch.payload, out)
    return out


def flow_stats(parts: Sequence[Counted], flows: pl.DataFrame) -> pl.DataFrame:
    """Two rows for each flow of some batches: a2b and b2a.

    Parameters
    ----------
    parts
        What was counted of each batch.
    flows
        Rows of the table `flows` for the flows of all batches in turn, with their vantage.

    Returns
    -------
    polars.DataFrame
        Columns of `flow_stats` without `input`, `cc` and `cc_confidence`; what only TCP has is null for other
        protocols.

    Examples
    --------
    >>> flow_stats([counted(batch, tracked)], rows)["retransmitted_segments"].to_list()  # doctest: +SKIP
    [29, 0]
    """
    before = np.cumsum([0, *(2 * len(part.flows) for part in parts)]).tolist()
    moved = [part._replace(rtt_at=part.rtt_at + start) for part, start in zip(parts, before, strict=False)]
    all_ = Counted._make(np.concatenate(columns) for columns in zip(*moved, strict=True))
    rows = (
        _kernel_totals(all_)
        .hstack(_totals(all_.totals))
        .join(_asked(flows), ["at", "way"])
        .join(_spread(all_), ["at", "way"], how="left")
        .sort("at", "way")
    )
    return _derived(rows)


#: Columns of `kernels.flow_totals` that are columns of `flow_stats`, and those that may be unknown.
_TOTALS = {
    name.lower(): getattr(flow_totals, name)
    for name in (
        "PACKETS", "RESETS_SENT", "ACK_PACKETS", "PURE_ACKS", "SACK_PACKETS", "DSACK_PACKETS", "DATA_PACKETS",
        "DATA_BYTES", "DATA_SEGMENTS", "MISSING", "RETRANSMITTED_PACKETS", "RETRANSMITTED_SEGMENTS",
        "RETRANSMITTED_BYTES", "SPURIOUS_SEGMENTS", "FAST_RETRANSMISSIONS", "RTO_RETRANSMISSIONS", "TAIL_LOSS_PROBES",
        "OUT_OF_ORDER_PACKETS", "WINDOW_PROBES", "WINDOW_PROBE_BYTES", "KEEP_ALIVES", "PUSH_PACKETS", "URGENT_PACKETS",
        "SYN_PACKETS", "FIN_PACKETS", "ZERO_WINDOWS", "TRUNCATED_BYTES", "TRUNCATED_PACKETS", "CE_PACKETS",
        "ECE_PACKETS", "CWR_PACKETS", "DUPLICATE_ACKS", "TRIPLE_DUPLICATE_ACKS", "MISSING_OTHER",
    )
}  # fmt: skip
_EXTREMES = {
    name.lower(): getattr(flow_totals, name)
    for name in ("MAX_SEGMENT_BYTES", "MIN_SEGMENT_BYTES", "MAX_WINDOW_BYTES", "MIN_WINDOW_BYTES")
}


def _totals(counts: Ints) -> pl.DataFrame:
    """What was added up packet by packet, for both directions of each flow in turn."""
    totals = counts.T
    packets, data, windows = (totals[k] for k in (flow_totals.PACKETS, flow_totals.DATA_PACKETS, flow_totals.WINDOWS))
    return pl.DataFrame(
        {
            **{name: totals[at] for name, at in _TOTALS.items()},
            **{name: _where(totals[at] >= 0, totals[at]) for name, at in _EXTREMES.items()},
            "max_sack_blocks": _where(packets > 0, totals[flow_totals.MAX_SACK_BLOCKS]),
            "mean_window_bytes": _where(windows > 0, totals[flow_totals.WINDOW_SUM] / np.maximum(windows, 1)),
            "data_transmit_ns": _where(data > 0, totals[flow_totals.LAST_DATA] - totals[flow_totals.FIRST_DATA]),
            "idle_max_ns": _where(packets > 1, totals[flow_totals.IDLE_MAX]),
        }
    )


def _where(known: npt.NDArray[np.bool_], values: npt.NDArray[Any]) -> pl.Series:
    """Values, null where they are not known."""
    return pl.DataFrame({"value": values, "known": known}).select(pl.when("known").then("value")).to_series()


def _spread(counted: Counted) -> pl.DataFrame:
    """RTT samples of each direction's data."""
    frame = pl.DataFrame({"of": counted.rtt_at, "rtt": counted.rtt, "full": counted.rtt_full})
    rtt, full = pl.col("rtt"), pl.col("rtt").filter(pl.col("full"))
    spread = frame.group_by("of").agg(*_described(rtt, "rtt"), *_described(full, "rtt_full"))
    return spread.with_columns(at=pl.col("of") // 2, way=(pl.col("of") % 2).cast(pl.UInt8)).drop("of")


def _described(values: pl.Expr, name: str) -> list[pl.Expr]:
    return [
        values.len().cast(pl.Int64).alias(f"{name}_samples"),
        values.min().alias(f"{name}_min_ns"),
        values.max().alias(f"{name}_max_ns"),
        values.mean().alias(f"{name}_mean_ns"),
        values.std().alias(f"{name}_stdev_ns"),
    ]


def _kernel_totals(counted: Counted) -> pl.DataFrame:
    flows = len(counted.flows)
    levels, totals, span = counted.window, counted.tracked, counted.span
    sent = levels[:, track_window.COUNT]
    whole = np.clip(levels, -(2.0**62), 2.0**62).astype(np.int64)  # times at the ends of 64 bits
    return pl.DataFrame(
        {
            "at": np.repeat(np.arange(flows), 2),
            "flow": np.repeat(counted.flows.astype(np.int32), 2),
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
            "rtt_handshake_ns": counted.handshake,
        }
    )


def _asked(flows: pl.DataFrame) -> pl.DataFrame:
    """What each side asked for in its SYN, from `flows`."""
    return pl.concat(
        flows.select(
            pl.int_range(pl.len(), dtype=pl.Int64).alias("at"),
            pl.lit(way, pl.UInt8).alias("way"),
            (pl.col("protocol") == "tcp").alias("tcp"),
            pl.col(f"window_scale_{side}").alias("window_scale"),
            pl.col(f"mss_{side}_bytes").alias("mss_requested_bytes"),
            "sack_permitted",
            "timestamps",
            "vantage",
        )
        for way, side in enumerate("ab")
    )


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
    # A clock that goes back, or sequence numbers without sense, make times and lengths below zero: nobody knows them.
    may_be_null = {column["name"] for column in tables.definition("flow_stats")["columns"] if column.get("nullable")}
    numbers = [name for name, kind in made.schema.items() if kind.is_numeric() and name in may_be_null]
    made = made.with_columns(pl.when(col(name) >= 0).then(col(name)).alias(name) for name in numbers)
    return made.with_columns(
        pl.when("tcp").then(col(c)).alias(c) for c in made.columns if c not in _ANY and c not in _HELPERS
    ).drop("at", "way", "tcp")


def _deviation(total: pl.Expr, squares_us: pl.Expr, count: pl.Expr) -> pl.Expr:
    """Standard deviation of a sample from its sums."""
    mean_us = total / US / count
    return pl.when(count > 1).then((((squares_us - count * mean_us**2) / (count - 1)).clip(0)).sqrt() * US)


def _ratio(above: pl.Expr, below: pl.Expr) -> pl.Expr:
    return pl.when(below > 0).then(above.cast(pl.Float64) / below)
