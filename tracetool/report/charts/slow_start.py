"""Slow start closely: cwnd round by round, and the two tests by which HyStart leaves it.

HyStart (Ha, Rhee 2011) as Linux has it (tcp_cubic.c, hystart_update): the *delay* test leaves slow start when the RTT
of a round's first eight samples exceeds the smallest RTT by an eighth of it (4 to 16 ms); the *train* test when ACKs
that follow one another within 2 ms span more than half the smallest RTT (all of it where the socket is paced).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tracetool.errors import NothingMatchedError
from tracetool.metrics.slow_start import hystart_delay_threshold_ms
from tracetool.report.figure import Axis, Events, Figure, Panel, Series, Style, floats, seconds_after
from tracetool.report.selection import display_filter, one_view, rows, samples_of, title_of
from tracetool.report.tracks import best_origin, origin_words, start_of, track, value_axis

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tracetool.dataset import Dataset
    from tracetool.reconstruct.connections import Connection
    from tracetool.report.figure import FloatArray

MS = 1e-6
ACK_DELTA_S = 0.002
"""ACKs further apart than this end a train (tcp_cubic.c: hystart_ack_delta_us)."""
AFTER = 0.5
"""How much of the time to the exit is shown after it."""
DEFAULT_SECONDS = 2.0
"""What is shown where slow start never ended."""


def slow_start_figure(
    samples: pl.DataFrame,
    *,
    rtts: pl.DataFrame | None = None,
    slow_starts: pl.DataFrame | None = None,
    seconds: float | None = None,
    flow_label: str = "",
    log: bool = False,
    display_filter: str = "",
) -> Figure:
    """Return cwnd, RTT and ACK trains of one flow until shortly after its first slow start ended.

    Parameters
    ----------
    samples
        Rows of `samples` of one flow; the most trusted origin that knows cwnd is drawn.
    rtts, slow_starts
        Rows of those tables of the same flow.
    seconds
        How much to show; by default half as much again as slow start took, or 2 s where it never ended.
    log
        Logarithmic window axis, on which slow start is a straight line.

    Examples
    --------
    >>> from datetime import datetime
    >>> row = {"flow": 0, "origin": "tcp_probe", "time": datetime(2026, 1, 1), "cwnd_segments": 10}
    >>> slow_start_figure(pl.DataFrame([row])).panels[0].y.label
    'window'
    """
    best = best_origin(samples, ("cwnd_segments",))
    origin = start_of(best, rtts)
    exits = _exits(slow_starts, origin)
    shown = seconds or _shown(exits, best, origin)
    best = _until(best, origin, shown)
    x = seconds_after(origin, best["time"])
    rounds = _rounds(best)
    window = [
        *track(best, origin, "ssthresh_segments", "ssthresh", Style(1, 1, "#")),
        *track(best, origin, "cwnd_segments", "cwnd", Style(0, 0, "*")),
    ]
    starts = Events("round trip", x[rounds], Style(6, 0, "r"), labels=tuple(str(n + 1) for n in range(len(rounds))))
    panels = [Panel(value_axis("window", "segments", log=log), tuple(window), (*exits, starts), weight=1.4)]
    timed = (
        _until(rtts.filter(pl.col("method") != "handshake").sort("time"), origin, shown) if rtts is not None else None
    )
    delay, least = _delay_panel(timed, best, origin, x[rounds])
    panels += [delay] if delay.series else []
    if len(rounds):
        panels.append(_train_panel(x, rounds, least))
    return Figure(
        title=f"slow start: {flow_label}" if flow_label else "slow start",
        subtitle=f"{origin_words(best['origin'][0])}, {len(best):,} samples" if len(best) else "no samples",
        x=Axis("time since first sample", "s", low=0.0, high=shown),
        panels=tuple(panels),
        origin_ns=origin,
        display_filter=display_filter,
    )


def _exits(slow_starts: pl.DataFrame | None, origin: int) -> tuple[Events, ...]:
    ended = None if slow_starts is None else slow_starts.filter(pl.col("end").is_not_null()).sort("end")
    if ended is None or not len(ended):
        return ()
    labels = tuple(ended["exit_cause"].cast(pl.String).fill_null("unknown").to_list())
    words = ended["evidence"] if "evidence" in ended.columns else ended["exit_cause"]
    details = tuple(words.cast(pl.String).fill_null("").to_list())
    return (
        Events(
            "slow-start exit", seconds_after(origin, ended["end"]), Style(2, 0, "E"), labels=labels, details=details
        ),
    )


def _shown(exits: tuple[Events, ...], samples: pl.DataFrame, origin: int) -> float:
    if exits:
        return float(exits[0].x[0]) * (1 + AFTER) or DEFAULT_SECONDS
    first = (
        samples.filter(pl.col("ssthresh_segments").is_not_null()) if "ssthresh_segments" in samples.columns else None
    )
    if first is not None and len(first):
        return float(seconds_after(origin, first["time"].head(1))[0]) * (1 + AFTER) or DEFAULT_SECONDS
    return DEFAULT_SECONDS


def _until(table: pl.DataFrame, origin: int, seconds: float) -> pl.DataFrame:
    return table.filter(pl.Series(seconds_after(origin, table["time"]) <= seconds, dtype=pl.Boolean))


def _rounds(samples: pl.DataFrame) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    """Return the rows where a round trip begins: when all that was sent when the last one began is acknowledged."""
    if (
        not {"snd_una", "snd_nxt"} <= set(samples.columns)
        or samples["snd_una"].null_count() + samples["snd_nxt"].null_count()
    ):
        return np.empty(0, np.intp)
    acknowledged = np.maximum.accumulate(samples["snd_una"].to_numpy())
    sent = samples["snd_nxt"].to_numpy()
    starts = [0] if len(sent) else []
    while starts:
        following = int(np.searchsorted(acknowledged, sent[starts[-1]], side="left"))
        if following >= len(sent) or following <= starts[-1]:
            break
        starts.append(following)
    return np.array(starts, np.intp)


def _delay_panel(
    rtts: pl.DataFrame | None, samples: pl.DataFrame, origin: int, starts: FloatArray
) -> tuple[Panel, float | None]:
    """Return RTT samples, each round's smallest, and the delay test's threshold; and the smallest RTT in ms."""
    series: list[Series] = []
    least: float | None = None
    if rtts is not None and rtts["rtt_ns"].count():
        x, y = seconds_after(origin, rtts["time"]), floats(rtts["rtt_ns"]) * MS
        least = float(np.nanmin(y))
        limit = least + hystart_delay_threshold_ms(least)
        ends = np.array([0.0, x[-1]])
        series.append(Series("RTT", "points", x, y, Style(5, 0, ".", light=True)))
        series.append(Series("delay test's limit", "line", ends, np.full(2, limit), Style(1, 1, "-")))
        if len(starts):
            part = np.searchsorted(starts, x, side="right") - 1
            floor = np.array([y[part == n].min(initial=np.inf) for n in (*range(len(starts)), len(starts) - 1)])
            floor[np.isinf(floor)] = np.nan
            until = np.append(starts, max(x[-1], starts[-1]))
            series.append(Series("smallest of the round", "step", until, floor, Style(0, 0, "*")))
    else:
        series += track(samples, origin, "srtt_ns", "smoothed RTT", Style(0, 0, "*"), factor=MS)
        column = "min_rtt_ns" if "min_rtt_ns" in samples.columns and samples["min_rtt_ns"].count() else "srtt_ns"
        smallest = floats(samples[column]) if column in samples.columns else np.empty(0)
        least = float(np.nanmin(smallest)) * MS if np.isfinite(smallest).any() else None
    return Panel(Axis("RTT", "ms"), tuple(series)), least


def _train_panel(x: FloatArray, rounds: np.ndarray[tuple[int, ...], np.dtype[np.intp]], least: float | None) -> Panel:
    """Return how long the ACK train of each round has grown, and the train test's limits."""
    part = np.searchsorted(rounds, np.arange(len(x)), side="right") - 1
    begun = x[rounds][np.clip(part, 0, None)]
    gaps = np.diff(x, prepend=x[:1])
    gaps[rounds] = 0.0
    # A train is whole up to the first gap of its round.
    broken = np.cumsum(gaps > ACK_DELTA_S)
    whole = broken == broken[rounds][np.clip(part, 0, None)]
    length = np.where(whole & (part >= 0), (x - begun) * 1e3, np.nan)
    series = [Series("ACK train", "step", x, length, Style(0, 0, "*"))]
    if least is not None:
        ends = x[[0, -1]]
        series.append(Series("train test's limit, not paced", "line", ends, np.full(2, least / 2), Style(1, 1, "-")))
        series.append(Series("train test's limit, paced", "line", ends, np.full(2, least), Style(4, 2, "=")))
    return Panel(Axis("ACK train", "ms", low=0.0), tuple(series), weight=0.8)


def build(dataset: Dataset, connections: Sequence[Connection], **options: Any) -> Figure:
    """Return the figure of the first of `connections`; options are those of `slow_start_figure`."""
    connection = connections[0]
    samples = samples_of(dataset, connection)
    if not samples["cwnd_segments"].count():
        raise NothingMatchedError(f"{connection.label}: nothing is known of its cwnd")
    seen = one_view(connection)
    return slow_start_figure(
        samples,
        rtts=rows(dataset, "rtts", seen),
        slow_starts=rows(dataset, "slow_starts", seen),
        flow_label=title_of(dataset, connection),
        display_filter=display_filter(connection),
        **options,
    )
