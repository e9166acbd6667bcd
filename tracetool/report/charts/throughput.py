"""Goodput per flow, stacked to the total, and how fairly it was shared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.metrics.jain_by_scale import jain_series
from tracetool.report.deliveries import deliveries
from tracetool.report.figure import Axis, Figure, Panel, Series, Style, floats
from tracetool.report.selection import display_filter, packets, short_names, title_of
from tracetool.report.tracks import flow_style, value_axis

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import polars as pl

    from tracetool.dataset import Dataset
    from tracetool.reconstruct.connections import Connection


def throughput_figure(
    packets: pl.DataFrame,
    names: dict[int, str],
    *,
    bin_ns: int | None = None,
    stacked: bool | None = None,
    log: bool = False,
    flow_label: str = "",
    display_filter: str = "",
) -> Figure:
    """Return goodput against time: the flows stacked, or as lines, with Jain's index of each bin below.

    Parameters
    ----------
    packets
        Rows of `packets` of both directions; data travels ``a2b``.
    names
        Name of each flow.
    bin_ns
        Length of a bin; by default about 150 of them, 10 ms at the least.
    stacked
        Stack the flows; by default where there are several and the axis is linear.
    log
        Logarithmic axis.

    Raises
    ------
    NothingMatchedError
        If nothing was delivered.
    """
    bins = deliveries(packets, names, bin_ns=bin_ns)
    x = np.append(np.arange(len(bins.table)), len(bins.table)) * (bins.bin_ns / 1e9)
    rates = {name: _held(floats(bins.table[name]) * 8e9 / bins.bin_ns / 1e6) for name in bins.names}
    several = len(rates) > 1
    stacked = several and not log if stacked is None else stacked
    series: list[Series] = []
    below = np.zeros(len(x))
    for slot, (name, rate) in enumerate(rates.items()):
        if stacked:
            series.append(Series(name, "band", x, below, flow_style(slot), y2=below + rate))
            below = below + rate
        else:
            series.append(Series(name, "step", x, rate, flow_style(slot)))
    if stacked:
        series.append(Series("total", "step", x, below, Style(6, 0, "T")))
    panels = [Panel(value_axis("goodput", "Mbit/s", log=log), tuple(series), weight=1.6)]
    if several:
        index = floats(jain_series(bins.series()))
        fair = Series("Jain's index", "step", x, _held(index), Style(0, 0, "*"))
        worst = Series("one flow has all", "step", x[[0, -1]], np.full(2, 1 / len(rates)), Style(6, 2, ".", light=True))
        panels.append(Panel(Axis("Jain's index", low=0.0, high=1.02), (worst, fair), weight=0.8))
    label = f"{len(rates)} flows" if several else flow_label or bins.names[0]
    return Figure(
        title=f"goodput: {label}",
        subtitle=f"acknowledged payload in bins of {bins.bin_ns / 1e6:g} ms",
        x=Axis("time since first delivery", "s"),
        panels=tuple(panels),
        origin_ns=bins.start_ns,
        display_filter=display_filter,
    )


def _held(
    values: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Repeat the last value, so that its step is as long as its bin."""
    return np.append(values, values[-1:])


def build(dataset: Dataset, connections: Sequence[Connection], **options: Any) -> Figure:
    """Return the figure of connections of a dataset; options are those of `throughput_figure`."""
    one = len(connections) == 1
    return throughput_figure(
        packets(dataset, connections),
        short_names(dataset, connections),
        flow_label=title_of(dataset, connections[0]) if one else "",
        display_filter=display_filter(connections[0]) if one else "",
        **options,
    )
