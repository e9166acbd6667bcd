"""The queue between two captures: how long packets waited, and which never came out.

A packet is the same on both sides if addresses, sequence numbers, IP identification and length agree. The time between
the two sightings, less the smallest of all, is its queueing delay, whatever the clocks' offset. With a
router's counters, polled now and then, the backlog at each poll is known instead, and what was sent, dropped and marked
between two of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tracetool.errors import NothingMatchedError
from tracetool.metrics.queue_drops import bottleneck_queues, drops_from_counters
from tracetool.report.figure import Axis, Events, Figure, Panel, Series, Style, floats, frames, seconds_after
from tracetool.report.selection import PACKET_COLUMNS, capture_of, rows, short_names
from tracetool.report.tracks import flow_style, start_of, track, value_axis

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tracetool.dataset import Dataset
    from tracetool.reconstruct.connections import Connection
    from tracetool.report.figure import FloatArray

MS, KB = 1e-6, 1e-3
KEY = ("flow", "seq", "ip_id", "payload_bytes", "tsval")
"""What makes a packet the same on both sides."""


def queue_figure(before: pl.DataFrame, after: pl.DataFrame, names: dict[int, str], *, log: bool = False) -> Figure:
    """Return the queueing delay of each packet against the time it was sent, and the packets that were lost.

    Parameters
    ----------
    before, after
        Rows of `packets` with payload, captured before and behind the queue; `flow` is the same number in both.
    names
        Name of each flow.
    log
        Logarithmic delay axis.

    Raises
    ------
    NothingMatchedError
        If no packet was seen on both sides.
    """
    origin = start_of(before)
    found = matched(before, after)
    seen = found.filter(pl.col("arrival").is_not_null())
    if not len(seen):
        raise NothingMatchedError("no packet was seen on both sides of the queue")
    transit = (seen["arrival"] - seen["time"]).dt.total_nanoseconds()
    seen = seen.with_columns(delay=transit - transit.min())
    series, lost = [], []
    last = seen["time"].max()
    for slot, flow in enumerate(sorted(names)):
        own = seen.filter(pl.col("flow") == flow)
        if len(own):
            x = seconds_after(origin, own["time"])
            series.append(
                Series(
                    names[flow], "points", x, floats(own["delay"]) * MS, flow_style(slot), frame=frames(own["frame"])
                )
            )
    # What left after the last packet that arrived may still be on its way.
    gone = found.filter(pl.col("arrival").is_null() & (pl.col("time") <= last))
    if len(gone):
        x = seconds_after(origin, gone["time"])
        details = tuple(names.get(flow, "") for flow in gone["flow"])
        lost.append(Events("lost", x, Style(1, 0, "L"), np.zeros(len(x)), details=details, frame=frames(gone["frame"])))
    share = len(gone) / len(found) if len(found) else 0.0
    return Figure(
        title="queueing delay between two captures",
        subtitle=f"{len(found):,} packets, {len(gone):,} lost ({share:.3%}), one-way times less the smallest",
        x=Axis("time since first packet", "s"),
        panels=(Panel(value_axis("queueing delay", "ms", log=log), tuple(series), tuple(lost)),),
        origin_ns=origin,
    )


def matched(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Return the packets of `before` with ``arrival``, the time of the same packet in `after`; null if it never came.

    The k-th of several equal packets matches the k-th.
    """
    nth = pl.int_range(pl.len()).over(*KEY)
    first = before.filter(pl.col("payload_bytes") > 0).sort("time", maintain_order=True).with_columns(nth=nth)
    second = after.filter(pl.col("payload_bytes") > 0).sort("time", maintain_order=True).with_columns(nth=nth)
    other = second.select(*KEY, "nth", arrival="time")
    return first.join(other, on=[*KEY, "nth"], how="left", nulls_equal=True, maintain_order="left")


def queue_counters_figure(counters: pl.DataFrame, *, log: bool = False) -> Figure:
    """Return the backlog of the bottleneck's queues at each poll, and the drops and the rate between polls.

    The queues are those of the device that dropped most; a root that repeats what its children count is left out.

    Parameters
    ----------
    counters
        Rows of `queue_counters`.
    log
        Logarithmic backlog axis.

    Raises
    ------
    NothingMatchedError
        If no queue was polled twice.

    Examples
    --------
    >>> from datetime import datetime
    >>> queue = {"input": "r", "device": "eth1", "kind": "tbf", "handle": "1:", "parent": "root", "is_root": True}
    >>> polls = [
    ...     queue | {"time": datetime(2026, 1, 1, 0, 0, s), "sent_bytes": 125_000 * s, "sent_packets": 100 * s}
    ...     | {"dropped_packets": 3 * s, "backlog_bytes": 1500 * s, "marked_packets": None}
    ...     for s in (0, 1, 2)
    ... ]
    >>> figure = queue_counters_figure(pl.DataFrame(polls))
    >>> [(panel.y.title, panel.series[0].y.tolist()) for panel in figure.panels]  # doctest: +NORMALIZE_WHITESPACE
    [('backlog (kB)', [0.0, 1.5, 3.0]), ('drops and marks (packets/s)', [3.0, 3.0, 3.0]),
     ('rate (Mbit/s)', [1.0, 1.0, 1.0])]
    """
    found = bottleneck_queues(drops_from_counters(counters))
    origin = start_of(counters)
    backlog: list[Series] = []
    lost: list[Series] = []
    rates: list[Series] = []
    totals = []
    keys = ("input", "device", "handle", "parent")
    names = _queue_names(found)
    for slot, queue in enumerate(found.iter_rows(named=True)):
        polls = counters.filter(*(pl.col(key) == queue[key] for key in keys)).sort("time", maintain_order=True)
        if len(polls) < 2 or not polls["sent_packets"].max():
            continue
        x, name, style = seconds_after(origin, polls["time"]), names[slot], flow_style(slot)
        backlog += track(polls, origin, "backlog_bytes", name, style, kind="line", factor=KB)
        several = f", {name}" if len(found) > 1 else ""
        for column, word, kind_style in (
            ("dropped_packets", "dropped", Style(1 + slot, 2 * slot, "Dd"[slot % 2])),
            ("marked_packets", "marked CE", Style(4 + slot, 2 * slot + 1, "Mm"[slot % 2])),
        ):
            if polls[column].count():
                lost.append(Series(f"{word}{several}", "step", x, _rate(x, floats(polls[column])), kind_style))
        rates.append(Series(name, "step", x, _rate(x, floats(polls["sent_bytes"])) * 8e-6, style))
        totals.append((name, queue))
    if not totals:
        raise NothingMatchedError("a queue's counters need at least two polls of a queue that sent something")
    panels = (
        Panel(value_axis("backlog", "kB", log=log), tuple(backlog), weight=1.4),
        Panel(value_axis("drops and marks", "packets/s"), tuple(lost)),
        Panel(value_axis("rate", "Mbit/s"), tuple(rates)),
    )
    return Figure(
        title=f"the queue on {totals[0][1]['device']}",
        subtitle="; ".join(_totals_words(name, queue) for name, queue in totals[:4]),
        x=Axis("time since first poll", "s"),
        panels=tuple(panel for panel in panels if panel.series),
        origin_ns=origin,
    )


def _queue_names(queues: pl.DataFrame) -> list[str]:
    several = queues["input"].n_unique() > 1
    return [
        f"{queue['kind']} {queue['handle']}" + (f" ({queue['input']})" if several else "")
        for queue in queues.iter_rows(named=True)
    ]


def _rate(x: FloatArray, counter: FloatArray) -> FloatArray:
    """Return counts per second from each poll to the next, the last held; unknown where a counter went backwards."""
    steps, spans = np.diff(counter), np.diff(x)
    rate = np.full(len(steps), np.nan)
    np.divide(steps, spans, out=rate, where=(spans > 0) & (steps >= 0))
    return np.append(rate, rate[-1:])


def _totals_words(name: str, queue: dict[str, Any]) -> str:
    if queue["value"] is None:
        return f"{name} drops unknown"
    marked = f", {queue['marked']:,} marked" if queue["marked"] else ""
    arrived = queue["dropped"] + queue["forwarded"]
    return f"{name} {queue['dropped']:,} of {arrived:,} packets dropped ({queue['value']:.3%}){marked}"


def build(dataset: Dataset, connections: Sequence[Connection], **options: Any) -> Figure:
    """Return the delay between the sender's and the receiver's capture, else what a router's counters tell.

    Options are those of `queue_figure`.
    """
    pairs = [
        (capture_of(connection, "sender"), capture_of(connection, "receiver"))
        for connection in connections
        if sum(part.row.get("stream") is not None for part in connection.parts) > 1
    ]
    pairs = [(one, other) for one, other in pairs if one.parts[0].input != other.parts[0].input]
    if not pairs:
        counters = dataset.read("queue_counters")
        if not len(counters):
            raise NothingMatchedError(
                "a queue needs captures on both sides of it (the sender's and the receiver's), "
                "or a router's counters (tc -s qdisc, polled)"
            )
        return queue_counters_figure(counters, **options)
    before = rows(dataset, "packets", [one for one, _ in pairs], columns=PACKET_COLUMNS)
    after = rows(dataset, "packets", [other for _, other in pairs], columns=PACKET_COLUMNS)
    return queue_figure(before, after, short_names(dataset, [one for one, _ in pairs]), **options)
