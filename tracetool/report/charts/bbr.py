"""What a BBR sender believes and does: bandwidth and pacing, the gain between them, its phases, data in flight, RTT.

BBR (Cardwell et al., ACM Queue 2016) models the path by its bandwidth (the largest delivery rate of ten round trips)
and its smallest RTT, and cycles its pacing gain through 1.25, 0.75 and 1 to probe for more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tracetool.errors import NothingMatchedError
from tracetool.report.figure import Axis, Figure, Panel, Series, Style, floats, seconds_after
from tracetool.report.selection import congestion_control, display_filter, samples_of, title_of
from tracetool.report.tracks import best_origin, origin_words, phase_spans, start_of, track, value_axis

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tracetool.dataset import Dataset
    from tracetool.reconstruct.connections import Connection

MBIT, MS = 1e-6, 1e-6
HIGHEST_GAIN = 3.2
"""Top of the axis of gains, above the 2/ln 2 of startup (bbr_high_gain); without a known rate a ratio means nothing."""
BANDWIDTH_ROUNDS = 10
"""Round trips over which BBR takes the largest delivery rate (Linux tcp_bbr.c: bbr_bw_rtts)."""


def bbr_figure(
    samples: pl.DataFrame,
    *,
    flow_label: str = "",
    log: bool = False,
    display_filter: str = "",
    notes: tuple[str, ...] = (),
) -> Figure:
    """Return rates, gain, windows and RTT of one flow against time, its phases shaded.

    Parameters
    ----------
    samples
        Rows of `samples` of one flow. Each panel draws the most trusted origin that knows its numbers.
    log
        Logarithmic axis for the rates.
    notes
        Sentences to stand under the figure.

    Examples
    --------
    >>> from datetime import datetime
    >>> row = {"flow": 0, "origin": "ss", "time": datetime(2026, 1, 1), "delivery_rate_bps": 5_000_000}
    >>> bbr_figure(pl.DataFrame([row])).panels[0].series[0].y.tolist()
    [5.0]
    """
    origin = start_of(samples)
    paced, delivered = (best_origin(samples, (column,)) for column in ("pacing_rate_bps", "delivery_rate_bps"))
    spans = tuple(phase_spans(best_origin(samples, ("phase",)), origin))
    windows = best_origin(samples, ("cwnd_segments",))
    timed = best_origin(samples, ("srtt_ns", "min_rtt_ns"))
    rates = [
        *track(delivered, origin, "delivery_rate_bps", "delivery rate", Style(6, 2, ".", light=True), factor=MBIT),
        *track(paced, origin, "pacing_rate_bps", "pacing rate", Style(1, 1, "#"), factor=MBIT),
    ]
    bandwidth = _bandwidth(delivered)
    panels = []
    if bandwidth is not None:
        x = seconds_after(origin, delivered["time"])
        rates.append(Series("bandwidth (largest of 10 rounds)", "step", x, bandwidth * MBIT, Style(0, 0, "*")))
        gain = np.full(len(x), np.nan)
        if "pacing_rate_bps" in delivered.columns:
            np.divide(floats(delivered["pacing_rate_bps"]), bandwidth, out=gain, where=bandwidth > 0)
        if np.isfinite(gain).any():
            gains = (Series("pacing rate / bandwidth", "step", x, gain, Style(2, 0, "*")),)
            panels.append(Panel(Axis("gain", low=0.0, high=HIGHEST_GAIN), gains, weight=0.7))
    panels.insert(0, Panel(value_axis("rate", "Mbit/s", log=log), tuple(rates), spans=spans))
    panels.append(
        Panel(
            value_axis("window", "segments"), tuple(track(windows, origin, "cwnd_segments", "cwnd", Style(0, 0, "*")))
        )
    )
    delays = [
        *track(timed, origin, "srtt_ns", "smoothed RTT", Style(1, 0, "#"), factor=MS),
        *track(timed, origin, "min_rtt_ns", "smallest RTT", Style(2, 1, "_"), factor=MS),
    ]
    panels.append(Panel(value_axis("RTT", "ms"), tuple(delays), weight=0.8))
    sources = dict.fromkeys(part["origin"][0] for part in (paced, delivered, windows, timed) if len(part))
    return Figure(
        title=f"BBR's model of the path: {flow_label}" if flow_label else "BBR's model of the path",
        subtitle=", ".join(origin_words(name) for name in sources),
        x=Axis("time since first sample", "s"),
        panels=tuple(panel for panel in panels if panel.series) or (panels[0],),
        notes=notes,
        origin_ns=origin,
        display_filter=display_filter,
    )


def _bandwidth(rows: pl.DataFrame) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None:
    """Return the largest delivery rate of the last ten smoothed round trips; None where either is unknown."""
    if not {"delivery_rate_bps", "srtt_ns"} <= set(rows.columns) or not rows["delivery_rate_bps"].count():
        return None
    srtt = rows["srtt_ns"].median()
    if not isinstance(srtt, (int, float)) or srtt <= 0:
        return None
    largest = rows.select(
        pl.col("delivery_rate_bps").rolling_max_by("time", window_size=f"{round(BANDWIDTH_ROUNDS * srtt)}ns")
    ).to_series()
    return floats(largest)


def build(dataset: Dataset, connections: Sequence[Connection], **options: Any) -> Figure:
    """Return the figure of the first of `connections`; options are those of `bbr_figure`."""
    samples = samples_of(dataset, connections[0])
    if not len(samples):
        raise NothingMatchedError(f"{connections[0].label}: nothing is known of its sender")
    return bbr_figure(
        samples,
        flow_label=title_of(dataset, connections[0]),
        display_filter=display_filter(connections[0]),
        notes=_no_bbr(congestion_control(dataset, connections[0])),
        **options,
    )


def _no_bbr(control: str) -> tuple[str, ...]:
    """Return a sentence where the sender is not known to be BBR."""
    if control.startswith("bbr"):
        return ()
    who = f"This sender is {control}, not BBR" if control else "Nothing shows that this sender is BBR"
    return (f"{who}: the curves are what was seen of it, not BBR's model.",)
