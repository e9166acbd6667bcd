"""Link utilisation: the share of a bottleneck's capacity that was used, at a named layer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tracetool.measures import Measure

if TYPE_CHECKING:
    import polars as pl


def link_utilisation(size_bytes: int, capacity_bps: int | None, interval_ns: int) -> Measure:
    """Return the used share of a link.

    Parameters
    ----------
    size_bytes
        Bytes of all flows through the bottleneck in one direction, at the layer that the capacity
        counts.
    capacity_bps
        The capacity in bit/s; null where unknown.
    interval_ns
        The interval.

    Returns
    -------
    Measure
        0 for an idle link; null with ``no-input`` without capacity or interval. A value above 1
        is kept, with the note ``above-capacity``: the capacity or the layer is wrong.

    References
    ----------
    RFC 5136 section 2.3.5; RFC 5166 section 2.1.1.

    Examples
    --------
    >>> link_utilisation(500_000, 8_000_000, 1_000_000_000).value
    0.5
    """
    if not capacity_bps or interval_ns <= 0:
        return Measure.undefined("no-input")
    value = float(Fraction(8 * 10**9 * size_bytes, capacity_bps * interval_ns))
    return Measure(value, note="above-capacity" if value > 1 else None)


def payload_ceiling(mss_bytes: int, frame_bytes: int) -> float:
    """Return the largest utilisation that payload can reach when frames of this size fill the link.

    Examples
    --------
    >>> round(payload_ceiling(1448, 1514), 6)
    0.956407
    """
    if frame_bytes <= 0:
        raise ValueError(f"a frame of {frame_bytes} bytes: expected more than 0")
    return mss_bytes / frame_bytes


@dataclass(frozen=True, slots=True)
class Link:
    """A bottleneck: its rate, and the layer whose bytes the rate counts."""

    capacity_bps: int | None
    layer: str = "frame"


def utilisation(sizes: pl.DataFrame, link: Link, *, interval_ns: int, background: bool = False) -> pl.DataFrame:
    """Measure the utilisation of a link.

    Parameters
    ----------
    sizes
        A column ``bytes``: one row per flow, at the link's layer, over the interval.
    link
        The bottleneck.
    interval_ns
        The interval.
    background
        There was traffic that the captures do not show: the number is then labelled
        ``share of link used by captured flows``, for it is no utilisation.

    Returns
    -------
    polars.DataFrame
        One row: ``value``, ``reason``, ``note``, ``label``, ``layer``, ``bytes``.

    Examples
    --------
    >>> import polars as pl
    >>> utilisation(pl.DataFrame({"bytes": [250, 250]}), Link(8000), interval_ns=10**9)["value"][0]
    0.5
    """
    import polars as pl

    total = int(sizes.get_column("bytes").sum())
    measure = link_utilisation(total, link.capacity_bps, interval_ns)
    label = "share of link used by captured flows" if background else "link utilisation"
    row = (measure.value, measure.reason, measure.note, label, link.layer, total)
    schema = {
        "value": pl.Float64,
        "reason": pl.String,
        "note": pl.String,
        "label": pl.String,
        "layer": pl.String,
        "bytes": pl.Int64,
    }
    return pl.DataFrame([row], schema=schema, orient="row")
