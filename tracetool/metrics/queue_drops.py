"""Queue drop ratio: packets that the bottleneck queue dropped over packets that reached it.

Every number carries its source, best first: ``router-counters``, ``two-captures`` (on both sides
of the queue, all traffic), ``endpoint-captures`` (sender and receiver: path loss of the captured
flows) and ``sender-capture`` (an estimate of path loss, never called a queue drop ratio).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from tracetool.measures import Measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

WRAP = 1 << 32


def queue_drop_ratio(dropped: int | None, forwarded: int | None) -> Measure:
    """Return drops over arrivals; null without arrivals or with a counter that went backwards.

    Parameters
    ----------
    dropped, forwarded
        Packets, or differences of a router's counters around the interval.

    References
    ----------
    RFC 7928 section 2.3; RFC 7680 section 4.1 (a ratio of an empty sample is undefined).

    Examples
    --------
    >>> queue_drop_ratio(1, 3).value, queue_drop_ratio(0, 0).reason
    (0.25, 'all-zero')
    """
    if dropped is None or forwarded is None or dropped < 0 or forwarded < 0:
        return Measure.undefined("no-input")
    arrived = dropped + forwarded
    return Measure(dropped / arrived) if arrived else Measure.undefined("all-zero")


def capture_drop_ratio(in_packets: int | None, out_packets: int | None) -> Measure:
    """Return the share of packets captured before a queue that were not captured behind it.

    Examples
    --------
    >>> capture_drop_ratio(1_000_000, 999_742).value
    0.000258
    """
    if in_packets is None or out_packets is None:
        return Measure.undefined("no-input")
    return queue_drop_ratio(in_packets - out_packets, out_packets)


def mark_ratio(marked: int | None, dropped: int | None, forwarded: int | None) -> Measure:
    """Return ECN marks over arrivals: marks are no drops and stand beside the drop ratio.

    Examples
    --------
    >>> mark_ratio(1, 1, 3).value
    0.25
    """
    if marked is None or dropped is None or forwarded is None or min(marked, dropped, forwarded) < 0:
        return Measure.undefined("no-input")
    arrived = dropped + forwarded
    return Measure(marked / arrived) if arrived else Measure.undefined("all-zero")


def counter_difference(readings: Sequence[int], *, reset: bool = False) -> int | None:
    """Return how far a counter ran from the first to the last reading.

    A step back is taken as the wrap of a 32-bit counter only where nothing speaks for a reset.

    Parameters
    ----------
    readings
        In order of time.
    reset
        A 64-bit counter of the same queue went backwards, so the queue was made anew.

    Returns
    -------
    int or None
        None where there is no difference to be had.

    Examples
    --------
    >>> counter_difference([2**32 - 1, 1]), counter_difference([5, 1], reset=True)
    (2, None)
    """
    if len(readings) < 2 or reset:
        return None
    total = 0
    for before, after in pairwise(readings):
        step = after - before
        if step < 0:
            # Certain only from the top quarter into the bottom quarter of 32 bits.
            if not (before < WRAP and before >= WRAP // 4 * 3 and after < WRAP // 4):
                return None
            step += WRAP
        total += step
    return total


def drops_from_counters(
    counters: pl.DataFrame, *, start_ns: int | None = None, end_ns: int | None = None
) -> pl.DataFrame:
    """Measure the drop ratio of each queue from polled router counters.

    The readings used are the last one at or before the interval's start and the first one at or
    after its end, so that the interval lies within them (the outermost ones where the log is
    shorter). Linux counts a packet as sent when it leaves the queue, so sent excludes dropped.

    Parameters
    ----------
    counters
        Rows of ``queue_counters``.
    start_ns, end_ns
        The interval; null is unbounded.

    Returns
    -------
    polars.DataFrame
        ``input``, ``device``, ``handle``, ``parent``, ``kind``, ``is_root``, ``dropped``, ``forwarded``, ``marked``,
        ``value``, ``reason``, ``mark_ratio``, ``source``, ``start_ns``, ``end_ns``.
    """
    import polars as pl

    rows = []
    keys = ["input", "device", "handle", "parent", "kind", "is_root"]
    ordered = counters.with_columns(pl.col("time").cast(pl.Int64).alias("time_ns")).sort("time_ns", maintain_order=True)
    for key, queue in ordered.group_by(keys, maintain_order=True):
        around = _around(queue, start_ns, end_ns)
        sent = around["sent_bytes"].to_list()
        reset = any(after < before for before, after in pairwise(sent))
        dropped = counter_difference(around["dropped_packets"].to_list(), reset=reset)
        forwarded = counter_difference(around["sent_packets"].to_list(), reset=reset)
        marks = around["marked_packets"].to_list()
        marked = None if None in marks else counter_difference(marks, reset=reset)
        ratio, mark = queue_drop_ratio(dropped, forwarded), mark_ratio(marked, dropped, forwarded)
        span = (around["time_ns"].first(), around["time_ns"].last())
        rows.append((*key, dropped, forwarded, marked, ratio.value, ratio.reason, mark.value, "router-counters", *span))
    schema = {
        **dict.fromkeys(("input", "device", "handle", "parent", "kind"), pl.String),
        "is_root": pl.Boolean,
        **dict.fromkeys(("dropped", "forwarded", "marked"), pl.Int64),
        "value": pl.Float64,
        "reason": pl.String,
        "mark_ratio": pl.Float64,
        "source": pl.String,
        "start_ns": pl.Int64,
        "end_ns": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def bottleneck_queues(queues: pl.DataFrame) -> pl.DataFrame:
    """Return the queues of the device that dropped most, without a root that repeats what its children count.

    Parameters
    ----------
    queues
        What `drops_from_counters` returns.
    """
    import polars as pl

    if queues.is_empty():
        return queues
    totals = queues.group_by("device").agg(pl.col("dropped").sum(), pl.col("forwarded").sum())
    device = totals.sort("dropped", "forwarded", "device", descending=True)["device"][0]
    own = queues.filter(pl.col("device") == device)
    leaves = own.filter(~pl.col("is_root"))
    return leaves if len(leaves) else own


def _around(queue: pl.DataFrame, start_ns: int | None, end_ns: int | None) -> pl.DataFrame:
    """Return the readings from the last before the interval to the first after it."""
    times = queue["time_ns"].to_list()
    first = max((i for i, time in enumerate(times) if start_ns is not None and time <= start_ns), default=0)
    last = min((i for i, time in enumerate(times) if end_ns is not None and time >= end_ns), default=len(times) - 1)
    return queue.slice(first, last - first + 1)


#: What makes one packet recognisable on both sides of a queue.
MATCH = ("src", "dst", "protocol", "ip_id", "seq", "ack", "tsval", "payload_bytes", "flags")


def drops_from_captures(
    before: pl.DataFrame, after: pl.DataFrame, *, source: str = "endpoint-captures"
) -> pl.DataFrame:
    """Measure the drop ratio from captures on both sides of a queue, packet by packet.

    A packet is the same on both sides if addresses, ports, IP identification, sequence numbers,
    TSval, length and flags agree; the k-th of several equal ones matches the k-th. Packets that
    left after the last one that arrived are ignored: they may still be queued. Where frames are
    merged by offloads on either side, matching is impossible and wire segments are counted.

    Parameters
    ----------
    before, after
        Packets towards the queue: ``time_ns``, ``segments`` and the columns of `MATCH`.
    source
        ``two-captures`` where they stand right at the queue and hold all traffic.

    Returns
    -------
    polars.DataFrame
        One row: ``arrived``, ``dropped``, ``value``, ``reason``, ``source``, ``method`` (``matched``
        or ``counted``), ``unseen`` (captured behind the queue only: the first capture lost them).
    """
    import polars as pl

    schema = {
        "arrived": pl.Int64,
        "dropped": pl.Int64,
        "value": pl.Float64,
        "reason": pl.String,
        "source": pl.String,
        "method": pl.String,
        "unseen": pl.Int64,
    }
    row: tuple[object, ...]
    if _merged(before) or _merged(after):
        arrived, left = (int(side["segments"].clip(1).sum()) for side in (before, after))
        measure = capture_drop_ratio(arrived, left)
        row = (arrived, arrived - left, measure.value, measure.reason, source, "counted", None)
        return pl.DataFrame([row], schema=schema, orient="row")
    found = matched(before, after)
    survived = found.filter(pl.col("arrived"))
    if survived.is_empty():
        reason = "all-zero" if found.is_empty() else "no-input"
        row = (len(found), None, None, reason, source, "matched", len(after))
        return pl.DataFrame([row], schema=schema, orient="row")
    settled = found.filter(pl.col("time_ns") <= survived["time_ns"].max())
    kept = len(survived)
    measure = capture_drop_ratio(len(settled), kept)
    row = (len(settled), len(settled) - kept, measure.value, measure.reason, source, "matched", len(after) - kept)
    return pl.DataFrame([row], schema=schema, orient="row")


def _merged(side: pl.DataFrame) -> bool:
    """Say whether offloads have merged segments into super-frames."""
    return bool((side["segments"] > 1).any())


def matched(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Return the packets of the first capture with a column ``arrived``: seen in the second too."""
    import polars as pl

    nth = pl.int_range(pl.len()).over(MATCH).alias("nth")
    other = (
        after.sort("time_ns", maintain_order=True).select(*MATCH).with_columns(nth, pl.lit(value=True).alias("arrived"))
    )
    return (
        before.sort("time_ns", maintain_order=True)
        .with_columns(nth)
        .join(other, on=[*MATCH, "nth"], how="left", nulls_equal=True, maintain_order="left")
        .with_columns(pl.col("arrived").fill_null(value=False))
        .drop("nth")
    )
