"""The charts, by name: each turns rows of tables into a `Figure`. A chart is one file here and one line below.

Each chart module has two functions: one takes frames (for pipelines), and `build` takes them from a dataset. Modules
are loaded when their chart is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tracetool.errors import NothingMatchedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracetool.dataset import Dataset
    from tracetool.reconstruct.connections import Connection
    from tracetool.report.figure import Figure


MANY = 8
"""Flows that a chart which compares flows draws at most, unless told which."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart on offer.

    Attributes
    ----------
    module
        Module of this package that draws it.
    summary
        One line for help texts.
    flows
        Most flows that it draws when none is chosen.
    several
        Whether it can draw several flows.
    needs_flows
        False where it has something to show without any flow, too.
    """

    module: str
    summary: str
    flows: int = 1
    several: bool = False
    needs_flows: bool = True


CHARTS = {
    "cwnd": Chart("cwnd", "cwnd, ssthresh and bytes in flight, with losses and slow-start exits", several=True),
    "slow-start": Chart("slow_start", "slow start closely: cwnd, round trips, HyStart's delay and train tests"),
    "time-sequence": Chart("time_sequence", "segments, ACKs, SACKs and the window, in tcptrace's grammar"),
    "rtt": Chart("rtt", "round-trip times and their distribution", several=True),
    "inflight": Chart("inflight", "bytes in flight and what bounds them", several=True),
    "bbr": Chart("bbr", "BBR's bandwidth, pacing gain, phases, window and RTT"),
    "throughput": Chart("throughput", "goodput per flow, stacked, with Jain's index below", MANY, several=True),
    "fairness": Chart("fairness", "Jain's index over time scales", MANY, several=True),
    "cov": Chart("cov", "variation of the rate over time scales", MANY, several=True),
    "convergence": Chart(
        "convergence",
        "shares of flows after the last one started, and when they became fair",
        MANY,
        several=True,
    ),
    "queue": Chart(
        "queue",
        "the queue: delay and drops between two captures, or backlog and drops by a router's counters",
        MANY,
        several=True,
        needs_flows=False,
    ),
    "reordering": Chart("reordering", "how far packets were reordered, at the receiver"),
}


def build(
    name: str, dataset: Dataset, connections: Connection | Sequence[Connection] | None = None, **options: Any
) -> Figure:
    """Draw a chart of a dataset.

    Parameters
    ----------
    name
        One of `CHARTS`.
    connections
        What to draw; None: the flow with the most payload, or for charts that compare flows all that carry data.
        One only, unless the chart draws several.
    **options
        Options of the chart; see its `build`.

    Raises
    ------
    UsageError
        If there is no such chart, or it cannot draw several flows.
    NothingMatchedError
        If there is no flow to draw.
    """
    if name not in CHARTS:
        raise UsageError(f"no chart {name!r}: one of {', '.join(CHARTS)}")
    chart = CHARTS[name]
    chosen = _chosen(dataset, chart, connections)
    if len(chosen) > 1 and not chart.several:
        raise UsageError(f"the chart {name} draws one flow, not {len(chosen)}")
    figure: Figure = import_module(f"{__name__}.{chart.module}").build(dataset, chosen, **options)
    return figure


def _chosen(
    dataset: Dataset, chart: Chart, connections: Connection | Sequence[Connection] | None
) -> tuple[Connection, ...]:
    from tracetool.reconstruct.connections import Connection
    from tracetool.report.selection import heaviest

    if connections is None:
        try:
            return tuple(heaviest(dataset, chart.flows))
        except NothingMatchedError:
            if chart.needs_flows:
                raise
            return ()
    return (connections,) if isinstance(connections, Connection) else tuple(connections)
