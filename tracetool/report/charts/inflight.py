"""Bytes in flight, and what bounds them: the congestion window, the receiver's window, the application."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tracetool.errors import NothingMatchedError
from tracetool.report.figure import Axis, Figure, Panel, Series, Span, Style, seconds_after
from tracetool.report.selection import display_filter, samples_of, title_of
from tracetool.report.tracks import (
    MAX_SPANS,
    best_origin,
    flow_style,
    origin_words,
    start_of,
    track,
    typical_mss,
    value_axis,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tracetool.dataset import Dataset
    from tracetool.reconstruct.connections import Connection

KB = 1e-3
RECEIVER = "receiver's window"
_LIMITS = {
    "cwnd": ("limited by cwnd", "c", 5),
    "rwnd": ("limited by the receiver", "w", 1),
    "app": ("limited by the application", "a", 4),
    "pacing": ("limited by pacing", "p", 2),
}


def inflight_figure(
    samples: pl.DataFrame, *, flow_label: str | dict[int, str] = "", log: bool = False, display_filter: str = ""
) -> Figure:
    """Return bytes in flight against time, with the windows that bound them where one flow is drawn.

    Parameters
    ----------
    samples
        Rows of `samples`; of several origins the most trusted one that knows the bytes in flight is drawn.
    flow_label
        Name of the flow, or one per flow number.
    log
        Logarithmic axis.

    Examples
    --------
    >>> from datetime import datetime
    >>> row = {"flow": 0, "origin": "inferred", "time": datetime(2026, 1, 1), "inflight_bytes": 14480}
    >>> inflight_figure(pl.DataFrame([row])).panels[0].series[0].y.tolist()
    [14.48]
    """
    origin = start_of(samples)
    flows = samples["flow"].unique().sort().to_list()
    series: list[Series] = []
    spans: list[Span] = []
    sources: set[str] = set()
    for slot, flow in enumerate(flows):
        best = best_origin(samples.filter(pl.col("flow") == flow), ("inflight_bytes",))
        sources |= set(best["origin"].unique())
        if len(flows) > 1:
            names = flow_label if isinstance(flow_label, dict) else {}
            series += track(
                best, origin, "inflight_bytes", names.get(flow, f"flow {flow}"), flow_style(slot), factor=KB
            )
            continue
        series += track(best, origin, "snd_wnd_bytes", RECEIVER, Style(4, 2, "w", light=True), factor=KB)
        series += track(best, origin, "inflight_bytes", "in flight", Style(0, 0, "*"), factor=KB)
        if mss := typical_mss(best, samples):
            series += track(best, origin, "cwnd_segments", "cwnd", Style(1, 1, "#"), factor=mss * KB)
        spans = _limits(best, origin)
    label = flow_label if isinstance(flow_label, str) else f"{len(flows)} flows"
    return Figure(
        title=f"bytes in flight: {label}" if label else "bytes in flight",
        subtitle=", ".join(origin_words(source) for source in sorted(sources)) or "no samples",
        x=Axis("time since first sample", "s"),
        panels=(Panel(value_axis("data", "kB", log=log), _within(series), spans=tuple(spans)),),
        origin_ns=origin,
        display_filter=display_filter,
    )


def _within(series: list[Series]) -> tuple[Series, ...]:
    """Leave out a receiver's window so large that the rest would be a flat line at the bottom."""
    top = max((float(np.nanmax(part.y)) for part in series if part.name != RECEIVER), default=0.0)
    return tuple(part for part in series if part.name != RECEIVER or float(np.nanmedian(part.y)) < 2.5 * top)


def _limits(rows: pl.DataFrame, origin: int) -> list[Span]:
    """Return runs of equal limits; none if unknown or if they change too often to be seen."""
    if "limited_by" not in rows.columns:
        return []
    x = seconds_after(origin, rows["time"])
    runs = (
        rows.select(x=pl.Series(x), limit=pl.col("limited_by").cast(pl.String), run=pl.col("limited_by").rle_id())
        .group_by("run", maintain_order=True)
        .agg(pl.col("x").first(), pl.col("limit").first())
        .with_columns(end=pl.col("x").shift(-1, fill_value=float(x[-1]) if len(x) else 0.0))
    )
    if len(runs) > MAX_SPANS:
        return []
    return [
        Span(start, end, *_LIMITS[limit])
        for start, limit, end in runs.select("x", "limit", "end").iter_rows()
        if limit in _LIMITS
    ]


def build(dataset: Dataset, connections: Sequence[Connection], **options: Any) -> Figure:
    """Return the figure of connections of a dataset; options are those of `inflight_figure`."""
    samples = samples_of(dataset, connections)
    if not samples["inflight_bytes"].count():
        raise NothingMatchedError(f"{connections[0].label}: nothing is known of its bytes in flight")
    one = len(connections) == 1
    names = {number: connection.label for number, connection in enumerate(connections)}
    return inflight_figure(
        samples,
        flow_label=title_of(dataset, connections[0]) if one else names,
        display_filter=display_filter(connections[0]) if one else "",
        **options,
    )
