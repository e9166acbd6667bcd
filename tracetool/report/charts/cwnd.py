"""cwnd and ssthresh against time: what the sender allowed itself, who says so, and why it changed.

Rows are those of `samples`: the sender's state as an ACK arrives. A window holds until the next row, so it is drawn as
steps. Rows of several origins (the kernel's `tcp_probe`, `ss`, `iperf3`, our own inference) are overlaid, each with its
own colour, dash and mark.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tracetool.errors import NothingMatchedError
from tracetool.report.figure import Axis, Events, Figure, Panel, Series, Style, floats, frames, seconds_after
from tracetool.report.selection import display_filter as wireshark_filter
from tracetool.report.selection import one_view, rows, samples_of, short_names, title_of
from tracetool.report.tracks import (
    best_origin,
    flow_style,
    origin_words,
    origins_in,
    phase_spans,
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
    from tracetool.report.figure import FloatArray

_LOSSES = {"fast": ("fast recovery", "L", 3), "rto": ("timeout (RTO)", "T", 1), "cwr": ("ECN reduction", "C", 4)}
# Origins that agree lie on one another: those drawn later have gaps, through which the first is seen.
_CWND = (Style(0, 0, "*"), Style(4, 2, "o"), Style(7, 4, "x"), Style(3, 6, "+"))
_SSTHRESH = (Style(1, 1, "#"), Style(3, 3, "%"), Style(2, 5, "="), Style(6, 7, "-"))


def cwnd_figure(
    samples: pl.DataFrame,
    *,
    events: pl.DataFrame | None = None,
    recoveries: pl.DataFrame | None = None,
    slow_starts: pl.DataFrame | None = None,
    flow_label: str | dict[int, str] = "",
    layout: str = "overlay",
    inflight: bool = True,
    phases: bool = True,
    log: bool = False,
    origin_ns: int | None = None,
    display_filter: str = "",
    notes: tuple[str, ...] = (),
) -> Figure:
    """Return cwnd, ssthresh and bytes in flight against time.

    Parameters
    ----------
    samples
        Rows of the `samples` table of one or several flows, of one or several origins.
    events, recoveries, slow_starts
        Rows of those tables for the same flows: retransmissions, recoveries, slow-start exits. None: no such marks.
    flow_label
        Name of the flow (addresses, ports, congestion control), or one name per flow number.
    layout
        With several flows: ``overlay`` draws them into one panel, ``multiples`` gives each its own.
    inflight
        Draw bytes in flight, in segments of `mss_bytes`. Only where one flow is drawn in a panel.
    phases
        Shade slow start, congestion avoidance, recovery and the rest, where the samples know their phase.
    log
        Logarithmic window axis.
    origin_ns
        What ``time 0`` means, in ns since the epoch; by default the first sample.
    display_filter
        Wireshark filter of the flow, for tooltips.
    notes
        Sentences to stand under the figure.

    Examples
    --------
    >>> from datetime import datetime, timezone
    >>> row = {"flow": 0, "origin": "tcp_probe", "time": datetime(2026, 1, 1, tzinfo=timezone.utc)}
    >>> figure = cwnd_figure(pl.DataFrame([row | {"cwnd_segments": 10, "ssthresh_segments": None}]))
    >>> [series.name for series in figure.panels[0].series]
    ['cwnd']
    """
    samples = samples.sort("time", maintain_order=True)
    origin = start_of(samples) if origin_ns is None else origin_ns
    flows = samples["flow"].unique().sort().to_list() if "flow" in samples.columns else [0]
    tables = (events, recoveries, slow_starts)
    y = value_axis("window", "segments", log=log)
    panels: tuple[Panel, ...]
    if len(flows) <= 1:
        panels = (_panel(samples, tables, origin, y, inflight=inflight, phases=phases),)
        label = _name(flow_label, flows[0] if flows else 0)
    elif layout == "multiples":
        panels = tuple(
            _panel(
                samples.filter(pl.col("flow") == flow),
                tuple(None if table is None else table.filter(pl.col("flow") == flow) for table in tables),
                origin,
                y,
                inflight=inflight,
                phases=phases,
                title=_name(flow_label, flow),
            )
            for flow in flows
        )
        label = f"{len(flows)} flows"
    else:
        panels = (_overlay(samples, flows, flow_label, origin, y),)
        label = f"{len(flows)} flows"
    return Figure(
        title=f"cwnd and ssthresh: {label}" if label else "cwnd and ssthresh",
        subtitle=_subtitle(samples, slow_starts),
        x=Axis("time since first sample" if origin_ns is None else "time since start", "s"),
        panels=panels,
        notes=notes,
        origin_ns=origin,
        display_filter=display_filter,
        shared_y=True,
    )


def build(dataset: Dataset, connections: Sequence[Connection], *, every_input: bool = False, **options: Any) -> Figure:
    """Return the figure of connections of a dataset, each as all inputs see it; options are those of `cwnd_figure`.

    Of several captures only the one nearest to the sender is drawn, unless `every_input` asks for all.
    """
    views = [one_view(connection) for connection in connections]
    samples = samples_of(dataset, connections, every_input=every_input)
    samples = samples.with_columns(origin=_tell_apart(samples))
    if not samples["cwnd_segments"].count():
        raise NothingMatchedError(f"{connections[0].label}: nothing is known of its cwnd")
    one = len(connections) == 1
    return cwnd_figure(
        samples.filter(pl.col("cwnd_segments").is_not_null()),
        events=rows(dataset, "events", views),
        recoveries=rows(dataset, "recoveries", views),
        slow_starts=rows(dataset, "slow_starts", views),
        flow_label=title_of(dataset, connections[0]) if one else short_names(dataset, connections),
        display_filter=wireshark_filter(connections[0]) if one else "",
        **options,
    )


def _tell_apart(samples: pl.DataFrame) -> pl.Expr:
    """Return the origin, with the input's name where several inputs have samples of one origin (two captures)."""
    several = samples.group_by("origin").agg(pl.col("input").n_unique()).filter(pl.col("input") > 1)["origin"].to_list()
    return (
        pl.when(pl.col("origin").is_in(several)).then(pl.format("{} {}", "origin", "input")).otherwise(pl.col("origin"))
    )


def _name(label: str | dict[int, str], flow: int) -> str:
    return label if isinstance(label, str) else label.get(flow, f"flow {flow}")


def _subtitle(samples: pl.DataFrame, slow_starts: pl.DataFrame | None) -> str:
    """Say where the numbers come from, how many there are, and if slow start never ended."""
    if not len(samples):
        return "no samples"
    counts = dict(samples.group_by("origin", maintain_order=True).len().iter_rows())
    words = "samples: " + ", ".join(f"{counts[name]:,} {origin_words(name)}" for name in origins_in(samples))
    never = slow_starts is not None and len(slow_starts) > 0 and slow_starts["end"].null_count() == len(slow_starts)
    return f"{words}; slow start did not end" if never else words


def _panel(
    samples: pl.DataFrame,
    tables: tuple[pl.DataFrame | None, ...],
    origin: int,
    y: Axis,
    *,
    inflight: bool,
    phases: bool,
    title: str = "",
) -> Panel:
    """Return one flow with all that is known of it."""
    origins = origins_in(samples)
    series: list[Series] = []
    best = samples.filter(pl.col("origin") == origins[0]) if origins else samples
    if inflight:
        series += _inflight(samples, origin)
    for rank, name in enumerate(origins):
        rows = samples.filter(pl.col("origin") == name)
        suffix = f" ({name})" if len(origins) > 1 else ""
        series += _bounds(rows, origin, suffix, _CWND[rank % len(_CWND)])
        series += track(rows, origin, "ssthresh_segments", f"ssthresh{suffix}", _SSTHRESH[rank % len(_SSTHRESH)])
    for rank, name in enumerate(origins):
        rows = samples.filter(pl.col("origin") == name)
        suffix = f" ({name})" if len(origins) > 1 else ""
        series += track(rows, origin, "cwnd_segments", f"cwnd{suffix}", _CWND[rank % len(_CWND)])
    events, recoveries, slow_starts = tables
    marks = [*_retransmissions(events, best, origin), *_recoveries(recoveries, origin), *_exits(slow_starts, origin)]
    return Panel(
        y,
        tuple(series),
        tuple(marks),
        tuple(phase_spans(best_origin(samples, ("phase",)), origin)) if phases else (),
        title=title,
    )


def _overlay(samples: pl.DataFrame, flows: list[int], labels: str | dict[int, str], origin: int, y: Axis) -> Panel:
    """Return several flows in one set of axes: colour tells the flow, dash and mark the flow and the origin."""
    series: list[Series] = []
    for slot, flow in enumerate(flows):
        rows = samples.filter(pl.col("flow") == flow)
        for name in origins_in(rows):
            label = _name(labels, flow) if not isinstance(labels, str) else f"flow {flow}"
            suffix = f" ({name})" if samples["origin"].n_unique() > 1 else ""
            style = replace(flow_style(len(series)), color=slot)
            series += track(rows.filter(pl.col("origin") == name), origin, "cwnd_segments", f"{label}{suffix}", style)
    return Panel(Axis("cwnd", y.unit, y.scale, y.low), tuple(series))


def _inflight(samples: pl.DataFrame, origin: int) -> list[Series]:
    """Return bytes in flight in typical segments, from the origin that knows them best."""
    best, mss = best_origin(samples, ("inflight_bytes",)), typical_mss(samples)
    if mss is None:
        return []
    return track(best, origin, "inflight_bytes", "in flight", Style(6, 2, ".", light=True), factor=1 / mss)


def _bounds(rows: pl.DataFrame, origin: int, suffix: str, style: Style) -> list[Series]:
    """Return the bounds of an inferred cwnd as a band; where only the lower bound is known, there is no band."""
    if not {"cwnd_low_segments", "cwnd_high_segments"} <= set(rows.columns):
        return []
    low, high = floats(rows["cwnd_low_segments"]), floats(rows["cwnd_high_segments"])
    if not np.any(high > low):
        return []
    x = seconds_after(origin, rows["time"])
    return [
        Series(
            f"cwnd bounds{suffix}",
            "band",
            x,
            low,
            Style(style.color, 0, ":", light=True),
            y2=np.where(np.isnan(low), np.nan, high),
        )
    ]


def _retransmissions(events: pl.DataFrame | None, best: pl.DataFrame, origin: int) -> list[Events]:
    """Return retransmissions by trigger, at the height of cwnd when they were sent."""
    if events is None or not len(events):
        return []
    groups = []
    kinds = (("retransmission", "R", 1), ("spurious_retransmission", "S", 4), ("tail_loss_probe", "P", 7))
    for kind, mark, color in kinds:
        rows = events.filter(pl.col("kind") == kind).sort("time")
        if len(rows):
            x = seconds_after(origin, rows["time"])
            details = tuple(rows["trigger"].fill_null("unknown").to_list()) if "trigger" in rows.columns else ()
            frame = frames(rows["frame"]) if "frame" in rows.columns else None
            name = kind.replace("_", " ")
            groups.append(
                Events(name, x, Style(color, 0, mark), _height(best, origin, x), details=details, frame=frame)
            )
    return groups


def _height(rows: pl.DataFrame, origin: int, x: FloatArray) -> FloatArray:
    """Return cwnd as known at each `x` (0 before the first sample, so that no event goes unseen)."""
    known = rows.filter(pl.col("cwnd_segments").is_not_null())
    if not len(known):
        return np.zeros(len(x))
    at = np.searchsorted(seconds_after(origin, known["time"]), x, side="right") - 1
    values = floats(known["cwnd_segments"])
    return np.where(at >= 0, values[np.clip(at, 0, None)], values[0])


def _recoveries(recoveries: pl.DataFrame | None, origin: int) -> list[Events]:
    if recoveries is None or not len(recoveries):
        return []
    groups = []
    for kind, (name, mark, color) in _LOSSES.items():
        rows = recoveries.filter(pl.col("kind") == kind).sort("start")
        if len(rows):
            details = tuple(_recovery_words(row) for row in rows.iter_rows(named=True))
            groups.append(Events(name, seconds_after(origin, rows["start"]), Style(color, 0, mark), details=details))
    return groups


def _recovery_words(row: dict[str, object]) -> str:
    words = [
        f"{label} {row[key]}"
        for key, label in (
            ("lost_segments", "lost"),
            ("cwnd_before_segments", "cwnd before"),
            ("ssthresh_after_segments", "ssthresh after"),
        )
        if row.get(key) is not None
    ]
    return ", ".join([*words, "undone"] if row.get("undone") else words)


def _exits(slow_starts: pl.DataFrame | None, origin: int) -> list[Events]:
    """Return the ends of slow start, each with its cause beside it."""
    if slow_starts is None:
        return []
    rows = slow_starts.filter(pl.col("end").is_not_null()).sort("end")
    if not len(rows):
        return []
    labels = tuple(rows["exit_cause"].fill_null("unknown").to_list())
    details = tuple(rows["verdict"].fill_null("").to_list()) if "verdict" in rows.columns else ()
    return [
        Events("slow-start exit", seconds_after(origin, rows["end"]), Style(2, 0, "E"), labels=labels, details=details)
    ]
