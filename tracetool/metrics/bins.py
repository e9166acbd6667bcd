"""Bytes per entity in equal bins of time, with exact integer arithmetic.

Bins are half-open, ``[t0 + kτ, t0 + (k+1)τ)``; a trailing part of a bin is dropped and reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracetool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

LAYERS = ("payload", "ip", "frame", "wire")
# What Ethernet adds to a frame as captured: FCS, preamble with start delimiter, inter-frame gap
# (RFC 6349 section 4.1.1: 1538 bytes for a frame of 1514).
WIRE_EXTRA_BYTES = 4 + 8 + 12
# Bounds the memory that a capture with a wrong clock can ask for; ten days in bins of 0.1 s.
MAX_BINS = 8_640_000


@dataclass(frozen=True, slots=True)
class Binning:
    """How an interval falls into whole bins."""

    start_ns: int
    bin_ns: int
    bins: int
    dropped_ns: int

    @classmethod
    def of(cls, start_ns: int, end_ns: int, bin_ns: int) -> Binning:
        """Cut ``[start_ns, end_ns)`` into whole bins.

        Raises
        ------
        ValueError
            The bin is not longer than 0, or the interval ends before it starts.
        UsageError
            There are more than `MAX_BINS` bins: the interval (or a wrong clock) is too long for them.

        Examples
        --------
        >>> Binning.of(0, 25, 10)
        Binning(start_ns=0, bin_ns=10, bins=2, dropped_ns=5)
        """
        if bin_ns <= 0:
            raise ValueError(f"a bin of {bin_ns} ns: expected more than 0")
        if end_ns < start_ns:
            raise ValueError(f"an interval of {end_ns - start_ns} ns: expected its end after its start")
        bins, dropped_ns = divmod(end_ns - start_ns, bin_ns)
        if bins > MAX_BINS:
            length = (end_ns - start_ns) / 1e9
            raise UsageError(f"{bins} bins of {bin_ns / 1e9:g} s in {length:g} s: expected at most {MAX_BINS}")
        return cls(start_ns, bin_ns, bins, dropped_ns)


def bin_bytes(times_ns: Sequence[int], sizes: Sequence[int], *, start_ns: int, end_ns: int, bin_ns: int) -> list[int]:
    """Return the bytes in each whole bin of one series.

    Parameters
    ----------
    times_ns, sizes
        One event per position, in any order.
    start_ns, end_ns, bin_ns
        The interval and the length of a bin.

    Examples
    --------
    >>> bin_bytes([0, 9, 10, 20], [1, 2, 4, 8], start_ns=0, end_ns=25, bin_ns=10)
    [3, 4]
    """
    binning = Binning.of(start_ns, end_ns, bin_ns)
    totals = [0] * binning.bins
    for time, size in zip(times_ns, sizes, strict=True):
        position = (time - start_ns) // bin_ns
        if 0 <= position < binning.bins:
            totals[position] += size
    return totals


def layer_bytes(layer: str) -> pl.Expr:
    """Return the expression for a packet's bytes at a layer, from columns of ``packets``.

    ``wire`` adds FCS, preamble and gap to each Ethernet frame; a GSO super-frame counts the
    headers it was captured with, so that layers above ``payload`` are lower bounds there.

    Raises
    ------
    ValueError
        The layer is not one of `LAYERS`.
    """
    import polars as pl

    match layer:
        case "payload" | "ip" | "frame":
            return pl.col(f"{layer}_bytes").cast(pl.Int64)
        case "wire":
            return pl.col("frame_bytes").cast(pl.Int64) + WIRE_EXTRA_BYTES
    raise ValueError(f"layer {layer!r}: expected one of {', '.join(LAYERS)}")


def time_ns() -> pl.Expr:
    """Return the expression for the column ``time`` as integer nanoseconds since 1970."""
    import polars as pl

    return pl.col("time").cast(pl.Int64)


def binned(
    packets: pl.DataFrame,
    entities: Sequence[str],
    *,
    start_ns: int,
    end_ns: int,
    bin_ns: int,
    layer: str = "payload",
) -> pl.DataFrame:
    """Return the bytes of each declared entity in each whole bin.

    Parameters
    ----------
    packets
        Rows of ``packets`` with a column ``entity`` that says whom each one counts for.
    entities
        The declared set; a silent one has zeros.
    start_ns, end_ns, bin_ns
        The interval and the length of a bin.
    layer
        One of `LAYERS`.

    Returns
    -------
    polars.DataFrame
        ``bin``, ``start_ns`` and one ``Int64`` column of bytes per entity, in the declared order;
        one row per bin, idle ones included.
    """
    import polars as pl

    binning = Binning.of(start_ns, end_ns, bin_ns)
    kept = (
        packets.lazy()
        .with_columns(((time_ns() - start_ns) // bin_ns).alias("bin"), layer_bytes(layer).alias("size"))
        .filter(pl.col("bin").is_between(0, binning.bins - 1))
        .group_by("bin", "entity")
        .agg(pl.col("size").sum())
        .collect()
    )
    table = pl.DataFrame({"bin": pl.int_range(binning.bins, eager=True, dtype=pl.Int64)})
    table = table.with_columns((pl.col("bin") * bin_ns + start_ns).alias("start_ns"))
    for entity in entities:
        own = kept.filter(pl.col("entity") == entity).select("bin", pl.col("size").alias(entity))
        table = table.join(own, on="bin", how="left", maintain_order="left")
    return table.with_columns(pl.col(entity).fill_null(0) for entity in entities)
