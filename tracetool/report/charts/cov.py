"""Coefficient of variation of the rate over time scales: how smooth the flows and their total are.

RFC 5166 section 2.2.2. White noise falls as the inverse square root of the window; a congestion control's saw-tooth
does not fall until the window is longer than its teeth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tracetool.metrics.variation import cov_by_scale
from tracetool.report.deliveries import deliveries, round_scales
from tracetool.report.figure import Axis, Figure, Panel, Series, Style, floats
from tracetool.report.selection import packets, short_names
from tracetool.report.tracks import flow_style

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tracetool.dataset import Dataset
    from tracetool.reconstruct.connections import Connection


def cov_figure(
    packets: pl.DataFrame, names: dict[int, str], *, bin_ns: int | None = None, overlap: bool = True, log: bool = True
) -> Figure:
    """Return the coefficient of variation against the length of the window it is taken over.

    Parameters
    ----------
    packets, names, bin_ns, overlap
        As in `fairness_figure`.
    log
        Logarithmic axis for the coefficient too, on which noise is a straight line.

    Raises
    ------
    NothingMatchedError
        If nothing was delivered, or the flows never overlap.
    """
    bins = deliveries(packets, names, bin_ns=bin_ns, overlap=overlap)
    scales = round_scales(bins.bin_ns * len(bins.table), bins.bin_ns)
    table = cov_by_scale(bins.table, bin_ns=bins.bin_ns, scales_ns=scales)
    series = []
    for slot, name in enumerate(bins.names):
        series += _line(table, name, flow_style(slot))
    if len(bins.names) > 1:
        series += _line(table, "total", Style(6, len(bins.names), "T"))
    return Figure(
        title="variation of the rate over time scales",
        subtitle=f"coefficient of variation of acknowledged payload, bins of {bins.bin_ns / 1e6:g} ms",
        x=Axis("window", "s", "log"),
        panels=(Panel(Axis("coefficient of variation", "", "log" if log else "linear"), tuple(series)),),
    )


def _line(table: pl.DataFrame, name: str, style: Style) -> list[Series]:
    own = table.filter(pl.col("entity") == name)
    if not own["value"].count():
        return []
    return [Series(name, "line", floats(own["scale_ns"]) / 1e9, floats(own["value"]), style)]


def build(dataset: Dataset, connections: Sequence[Connection], **options: Any) -> Figure:
    """Return the figure of connections of a dataset; options are those of `cov_figure`."""
    options.pop("log", None)  # both axes are logarithmic unless the library is told otherwise
    return cov_figure(packets(dataset, connections), short_names(dataset, connections), **options)
