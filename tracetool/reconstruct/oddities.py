"""What the packets of whole flows tell of the capture itself: frames recorded twice, data that was not recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Interfaces that a message names, those with most copies first.
LISTED = 4
_KINDS = (
    ("duplicate_frame", "warning", "frames are copies of one captured just before: they count once"),
    ("not_captured", "warning", "gaps: data that was acknowledged, or passed over, and is not in the capture"),
)


def tally(events: pa.Table) -> pl.DataFrame:
    """Count the events that tell of the capture: one row of each kind.

    Parameters
    ----------
    events
        Rows of `events` of some flows, their kinds as a dictionary.

    Returns
    -------
    polars.DataFrame
        ``code``, ``frame`` and ``time`` (the first), ``bytes``, ``count``; without columns where there is none.

    Examples
    --------
    >>> import pyarrow as pa
    >>> kinds = pa.array(["duplicate_frame"] * 2).dictionary_encode()
    >>> times = pa.array([5, 4], pa.timestamp("ns", "UTC"))
    >>> events = pa.table({"kind": kinds, "frame": [9, 7], "time": times, "bytes": [0, 1448]})
    >>> tally(events).select("code", "frame", "bytes", "count").rows()
    [('duplicate_frame', 7, 1448, 2)]
    """
    kinds = events["kind"].combine_chunks()
    names = kinds.dictionary.to_pylist()
    codes = kinds.indices.to_numpy()
    told = np.zeros(len(codes), bool)
    for code in (names.index(code) for code, _, _ in _KINDS if code in names):
        told |= codes == code
    if not told.any():
        return pl.DataFrame()
    return (
        pl.DataFrame(events.select(["kind", "frame", "time", "bytes"]).filter(pa.array(told)))
        .select(pl.col("kind").cast(pl.String).alias("code"), "frame", "time", "bytes")
        .sort("frame")
        .group_by("code", maintain_order=True)
        .agg(
            pl.col("frame").first(),
            pl.col("time").first(),
            pl.col("bytes").sum(),
            pl.len().cast(pl.Int64).alias("count"),
        )
    )


def oddities(tallies: Iterable[pl.DataFrame], copies: Mapping[int, int]) -> pl.DataFrame:
    """Rows of `diagnostics` for one input, without the column `input`, from the tallies of all its flows.

    Parameters
    ----------
    tallies
        As `tally` makes them.
    copies
        How many copies were captured on each interface; -1: not told.
    """
    parts = [part for part in tallies if part.height]
    if not parts:
        return pl.DataFrame()
    severity, text = (
        pl.col("code").replace_strict({kind[0]: kind[column] for kind in _KINDS}, return_dtype=pl.String)
        for column in (1, 2)
    )
    return (
        pl.concat(parts)
        .sort("frame")
        .group_by("code", maintain_order=True)
        .agg(pl.col("frame").first(), pl.col("time").first(), pl.col("bytes").sum(), pl.col("count").sum())
        .select(
            "code",
            "frame",
            "time",
            "count",
            severity=severity,
            message=pl.format(
                "{} {} ({} bytes{})",
                "count",
                text,
                "bytes",
                pl.when(pl.col("code") == "duplicate_frame").then(pl.lit(_where(copies))).otherwise(pl.lit("")),
            ),
        )
    )


def _where(copies: Mapping[int, int]) -> str:
    told = sorted((-count, number) for number, count in copies.items() if number >= 0)
    listed = ", ".join(f"{-count} on interface {number}" for count, number in told[:LISTED])
    more = f", on {len(told) - LISTED} others more" if len(told) > LISTED else ""
    return f"; {listed}{more}" if told else ""
