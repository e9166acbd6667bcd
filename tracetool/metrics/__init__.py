"""The metrics: one file per family, each a pure function from tables to a Polars frame.

The registry says what there is without loading any of it; `Metric.load` imports one family.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from tracetool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl


@dataclass(frozen=True, slots=True)
class Metric:
    """One registered metric.

    Parameters
    ----------
    name
        How commands and tables call it.
    description
        One line, with the source of the definition.
    unit
        Of its main value; ``1`` for ratios.
    inputs
        The tables (or metric results) that the function takes, in order.
    target
        ``module:function`` below `tracetool.metrics`.
    """

    name: str
    description: str
    unit: str
    inputs: tuple[str, ...]
    target: str

    def load(self) -> Callable[..., pl.DataFrame]:
        """Import the family and return its function."""
        module, function = self.target.split(":")
        found: Callable[..., pl.DataFrame] = getattr(import_module(f"{__name__}.{module}"), function)
        return found


_METRICS = (
    Metric("throughput", "Throughput, goodput and their ratio per flow (RFC 3148, RFC 5166)", "bit/s", ("packets",),
           "throughput:throughput"),
    Metric("completion_time", "From the SYN to the ACK of the last payload byte (RFC 7928)", "s",
           ("packets", "flows"), "completion_time:completion_time"),
    Metric("rfc6349", "Transfer time ratio, TCP efficiency, buffer delay (RFC 6349)", "1 and %",
           ("throughput", "rtts"), "rfc6349:rfc6349"),
    Metric("link_utilisation", "Used share of the bottleneck at a named layer (RFC 5136)", "1", ("bytes per flow",),
           "utilisation:utilisation"),
    Metric("fairness", "Jain's index, throughput ratio, product, max-min share (RFC 5166)", "1",
           ("bytes per flow",), "fairness:fairness"),
    Metric("jain_by_scale", "Jain's index in windows of 1 s to 160 s", "1", ("binned bytes",),
           "jain_by_scale:jain_by_scale"),
    Metric("cov_by_scale", "Coefficient of variation of the total and each flow (RFC 5166)", "1", ("binned bytes",),
           "variation:cov_by_scale"),
    Metric("convergence_time", "Until a new flow has its share: by Jain's index, δ-fair, ε-fair (RFC 5166)", "s",
           ("binned bytes",), "convergence:convergence"),
    Metric("queue_drops_by_counters", "Drops over arrivals from router counters (RFC 7928)", "1",
           ("queue_counters",), "queue_drops:drops_from_counters"),
    Metric("queue_drops_by_captures", "Drops over arrivals from captures on both sides (RFC 7680)", "1",
           ("packets before", "packets after"), "queue_drops:drops_from_captures"),
    Metric("loss", "Retransmission ratio, loss estimate, loss events (RFC 3708, RFC 5348)", "1", ("packets",),
           "loss:loss"),
    Metric("tcp_friendly", "Goodput over the rate of TFRC's equation (RFC 5348)", "1", ("throughput with loss",),
           "response_function:tcp_friendly"),
    Metric("rtt", "Round-trip times by method: least, mean, median, p95, p99", "ns", ("rtts",),
           "rtt:rtt_statistics"),
    Metric("rtt_timestamp", "Round-trip times from TCP timestamps (RFC 7323)", "ns", ("packets",),
           "rtt:rtt_timestamp"),
    Metric("latency_under_load", "Rise of the round-trip time under load (RFC 7928)", "ns", ("rtts",),
           "latency:latency_under_load"),
    Metric("flent_totals", "Sum and mean of series per step, as Flent computes them", "bit/s", ("series",),
           "flent:flent_totals"),
    Metric("responsiveness", "Round trips per minute under load, passive TCP form", "1/min", ("rtts",),
           "responsiveness:responsiveness"),
    Metric("host_fairness", "Largest over smallest host rate, and Jain's index over hosts", "1",
           ("bytes per host and flow",), "host_fairness:hosts"),
    Metric("group_fairness", "Protocols, RTTs or TCP and UDP against each other, by min(F, 1/F)", "1",
           ("bytes per group and flow",), "protocol_fairness:groups"),
    Metric("reordering", "Reordered ratio, extent, late time, 3-reordering (RFC 4737)", "1", ("packets",),
           "reordering:reordering"),
    Metric("reordering_by_sack", "Segments that SACKs passed over and that arrived: a sender's lower bound", "1",
           ("packets",), "reordering_by_sack:reordering_by_sack"),
    Metric("reorder_density", "Reorder density and buffer-occupancy density (RFC 5236)", "1",
           ("arrivals in send order",), "reorder_density:reorder_density"),
    Metric("out_of_sequence", "Out-of-sequence segments by class (Jaiswal et al., tstat)", "segments",
           ("packets", "rtts"), "out_of_sequence:out_of_sequence"),
    Metric("slow_start", "Slow-start exits: causes, windows, fit to the path", "segments and 1",
           ("slow_starts",), "slow_start:slow_start"),
    Metric("repetitions", "Mean of a metric over repetitions, with n of m", "as given", ("measures",),
           "repetitions:repetition_means"),
)  # fmt: skip

METRICS = {metric.name: metric for metric in _METRICS}


def get(name: str) -> Metric:
    """Return a registered metric.

    Raises
    ------
    UsageError
        There is no such metric.

    Examples
    --------
    >>> get("rtt").unit
    'ns'
    """
    try:
        return METRICS[name]
    except KeyError:
        raise UsageError(f"no metric {name!r}: expected one of {', '.join(METRICS)}") from None
