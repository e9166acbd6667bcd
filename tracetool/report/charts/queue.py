"""The queue between two captures: how long packets waited, and which never came out.

A packet is the same on both sides if addresses, sequence numbers, IP identification and length agree. The time between
the two sightings, less the smallest of all, is its queueing delay, whatever the clocks' offset. With a router's own log
the queue's length is known instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tracetool.errors import NothingMatchedError
from tracetool.report.figure import Axis, Events, Figure, Panel, Series, Style, floats, frames, seconds_after
from tracetool.report.selection import PACKET_COLUMNS, capture_of, rows, short_names
from tracetool.report.tracks import FLOW_MARKS, start_of, value_axis

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tracetool.dataset import Dataset
    from tracetool.reconstruct.connections import Connection

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
            style = Style(slot, slot % 5, FLOW_MARKS[slot % len(FLOW_MARKS)])
            x = seconds_after(origin, own["time"])
            series.append(
                Series(names[flow], "points", x, floats(own["delay"]) * MS, style, frame=frames(own["frame"]))
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


def queue_log_figure(log: pl.DataFrame, *, log_axis: bool = False) -> Figure:
    """Return a queue's length from a router's own log.

    Parameters
    ----------
    log
        ``time``, ``event`` (``enq``, ``drop``, ``mark``, ``loss``) and ``queue_bytes``.
    log_axis
        Logarithmic axis.
    """
    origin = start_of(log)
    x = seconds_after(origin, log["time"])
    length = floats(log["queue_bytes"]) * KB
    marks = []
    kinds = (
        ("drop", "dropped by the queue", "D", 1),
        ("mark", "marked CE", "M", 4),
        ("loss", "lost before it", "L", 3),
    )
    for kind, name, mark, color in kinds:
        rows_of = (log["event"] == kind).to_numpy()
        if rows_of.any():
            marks.append(Events(name, x[rows_of], Style(color, 0, mark), length[rows_of]))
    return Figure(
        title="length of the queue",
        subtitle=f"the router's own log, {len(log):,} rows",
        x=Axis("time since first row", "s"),
        panels=(
            Panel(
                value_axis("queue", "kB", log=log_axis),
                (Series("queue", "step", x, length, Style(0, 0, "*")),),
                tuple(marks),
            ),
        ),
        origin_ns=origin,
    )


def build(dataset: Dataset, connections: Sequence[Connection], **options: Any) -> Figure:
    """Return the delay between the sender's and the receiver's capture; options are those of `queue_figure`."""
    pairs = [
        (capture_of(connection, "sender"), capture_of(connection, "receiver"))
        for connection in connections
        if sum(part.row.get("stream") is not None for part in connection.parts) > 1
    ]
    pairs = [(one, other) for one, other in pairs if one.parts[0].input != other.parts[0].input]
    if not pairs:
        raise NothingMatchedError("a queue needs captures on both sides of it: give the sender's and the receiver's")
    before = rows(dataset, "packets", [one for one, _ in pairs], columns=PACKET_COLUMNS)
    after = rows(dataset, "packets", [other for _, other in pairs], columns=PACKET_COLUMNS)
    return queue_figure(before, after, short_names(dataset, [one for one, _ in pairs]), **options)
