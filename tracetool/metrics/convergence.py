"""Convergence time: how long a new flow needs to get its fair share.

Three definitions, all with their parameters printed beside them: by Jain's index in bins
(default), δ-fair and ε-fair (RFC 5166 section 2.3.3).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from tracetool.measures import Measure, Number, jain_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

THETA = 0.95
BIN_NS = 5_000_000_000
Stamp = Literal["end", "start"]


def first_hold(good: Sequence[bool | None], hold: int = 1) -> int | None:
    """Return the first bin from which ``hold`` bins in a row are good; null (a gap) is not good.

    Examples
    --------
    >>> first_hold([False, True, False, True, True], hold=2)
    3
    """
    if hold < 1:
        raise ValueError(f"hold={hold}: expected at least 1 bin")
    run = 0
    for position, state in enumerate(good):
        run = run + 1 if state else 0
        if run == hold:
            return position - hold + 1
    return None


def convergence_time(
    jain: Sequence[float | None],
    bin_length: Number,
    *,
    theta: float = THETA,
    hold: int = 1,
    stamp: Stamp = "end",
    observed: Number | None = None,
) -> Measure:
    """Return when Jain's index first reaches a threshold and holds it.

    Parameters
    ----------
    jain
        The index in each bin, counted from the start of the later flow; null is a gap.
    bin_length
        The length of a bin; the result has its unit.
    theta, hold
        The threshold, and for how many bins in a row it must hold.
    stamp
        Whether the first good bin's ``end`` or ``start`` is the time.
    observed
        From the start of the later flow to the end (default: all bins), where an unreached time
        is censored.

    Examples
    --------
    >>> convergence_time([0.6, 0.96], 5).value, convergence_time([0.6], 5).reason
    (10.0, 'not-reached')
    """
    good = [None if value is None else value >= theta for value in jain]
    return _time(good, bin_length, hold, stamp, observed)


def delta_fair_convergence_time(
    flows: Sequence[Sequence[int | None]],
    bin_length: Number,
    *,
    delta: Number,
    capacity: Number | None = None,
    hold: int = 1,
    stamp: Stamp = "end",
    observed: Number | None = None,
) -> Measure:
    """Return when the smallest share first reaches ``(1 - δ)/n`` (for two flows ``(1-δ)/2``).

    The share is of the flows' total, or of ``capacity`` (per bin) where given: RFC 5166 speaks of
    the link bandwidth.

    References
    ----------
    RFC 5166 section 2.3.3, after Bansal et al. (2001).

    Examples
    --------
    >>> delta_fair_convergence_time([[90, 55], [10, 45]], 5, delta=0.1).value
    10.0
    """
    if len(flows) < 2:
        return Measure.undefined("one-flow" if flows else "no-flows")
    least = (1 - Fraction(delta)) / len(flows)
    good: list[bool | None] = []
    for window in zip(*flows, strict=True):
        values = [value for value in window if value is not None]
        whole = Fraction(sum(values)) if capacity is None else Fraction(capacity)
        good.append(None if len(values) < len(window) or not whole else min(values) >= least * whole)
    return _time(good, bin_length, hold, stamp, observed)


def epsilon_fair_convergence_time(
    flows: Sequence[Sequence[int | None]],
    bin_length: Number,
    *,
    epsilon: Number,
    hold: int = 1,
    stamp: Stamp = "end",
    observed: Number | None = None,
) -> Measure:
    """Return when the smallest over the largest rate first reaches ``1 - ε``.

    Give the bin in round-trip times to get the result in round-trip times, as RFC 5166 section
    2.3.3 states it.

    Examples
    --------
    >>> epsilon_fair_convergence_time([[90, 50], [10, 50]], 1, epsilon=0.1).value
    2.0
    """
    if len(flows) < 2:
        return Measure.undefined("one-flow" if flows else "no-flows")
    least = 1 - Fraction(epsilon)
    good: list[bool | None] = []
    for window in zip(*flows, strict=True):
        values = [value for value in window if value is not None]
        good.append(None if len(values) < len(window) or not any(values) else min(values) >= least * max(values))
    return _time(good, bin_length, hold, stamp, observed)


def _time(good: Sequence[bool | None], bin_length: Number, hold: int, stamp: Stamp, observed: Number | None) -> Measure:
    """Turn the first bin that holds into a time, or a censored null."""
    length = Fraction(bin_length)
    position = first_hold(good, hold)
    if position is None:
        end = length * len(good) if observed is None else Fraction(observed)
        return Measure.undefined("not-reached", censored_at=float(end))
    return Measure(float(length * (position + (stamp == "end"))))


def settling_time(flow: Sequence[int | None], bin_length: Number, *, share: Number = Fraction(4, 5)) -> Measure:
    """Return when a flow's rate first reaches a share (80 %) of its long-term mean.

    The mean is that of the second half of the flow, which the start-up does not pull down.

    Examples
    --------
    >>> settling_time([10, 50, 90, 100, 100, 100], 5).value
    15.0
    """
    values = [value or 0 for value in flow]
    if not any(values):
        return Measure.undefined("all-zero" if values else "no-flows")
    late = values[len(values) // 2 :]
    target = Fraction(share) * sum(late) / len(late)
    return _time([value >= target for value in values], bin_length, 1, "end", None)


def convergence(
    bins: pl.DataFrame,
    *,
    bin_ns: int = BIN_NS,
    theta: float = THETA,
    hold: int = 1,
    stamp: Stamp = "end",
    delta: float = 0.1,
    epsilon: float = 0.1,
    observed_ns: int | None = None,
) -> pl.DataFrame:
    """Measure the convergence time by all definitions.

    Parameters
    ----------
    bins
        ``bin``, ``start_ns`` and one column of bytes per flow, from the start of the latest flow on.
    bin_ns
        The length of a bin.
    theta, hold, stamp, delta, epsilon
        As in `convergence_time`, `delta_fair_convergence_time`, `epsilon_fair_convergence_time`.
    observed_ns
        From the latest start to the earliest end.

    Returns
    -------
    polars.DataFrame
        One row per definition: ``definition``, ``value`` (seconds), ``reason``, ``censored_at``.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"bin": [0], "start_ns": [0], "a": [1], "b": [1]})
    >>> convergence(table)["value"].to_list()
    [5.0, 5.0, 5.0]
    """
    import polars as pl

    flows = [bins.get_column(name).to_list() for name in bins.columns if name not in ("bin", "start_ns")]
    length = Fraction(bin_ns, 10**9)
    observed = None if observed_ns is None else Fraction(observed_ns, 10**9)
    measures: dict[str, Measure]
    if len(flows) < 2:
        missing = Measure.undefined("one-flow" if flows else "no-flows")
        measures = dict.fromkeys(("jain", "delta_fair", "epsilon_fair"), missing)
    else:
        index = [None if None in window else jain_index(window).value for window in zip(*flows, strict=True)]
        measures = {
            "jain": convergence_time(index, length, theta=theta, hold=hold, stamp=stamp, observed=observed),
            "delta_fair": delta_fair_convergence_time(
                flows, length, delta=delta, hold=hold, stamp=stamp, observed=observed
            ),
            "epsilon_fair": epsilon_fair_convergence_time(
                flows, length, epsilon=epsilon, hold=hold, stamp=stamp, observed=observed
            ),
        }
    rows = [(name, m.value, m.reason, m.censored_at) for name, m in measures.items()]
    schema = {"definition": pl.String, "value": pl.Float64, "reason": pl.String, "censored_at": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")
