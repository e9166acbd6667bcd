"""A table cell: the mean of one metric over the repetitions of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tracetool.measures import Measure, Number, exact, mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl


@dataclass(frozen=True, slots=True)
class RepetitionMean:
    """The mean over the repetitions that have a value.

    Parameters
    ----------
    mean
        Over the repetitions with a value; null with their reason where none has one.
    n, n_defined
        All repetitions, and those with a value ("m of n").
    sd
        Population standard deviation; null below two values.
    mean_with_censored
        The mean with each censored repetition scored as its duration, as older tables did; null
        where a repetition has neither.
    """

    mean: Measure
    n: int
    n_defined: int
    sd: float | None
    mean_with_censored: float | None


def mean_over_repetitions(
    values: Sequence[Number | None],
    *,
    censored_at: Sequence[Number | None] | None = None,
    reasons: Sequence[str | None] | None = None,
) -> RepetitionMean:
    """Average a metric over repetitions: the metric of each first, then the mean.

    Parameters
    ----------
    values
        One per repetition; null is left out of the mean, and ``n_defined`` falls.
    censored_at
        Per repetition, for how long an unreached time was waited for.
    reasons
        Per repetition, why it has no value.

    Examples
    --------
    >>> mean_over_repetitions([120, 40, None], censored_at=[None, None, 1180]).mean.value
    80.0
    """
    numbers = exact(values, "values")
    defined = [Fraction(value) for value in numbers if value is not None]
    average = mean(defined)
    waited = list(censored_at) if censored_at is not None else [None] * len(values)
    filled = [value if value is not None else wait for value, wait in zip(numbers, exact(waited), strict=True)]
    legacy = [value for value in filled if value is not None]
    sd = None
    if average is not None and len(defined) > 1:
        sd = math.sqrt(sum((float(value) - average) ** 2 for value in defined) / len(defined))
    if average is not None:
        measure = Measure(average)
    else:
        named = [reason for reason in reasons or () if reason]
        measure = Measure.undefined(named[0] if named else "no-flows" if not values else "no-input")
    return RepetitionMean(measure, len(values), len(defined), sd, mean(legacy) if len(legacy) == len(values) else None)


def repetition_means(measures: pl.DataFrame, *, by: Sequence[str]) -> pl.DataFrame:
    """Average a long table of per-repetition values into cells.

    Parameters
    ----------
    measures
        ``value``, ``reason``, ``censored_at`` and the columns of ``by``; one row per repetition.
    by
        What names a cell; cells come in the order of their first row.

    Returns
    -------
    polars.DataFrame
        The columns of ``by``, ``value``, ``reason``, ``n``, ``n_defined``, ``sd``,
        ``mean_with_censored``.

    Examples
    --------
    >>> import polars as pl
    >>> runs = pl.DataFrame({"delay": ["16ms"] * 2, "value": [1.0, 3.0], "reason": [None] * 2,
    ...                      "censored_at": [None] * 2})
    >>> repetition_means(runs, by=["delay"])["value"].to_list()
    [2.0]
    """
    import polars as pl

    rows = []
    for key, cell in measures.group_by(list(by), maintain_order=True):
        found = mean_over_repetitions(
            cell["value"].to_list(), censored_at=cell["censored_at"].to_list(), reasons=cell["reason"].to_list()
        )
        rows.append(
            (*key, found.mean.value, found.mean.reason, found.n, found.n_defined, found.sd, found.mean_with_censored)
        )
    schema = {name: measures.schema[name] for name in by} | {
        "value": pl.Float64(),
        "reason": pl.String(),
        "n": pl.Int64(),
        "n_defined": pl.Int64(),
        "sd": pl.Float64(),
        "mean_with_censored": pl.Float64(),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")
