"""Coefficient of variation of the total and of each flow, over time scales.

RFC 5166 section 2.2.2: the variation of one flow misleads under cross traffic, so it is
complemented by that of the aggregate seen at the bottleneck.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from tracetool.measures import Measure, Number, exact, window_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl


def cov(x: Sequence[Number | None], *, ddof: int = 0) -> Measure:
    """Return the coefficient of variation, standard deviation over mean.

    Parameters
    ----------
    x
        Bytes (or rates) per window; null is a gap, its window is left out; 0 is idle and counts.
    ddof
        0 for the population's standard deviation, 1 for the sample's.

    Returns
    -------
    Measure
        Null with ``no-flows`` (no window at all), ``insufficient-windows`` or ``all-zero``.

    Examples
    --------
    >>> round(cov([90, 110, 100, 100]).value, 6)
    0.070711
    """
    values = [Fraction(value) for value in exact(x) if value is not None]
    if not x:
        return Measure.undefined("insufficient-windows")
    if len(values) < max(2, ddof + 1):
        return Measure.undefined("insufficient-windows")
    average = sum(values, Fraction(0)) / len(values)
    if average == 0:
        return Measure.undefined("all-zero")
    variance = sum((value - average) ** 2 for value in values) / (len(values) - ddof)
    return Measure(math.sqrt(variance / average**2))


def cov_over_time_scale(bins: Sequence[int | None], factors: Sequence[int], *, ddof: int = 0) -> dict[int, Measure]:
    """Return the coefficient of variation at several scales, each a multiple of the base bin.

    Parameters
    ----------
    bins
        Bytes per base bin; null marks a gap, whose windows are left out.
    factors
        The scales, in base bins.

    Examples
    --------
    >>> cov_over_time_scale([80, 120, 80, 120], [1, 2, 4])[1].value
    0.2
    """
    result: dict[int, Measure] = {}
    for factor in factors:
        result[factor] = cov(window_sums(bins, factor), ddof=ddof)
    return result


def idle_edges(bins: Sequence[int]) -> tuple[bool, bool]:
    """Say whether the first and the last 2 % of a series lie below a tenth of its median.

    Such idle edges (a series that starts before the traffic) dominate the coefficient of
    variation at long scales; they are a fault of the interval, not variability.

    Examples
    --------
    >>> idle_edges([0, 0] + [100] * 98)
    (True, False)
    """
    if not bins:
        return (False, False)
    edge = max(1, len(bins) // 50)
    median = sorted(bins)[len(bins) // 2]
    head, tail = bins[:edge], bins[-edge:]
    return (sum(head) * 10 < median * edge, sum(tail) * 10 < median * edge)


def cov_by_scale(bins: pl.DataFrame, *, bin_ns: int, scales_ns: Sequence[int], ddof: int = 0) -> pl.DataFrame:
    """Measure the coefficient of variation of the total and of each entity over time scales.

    Parameters
    ----------
    bins
        ``bin``, ``start_ns`` and one column of bytes per entity (`tracetool.metrics.bins.binned`).
    bin_ns, scales_ns
        The length of a bin and the scales, each a multiple of it.
    ddof
        0 for the population's standard deviation, 1 for the sample's.

    Returns
    -------
    polars.DataFrame
        ``entity`` (``total`` first), ``scale_ns``, ``value``, ``reason``, ``windows``.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"bin": [0, 1], "start_ns": [0, 5], "a": [1, 1], "b": [1, 3]})
    >>> cov_by_scale(table, bin_ns=5, scales_ns=[5])["entity"].to_list()
    ['total', 'a', 'b']
    """
    import polars as pl

    names = [name for name in bins.columns if name not in ("bin", "start_ns")]
    series = {name: bins.get_column(name).to_list() for name in names}
    total = [None if None in window else sum(window) for window in zip(*series.values(), strict=True)]
    rows = []
    for entity, values in {"total": total, **series}.items():
        for scale_ns in scales_ns:
            if scale_ns % bin_ns:
                raise ValueError(f"a time scale of {scale_ns} ns: expected a multiple of the {bin_ns} ns bin")
            factor = scale_ns // bin_ns
            measure = cov_over_time_scale(values, [factor], ddof=ddof)[factor]
            reason = measure.reason if names else "no-flows"
            rows.append((entity, scale_ns, measure.value, reason, len(values) // factor))
    schema = {"entity": pl.String, "scale_ns": pl.Int64, "value": pl.Float64, "reason": pl.String, "windows": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")
