"""Flow completion time: from the SYN to the acknowledgement of the last payload byte."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from tracetool.measures import Measure, Number, exact

if TYPE_CHECKING:
    import polars as pl


def flow_completion_time(flow_bytes: Number, goodput_bytes_per_s: Number) -> Measure:
    """Return the completion time that a flow's size and its mean goodput imply, in seconds.

    Parameters
    ----------
    flow_bytes
        The size of the flow.
    goodput_bytes_per_s
        Its mean goodput in bytes per second.

    References
    ----------
    RFC 7928 section 2.1 (``Fs/(G/8)`` with the goodput in bit/s).

    Examples
    --------
    >>> flow_completion_time(1_000_000, 125_000).value
    8.0
    """
    size, rate = exact([flow_bytes, goodput_bytes_per_s], "flow_bytes, goodput")
    if size is None or rate is None:
        return Measure.undefined("no-input")
    return Measure(float(Fraction(size) / rate)) if rate else Measure.undefined("not-reached")


def completion_time(packets: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """Measure the completion time of each direction that carried payload.

    A flow is complete when its sender has closed it (FIN) and everything it sent is acknowledged;
    an unfinished one has no completion time, whatever has elapsed.

    Parameters
    ----------
    packets, flows
        The tables of these names; TCP only.

    Returns
    -------
    polars.DataFrame
        ``input``, ``flow``, ``direction``, ``payload_bytes``, ``value_s``, ``reason``: ``no-input``
        where the SYN was not captured, ``not-reached`` where the end was not.
    """
    import polars as pl

    keys = ["input", "flow", "direction"]
    rows = (
        packets.lazy()
        .filter(pl.col("protocol").cast(pl.String) == "tcp")
        .with_columns(pl.col("direction").cast(pl.String), pl.col("time").cast(pl.Int64).alias("time_ns"))
    )
    end = pl.col("seq") + pl.col("payload_bytes").cast(pl.Int64)
    fin = (pl.col("flags").cast(pl.Int64) & 1) != 0
    sent = rows.group_by(keys).agg(
        end.filter(pl.col("payload_bytes") > 0).max().alias("last"),
        pl.col("payload_bytes").cast(pl.Int64).sum(),
        fin.any().alias("closed"),
    )
    turned = pl.when(pl.col("direction") == "a2b").then(pl.lit("b2a")).otherwise(pl.lit("a2b"))
    acks = rows.filter(pl.col("ack").is_not_null()).select("input", "flow", turned.alias("direction"), "time_ns", "ack")
    done = (
        sent.filter(pl.col("last").is_not_null())
        .join(acks, on=keys, how="left")
        .group_by([*keys, "payload_bytes", "closed"])
        .agg(pl.col("time_ns").filter(pl.col("ack") >= pl.col("last")).min().alias("done_ns"))
    )
    start = flows.lazy().select(
        "input", "flow", pl.col("start").cast(pl.Int64).alias("start_ns"), pl.col("handshake").cast(pl.String)
    )
    whole = (pl.col("handshake") == "full").fill_null(value=False)
    finished = pl.col("closed") & pl.col("done_ns").is_not_null()
    reason = pl.when(~whole).then(pl.lit("no-input")).when(~finished).then(pl.lit("not-reached"))
    return (
        done.join(start, on=["input", "flow"], how="left")
        .select(
            *keys,
            "payload_bytes",
            pl.when(whole & finished).then((pl.col("done_ns") - pl.col("start_ns")) / 1e9).alias("value_s"),
            reason.alias("reason"),
        )
        .sort(keys)
        .collect()
    )
