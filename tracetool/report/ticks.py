"""Round-number ticks and the range of an axis.

Steps are 1, 2 or 5 times a power of ten; the chosen step is the smallest that gives no more ticks than asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracetool.report.figure import Axis, FloatArray

_SUFFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True)
class Scale:
    """The range of an axis and the map from values to [0, 1]."""

    low: float
    high: float
    log: bool = False

    def fractions(self, values: FloatArray) -> FloatArray:
        """Return where `values` lie between `low` (0) and `high` (1); on a log scale NaN for values not positive."""
        if not self.log:
            return (np.asarray(values, np.float64) - self.low) / (self.high - self.low)
        positive = np.where(np.asarray(values) > 0, values, np.nan)
        return (np.log10(positive) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))

    def ticks(self, count: int) -> list[float]:
        """Return at most `count` round numbers inside the range (two at least where they exist)."""
        return log_ticks(self.low, self.high, count) if self.log else linear_ticks(self.low, self.high, count)


def step_for(span: float, count: int) -> float:
    """Return the smallest of 1, 2, 5 x 10^k that cuts `span` into no more than `count` parts.

    Examples
    --------
    >>> [step_for(span, 5) for span in (1, 9, 10, 237)]
    [0.2, 2.0, 2.0, 50.0]
    """
    rough = span / max(count, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    for factor in (1.0, 2.0, 5.0, 10.0):
        if factor * power >= rough * (1 - 1e-9):
            return factor * power
    return 10.0 * power  # not reached: rough < 10 * power


def linear_ticks(low: float, high: float, count: int) -> list[float]:
    """Return the multiples of a round step that lie in [low, high].

    Examples
    --------
    >>> linear_ticks(0, 2.5, 6)
    [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    """
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    step = step_for(high - low, max(count - 1, 1))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if last - first > 1000:  # the step is lost in the rounding of huge offsets
        return [low, high]
    return [round(index * step, 12 - math.floor(math.log10(step))) + 0.0 for index in range(first, last + 1)]


def log_ticks(low: float, high: float, count: int) -> list[float]:
    """Return powers of ten in [low, high], thinned or refined (2 and 5 times) to about `count`.

    Examples
    --------
    >>> log_ticks(1, 1000, 8)
    [1.0, 10.0, 100.0, 1000.0]
    >>> log_ticks(10, 100, 8)
    [10.0, 20.0, 50.0, 100.0]
    """
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    stride = max(1, math.ceil((last - first + 1) / max(count, 2)))

    def inside(factors: tuple[int, ...], stride: int) -> list[float]:
        ticks = [factor * 10.0**power for power in range(first, last + 1, stride) for factor in factors]
        return [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]

    fine = inside((1, 2, 5), 1) if last - first <= count else []
    return fine if 0 < len(fine) <= count else inside((1,), stride)


def scale_of(axis: Axis, arrays: Sequence[FloatArray], *, nice: int = 0, margin: float = 0.0) -> Scale:
    """Return the range of `axis` over the data, its fixed ends kept.

    Parameters
    ----------
    arrays
        All values that must be seen; what is not finite (or, on a log scale, not positive) is left out.
    nice
        If positive, widen free ends to the next of about this many round ticks.
    margin
        With `nice`: share of a linear range that at least stays free above the highest value.
    """
    values = np.concatenate([np.asarray(array, np.float64).ravel() for array in arrays]) if arrays else np.empty(0)
    log = axis.scale == "log"
    values = values[np.isfinite(values) & ((values > 0) | (not log))]
    low = axis.low if axis.low is not None and (axis.low > 0 or not log) else None
    high = axis.high
    floor = low if low is not None else (float(values.min()) if len(values) else (1.0 if log else 0.0))
    ceiling = high if high is not None else (float(values.max()) if len(values) else floor)
    if ceiling <= floor:
        ceiling = floor * 10 if log else floor + (abs(floor) * 0.1 or 1.0)
    if not nice:
        return Scale(floor, ceiling, log)
    if log:
        step_low, step_high = (
            10.0 ** math.floor(math.log10(floor) + 1e-9),
            10.0 ** math.ceil(math.log10(ceiling) - 1e-9),
        )
    else:
        step = step_for(ceiling - floor, nice)
        top = ceiling + margin * (ceiling - floor)
        step_low, step_high = math.floor(floor / step + 1e-9) * step, math.ceil(top / step - 1e-9) * step
    return Scale(step_low if low is None else low, step_high if high is None else high, log)


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Return short labels with one common suffix and as many decimals as the ticks differ in.

    Examples
    --------
    >>> tick_labels([0.0, 0.5, 1.0])
    ['0', '0.5', '1']
    >>> tick_labels([0.0, 250000.0, 500000.0])
    ['0', '250k', '500k']
    """
    largest = max((abs(tick) for tick in ticks), default=0.0)
    scale, suffix = (
        next(((size, name) for size, name in _SUFFIXES if largest >= size), (1.0, "")) if largest >= 1e5 else (1.0, "")
    )
    return [_label(tick / scale, suffix) for tick in ticks]


def _label(value: float, suffix: str) -> str:
    if value == 0:
        return "0"
    return (f"{value:.10g}" if 1e-4 <= abs(value) < 1e9 else f"{value:.3g}") + suffix
