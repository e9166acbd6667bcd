"""The interval a metric is computed over: ``overlap``, ``whole`` or ``steady``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

INTERVALS = ("overlap", "whole", "steady")
STEADY_NS = 60_000_000_000
STEADY_BEFORE_END_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A half-open interval ``[start_ns, end_ns)`` and the name of its rule."""

    start_ns: int
    end_ns: int
    rule: str = "given"

    def __post_init__(self) -> None:
        if self.end_ns < self.start_ns:
            raise ValueError(f"interval {self.rule!r} ends {self.start_ns - self.end_ns} ns before it starts")

    @property
    def length_ns(self) -> int:
        """The length in nanoseconds."""
        return self.end_ns - self.start_ns


def interval(
    starts_ns: Sequence[int | None],
    ends_ns: Sequence[int | None],
    rule: str = "overlap",
    *,
    steady_ns: int = STEADY_NS,
    before_end_ns: int = STEADY_BEFORE_END_NS,
) -> Interval | None:
    """Return the interval that a rule gives for the measured flows.

    Parameters
    ----------
    starts_ns, ends_ns
        First and last packet of each flow; null for a declared flow that stayed silent, which
        does not move the interval.
    rule
        ``overlap``: latest start to earliest end; ``whole``: first to last packet of any flow;
        ``steady``: the ``steady_ns`` that end ``before_end_ns`` before the overlap's end (cut to
        the overlap).

    Returns
    -------
    Interval or None
        None where no flow moved or the flows never overlap. The end is exclusive, so it lies one
        nanosecond after the last packet that counts.

    Raises
    ------
    ValueError
        The rule is not one of `INTERVALS`.

    Examples
    --------
    >>> interval([0, 10], [40, 41], "overlap")
    Interval(start_ns=10, end_ns=41, rule='overlap')
    """
    if rule not in INTERVALS:
        raise ValueError(f"interval {rule!r}: expected one of {', '.join(INTERVALS)}")
    starts = [start for start in starts_ns if start is not None]
    ends = [end + 1 for end in ends_ns if end is not None]
    if not starts or not ends:
        return None
    if rule == "whole":
        return Interval(min(starts), max(ends), rule)
    start, end = max(starts), min(ends)
    if end <= start:
        return None
    if rule == "overlap":
        return Interval(start, end, rule)
    end = max(start, end - before_end_ns)
    return Interval(max(start, end - steady_ns), end, rule)


def active_spans(packets: pl.DataFrame) -> pl.DataFrame:
    """Return when each entity first and last sent payload.

    Parameters
    ----------
    packets
        Rows of ``packets`` with a column ``entity``.

    Returns
    -------
    polars.DataFrame
        ``entity``, ``start_ns``, ``end_ns``, sorted by start.
    """
    import polars as pl

    time = pl.col("time").cast(pl.Int64)
    return (
        packets.filter(pl.col("payload_bytes") > 0)
        .group_by("entity")
        .agg(time.min().alias("start_ns"), time.max().alias("end_ns"))
        .sort("start_ns", "entity")
    )
