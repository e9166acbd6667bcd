"""Latency under load: how far delay rises when the link is busy, and how it varies.

Delay variation by RFC 5481, the empirical distribution by RFC 7928 section 2.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from tracetool.measures import Measure, Number, exact, mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl


def percentile(x: Sequence[Number | None], share: Number) -> Measure:
    """Return a percentile by linear interpolation between the sorted values.

    Parameters
    ----------
    x
        Values; null is a gap and left out.
    share
        0 to 1: 0.5 is the median.

    Examples
    --------
    >>> percentile([1, 2, 3, 4], 0.5).value
    2.5
    """
    values = sorted(Fraction(value) for value in exact(x) if value is not None)
    if not 0 <= share <= 1:
        raise ValueError(f"percentile {share}: expected a share from 0 to 1")
    if not values:
        return Measure.undefined("no-input")
    rank = Fraction(share) * (len(values) - 1)
    low = int(rank)
    high = min(low + 1, len(values) - 1)
    return Measure(float(values[low] + (values[high] - values[low]) * (rank - low)))


def ecdf(x: Sequence[Number | None]) -> list[tuple[float, float]]:
    """Return the empirical distribution: each sorted value with its rank over n.

    Examples
    --------
    >>> ecdf([3, 1])
    [(1.0, 0.5), (3.0, 1.0)]
    """
    values = sorted(Fraction(value) for value in exact(x) if value is not None)
    return [(float(value), (rank + 1) / len(values)) for rank, value in enumerate(values)]


def delay_variation(x: Sequence[Number]) -> list[float]:
    """Return the packet delay variation, each delay above the smallest (RFC 5481's PDV).

    Examples
    --------
    >>> delay_variation([12, 10, 15])
    [2.0, 0.0, 5.0]
    """
    values = [Fraction(value) for value in exact(x) if value is not None]
    return [float(value - min(values)) for value in values]


def inter_packet_delay_variation(x: Sequence[Number]) -> list[float]:
    """Return each delay less the one before (RFC 5481's IPDV).

    Examples
    --------
    >>> inter_packet_delay_variation([12, 10, 15])
    [-2.0, 5.0]
    """
    values = [Fraction(value) for value in exact(x) if value is not None]
    return [float(after - before) for before, after in pairwise(values)]


@dataclass(frozen=True, slots=True)
class LatencyIncrease:
    """Means and medians, idle and loaded, in the samples' unit, and the differences."""

    mean_increase: Measure
    median_increase: Measure
    baseline: str


def latency_increase(idle: Sequence[Number | None], loaded: Sequence[Number | None]) -> LatencyIncrease:
    """Return how far delay rises under load.

    Parameters
    ----------
    idle
        Delays without load; with none, the baseline is the smallest loaded one and labelled ``min``.
    loaded
        Delays under load.

    Examples
    --------
    >>> latency_increase([10, 10], [30, 40]).mean_increase.value
    25.0
    """
    busy = [Fraction(value) for value in exact(loaded, "loaded") if value is not None]
    quiet = [Fraction(value) for value in exact(idle, "idle") if value is not None]
    if not busy:
        nothing = Measure.undefined("no-input")
        return LatencyIncrease(nothing, nothing, "idle" if quiet else "min")
    base = quiet or [min(busy)]
    high, low = percentile(busy, Fraction(1, 2)).value, percentile(base, Fraction(1, 2)).value
    gap = sum(busy, Fraction(0)) / len(busy) - sum(base, Fraction(0)) / len(base)
    median = Measure((high or 0.0) - (low or 0.0))
    return LatencyIncrease(Measure(float(gap)), median, "idle" if quiet else "min")


def induced_latency(x: Sequence[Number | None]) -> Measure:
    """Return the mean of the values above the smallest of the same series (Flent's ``mean_span``).

    Examples
    --------
    >>> induced_latency([10, 12, 20, None, 14]).value
    4.0
    """
    value = mean([Fraction(number) for number in delay_variation([v for v in x if v is not None])])
    return Measure(value) if value is not None else Measure.undefined("no-input")


def latency_under_load(rtts: pl.DataFrame, *, load_start_ns: int, load_end_ns: int, cut_ns: int = 0) -> pl.DataFrame:
    """Measure how far RTTs rise between the start and the end of a load.

    Parameters
    ----------
    rtts
        Rows of ``rtts`` (of probes, or of the loading flows themselves).
    load_start_ns, load_end_ns
        When the load ran, nanoseconds since 1970.
    cut_ns
        How much to leave out inside both ends of the load.

    Returns
    -------
    polars.DataFrame
        One row per method: ``method``, ``idle_n``, ``loaded_n``, ``mean_increase_ns``,
        ``median_increase_ns``, ``reason``, ``baseline`` (``idle``, or ``min`` without an idle part).
    """
    import polars as pl

    time = pl.col("time").cast(pl.Int64)
    busy = time.is_between(load_start_ns + cut_ns, load_end_ns - cut_ns)
    quiet = ~time.is_between(load_start_ns, load_end_ns)
    rows = []
    for (method,), group in rtts.with_columns(pl.col("method").cast(pl.String)).group_by("method", maintain_order=True):
        idle, loaded = (group.filter(part)["rtt_ns"].to_list() for part in (quiet, busy))
        found = latency_increase(idle, loaded)
        rows.append(
            (
                method,
                len(idle),
                len(loaded),
                found.mean_increase.value,
                found.median_increase.value,
                found.mean_increase.reason,
                found.baseline,
            )
        )
    schema = {
        "method": pl.String,
        "idle_n": pl.Int64,
        "loaded_n": pl.Int64,
        "mean_increase_ns": pl.Float64,
        "median_increase_ns": pl.Float64,
        "reason": pl.String,
        "baseline": pl.String,
    }
    return pl.DataFrame(rows, schema=schema, orient="row").sort("method")
