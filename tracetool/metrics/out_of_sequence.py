"""Classes of segments that arrive out of sequence: retransmitted, duplicated, reordered, unknown.

One decision order after Jaiswal et al. (2003, 2007) and tstat's real_rules_test(). What cannot be
told stays ``unknown`` and is never folded into another class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from tracetool.measures import Number

CLASSES = (
    "network-duplicate",
    "unneeded-retransmission",
    "retransmission-fast",
    "retransmission-timeout",
    "unclassified",
    "reordered",
    "unknown",
)
DUPLICATE_ACKS = 3
# tstat's values before there is a sample: 5 ms of round trip, 500 ms of timeout.
FIRST_RTT_NS = 5_000_000
FIRST_RTO_NS = 500_000_000
MIN_RTO_NS = 100_000_000


def out_of_sequence_class(
    *,
    acked: bool,
    seen: bool,
    same_ipid: bool,
    dupacks: int,
    lag: Number,
    rtt: Number,
    rto: Number,
    ipid_older: bool,
    sacked_above: bool = False,
) -> str:
    """Return the class of one out-of-sequence segment.

    Parameters
    ----------
    acked
        The other side had acknowledged all of it.
    seen
        A copy was captured before.
    same_ipid
        That copy has the same IP identification, other than 0.
    dupacks
        Duplicate ACKs that ask for it.
    lag
        Time since the copy (or the last ACK of new data after it), or since the segment that overtook it; one unit
        with ``rtt`` and ``rto``.
    ipid_older
        Its IP identification (or TSval) is older than that of the segment that overtook it.
    sacked_above
        The other side had SACKed data above it.

    Examples
    --------
    >>> out_of_sequence_class(acked=True, seen=True, same_ipid=False, dupacks=0, lag=0.4, rtt=0.05,
    ...                       rto=0.25, ipid_older=False)
    'unneeded-retransmission'
    """
    if acked:
        return "network-duplicate" if same_ipid else "unneeded-retransmission"
    if seen and same_ipid:
        return "network-duplicate"
    asked = dupacks >= DUPLICATE_ACKS or sacked_above
    if asked and lag < rto and not (not seen and ipid_older and lag < rtt):
        return "retransmission-fast"
    if lag > rto:
        return "retransmission-timeout"
    if seen:
        return "unclassified"
    return "reordered" if lag < rtt and ipid_older else "unknown"


def classified(packets: pl.DataFrame, rtts: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return every out-of-sequence data segment with its class.

    Parameters
    ----------
    packets
        Rows of ``packets``, TCP only, in order of capture within each flow.
    rtts
        Rows of ``rtts``; a flow without any takes tstat's first values.

    Returns
    -------
    polars.DataFrame
        ``input``, ``flow``, ``direction``, ``time_ns``, ``frame``, ``seq``, ``payload_bytes``,
        ``class``.
    """
    import polars as pl

    flow = ["input", "flow", "direction"]
    state = _state(packets)
    late = state.filter(
        pl.col("payload_bytes") > 0, (pl.col("seq") < pl.col("highest")).fill_null(value=False)
    ).collect()
    late = (
        late.join(_timers(rtts), on=flow, how="left")
        if rtts is not None
        else late.with_columns(rtt=pl.lit(None, pl.Float64), rto=pl.lit(None, pl.Float64))
    )
    # Within one tick of the timestamp clock the IP identification decides.
    older_stamp = pl.when(pl.col("tsval") != pl.col("edge_tsval")).then(pl.col("tsval") < pl.col("edge_tsval"))
    older_id = ((pl.col("ip_id") - pl.col("edge_ip_id")) % 65536 > 32768) & (pl.col("ip_id") > 0)
    late = late.with_columns(
        acked=(pl.col("acked_to") >= pl.col("end")).fill_null(value=False),
        seen=pl.col("copy_ns").is_not_null(),
        same_ipid=((pl.col("ip_id") == pl.col("copy_ip_id")) & (pl.col("ip_id") > 0)).fill_null(value=False),
        dupacks=pl.when(pl.col("acked_to") == pl.col("seq")).then(pl.col("repeats")).otherwise(0).fill_null(0),
        # The retransmission timer starts anew with each ACK of new data (RFC 6298 section 5.3).
        lag=pl.col("time_ns")
        - pl.when(pl.col("copy_ns").is_null())
        .then(pl.col("edge_ns"))
        .otherwise(pl.max_horizontal("copy_ns", "advanced_ns")),
        rtt=pl.col("rtt").fill_null(FIRST_RTT_NS),
        rto=pl.col("rto").fill_null(FIRST_RTO_NS),
        ipid_older=pl.coalesce(older_stamp, older_id).fill_null(value=False),
        sacked_above=(pl.col("sacked_to") > pl.col("end")).fill_null(value=False),
    )
    evidence = ["acked", "seen", "same_ipid", "dupacks", "lag", "rtt", "rto", "ipid_older", "sacked_above"]
    classes = [out_of_sequence_class(**row) for row in late.select(evidence).iter_rows(named=True)]
    return late.select(*flow, "time_ns", "frame", "seq", "payload_bytes").with_columns(
        pl.Series("class", classes, pl.String)
    )


def _state(packets: pl.DataFrame) -> pl.LazyFrame:
    """Add to each packet what was known just before it: edges, copies, and the other side's ACKs."""
    import polars as pl

    pair, flow = ["input", "flow"], ["input", "flow", "direction"]
    rows = (
        packets.lazy()
        .filter(pl.col("protocol").cast(pl.String) == "tcp")
        .with_columns(
            pl.col("direction").cast(pl.String),
            pl.col("payload_bytes").cast(pl.Int64),
            pl.col("ip_id").cast(pl.Int64),
            pl.col("time").cast(pl.Int64).alias("time_ns"),
        )
        .with_columns((pl.col("seq") + pl.col("payload_bytes")).alias("end"))
        .sort(*pair, "frame")
    )
    is_edge = (pl.col("payload_bytes") > 0) & (pl.col("end") > pl.col("highest").fill_null(-1))

    def edge(column: str) -> pl.Expr:
        return pl.when(is_edge).then(pl.col(column)).forward_fill().shift(1).over(flow)

    rows = rows.with_columns(
        pl.when(pl.col("payload_bytes") > 0)
        .then(pl.col("end"))
        .cum_max()
        .forward_fill()
        .shift(1)
        .over(flow)
        .alias("highest"),
        pl.when(pl.col("payload_bytes") == 0).then(1).cum_sum().over([*flow, "ack"]).alias("count"),
        *(
            pl.col(name).shift(1).over([*flow, "seq", "payload_bytes"]).alias(f"copy_{name}")
            for name in ("time_ns", "ip_id")
        ),
    ).rename({"copy_time_ns": "copy_ns"})
    rows = rows.with_columns(
        edge("time_ns").alias("edge_ns"), edge("tsval").alias("edge_tsval"), edge("ip_id").alias("edge_ip_id")
    )

    known_ack = pl.col("ack").cum_max().forward_fill().shift(1).over(flow)
    rows = rows.with_columns(
        pl.when(pl.col("ack") > known_ack.fill_null(-1)).then(pl.col("time_ns")).alias("advance_ns")
    )

    def other(value: pl.Expr, *, largest: bool) -> pl.Expr:
        """Return the last (or largest) value that the other direction has sent so far."""
        sides = []
        for own, far in (("a2b", "b2a"), ("b2a", "a2b")):
            from_far = pl.when(pl.col("direction") == far).then(value)
            known = (from_far.cum_max() if largest else from_far).forward_fill().over(pair)
            sides.append(pl.when(pl.col("direction") == own).then(known))
        return pl.coalesce(sides)

    return rows.with_columns(
        other(pl.col("ack"), largest=True).alias("acked_to"),
        other(pl.col("sack").list.max(), largest=True).alias("sacked_to"),
        other(pl.col("advance_ns"), largest=True).alias("advanced_ns"),
        (other(pl.col("count"), largest=False) - 1).alias("repeats"),
    )


def _timers(rtts: pl.DataFrame) -> pl.DataFrame:
    """Return each flow's round trip and timeout: the halves on both sides of the capture point added up.

    The timeout is mean and four deviations as tstat has it, and no less than the longest round trip: a timer that is
    shorter than that would have fired while the ACK was on its way.
    """
    import polars as pl

    rtt = pl.col("rtt_ns")
    halves = rtts.group_by("input", "flow", pl.col("direction").cast(pl.String)).agg(
        rtt.min().alias("least"),
        rtt.max().alias("most"),
        rtt.mean().alias("mean"),
        rtt.std(ddof=0).fill_null(0).alias("deviation"),
    )
    slow = (pl.col("mean").sum() + 4 * pl.col("deviation").sum()).clip(MIN_RTO_NS)
    whole = halves.group_by("input", "flow").agg(
        pl.col("least").sum().cast(pl.Float64).alias("rtt"),
        pl.max_horizontal(slow, pl.col("most").max().cast(pl.Float64)).alias("rto"),
    )
    return whole.join(pl.DataFrame({"direction": ["a2b", "b2a"]}), how="cross")


def out_of_sequence(packets: pl.DataFrame, rtts: pl.DataFrame | None = None) -> pl.DataFrame:
    """Count the out-of-sequence segments of each flow and direction by class.

    Parameters
    ----------
    packets, rtts
        As in `classified`.

    Returns
    -------
    polars.DataFrame
        ``input``, ``flow``, ``direction`` and one count per class of `CLASSES`, for every direction
        that carried payload.
    """
    import polars as pl

    flow = ["input", "flow", "direction"]
    found = classified(packets, rtts)
    counts = found.group_by(flow).agg((pl.col("class") == name).sum().cast(pl.Int64).alias(name) for name in CLASSES)
    carried = packets.filter(pl.col("payload_bytes") > 0, pl.col("protocol").cast(pl.String) == "tcp")
    every = carried.select("input", "flow", pl.col("direction").cast(pl.String)).unique()
    return every.join(counts, on=flow, how="left").with_columns(pl.col(CLASSES).fill_null(0)).sort(flow)
