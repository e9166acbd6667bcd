"""Reordering at the receiver: how late each reordered packet is, and how displacements are distributed.

Extent: RFC 4737 section 4.2; density: RFC 5236. Retransmissions are left out (RFC 4737 section 6.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tracetool.errors import NothingMatchedError
from tracetool.metrics.reorder_density import rfc5236
from tracetool.metrics.reordering import FAST_RETRANSMIT_N, originals, rfc4737
from tracetool.report.figure import Axis, Figure, Panel, Series, Style, floats
from tracetool.report.selection import capture_of, display_filter, packets, title_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tracetool.dataset import Dataset
    from tracetool.reconstruct.connections import Connection

MAX_DISPLACEMENT = 50
"""Displacements of the density that are drawn, to either side."""


def reordering_figure(
    packets: pl.DataFrame,
    *,
    rtt_ns: int | None = None,
    flow_label: str = "",
    log: bool = False,
    display_filter: str = "",
) -> Figure:
    """Return the extent of each reordered packet against time, and the density of displacements.

    Parameters
    ----------
    packets
        Rows of `packets` of one flow, in the direction of the data, captured at the receiver.
    rtt_ns
        A round-trip time, to tell late originals from retransmissions where there are no timestamps.
    log
        Logarithmic extent axis.

    Raises
    ------
    NothingMatchedError
        If no packet carries payload.
    """
    data = packets.filter((pl.col("payload_bytes") > 0) & (pl.col("direction") == "a2b")).sort(
        "time", maintain_order=True
    )
    kept = originals(data.with_columns(time_ns=pl.col("time").cast(pl.Int64)), rtt_ns)
    if not len(kept):
        raise NothingMatchedError("no packet with payload: reordering cannot be seen")
    found = rfc4737(kept["seq"].to_numpy())
    times = kept["time_ns"].to_numpy()
    origin = int(times[0])
    late = np.array(found.positions, np.intp)
    frame = kept["frame"].to_numpy()[late].astype(np.int64)
    x = (times[late] - origin) / 1e9
    points = Series("extent", "points", x, np.array(found.extent, float), Style(0, 0, "*"), frame=frame)
    limit = Series(
        "three packets: fast retransmit",
        "line",
        np.array([0.0, (times[-1] - origin) / 1e9]),
        np.full(2, float(FAST_RETRANSMIT_N)),
        Style(1, 1, "-", light=True),
    )
    density = rfc5236(np.argsort(np.argsort(kept["seq"].to_numpy(), kind="stable"), kind="stable") + 1)
    shown = sorted(key for key in density.rd if abs(key) <= MAX_DISPLACEMENT)
    shares = floats([density.rd[key] for key in shown])
    bars = Series("share", "bars", floats(shown), np.zeros(len(shown)), Style(0, 0, "*"), shares)
    deep = sum(depth >= FAST_RETRANSMIT_N for depth in found.n_reordering)
    ratio = found.ratio.value or 0.0
    return Figure(
        title=f"reordering: {flow_label}" if flow_label else "reordering",
        subtitle=f"{len(late):,} of {len(kept):,} packets reordered ({ratio:.3%}), {deep:,} by three or more",
        x=Axis("time since first packet", "s"),
        panels=(
            Panel(Axis("extent", "packets", "log" if log else "linear", None if log else 0.0), (limit, points)),
            Panel(Axis("share of packets", low=0.0), (bars,), x=_around_zero(shown)),
        ),
        origin_ns=origin,
        display_filter=display_filter,
    )


def _around_zero(displacements: list[int]) -> Axis:
    """Return an axis with zero in the middle, wide enough that a lone bar stands as one."""
    reach = float(max(5, *(abs(key) + 1 for key in displacements)))
    return Axis("displacement (early < 0 < late)", "packets", low=-reach, high=reach)


def build(dataset: Dataset, connections: Sequence[Connection], **options: Any) -> Figure:
    """Return the figure of the first of `connections`, from its receiver's capture where there is one."""
    seen = capture_of(connections[0], "receiver")
    return reordering_figure(
        packets(dataset, [seen], both=False, vantage="receiver"),
        rtt_ns=seen.parts[0].row.get("handshake_rtt_ns"),
        flow_label=title_of(dataset, connections[0]),
        display_filter=display_filter(seen),
        **options,
    )
