"""The time-sequence graph, in tcptrace's grammar: segments as upright bars, below them the ACK line, above the window.

Shepard's plot (TCP Packet Trace Analysis, MIT 1991), as tcptrace ``-S`` draws it: each segment is a bar from its first
to its last sequence number, SACK blocks are bars at the time of the ACK that brought them, `R` marks retransmissions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tracetool.report.figure import Axis, Events, Figure, Panel, Series, Style, floats, frames, seconds_after
from tracetool.report.selection import capture_of, display_filter, packets, rows, title_of
from tracetool.report.tracks import start_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tracetool.dataset import Dataset
    from tracetool.reconstruct.connections import Connection

KB = 1e-3
_RESENT = {
    "retransmission": ("retransmission", "R", 1),
    "spurious_retransmission": ("spurious retransmission", "S", 4),
    "tail_loss_probe": ("tail loss probe", "P", 7),
    "out_of_order": ("out of order", "O", 3),
    "zero_window": ("zero window", "Z", 1),
}


def time_sequence_figure(
    packets: pl.DataFrame,
    *,
    events: pl.DataFrame | None = None,
    flow_label: str = "",
    window: bool = True,
    log: bool = False,
    display_filter: str = "",
) -> Figure:
    """Return the time-sequence graph of one flow.

    Parameters
    ----------
    packets
        Rows of `packets` of one flow, both directions: ``a2b`` carries the data, ``b2a`` the ACKs.
    events
        Rows of `events` of the same flow and direction, to mark retransmissions.
    window
        Draw the receiver's window (ACK number plus window).
    log
        Accepted for all charts; sequence numbers have no logarithmic axis worth the name, so it changes nothing.

    Examples
    --------
    >>> from datetime import datetime
    >>> row = {"direction": "a2b", "time": datetime(2026, 1, 1), "seq": 1, "ack": 1, "payload_bytes": 1000, "frame": 4}
    >>> figure = time_sequence_figure(pl.DataFrame([row]))
    >>> [series.name for series in figure.panels[0].series]
    ['segments']
    """
    del log
    origin = start_of(packets)
    data = packets.filter((pl.col("direction") == "a2b") & (pl.col("payload_bytes") > 0) & pl.col("seq").is_not_null())
    acks = packets.filter((pl.col("direction") == "b2a") & pl.col("ack").is_not_null())
    series = [*_window(acks, origin, data)] if window else []
    series += _sacks(acks, origin)
    if len(data):
        ends = floats(data["seq"] + data["payload_bytes"]) * KB
        x = seconds_after(origin, data["time"])
        series.append(
            Series("segments", "bars", x, floats(data["seq"]) * KB, Style(0, 0, "*"), ends, frames(data["frame"]))
        )
    if len(acks):
        values = np.maximum.accumulate(floats(acks["ack"])) * KB
        x = seconds_after(origin, acks["time"])
        series.append(Series("ACKs", "step", x, values, Style(2, 1, "-"), frame=frames(acks["frame"])))
    return Figure(
        title=f"time-sequence graph: {flow_label}" if flow_label else "time-sequence graph",
        subtitle=f"{len(data):,} packets with data, {len(acks):,} with ACKs",
        x=Axis("time since first packet", "s"),
        panels=(Panel(Axis("sequence number", "kB"), tuple(series), tuple(_marks(events, origin))),),
        origin_ns=origin,
        display_filter=display_filter,
    )


def _window(acks: pl.DataFrame, origin: int, data: pl.DataFrame) -> list[Series]:
    """Return the receiver's window line, unless it is so far above the data that it would flatten them."""
    if "window_bytes" not in acks.columns or not acks["window_bytes"].count():
        return []
    edge = floats(acks["ack"] + acks["window_bytes"]) * KB
    top = float((data["seq"] + data["payload_bytes"]).max() or 0) * KB if len(data) else 0.0  # type: ignore[arg-type]
    if np.nanmedian(edge) > 2.5 * top:
        return []
    return [
        Series("receiver's window", "step", seconds_after(origin, acks["time"]), edge, Style(4, 2, "w", light=True))
    ]


def _sacks(acks: pl.DataFrame, origin: int) -> list[Series]:
    """Return the SACK blocks (left, right, left, right, ...) of each ACK as bars."""
    if "sack" not in acks.columns:
        return []
    blocks = acks.filter(pl.col("sack").list.len() >= 2).with_columns(
        left=pl.col("sack").list.gather_every(2), right=pl.col("sack").list.gather_every(2, 1)
    )
    # A torn option may end in half a block.
    blocks = blocks.filter(pl.col("left").list.len() == pl.col("right").list.len()).explode("left", "right")
    if not len(blocks):
        return []
    x = seconds_after(origin, blocks["time"])
    low, high = floats(blocks["left"]) * KB, floats(blocks["right"]) * KB
    return [Series("SACK blocks", "bars", x, low, Style(3, 1, "s"), high, frames(blocks["frame"]))]


def _marks(events: pl.DataFrame | None, origin: int) -> list[Events]:
    if events is None:
        return []
    groups = []
    for kind, (name, mark, color) in _RESENT.items():
        own = events.filter((pl.col("kind") == kind) & pl.col("seq").is_not_null()).sort("time")
        if len(own):
            details = tuple(own["trigger"].cast(pl.String).fill_null("unknown").to_list())
            x, y = seconds_after(origin, own["time"]), floats(own["seq"]) * KB
            groups.append(Events(name, x, Style(color, 0, mark), y, details=details, frame=frames(own["frame"])))
    return groups


def build(dataset: Dataset, connections: Sequence[Connection], **options: Any) -> Figure:
    """Return the graph of the first of `connections`; options are those of `time_sequence_figure`."""
    seen = capture_of(connections[0])
    return time_sequence_figure(
        packets(dataset, [seen]),
        events=rows(dataset, "events", seen),
        flow_label=title_of(dataset, connections[0]),
        display_filter=display_filter(seen),
        **options,
    )
