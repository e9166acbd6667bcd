"""What every metric returns: a number, or null with the reason why there is none.

The few definitions that several metric families build on (Jain's index, the mean over
repetitions) live here too, because families do not import one another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Number = int | float | Fraction | Decimal
Absent = Literal["zero", "drop"]

REASONS = {
    "no-flows": "there is nothing to measure",
    "all-zero": "every value is zero",
    "one-flow": "the number compares flows, and there is only one",
    "starved": "one side got nothing, so the ratio has no end",
    "insufficient-windows": "too few whole windows fit in the interval",
    "not-reached": "it did not happen before the observation ended",
    "ambiguous": "the packets allow more than one answer",
    "no-input": "an input that the number needs is missing",
    "degenerate": "the time scale is finer than the data",
}


@dataclass(frozen=True, slots=True)
class Measure:
    """A measured number, or ``None`` with the reason.

    Parameters
    ----------
    value
        The number in the unit that the metric names; ``None`` means undefined.
    reason
        One of `REASONS` where ``value`` is ``None``.
    note
        What a reader must know beside the number, such as ``trivial``.
    censored_at
        For a time that was not reached: how long it was waited for.

    Examples
    --------
    >>> Measure(0.5).value
    0.5
    >>> Measure.undefined("no-flows").reason
    'no-flows'
    """

    value: float | None
    reason: str | None = None
    note: str | None = None
    censored_at: float | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.reason is None):
            raise ValueError("a measure has either a value or a reason")
        if self.reason is not None and self.reason not in REASONS:
            raise ValueError(f"unknown reason {self.reason!r}: expected one of {', '.join(REASONS)}")

    @classmethod
    def undefined(cls, reason: str, *, censored_at: float | None = None, note: str | None = None) -> Measure:
        """Return a null with its reason."""
        return cls(None, reason, note, censored_at)


def exact(values: Iterable[Number | None], series: str = "x") -> list[int | Fraction | None]:
    """Turn numbers into exact ones, so that sums neither overflow nor round.

    Parameters
    ----------
    values
        Numbers; ``None`` is a gap and stays one.
    series
        What the numbers are, for the error message.

    Raises
    ------
    ValueError
        A value is NaN or infinite.

    Examples
    --------
    >>> exact([1, 0.5, None])
    [1, Fraction(1, 2), None]
    """
    result: list[int | Fraction | None] = []
    for position, value in enumerate(values):
        if value is None or isinstance(value, int):
            result.append(value)
            continue
        if not isinstance(value, Fraction) and not math.isfinite(value):
            raise ValueError(f"{series}[{position}] is {value}: expected a finite number, or null for a gap")
        result.append(Fraction(value))
    return result


def present(values: Iterable[Number | None], *, absent: Absent = "zero", series: str = "x") -> list[int | Fraction]:
    """Return the exact values of the declared entities, a silent one counted as zero or left out.

    Raises
    ------
    ValueError
        A value is negative, NaN or infinite.

    Examples
    --------
    >>> present([3, None]), present([3, None], absent="drop")
    ([3, 0], [3])
    """
    numbers = exact(values, series)
    kept = [number or 0 for number in numbers if number is not None or absent == "zero"]
    for number in kept:
        if number < 0:
            raise ValueError(f"{series} holds the negative value {float(number)}: rates and sizes start at 0")
    return kept


def jain_index(x: Iterable[Number | None], *, absent: Absent = "zero") -> Measure:
    """Return Jain's fairness index of an allocation.

    Parameters
    ----------
    x
        One rate (or size, over one interval) per declared entity, in any one unit.
    absent
        Whether a silent (null) entity counts as zero or leaves the set.

    Returns
    -------
    Measure
        ``(Σx)² / (n·Σx²)``, between 1/n and 1; null for no entity and for all zero.
        One entity gives 1 with the note ``trivial``.

    Raises
    ------
    ValueError
        A value is negative, NaN or infinite.

    References
    ----------
    Jain, Chiu, Hawe: A Quantitative Measure of Fairness (1984), by RFC 5166 section 2.3.1.

    Examples
    --------
    >>> round(jain_index([40, 60]).value, 6)
    0.961538
    """
    values = present(x, absent=absent)
    if not values:
        return Measure.undefined("no-flows")
    squares = sum(value * value for value in values)
    if squares == 0:
        return Measure.undefined("all-zero")
    total = sum(values)
    index = float(Fraction(total * total) / (len(values) * squares))
    return Measure(index, note="trivial" if len(values) == 1 else None)


def mean(values: Sequence[Number]) -> float | None:
    """Return the arithmetic mean with one rounding, or ``None`` for no values.

    Examples
    --------
    >>> mean([15, 15, 15, 20, 20])
    17.0
    """
    numbers = [Fraction(value) for value in values]
    return float(sum(numbers, Fraction(0)) / len(numbers)) if numbers else None


def window_sums(bins: Sequence[int | None], factor: int) -> list[int | None]:
    """Add up every ``factor`` bins; a gap makes its sum a gap, a trailing part is dropped.

    Examples
    --------
    >>> window_sums([1, 2, 3, None, 5], 2)
    [3, None]
    """
    if factor <= 0:
        raise ValueError(f"a time scale of {factor} bins: expected at least 1")
    windows = (bins[start : start + factor] for start in range(0, len(bins) - factor + 1, factor))
    return [None if None in window else sum(value or 0 for value in window) for window in windows]
