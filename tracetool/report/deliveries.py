"""Bytes that flows delivered, in equal bins of time: what the charts that compare flows are drawn from.

Delivered is what the receiver acknowledged: the growth of the highest cumulative ACK (RFC 3148: unique data bits).
Where no ACK was captured, and for UDP, it is payload seen for the first time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tracetool.errors import NothingMatchedError
from tracetool.metrics.bins import binned
from tracetool.report.ticks import step_for

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_BIN_NS = 10_000_000
BINS = 150
"""Bins that a picture is cut into unless a length is given."""


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Bytes per flow and bin.

    Attributes
    ----------
    table
        ``bin``, ``start_ns`` and one column of bytes per flow, named by `names`.
    names
        Names of the flows, all different.
    start_ns, bin_ns
        Where the first bin begins, and how long each is.
    spans
        First and last delivery of each flow, in ns since the epoch.
    """

    table: pl.DataFrame
    names: tuple[str, ...]
    start_ns: int
    bin_ns: int
    spans: tuple[tuple[int, int], ...]

    def series(self) -> list[list[int]]:
        """Return the bytes of each flow, bin by bin."""
        return [self.table[name].to_list() for name in self.names]


def delivered(packets: pl.DataFrame) -> pl.DataFrame:
    """Return what each packet newly delivered: ``flow``, ``time``, ``payload_bytes`` (never negative, zeros left out).

    Parameters
    ----------
    packets
        Rows of `packets` of both directions; data travels ``a2b``.

    Examples
    --------
    >>> from datetime import datetime
    >>> row = {"flow": 0, "time": datetime(2026, 1, 1), "protocol": "tcp", "seq": 1, "payload_bytes": 0}
    >>> frame = pl.DataFrame([row | {"direction": "b2a", "ack": 1}, row | {"direction": "b2a", "ack": 1001}])
    >>> delivered(frame)["payload_bytes"].to_list()
    [1000]
    """
    parts = []
    for _, own in packets.sort("time", maintain_order=True).group_by("flow", maintain_order=True):
        acks = own.filter((pl.col("direction") == "b2a") & pl.col("ack").is_not_null())
        data = own.filter((pl.col("direction") == "a2b") & (pl.col("payload_bytes") > 0))
        if len(acks):
            reached = acks.with_columns(reached=pl.col("ack").cum_max())
        elif data["seq"].null_count() < len(data):
            first = pl.col("seq").first() + 0
            reached = data.filter(pl.col("seq").is_not_null()).with_columns(
                reached=(pl.col("seq") + pl.col("payload_bytes")).cum_max() - first
            )
            reached = pl.concat([reached.head(1).with_columns(reached=pl.lit(0, pl.Int64)), reached])
        else:
            reached = data.with_columns(reached=pl.col("payload_bytes").cum_sum())
            reached = pl.concat([reached.head(1).with_columns(reached=pl.lit(0, pl.Int64)), reached])
        parts.append(reached.select("flow", "time", payload_bytes=pl.col("reached").cast(pl.Int64).diff().fill_null(0)))
    if not parts:
        return packets.select("flow", "time", "payload_bytes").clear()
    return pl.concat(parts).filter(pl.col("payload_bytes") > 0)


def deliveries(
    packets: pl.DataFrame,
    names: dict[int, str],
    *,
    bin_ns: int | None = None,
    overlap: bool = False,
) -> Deliveries:
    """Return the bytes that flows delivered, bin by bin.

    Parameters
    ----------
    packets
        As in `delivered`.
    names
        Name of each flow; a flow without packets counts as silent.
    bin_ns
        Length of a bin; by default a round number that makes about 150 of them, 10 ms at the least.
    overlap
        From the latest start to the earliest end of the flows, instead of the whole time.

    Raises
    ------
    NothingMatchedError
        If nothing was delivered, or the flows never overlap.
    """
    rows = delivered(packets)
    unique = unique_names([names.get(flow, f"flow {flow}") for flow in sorted(names)])
    label = dict(zip(sorted(names), unique, strict=True))
    rows = rows.filter(pl.col("flow").is_in(list(label))).with_columns(
        entity=pl.col("flow").replace_strict(label, return_dtype=pl.String), ns=pl.col("time").cast(pl.Int64)
    )
    if not len(rows):
        raise NothingMatchedError("the flows delivered nothing: there is no rate to draw")
    ends = rows.group_by("entity").agg(first=pl.col("ns").min(), last=pl.col("ns").max())
    spans = {row["entity"]: (row["first"], row["last"]) for row in ends.iter_rows(named=True)}
    start = max(first for first, _ in spans.values()) if overlap else min(first for first, _ in spans.values())
    end = (min if overlap else max)(last for _, last in spans.values()) + 1
    if end <= start:
        raise NothingMatchedError("the flows never overlap in time: there is nothing to compare")
    length = bin_ns or max(MIN_BIN_NS, round(step_for((end - start) / 1e9, BINS) * 1e9))
    # The last, partial bin of a picture is drawn too unless a part of a bin would look like a drop of the rate.
    table = binned(rows, unique, start_ns=start, end_ns=end, bin_ns=min(length, end - start))
    found = tuple(spans.get(name, (start, start)) for name in unique)
    return Deliveries(table, tuple(unique), start, min(length, end - start), found)


def unique_names(names: Sequence[str]) -> list[str]:
    """Return names that all differ, and differ from the columns of a table of bins.

    Examples
    --------
    >>> unique_names(["a", "a", "bin"])
    ['a', 'a (2)', 'bin (2)']
    """
    taken, result = {"bin", "start_ns", "total"}, []
    for name in names:
        candidate, number = name, 1
        while candidate in taken:
            number += 1
            candidate = f"{name} ({number})"
        taken.add(candidate)
        result.append(candidate)
    return result


def round_scales(length_ns: int, bin_ns: int, *, windows: int = 2) -> list[int]:
    """Return time scales 1, 2, 5, 10, ... times the bin, as long as `windows` of them fit.

    Examples
    --------
    >>> round_scales(100, 10)
    [10, 20, 50]
    """
    scales, power = [], 1
    while bin_ns * power * windows <= length_ns:
        scales += [bin_ns * power * factor for factor in (1, 2, 5) if bin_ns * power * factor * windows <= length_ns]
        power *= 10
    return scales
