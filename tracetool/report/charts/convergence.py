"""How flows come to share a link after the last of them started, and when they are fair.

Convergence times are those of `tracetool.metrics.convergence`: the first bin whose Jain index reaches 0.95, the
delta-fair time of Bansal et al. (2001) and the epsilon-fair time of Zhang, Kang, Loguinov (2004); see RFC 5166 section
2.3.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.errors import NothingMatchedError
from tracetool.metrics.convergence import THETA, convergence
from tracetool.metrics.jain_by_scale import jain_series
from tracetool.report.deliveries import deliveries
from tracetool.report.figure import Axis, Events, Figure, Panel, Series, Style, floats
from tracetool.report.selection import packets, short_names
from tracetool.report.tracks import flow_style

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import polars as pl

    from tracetool.dataset import Dataset
    from tracetool.reconstruct.connections import Connection

_WORDS = {"jain": "Jain >= 0.95", "delta_fair": "delta-fair", "epsilon_fair": "epsilon-fair"}


def convergence_figure(
    packets: pl.DataFrame, names: dict[int, str], *, bin_ns: int | None = None, log: bool = False
) -> Figure:
    """Return each flow's share of the total against time since the latest start, with the convergence times marked.

    Parameters
    ----------
    packets, names, bin_ns
        As in `throughput_figure`.
    log
        Logarithmic time axis.

    Raises
    ------
    NothingMatchedError
        If there are fewer than two flows, or they never overlap.
    """
    if len(names) < 2:
        raise NothingMatchedError("convergence compares flows, and there is only one that carries data")
    bins = deliveries(packets, names, bin_ns=bin_ns, overlap=True)
    values = np.array([floats(bins.table[name]) for name in bins.names])
    total = values.sum(axis=0)
    shares = np.divide(values, total, out=np.full_like(values, np.nan), where=total > 0)
    length = bins.bin_ns / 1e9
    x = floats((np.arange(len(bins.table)) + 1) * length)
    series = tuple(Series(name, "step", x, shares[slot], flow_style(slot)) for slot, name in enumerate(bins.names))
    times = convergence(bins.table, bin_ns=bins.bin_ns)
    reached = [(row["value"], _WORDS[row["definition"]]) for row in times.iter_rows(named=True) if row["value"]]
    reached.sort()
    marks = Events(
        "converged",
        np.array([when for when, _ in reached]),
        Style(2, 0, "C"),
        labels=tuple(f"{words} {when:g} s" for when, words in reached),
    )
    index = floats(jain_series(bins.series()))
    threshold = Series(f"{THETA:g}", "step", x[[0, -1]], np.full(2, THETA), Style(6, 2, ".", light=True))
    fair = Series("Jain's index", "step", x, index, Style(0, 0, "*"))
    missed = [_WORDS[row["definition"]] for row in times.iter_rows(named=True) if row["value"] is None]
    return Figure(
        title=f"convergence: {len(names)} flows",
        subtitle=f"shares of acknowledged payload since the latest start, in bins of {length * 1e3:g} ms",
        x=Axis("time since the latest start", "s", "log" if log else "linear"),
        panels=(
            Panel(Axis("share", low=0.0, high=1.02), series, (marks,)),
            Panel(Axis("Jain's index", low=0.0, high=1.02), (threshold, fair), weight=0.7),
        ),
        notes=(f"Not reached while all flows ran: {', '.join(missed)}.",) if missed else (),
        origin_ns=bins.start_ns,
    )


def build(dataset: Dataset, connections: Sequence[Connection], **options: Any) -> Figure:
    """Return the figure of connections of a dataset; options are those of `convergence_figure`."""
    return convergence_figure(packets(dataset, connections), short_names(dataset, connections), **options)
