"""Columns of tables as series of a figure: what several charts draw alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tracetool.report.figure import Axis, Series, Span, Style, floats, frames, nanoseconds, seconds_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracetool.report.figure import SeriesKind

ORIGINS = {
    "tcp_probe": "kernel, tcp_probe",
    "ss": "kernel, ss",
    "iperf3": "kernel, iperf3",
    "inferred": "inferred from packets",
}
"""Origins of samples in the order of trust, with the words for them."""

PHASES = {
    "slow_start": ("slow start", "s", 2),
    "congestion_avoidance": ("congestion avoidance", "a", 5),
    "recovery": ("recovery", "r", 3),
    "loss": ("loss (RTO)", "l", 1),
    "startup": ("startup", "s", 2),
    "drain": ("drain", "d", 4),
    "probe_bw": ("probe_bw", "b", 5),
    "probe_rtt": ("probe_rtt", "t", 3),
}
"""Phases of samples: name, letter in text, palette slot."""

MAX_SPANS = 400
"""Phases that change more often than this are not shaded: nobody would see them."""

NEARLY = 0.9
"""An origin that knows a column in this share of its rows knows it well enough to be drawn alone."""

FLOW_MARKS = "*o+x#%@&$"


def flow_style(slot: int, *, light: bool = False) -> Style:
    """Return the style of the flow at this position: colour, dash and mark all differ from its neighbours'."""
    return Style(slot, slot, FLOW_MARKS[slot % len(FLOW_MARKS)], light=light)


def value_axis(label: str, unit: str = "", *, log: bool = False) -> Axis:
    """Return an axis that begins at zero, or a logarithmic one."""
    return Axis(label, unit, "log" if log else "linear", None if log else 0.0)


def start_of(*tables: pl.DataFrame | None) -> int:
    """Return the earliest `time` of the tables in ns since the epoch; 0 where there is none."""
    firsts = [nanoseconds(table["time"].sort().head(1)) for table in tables if table is not None and len(table)]
    return int(min((first[0] for first in firsts), default=0))


def track(
    rows: pl.DataFrame,
    origin: int,
    column: str,
    name: str,
    style: Style,
    *,
    kind: SeriesKind = "step",
    factor: float = 1.0,
) -> list[Series]:
    """Return a column against time, times `factor`; no series where the column is missing or never known.

    Examples
    --------
    >>> from datetime import datetime
    >>> frame = pl.DataFrame({"time": [datetime(1970, 1, 1)], "rtt_ns": [2_000_000]})
    >>> track(frame, 0, "rtt_ns", "RTT", Style(), factor=1e-6)[0].y.tolist()
    [2.0]
    """
    if column not in rows.columns or rows[column].null_count() == len(rows):
        return []
    frame = frames(rows["frame"]) if "frame" in rows.columns else None
    return [Series(name, kind, seconds_after(origin, rows["time"]), floats(rows[column]) * factor, style, frame=frame)]


def origins_in(samples: pl.DataFrame) -> list[str]:
    """Return the origins present, in the order of `ORIGINS`, strangers last."""
    order = {name: rank for rank, name in enumerate(ORIGINS)}
    return sorted(
        samples["origin"].unique().to_list(), key=lambda name: (order.get(name.split(" ")[0], len(order)), name)
    )


def origin_words(name: str) -> str:
    """Return the words for an origin, which an input's name may follow."""
    kind, _, where = name.partition(" ")
    return ORIGINS.get(kind, kind) + (f" ({where})" if where else "")


def best_origin(samples: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Return the rows of the most trusted origin that knows `columns` nearly always, and about as often as any other.

    A socket polled now and then is the kernel's word, but a poor curve beside one row per ACK. All rows are of one
    input. Without such an origin it is the one that knows most.
    """
    found = []
    for name in origins_in(samples):
        rows = samples.filter(pl.col("origin") == name)
        rows = rows.filter(pl.col("input") == rows["input"][0]) if "input" in rows.columns else rows
        found.append((max((rows[column].count() for column in columns if column in rows.columns), default=0), rows))
    most = max((known for known, _ in found), default=0)
    if not most:
        return samples.clear()
    good = (rows for known, rows in found if known >= NEARLY * len(rows) and known >= most / 2)
    return next(good, next(rows for known, rows in found if known == most))


def typical_mss(*tables: pl.DataFrame) -> int | None:
    """Return the median `mss_bytes` of the first table that knows it; None if none does.

    Examples
    --------
    >>> typical_mss(pl.DataFrame({"cwnd_segments": [1]}), pl.DataFrame({"mss_bytes": [1448, 1448, 536]}))
    1448
    """
    for table in tables:
        median = table["mss_bytes"].median() if "mss_bytes" in table.columns else None
        if isinstance(median, (int, float)) and median > 0:
            return int(median)
    return None


def phase_spans(rows: pl.DataFrame, origin: int) -> list[Span]:
    """Return runs of equal phase; none if the phase is unknown or flips too often to be seen."""
    if "phase" not in rows.columns or not len(rows) or rows["phase"].null_count() == len(rows):
        return []
    x = seconds_after(origin, rows["time"])
    runs = (
        rows.select(x=pl.Series(x), phase=pl.col("phase").cast(pl.String), run=pl.col("phase").rle_id())
        .group_by("run", maintain_order=True)
        .agg(pl.col("x").first(), pl.col("phase").first())
        .with_columns(end=pl.col("x").shift(-1, fill_value=float(x[-1])))
    )
    if len(runs) > MAX_SPANS:
        return []
    return [
        Span(start, end, *PHASES.get(phase, (phase, "?", 6)))
        for start, phase, end in runs.select("x", "phase", "end").iter_rows()
        if phase is not None
    ]
