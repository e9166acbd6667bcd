"""What the packets of whole flows tell of the capture itself: frames recorded twice, data that was not recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable

_KINDS = (
    ("duplicate_frame", "warning", "frames are copies of one captured just before: they count once"),
    ("not_captured", "warning", "gaps: data that was acknowledged, or passed over, and is not in the capture"),
)


def tally(events: pl.DataFrame) -> pl.DataFrame:
    """Count the events that tell of the capture: one row of each kind.

    Parameters
    ----------
    events
        Rows of `events` of some flows.

    Returns
    -------
    polars.DataFrame
        ``code``, ``frame`` and ``time`` (the first), ``bytes``, ``count``.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> day = datetime(2026, 1, 1, tzinfo=UTC)
    >>> events = pl.DataFrame({"kind": ["duplicate_frame"] * 2, "frame": [9, 7], "time": [day] * 2, "bytes": [0, 1448]})
    >>> tally(events).select("code", "frame", "bytes", "count").rows()
    [('duplicate_frame', 7, 1448, 2)]
    """
    return (
        events.select(
            pl.col("kind").cast(pl.String).alias("code"),
            pl.col("frame").cast(pl.Int64),
            pl.col("time").cast(pl.Datetime("ns", "UTC")),
            pl.col("bytes").cast(pl.Int64),
        )
        .filter(pl.col("code").is_in([code for code, _, _ in _KINDS]))
        .sort("frame")
        .group_by("code", maintain_order=True)
        .agg(
            pl.col("frame").first(),
            pl.col("time").first(),
            pl.col("bytes").sum(),
            pl.len().cast(pl.Int64).alias("count"),
        )
    )


def oddities(tallies: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Rows of `diagnostics` for one input, without the column `input`, from the tallies of all its flows."""
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
            message=pl.format("{} {} ({} bytes)", "count", text, "bytes"),
        )
    )
