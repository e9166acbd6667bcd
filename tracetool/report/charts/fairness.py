"""Jain's fairness index over time scales: flows that share a link fairly in the long run may not in the short.

Jain, Chiu, Hawe (DEC TR-301, 1984); RFC 5166 section 2.3.1. Each point is the mean index of all windows of that length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.errors import NothingMatchedError
from tracetool.metrics.jain_by_scale import jain_by_scale
from tracetool.report.deliveries import deliveries, round_scales
from tracetool.report.figure import Axis, Figure, Panel, Series, Style, floats
from tracetool.report.selection import packets, short_names

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import polars as pl

    from tracetool.dataset import Dataset
    from tracetool.reconstruct.connections import Connection


def fairness_figure(
    packets: pl.DataFrame, names: dict[int, str], *, bin_ns: int | None = None, overlap: bool = True, log: bool = False
) -> Figure:
    """Return Jain's index against the length of the window it is taken over.

    Parameters
    ----------
    packets, names, bin_ns
        As in `throughput_figure`; the bin is the shortest window.
    overlap
        Only while all flows run. False: the whole time, so that a late flow counts as silent before.
    log
        Accepted for all charts; the window's axis is logarithmic anyway, so it changes nothing.

    Raises
    ------
    NothingMatchedError
        If there are fewer than two flows, or they never overlap.
    """
    del log
    if len(names) < 2:
        raise NothingMatchedError("fairness compares flows, and there is only one that carries data")
    bins = deliveries(packets, names, bin_ns=bin_ns, overlap=overlap)
    scales = round_scales(bins.bin_ns * len(bins.table), bins.bin_ns, windows=1)
    table = jain_by_scale(bins.table, bin_ns=bins.bin_ns, scales_ns=scales)
    x = floats(table["scale_ns"]) / 1e9
    least = Series("one flow has all", "line", x[[0, -1]], np.full(2, 1 / len(names)), Style(6, 2, ".", light=True))
    series = (
        least,
        Series("mean of all windows", "line", x, floats(table["value"]), Style(0, 0, "*")),
        Series("each scale", "points", x, floats(table["value"]), Style(0, 0, "o")),
    )
    rule = "while all of them run" if overlap else "over the whole time"
    return Figure(
        title=f"fairness over time scales: {len(names)} flows",
        subtitle=f"Jain's index of acknowledged payload {rule}; flows: {', '.join(bins.names)}",
        x=Axis("window", "s", "log"),
        panels=(Panel(Axis("Jain's index", low=0.0, high=1.02), series),),
    )


def build(dataset: Dataset, connections: Sequence[Connection], **options: Any) -> Figure:
    """Return the figure of connections of a dataset; options are those of `fairness_figure`."""
    return fairness_figure(packets(dataset, connections), short_names(dataset, connections), **options)
