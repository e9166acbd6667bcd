"""Fairness of one allocation: Jain's index, throughput ratio and their relatives.

Sources: RFC 5166 section 2.3 and the papers it cites.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tracetool.measures import Absent, Measure, Number, exact, jain_index, present

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

__all__ = [
    "FairnessThresholds",
    "closeness_to_one",
    "delta_of_shares",
    "epsilon_fair",
    "fairness",
    "fairness_thresholds",
    "harm",
    "jain_index",
    "jain_index_normalised",
    "max_min_share",
    "maxmin_allocation",
    "product_measure",
    "throughput_ratio",
]


def throughput_ratio(x: Iterable[Number | None], *, absent: Absent = "zero") -> Measure:
    """Return the smallest over the largest rate (the measure of ε-fairness).

    Null for no entity (``no-flows``), one entity (``one-flow``) and all zero (``all-zero``);
    0 if one of several is starved. With more than two entities it is the worst pair.

    References
    ----------
    RFC 5166 section 2.3.1, after Zhang, Kang, Loguinov (2004).

    Examples
    --------
    >>> throughput_ratio([2, 4]).value
    0.5
    """
    values = present(x, absent=absent)
    if not values:
        return Measure.undefined("no-flows")
    if len(values) == 1:
        return Measure.undefined("one-flow")
    largest = max(values)
    if largest == 0:
        return Measure.undefined("all-zero")
    return Measure(float(Fraction(min(values)) / largest))


def epsilon_fair(x: Iterable[Number | None], epsilon: Number) -> bool | None:
    """Say whether the worst ratio is at least ``1 - epsilon``; ``None`` where there is no ratio.

    Examples
    --------
    >>> epsilon_fair([90, 100], Fraction(1, 10))
    True
    """
    values = present(x)
    if len(values) < 2 or max(values) == 0:
        return None
    return bool(Fraction(min(values)) >= (1 - Fraction(epsilon)) * max(values))


@dataclass(frozen=True, slots=True)
class FairnessThresholds:
    """The two-flow equivalents of one value of Jain's index."""

    delta: float
    ratio: float


def fairness_thresholds(jain: float) -> FairnessThresholds:
    """Return what a value of Jain's index means for two flows.

    Shares ``(1+δ)/2`` and ``(1-δ)/2`` give ``J = 1/(1+δ²)`` and the ratio ``(1-δ)/(1+δ)``.

    Raises
    ------
    ValueError
        The index lies outside 1/2 … 1, which two flows cannot have.

    Examples
    --------
    >>> round(fairness_thresholds(0.95).ratio, 6)
    0.626789
    """
    if not 0.5 <= jain <= 1:
        raise ValueError(f"Jain's index of two flows is {jain}: expected 0.5 to 1")
    delta = math.sqrt(1 / jain - 1)
    return FairnessThresholds(delta, (1 - delta) / (1 + delta))


def delta_of_shares(x: Sequence[Number | None]) -> Measure:
    """Return δ of two flows, ``|x1 - x2| / (x1 + x2)``: δ-fair means a share of at least ``(1-δ)/2``.

    Examples
    --------
    >>> delta_of_shares([60, 40]).value
    0.2
    """
    values = present(x)
    if len(values) != 2:
        return Measure.undefined("no-flows" if not values else "one-flow" if len(values) == 1 else "ambiguous")
    total = sum(values)
    return Measure(float(abs(Fraction(values[0]) - values[1]) / total)) if total else Measure.undefined("all-zero")


def product_measure(x: Iterable[Number | None]) -> Measure:
    """Return the product of the rates: 0 as soon as one flow is starved (RFC 5166 section 2.3.1).

    Null with ``ambiguous`` where the product is too large for a double; compare log-sums then.

    Examples
    --------
    >>> product_measure([2, 3, 5]).value
    30.0
    """
    values = present(x)
    if not values:
        return Measure.undefined("no-flows")
    try:
        return Measure(float(math.prod(values)))
    except OverflowError:
        return Measure.undefined("ambiguous", note="beyond a double: compare log_sum")


def maxmin_allocation(demand: Sequence[Number], capacity: Number) -> list[float]:
    """Return the max-min fair allocation of one bottleneck, by progressive filling.

    Parameters
    ----------
    demand
        What each flow wants.
    capacity
        What there is, in the same unit.

    References
    ----------
    RFC 5166 section 2.3.2.

    Examples
    --------
    >>> maxmin_allocation([2, 8], 10)
    [2.0, 8.0]
    """
    wanted = [Fraction(value) for value in present(demand, series="demand")]
    left = Fraction(capacity)
    share = [Fraction(0)] * len(wanted)
    for served, position in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        share[position] = min(wanted[position], left / (len(wanted) - served))
        left -= share[position]
    return [float(value) for value in share]


def jain_index_normalised(measured: Sequence[Number | None], optimal: Sequence[Number]) -> Measure:
    """Return Jain's index of ``measured / optimal``, for flows with different demands.

    Null with ``no-input`` where an optimum is 0: then there is nothing to compare with.

    References
    ----------
    Jain: Fairness: How to Measure Quantitatively? (ATM Forum 94-0881, 1994).

    Examples
    --------
    >>> jain_index_normalised([1, 2], [1, 2]).value
    1.0
    """
    best = present(optimal, series="optimal")
    got = present(measured, series="measured")
    if len(best) != len(got):
        raise ValueError(f"{len(got)} measured and {len(best)} optimal values: expected one optimum per flow")
    if any(value == 0 for value in best):
        return Measure.undefined("no-input")
    return jain_index([Fraction(value) / ideal for value, ideal in zip(got, best, strict=True)])


def max_min_share(x: Iterable[Number | None], capacity: Number | None = None) -> Measure:
    """Return the smallest rate over its equal share of the capacity (or of the total).

    Examples
    --------
    >>> max_min_share([1, 3]).value
    0.5
    """
    values = present(x)
    if not values:
        return Measure.undefined("no-flows")
    whole = Fraction(sum(values) if capacity is None else Fraction(capacity))
    return Measure(float(min(values) * len(values) / whole)) if whole else Measure.undefined("all-zero")


def harm(solo: Number | None, together: Number | None, *, more_is_better: bool = True) -> Measure:
    """Return the harm that company does to a flow, from the same flow's run alone.

    ``(solo - together)/solo`` for what should be large (goodput), ``(together - solo)/together``
    for what should be small (delay, completion time).

    References
    ----------
    Ware et al.: Beyond Jain's Fairness Index (HotNets 2019).

    Examples
    --------
    >>> harm(10, 4).value, harm(2, 5, more_is_better=False).value
    (0.6, 0.6)
    """
    alone, shared = exact([solo, together], "solo, together")
    if alone is None or shared is None:
        return Measure.undefined("no-input")
    best, worst = (alone, shared) if more_is_better else (shared, alone)
    if alone == 0 or best == 0:
        return Measure.undefined("all-zero")
    return Measure(float(Fraction(best - worst) / best))


def closeness_to_one(ratios: Mapping[str, Number | None]) -> dict[str, float | None]:
    """Return ``min(F, 1/F)`` of each ratio: 0.8 and 1.25 are equally far from fair.

    Examples
    --------
    >>> closeness_to_one({"bbr": 1.25})
    {'bbr': 0.8}
    """
    values = exact(ratios.values(), "ratios")
    return {
        name: None if value is None else float(min(Fraction(value), 1 / Fraction(value))) if value > 0 else 0.0
        for name, value in zip(ratios, values, strict=True)
    }


def fairness(rates: pl.DataFrame, *, column: str = "bytes", absent: Absent = "zero") -> pl.DataFrame:
    """Measure the fairness of one row per entity.

    Parameters
    ----------
    rates
        One row per declared entity; a silent one has 0 or null.
    column
        The column to compare.

    Returns
    -------
    polars.DataFrame
        One row per measure: ``metric``, ``value``, ``reason``, ``note``, ``n``.

    Examples
    --------
    >>> import polars as pl
    >>> fairness(pl.DataFrame({"bytes": [1, 1]})).row(0)
    ('jain', 1.0, None, None, 2)
    """
    import polars as pl

    x = rates.get_column(column).to_list()
    log_sum = sum(math.log(value) for value in x if value) if x and all(x) else None
    measures = {
        "jain": jain_index(x, absent=absent),
        "throughput_ratio": throughput_ratio(x, absent=absent),
        "delta": delta_of_shares(x),
        "product": product_measure(x),
        "log_sum": Measure(log_sum) if log_sum is not None else Measure.undefined("starved" if x else "no-flows"),
        "max_min_share": max_min_share(x),
    }
    rows = [(name, m.value, m.reason, m.note, len(x)) for name, m in measures.items()]
    schema = {"metric": pl.String, "value": pl.Float64, "reason": pl.String, "note": pl.String, "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")
