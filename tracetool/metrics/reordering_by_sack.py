"""Reordering that a sender can see: segments that SACKs passed over and that arrived without being sent again.

A sender's capture has no order of arrival, so RFC 4737 has nothing to measure there. What the receiver's SACKs tell is
a lower bound: a late segment that was retransmitted before its ACK came is not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars as pl

OPTION_BLOCKS = 3


def passed_over(left: np.ndarray, right: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Say which ranges lie inside a hole, or several that touch.

    Parameters
    ----------
    left, right
        Bounds of the holes, in any order.
    start, end
        Bounds of the ranges.

    Examples
    --------
    >>> passed_over(np.array([0, 10]), np.array([10, 20]), np.array([5, 15]), np.array([12, 25])).tolist()
    [True, False]
    """
    if left.size == 0:
        return np.zeros(start.size, np.bool_)
    order = np.argsort(left, kind="stable")
    left, reach = left[order], np.maximum.accumulate(right[order])
    first = np.concatenate(([True], left[1:] > reach[:-1]))
    lows = left[first]
    highs = reach[np.concatenate((np.flatnonzero(first)[1:] - 1, [left.size - 1]))]
    where = np.searchsorted(lows, start, side="right") - 1
    inside: np.ndarray = (where >= 0) & (end <= highs[where])
    return inside


def reordering_by_sack(packets: pl.DataFrame) -> pl.DataFrame:
    """Count segments that were passed over and arrived all the same, in a sender's capture.

    Parameters
    ----------
    packets
        Rows of ``packets``, both directions, captured at the sender.

    Returns
    -------
    polars.DataFrame
        ``input``, ``flow``, ``direction``, ``segments`` (sent once and acknowledged), ``reordered``, ``ratio``;
        ratio is null for a flow that never used SACK.
    """
    import polars as pl

    flow = ["input", "flow", "direction"]
    rows = packets.filter(pl.col("protocol").cast(pl.String) == "tcp").with_columns(pl.col("direction").cast(pl.String))
    data = rows.filter(pl.col("payload_bytes") > 0, pl.col("seq").is_not_null()).with_columns(
        end=pl.col("seq") + pl.col("payload_bytes")
    )
    again = (pl.col("seq") < pl.col("end").cum_max().shift(1).over(flow)).fill_null(value=False)
    data = data.sort("time", maintain_order=True).with_columns(again=again)
    found = []
    for key, sent in data.group_by(flow, maintain_order=True):
        answers = rows.filter(
            pl.col("input") == key[0],
            pl.col("flow") == key[1],
            pl.col("direction") != key[2],
            pl.col("ack").is_not_null(),
        )
        left, right = _holes(answers)
        acked = answers["ack"].max()
        once = sent.filter(~pl.col("again") & ~pl.col("seq").is_in(sent.filter("again")["seq"].to_list()))
        once = once.filter(pl.col("end") <= acked) if isinstance(acked, int) else once.clear()
        late = passed_over(left, right, once["seq"].to_numpy(), once["end"].to_numpy())
        known = answers["sack"].is_not_null().any() and len(once) > 0
        found.append((*key, len(once), int(late.sum()), float(late.mean()) if known else None))
    schema = {name: data.schema[name] for name in flow} | {
        "segments": pl.Int64(),
        "reordered": pl.Int64(),
        "ratio": pl.Float64(),
    }
    return pl.DataFrame(found, schema=schema, orient="row").sort(flow)


def _holes(answers: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of every range that some ACK showed as missing below SACKed data."""
    import polars as pl

    # Options hold three blocks beside timestamps: an ACK that lists fewer lists all there are.
    whole = pl.col("sack").list.len() < 2 * OPTION_BLOCKS
    acks = answers.filter(whole).select("ack", "sack").unique(maintain_order=True)
    edges = (
        acks.with_row_index("which")
        .explode("sack", empty_as_null=False)
        .with_columns(place=pl.int_range(pl.len()).over("which"))
    )
    blocks = edges.filter(pl.col("place") % 2 == 0).select("which", "ack", left="sack", pair=pl.col("place") // 2)
    rights = edges.filter(pl.col("place") % 2 == 1).select("which", right="sack", pair=pl.col("place") // 2)
    blocks = blocks.join(rights, on=["which", "pair"]).filter(pl.col("left") >= pl.col("ack")).sort("which", "left")
    # A hole ends where a block starts; it begins at the block before, or at the cumulative ACK.
    begin = pl.max_horizontal(pl.col("right").cum_max().shift(1).over("which"), pl.col("ack"))
    holes = blocks.select(begin.alias("from"), pl.col("left").alias("to")).filter(pl.col("to") > pl.col("from"))
    return holes["from"].to_numpy(), holes["to"].to_numpy()
