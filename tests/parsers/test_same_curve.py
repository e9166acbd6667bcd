"""What iperf3 and ss say of cwnd lies on tcp_probe's curve, in every scenario of the shared traces that has them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

from tests.parsers.conftest import SHARED

NEAR_NS = 50_000_000
"""The bound: a window must be one that the kernel had within this time."""
STEP_NS = 5_000_000
TRACES = SHARED / "traces"
SCENARIOS = sorted({path.parent.name for path in TRACES.glob("*/iperf3-*.json")}) or ["(none)"]


class Curve(NamedTuple):
    """The kernel's cwnd of one flow: a line tells the state before its ACK is processed, the next one that after it."""

    times: np.ndarray
    windows: np.ndarray

    def outside(self, times, windows, near=NEAR_NS):
        """How far each window is outside of what the curve takes within `near` of its time, in segments."""
        first = np.maximum(np.searchsorted(self.times, times - near, "right") - 1, 0)
        last = np.searchsorted(self.times, times + near, "right") + 1
        taken = [self.windows[low:high] for low, high in zip(first, last, strict=True)]
        return np.array([max(0, part.min() - w, w - part.max()) for part, w in zip(taken, windows, strict=True)])


def ends(result):
    return {(row["addr_a"], row["port_a"]): row["flow"] for row in result.rows("flows")}


def told(result, flow):
    rows = result.frames["samples"].filter((pl.col("flow") == flow) & pl.col("cwnd_segments").is_not_null())
    return rows["time"].to_physical().to_numpy(), rows["cwnd_segments"].to_numpy()


@pytest.mark.parametrize("name", SCENARIOS)
def test_windows_lie_on_the_curve_of_tcp_probe(read_file, name):
    probes = read_file(f"traces/{name}/tcp_probe.txt.gz")
    curves = {end: Curve(*told(probes, flow)) for end, flow in ends(probes).items()}

    # iperf3 tells its start in whole seconds: one shift of less than that, and a little for setting up, fits all ends.
    reports = sorted(TRACES.glob(f"{name}/iperf3-*.json"))
    assert reports
    checked = 0
    for path in reports:
        report = read_file(f"traces/{name}/{path.name}")
        for end, flow in ends(report).items():
            if report.rows("flows")[flow]["protocol"] != "tcp":
                continue
            times, windows = told(report, flow)
            times, windows = times[:-1], windows[:-1]  # the last is read after the close
            missed = [
                (curves[end].outside(times + shift, windows) > 0).sum() for shift in range(0, 1_500_000_000, STEP_NS)
            ]
            assert min(missed) == 0, f"{path.name}: {min(missed)} of {len(times)} windows are not on the curve"
            checked += len(times)
    assert checked >= 10

    # ss polls a socket at its own time, some milliseconds after the line of `date`.
    polls = read_file(f"traces/{name}/ss.txt.gz")
    checked = missed = 0
    for end, flow in ends(polls).items():
        times, windows = told(polls, flow)
        curve = curves.get(end)
        if curve is None or len(curve.times) < 500:  # iperf3's control connection
            continue
        inside = (times >= curve.times[0]) & (times <= curve.times[-1])
        missed += (curve.outside(times[inside], windows[inside]) > 0).sum()
        assert (curve.outside(times[inside], 2 * windows[inside]) > 0).mean() > 0.5  # a wrong unit would be seen
        checked += inside.sum()
    assert checked >= 50
    assert missed == 0, f"ss: {missed} of {checked} windows are not on the curve"
