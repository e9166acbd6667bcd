"""Flent's numbers as Flent computes them, traps included, so that results can be compared.

Read from tohojo/flent (runners, combiners, plotters). Use the byte-based metrics for new work:
sums over interpolated steps fall short wherever a series has a gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tracetool.measures import Measure, Number, exact, mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl


@dataclass(frozen=True, slots=True)
class StepTotals:
    """Sum and mean over the series that have a value, at each step."""

    sum: list[float | None]
    avg: list[float | None]


def flent_sum_avg(series: Sequence[Sequence[Number | None]]) -> StepTotals:
    """Return sum and mean of several series at each step, over the values that are there.

    A gap in one series makes the sum dip: this is Flent's rule, not a finding.

    Examples
    --------
    >>> flent_sum_avg([[None, 4], [4, 4]]).sum
    [4.0, 8.0]
    """
    sums: list[float | None] = []
    means: list[float | None] = []
    for step in zip(*series, strict=True):
        values = [Fraction(value) for value in exact(step, "series") if value is not None]
        sums.append(float(sum(values)) if values else None)
        means.append(mean(values))
    return StepTotals(sums, means)


def flent_mean_span(ping: Sequence[Number | None]) -> Measure:
    """Return the mean of the values minus their minimum ("mean induced latency").

    Examples
    --------
    >>> flent_mean_span([10, 12, 20, None, 14]).value
    4.0
    """
    values = [Fraction(value) for value in exact(ping, "ping") if value is not None]
    average = mean([value - min(values) for value in values])
    return Measure(average) if average is not None else Measure.undefined("no-input")


def flent_plot_smoothing(x: Sequence[Number], smoothing: int) -> list[float]:
    """Return a series as Flent's plots smooth it: a box filter with zeros beyond the ends.

    Parameters
    ----------
    x
        The series.
    smoothing
        Window length; an even one is widened by 1. Points nearer to an end than half the window
        are drawn too low.

    Examples
    --------
    >>> flent_plot_smoothing([3, 3, 3], 2)
    [2.0, 3.0, 2.0]
    """
    if smoothing < 1:
        raise ValueError(f"smoothing={smoothing}: expected at least 1 point")
    window = smoothing + (smoothing % 2 == 0)
    half = window // 2
    values = [Fraction(value) for value in exact(x) if value is not None]
    return [
        float(sum(values[max(0, centre - half) : centre + half + 1], Fraction(0)) / window)
        for centre in range(len(values))
    ]


def flent_totals(samples: pl.DataFrame) -> pl.DataFrame:
    """Return sum and mean per time step of several series.

    Parameters
    ----------
    samples
        ``time``, ``series``, ``value``; a null value is a gap.

    Returns
    -------
    polars.DataFrame
        ``time``, ``sum``, ``avg``, ``series`` (how many had a value).
    """
    import polars as pl

    seen = pl.col("value").count()
    return (
        samples.group_by("time")
        .agg(
            pl.when(seen > 0).then(pl.col("value").sum()).alias("sum"),
            pl.col("value").mean().alias("avg"),
            seen.cast(pl.Int64).alias("series"),
        )
        .sort("time")
    )
