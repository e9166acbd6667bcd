"""Round-trip times: statistics by method, smoothing by RFC 6298, and the samples themselves.

A sample is the round trip from the capture point to the host that answers: the whole path only
in a sender's capture.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tracetool.measures import Measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

AGE_LIMIT_NS = 10_000_000_000


@dataclass(frozen=True, slots=True)
class SmoothedRtt:
    """The state of RFC 6298's estimator, in nanoseconds."""

    srtt_ns: float
    rttvar_ns: float
    rto_raw_ns: float
    rto_ns: float


def rfc6298(samples_ns: Sequence[int], *, granularity_ns: int = 0, min_rto_ns: int = 10**9) -> SmoothedRtt | None:
    """Return smoothed RTT, its variation and the timeout after the samples; ``None`` without any.

    References
    ----------
    RFC 6298 section 2.

    Examples
    --------
    >>> rfc6298([100, 120, 80]).srtt_ns
    99.6875
    """
    srtt = rttvar = Fraction(0)
    for position, sample in enumerate(samples_ns):
        if position == 0:
            srtt, rttvar = Fraction(sample), Fraction(sample, 2)
        else:
            rttvar = Fraction(3, 4) * rttvar + Fraction(1, 4) * abs(srtt - sample)
            srtt = Fraction(7, 8) * srtt + Fraction(1, 8) * sample
    if not samples_ns:
        return None
    raw = srtt + max(Fraction(granularity_ns), 4 * rttvar)
    return SmoothedRtt(float(srtt), float(rttvar), float(raw), float(max(raw, Fraction(min_rto_ns))))


@dataclass(frozen=True, slots=True)
class DataAckRtts:
    """RTT samples, and the segments that gave none, by reason."""

    samples_ns: list[int]
    cumulative: int
    nosample: int
    ambiguous: int


def rtt_data_ack(
    is_ack: Sequence[bool] | np.ndarray,
    time_ns: Sequence[int] | np.ndarray,
    start: Sequence[int] | np.ndarray,
    end: Sequence[int] | np.ndarray,
) -> DataAckRtts:
    """Return the RTT samples of one flow from its data segments and the ACKs that come back.

    Parameters
    ----------
    is_ack
        Whether each row is an ACK.
    time_ns
        Capture times, ascending.
    start, end
        A segment's sequence range; an ACK has its number in ``end``.

    References
    ----------
    Karn's rule by RFC 6298 section 3; tcptrace's rexmit.c.

    Examples
    --------
    >>> rtt_data_ack([False, True], [0, 100], [0, 0], [1000, 1000]).samples_ns
    [100]
    """
    from tracetool.kernels.rtt_data_ack import rtt_data_ack as run

    times, starts, ends = (np.asarray(column, np.int64) for column in (time_ns, start, end))
    rtt, counts = np.empty(times.size, np.int64), np.zeros(3, np.int64)
    run(np.asarray(is_ack, np.bool_), times, starts, ends, rtt, counts)
    return DataAckRtts(rtt[rtt >= 0].tolist(), int(counts[0]), int(counts[1]), int(counts[2]))


@dataclass(frozen=True, slots=True)
class HandshakeRtt:
    """The two halves of the handshake's round trip at one capture point, and the whole."""

    server_side_ns: Measure
    client_side_ns: Measure
    total_ns: Measure


def rtt_handshake(
    syn_ns: int | None, synack_ns: int | None, ack_ns: int | None, *, retransmitted: bool = False
) -> HandshakeRtt:
    """Return the handshake's round-trip times.

    Null with ``ambiguous`` where SYN or SYN/ACK was retransmitted, ``no-input`` where a packet is
    missing.

    References
    ----------
    Jiang and Dovrolis (2002); Wireshark's initial RTT is the total.

    Examples
    --------
    >>> rtt_handshake(10, 45, 61).total_ns.value
    51.0
    """

    def between(first: int | None, second: int | None) -> Measure:
        if retransmitted:
            return Measure.undefined("ambiguous")
        if first is None or second is None or second < first:
            return Measure.undefined("no-input")
        return Measure(float(second - first))

    return HandshakeRtt(between(syn_ns, synack_ns), between(synack_ns, ack_ns), between(syn_ns, ack_ns))


def rtt_timestamp(packets: pl.DataFrame) -> pl.DataFrame:
    """Return RTT samples from TCP timestamps: a TSval's first sight against its first echo.

    TSval 0 and, except on a SYN, TSecr 0 are skipped; an echo after more than 10 s is no sample.
    Where one TSval covers several packets the sample is slightly high, never low.

    Parameters
    ----------
    packets
        ``input``, ``flow``, ``direction``, ``time``, ``tsval``, ``tsecr`` and ``flags``.

    Returns
    -------
    polars.DataFrame
        ``input``, ``flow``, ``direction`` (of the packet that was echoed), ``time_ns`` (of the
        echo), ``rtt_ns``, ``tsval``; in order of time.

    References
    ----------
    pping; RFC 7323 section 4.1.
    """
    import polars as pl

    flow = ["input", "flow", "direction"]
    time = pl.col("time").cast(pl.Int64)
    syn = (pl.col("flags").cast(pl.Int64) & 2) != 0
    rows = (
        packets.lazy()
        .with_columns(pl.col("direction").cast(pl.String))
        .filter(pl.col("tsval").is_not_null(), pl.col("tsval") > 0, (pl.col("tsecr") > 0) | syn)
    )
    sent = rows.group_by(*flow, "tsval").agg(time.min().alias("sent_ns"))
    turned = pl.when(pl.col("direction") == "a2b").then(pl.lit("b2a")).otherwise(pl.lit("a2b"))
    echoed = (
        rows.filter(pl.col("tsecr") > 0)
        .group_by("input", "flow", turned.alias("direction"), pl.col("tsecr").alias("tsval"))
        .agg(time.min().alias("time_ns"))
    )
    rtt = pl.col("time_ns") - pl.col("sent_ns")
    return (
        sent.join(echoed, on=[*flow, "tsval"], how="inner")
        .select(*flow, "time_ns", rtt.alias("rtt_ns"), "tsval")
        .filter(pl.col("rtt_ns").is_between(0, AGE_LIMIT_NS))
        .sort("time_ns", "tsval")
        .collect()
    )


def rtt_statistics(rtts: pl.DataFrame, *, by: Sequence[str] = ("input", "flow", "direction", "method")) -> pl.DataFrame:
    """Measure RTT samples by flow and method.

    Percentiles are interpolated linearly.

    Parameters
    ----------
    rtts
        Rows of ``rtts``.
    by
        What to group by.

    Returns
    -------
    polars.DataFrame
        The columns of ``by``, ``n``, ``min_ns``, ``mean_ns``, ``median_ns``, ``p95_ns``, ``p99_ns``,
        ``max_ns``; no row where there is no sample.
    """
    import polars as pl

    rtt = pl.col("rtt_ns")
    return (
        rtts.filter(rtt.is_not_null())
        .group_by(list(by))
        .agg(
            rtt.len().cast(pl.Int64).alias("n"),
            rtt.min().alias("min_ns"),
            rtt.mean().alias("mean_ns"),
            rtt.median().alias("median_ns"),
            rtt.quantile(0.95, "linear").alias("p95_ns"),
            rtt.quantile(0.99, "linear").alias("p99_ns"),
            rtt.max().alias("max_ns"),
        )
        .sort(list(by))
    )
