"""Fairness between hosts, however many flows each one opens."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tracetool.measures import Measure, Number, jain_index, present

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl


@dataclass(frozen=True, slots=True)
class HostFairness:
    """Largest over smallest host rate (1 is fair), and Jain's index over hosts and over flows."""

    ratio_max_over_min: Measure
    jain_hosts: Measure
    jain_flows: Measure


def host_fairness(hosts: Mapping[str, Sequence[Number | None]]) -> HostFairness:
    """Return how evenly hosts share, from the rates of each one's flows in one direction.

    The ratio is null with ``no-flows``, ``one-flow`` (one host) or ``starved`` (a host got
    nothing); never infinite.

    Examples
    --------
    >>> host_fairness({"a": [11], "b": [0.5] * 12}).ratio_max_over_min.value
    1.8333333333333333
    """
    flows = {name: present(rates, series=name) for name, rates in hosts.items()}
    sums = [sum(rates) for rates in flows.values()]
    if not sums:
        ratio = Measure.undefined("no-flows")
    elif len(sums) == 1:
        ratio = Measure.undefined("one-flow")
    elif max(sums) == 0:
        ratio = Measure.undefined("all-zero")
    elif min(sums) == 0:
        ratio = Measure.undefined("starved")
    else:
        ratio = Measure(float(Fraction(max(sums)) / min(sums)))
    return HostFairness(ratio, jain_index(sums), jain_index([rate for rates in flows.values() for rate in rates]))


def hosts(rates: pl.DataFrame, *, declared: Sequence[str] = ()) -> pl.DataFrame:
    """Measure the fairness between hosts in each direction of travel.

    Parameters
    ----------
    rates
        One row per flow and direction: ``host``, ``direction`` (``up``, ``down``, or any label that
        keeps the directions apart) and ``bytes`` over one interval.
    declared
        Hosts that count even if they stayed silent.

    Returns
    -------
    polars.DataFrame
        Per direction: ``direction``, ``hosts``, ``ratio_max_over_min``, ``reason``, ``jain_hosts``,
        ``jain_flows``.
    """
    import polars as pl

    rows = []
    for (direction,), part in rates.group_by("direction", maintain_order=True):
        grouped: dict[str, list[Number | None]] = {name: [] for name in declared}
        for host, size in part.select("host", "bytes").iter_rows():
            grouped.setdefault(host, []).append(size)
        found = host_fairness(grouped)
        ratio = found.ratio_max_over_min
        rows.append(
            (direction, len(grouped), ratio.value, ratio.reason, found.jain_hosts.value, found.jain_flows.value)
        )
    schema = {
        "direction": rates.schema["direction"],
        "hosts": pl.Int64(),
        "ratio_max_over_min": pl.Float64(),
        "reason": pl.String(),
        "jain_hosts": pl.Float64(),
        "jain_flows": pl.Float64(),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")
