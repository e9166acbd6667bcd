"""Packet reordering by RFC 4737, from original transmissions only.

A retransmission is not reordering. At a receiver the send order is restored from sequence
numbers; a late segment counts as reordered only if its TSval is no later than that of the segment
that overtook it (without timestamps: if it comes within one round-trip time). A sender's capture
has nothing to measure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracetool.measures import Measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

FAST_RETRANSMIT_N = 3


@dataclass(frozen=True, slots=True)
class Reordering:
    """RFC 4737's metrics of one sequence of arrivals.

    Parameters
    ----------
    ratio
        Reordered over all arrivals.
    positions
        Arrivals (0-based, duplicates removed) that are reordered; the following lists run beside it.
    send_index, extent, late_time, byte_offset, n_reordering
        Of each reordered packet: its send index, by how many arrivals and how much time it is late,
        the payload that waits for it, and how many packets just before it were sent later.
    gaps
        Arrivals between successive reordering discontinuities.
    runs
        In-order packets before each reordered one.
    in_order_after
        In-order packets after the last reordered one.
    """

    ratio: Measure
    positions: list[int]
    send_index: list[int]
    extent: list[int]
    late_time: list[int] | None
    byte_offset: list[int]
    n_reordering: list[int]
    gaps: list[int]
    runs: list[int]
    in_order_after: int


def rfc4737(
    arrival: Sequence[int] | np.ndarray,
    *,
    dst_time: Sequence[int] | np.ndarray | None = None,
    payload_bytes: Sequence[int] | np.ndarray | None = None,
) -> Reordering:
    """Return the reordering metrics of packets in order of arrival.

    Parameters
    ----------
    arrival
        Send index of each arrival; of duplicates the first counts.
    dst_time
        Arrival times, in any integer unit.
    payload_bytes
        Payload of each arrival (default: 1, so that byte offsets count packets).

    References
    ----------
    RFC 4737 sections 3 to 5. Ratios divide by the number of packets, as its definitions do.

    Examples
    --------
    >>> rfc4737([1, 2, 4, 5, 3]).extent
    [2]
    """
    from tracetool.kernels import reordering as kernels

    indices, first = np.unique(np.asarray(arrival, np.int64), return_index=True)
    order = np.sort(first)
    sent = np.asarray(arrival, np.int64)[order]
    if sent.size == 0:
        return Reordering(Measure.undefined("no-flows"), [], [], [], None, [], [], [], [], 0)
    highest = np.maximum.accumulate(sent)
    late = sent < highest
    where = np.flatnonzero(late)
    # The running maximum never falls, so the first arrival that overtook a packet is found by bisection.
    overtaker = np.searchsorted(highest, sent[where], side="right")
    sizes = np.ones(sent.size, np.int64) if payload_bytes is None else np.asarray(payload_bytes, np.int64)[order]
    offsets, depth = np.empty(sent.size, np.int64), np.empty(sent.size, np.int64)
    kernels.byte_offset(np.searchsorted(indices, sent), sizes, offsets)
    kernels.n_reordering(sent, depth)
    times = None if dst_time is None else np.asarray(dst_time, np.int64)[order]
    new = np.flatnonzero(np.diff(np.maximum.accumulate(overtaker), prepend=-1) > 0)
    edges = np.concatenate(([-1], where))
    return Reordering(
        Measure(where.size / sent.size),
        where.tolist(),
        sent[where].tolist(),
        (where - overtaker).tolist(),
        None if times is None else (times[where] - times[overtaker]).tolist(),
        offsets[where].tolist(),
        depth[where].tolist(),
        np.diff(overtaker[new]).tolist(),
        (np.diff(edges) - 1).tolist(),
        int(sent.size - 1 - edges[-1]),
    )


def n_reordering_degree(found: Reordering, packets: int, n: int = FAST_RETRANSMIT_N) -> Measure:
    """Return the share of packets that are n-reordered; n = 3 is what trips fast retransmit.

    Examples
    --------
    >>> n_reordering_degree(rfc4737([1, 5, 6, 7, 2]), 5).value
    0.2
    """
    if packets == 0:
        return Measure.undefined("no-flows")
    return Measure(sum(depth >= n for depth in found.n_reordering) / packets)


@dataclass(frozen=True, slots=True)
class FreeRuns:
    """Reordering-free runs: how many (x), their packets (a), all packets (p), and Σ run² (q)."""

    x: int
    a: int
    p: int
    q: int
    mean: Measure
    q_over_a: Measure
    variation: Measure


def reordering_free_runs(runs: Sequence[int], *, in_order_after: int = 0) -> FreeRuns:
    """Return the statistics of runs of in-order packets between reordered ones.

    Parameters
    ----------
    runs
        In-order packets before each reordered packet; a run counts only when a reordered packet
        ends it.
    in_order_after
        The packets after the last one.

    References
    ----------
    RFC 4737 section 4.6.

    Examples
    --------
    >>> reordering_free_runs([1, 1, 31]).q
    963
    """
    x, a, q = len(runs), sum(runs), sum(run * run for run in runs)
    if x == 0 or a == 0:
        nothing = Measure.undefined("all-zero")
        return FreeRuns(x, a, a + x + in_order_after, q, nothing, nothing, nothing)
    return FreeRuns(x, a, a + x + in_order_after, q, Measure(a / x), Measure(q / a), Measure((q / a) / (a / x)))


def reordering(packets: pl.DataFrame, *, rtt_ns: int | None = None) -> pl.DataFrame:
    """Measure reordering of each TCP flow and direction in a receiver's capture.

    Parameters
    ----------
    packets
        Rows of ``packets``; or, where the send order is known from a second capture, rows with
        a column ``send_index``, which is then taken as it is.
    rtt_ns
        A round-trip time, to tell late originals from retransmissions without timestamps.

    Returns
    -------
    polars.DataFrame
        ``input``, ``flow``, ``direction``, ``packets`` (originals), ``reordered``, ``ratio``,
        ``reason``, ``max_extent``, ``mean_late_ns``, ``max_byte_offset``, ``three_reordered``,
        ``degree_3``.
    """
    import polars as pl

    flow = ["input", "flow", "direction"]
    rows = []
    ordered = (
        packets.filter(pl.col("payload_bytes") > 0)
        .with_columns(pl.col("direction").cast(pl.String), pl.col("time").cast(pl.Int64).alias("time_ns"))
        .sort("time_ns", maintain_order=True)
    )
    for key, data in ordered.group_by(flow, maintain_order=True):
        kept = data if "send_index" in data.columns else originals(data, rtt_ns)
        if kept.is_empty():
            continue
        index = "send_index" if "send_index" in kept.columns else "seq"
        found = rfc4737(
            kept[index].to_numpy(), dst_time=kept["time_ns"].to_numpy(), payload_bytes=kept["payload_bytes"].to_numpy()
        )
        late = found.late_time or []
        n = kept[index].n_unique()
        rows.append(
            (
                *key,
                n,
                len(found.positions),
                found.ratio.value,
                found.ratio.reason,
                max(found.extent, default=None),
                sum(late) / len(late) if late else None,
                max(found.byte_offset, default=None),
                sum(depth >= FAST_RETRANSMIT_N for depth in found.n_reordering),
                n_reordering_degree(found, n).value,
            )
        )
    schema = {name: ordered.schema[name] for name in flow} | {
        "packets": pl.Int64(),
        "reordered": pl.Int64(),
        "ratio": pl.Float64(),
        "reason": pl.String(),
        "max_extent": pl.Int64(),
        "mean_late_ns": pl.Float64(),
        "max_byte_offset": pl.Int64(),
        "three_reordered": pl.Int64(),
        "degree_3": pl.Float64(),
    }
    return pl.DataFrame(rows, schema=schema, orient="row").sort(flow)


def originals(data: pl.DataFrame, rtt_ns: int | None = None) -> pl.DataFrame:
    """Return one direction's segments without retransmissions, in order of arrival.

    Parameters
    ----------
    data
        Segments with payload of one flow and direction, in order of arrival: ``time_ns``, ``seq``,
        ``tsval``.
    rtt_ns
        As in `reordering`.
    """
    import polars as pl

    data = data.filter(pl.col("seq").is_not_null()).unique("seq", keep="first", maintain_order=True)
    if data.is_empty():
        return data
    seq, time = data["seq"].to_numpy(), data["time_ns"].to_numpy()
    highest = np.maximum.accumulate(seq)
    late = np.flatnonzero(seq < highest)
    overtaker = np.searchsorted(highest, seq[late], side="right")
    keep = np.ones(seq.size, np.bool_)
    if data["tsval"].null_count() == 0:
        tsval = data["tsval"].to_numpy()
        # 32-bit clocks wrap: the difference is taken modulo 2^32 (RFC 7323 section 5.2).
        keep[late] = ((tsval[late] - tsval[overtaker] + (1 << 31)) & 0xFFFFFFFF) <= (1 << 31)
    else:
        limit = 0 if rtt_ns is None else rtt_ns
        keep[late] = time[late] - time[overtaker] < limit
    return data.filter(pl.Series(keep))
