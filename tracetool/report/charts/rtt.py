"""Round-trip times against time, and their distribution.

Samples are those of `rtts` (data to the ACK that covers it, timestamps, handshake); the smoothed RTT and the minimum
are the sender's own, of `samples`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tracetool.errors import NothingMatchedError
from tracetool.report.figure import Axis, Figure, Panel, Series, Style, floats
from tracetool.report.selection import display_filter, one_view, rows, samples_of, short_names, title_of
from tracetool.report.tracks import best_origin, flow_style, origin_words, start_of, track, value_axis

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tracetool.dataset import Dataset
    from tracetool.reconstruct.connections import Connection

MS = 1e-6
_METHODS = {
    "ack": ("RTT, data to ACK", Style(5, 0, ".", light=True)),
    "timestamp": ("RTT, timestamps", Style(4, 2, ",", light=True)),
    "handshake": ("RTT, handshake", Style(3, 1, "H")),
    "ping": ("RTT, ping", Style(6, 3, "'", light=True)),
}


def rtt_figure(
    rtts: pl.DataFrame,
    samples: pl.DataFrame | None = None,
    *,
    flow_label: str | dict[int, str] = "",
    cdf: bool = True,
    log: bool = False,
    display_filter: str = "",
) -> Figure:
    """Return RTT samples, smoothed and smallest RTT against time, with their cumulative distribution below.

    Parameters
    ----------
    rtts
        Rows of `rtts`, of one or several flows.
    samples
        Rows of `samples` of the same flows, for the smoothed and the smallest RTT.
    flow_label
        Name of the flow, or one per flow number.
    cdf
        Add the panel with the distribution.
    log
        Logarithmic RTT axis.

    Examples
    --------
    >>> from datetime import datetime
    >>> row = {"flow": 0, "time": datetime(2026, 1, 1), "rtt_ns": 20_000_000, "method": "ack"}
    >>> [panel.y.label for panel in rtt_figure(pl.DataFrame([row, row])).panels]
    ['RTT', 'share of samples']
    """
    origin = start_of(rtts, samples)
    flows = rtts["flow"].unique().sort().to_list() if len(rtts) else []
    several = len(flows) > 1
    series: list[Series] = []
    shares: list[Series] = []
    if several:
        names = flow_label if isinstance(flow_label, dict) else {}
        for slot, flow in enumerate(flows):
            own = rtts.filter((pl.col("flow") == flow) & (pl.col("method") != "handshake")).sort("time")
            name = names.get(flow, f"flow {flow}")
            series += track(own, origin, "rtt_ns", name, flow_style(slot), kind="points", factor=MS)
            shares += _distribution(own, name, flow_style(slot))
    else:
        for method, (name, style) in _METHODS.items():
            own = rtts.filter(pl.col("method") == method).sort("time")
            series += track(own, origin, "rtt_ns", name, style, kind="points", factor=MS) if len(own) else []
            if len(own) > 1:
                shares += _distribution(own, name, Style(style.color, style.dash, "*" if method == "ack" else "o"))
        series += _sender(samples, origin)
    panels = [Panel(value_axis("RTT", "ms", log=log), tuple(series), weight=1.4)]
    if cdf and shares:
        axis = Axis("RTT", "ms", "log" if log else "linear")
        panels.append(Panel(Axis("share of samples", low=0.0, high=1.02), tuple(shares), x=axis))
    title = f"{len(flows)} flows" if several or isinstance(flow_label, dict) else flow_label
    return Figure(
        title=f"round-trip times: {title}" if title else "round-trip times",
        subtitle=_subtitle(rtts, samples),
        x=Axis("time since first sample", "s"),
        panels=tuple(panels),
        origin_ns=origin,
        display_filter=display_filter,
    )


def _sender(samples: pl.DataFrame | None, origin: int) -> list[Series]:
    """Return the smoothed and the smallest RTT as the sender has them."""
    if samples is None or not len(samples):
        return []
    best = best_origin(samples, ("srtt_ns",))
    series = track(best, origin, "srtt_ns", "smoothed RTT", Style(1, 0, "#"), factor=MS)
    return series + track(best, origin, "min_rtt_ns", "smallest RTT", Style(2, 1, "_"), factor=MS)


def _distribution(rows: pl.DataFrame, name: str, style: Style) -> list[Series]:
    """Return the share of samples not above each value, as a step."""
    values = np.sort(floats(rows["rtt_ns"].drop_nulls())) * MS
    if not len(values):
        return []
    return [Series(name, "step", values, np.arange(1, len(values) + 1) / len(values), style)]


def _subtitle(rtts: pl.DataFrame, samples: pl.DataFrame | None) -> str:
    timed = rtts.filter(pl.col("method") != "handshake") if len(rtts) else rtts
    values = floats(timed["rtt_ns"].drop_nulls()) * MS if len(timed) else np.empty(0)
    parts = []
    if len(values):
        low, middle, high = np.percentile(values, [0, 50, 95])
        parts.append(f"{len(values):,} samples: min {low:.3f}, median {middle:.3f}, 95th percentile {high:.3f} ms")
    if samples is not None and len(best := best_origin(samples, ("srtt_ns",))):
        parts.append(f"smoothed RTT: {origin_words(best['origin'][0])}")
    return "; ".join(parts) or "no samples"


def build(dataset: Dataset, connections: Sequence[Connection], **options: Any) -> Figure:
    """Return the figure of connections of a dataset; options are those of `rtt_figure`."""
    samples = samples_of(dataset, connections)
    rtts = rows(dataset, "rtts", [one_view(connection) for connection in connections])
    one = len(connections) == 1
    if not len(rtts) and not samples["srtt_ns"].count():
        raise NothingMatchedError(f"{connections[0].label}: no round-trip time is known")
    return rtt_figure(
        rtts,
        samples,
        flow_label=title_of(dataset, connections[0]) if one else short_names(dataset, connections),
        display_filter=display_filter(connections[0]) if one else "",
        **options,
    )
