"""Fairness between kinds of flows: protocols, round-trip times, TCP against UDP.

Ratios are directed, ``mean(B)/mean(A)``; candidates are ranked by ``min(F, 1/F)``, because 0.80
and 1.25 are equally far from fair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tracetool.measures import Measure, Number, exact, jain_index, present

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl


@dataclass(frozen=True, slots=True)
class InterProtocol:
    """The directed ratio of two groups, how close it is to 1, and Jain's index over all flows."""

    ratio: Measure
    closeness: Measure
    jain: Measure


def inter_protocol_ratio(a: Sequence[Number | None], b: Sequence[Number | None]) -> InterProtocol:
    """Return how group B fares against group A.

    Parameters
    ----------
    a, b
        Rates of the flows of each group.

    Returns
    -------
    InterProtocol
        Null ratio with ``no-flows`` (a group is empty) or ``starved`` (A got nothing).

    References
    ----------
    RFC 5166 section 2.3.

    Examples
    --------
    >>> inter_protocol_ratio([4, 4], [5]).ratio.value
    1.25
    """
    first, second = present(a, series="a"), present(b, series="b")
    jain = jain_index([*first, *second])
    if not first or not second:
        nothing = Measure.undefined("no-flows")
        return InterProtocol(nothing, nothing, jain)
    mean_a, mean_b = Fraction(sum(first), len(first)), Fraction(sum(second), len(second))
    if mean_a == 0:
        nothing = Measure.undefined("starved" if mean_b else "all-zero")
        return InterProtocol(nothing, nothing, jain)
    ratio = mean_b / mean_a
    return InterProtocol(Measure(float(ratio)), Measure(_closeness(ratio)), jain)


def rtt_fairness(rate_1: Number, rate_2: Number, rtt_1: Number, rtt_2: Number) -> Measure:
    """Return the exponent α of ``rate_1/rate_2 = (RTT_2/RTT_1)^α``.

    0 is RTT-fair, 1 is inverse proportion to the round-trip time, as for Reno; null where the
    round-trip times are equal or a flow is starved.

    Examples
    --------
    >>> rtt_fairness(4, 2, 10, 20).value
    1.0
    """
    x1, x2, r1, r2 = (Fraction(value or 0) for value in exact([rate_1, rate_2, rtt_1, rtt_2]))
    if min(r1, r2) <= 0 or r1 == r2:
        return Measure.undefined("no-input")
    if min(x1, x2) <= 0:
        return Measure.undefined("starved")
    return Measure(math.log(x1 / x2) / math.log(r2 / r1))


def rank(ratios: Mapping[str, Number | None]) -> list[tuple[str, float | None]]:
    """Rank candidates by closeness of their ratio to 1, best first; unknown ones last.

    Examples
    --------
    >>> rank({"bbr": 1.25, "cubic": 0.97})[0]
    ('cubic', 0.97)
    """
    values = dict(zip(ratios, exact(ratios.values(), "ratios"), strict=True))
    scored = [(name, None if value is None else _closeness(Fraction(value))) for name, value in values.items()]
    return sorted(scored, key=lambda item: (item[1] is None, -(item[1] or 0.0), item[0]))


def _closeness(ratio: Fraction) -> float:
    """Return ``min(F, 1/F)``."""
    return float(min(ratio, 1 / ratio)) if ratio > 0 else 0.0


def groups(rates: pl.DataFrame, *, reference: str | None = None) -> pl.DataFrame:
    """Measure each group of flows against a reference group.

    Parameters
    ----------
    rates
        One row per flow: ``group`` (a protocol, a port, a label, ``tcp`` or ``udp``) and ``bytes``
        over one interval.
    reference
        The group that the others are divided by (default: the first by name).

    Returns
    -------
    polars.DataFrame
        Per group: ``group``, ``flows``, ``bytes``, ``share``, ``ratio`` (to the reference),
        ``closeness``, ``reason``, ``jain`` (within the group); best closeness first.

    Examples
    --------
    >>> import polars as pl
    >>> groups(pl.DataFrame({"group": ["a", "b"], "bytes": [4, 5]}))["ratio"].to_list()
    [1.0, 1.25]
    """
    import polars as pl

    members: dict[str, list[int]] = {}
    for name, size in rates.select("group", "bytes").iter_rows():
        members.setdefault(str(name), []).append(size)
    base = reference if reference is not None else min(members, default="")
    if members and base not in members:
        raise ValueError(f"no group {base!r}: the groups are {', '.join(sorted(members))}")
    total = sum(sum(sizes) for sizes in members.values())
    rows = []
    for name, sizes in members.items():
        found = inter_protocol_ratio(members[base], sizes)
        share = sum(sizes) / total if total else None
        rows.append(
            (
                name,
                len(sizes),
                sum(sizes),
                share,
                found.ratio.value,
                found.closeness.value,
                found.ratio.reason,
                jain_index(sizes).value,
            )
        )
    schema = {
        "group": pl.String,
        "flows": pl.Int64,
        "bytes": pl.Int64,
        "share": pl.Float64,
        "ratio": pl.Float64,
        "closeness": pl.Float64,
        "reason": pl.String,
        "jain": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row").sort(
        "closeness", "group", descending=[True, False], nulls_last=True
    )
