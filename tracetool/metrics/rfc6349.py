"""The three numbers of RFC 6349: transfer time ratio, TCP efficiency, buffer delay."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tracetool.measures import Measure, Number, exact

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

# A full Ethernet frame on the wire: 1500 of IP, 14 header, 4 FCS, 8 preamble, 12 gap.
FULL_WIRE_FRAME_BYTES = 1538


def max_tcp_throughput_bps(link_bps: int, mss_bytes: int, wire_frame_bytes: int = FULL_WIRE_FRAME_BYTES) -> int:
    """Return the largest payload rate of a link, in bit/s, counted in whole frames per second.

    References
    ----------
    RFC 6349 section 4.1.1.

    Examples
    --------
    >>> max_tcp_throughput_bps(100_000_000, 1460)
    94923360
    """
    if wire_frame_bytes <= 0:
        raise ValueError(f"a wire frame of {wire_frame_bytes} bytes: expected more than 0")
    return link_bps // (8 * wire_frame_bytes) * 8 * mss_bytes


def transfer_time_ratio(actual_s: Number, ideal_s: Number) -> Measure:
    """Return actual over ideal transfer time (RFC 6349 section 4.1.2); null for an ideal of 0.

    Examples
    --------
    >>> transfer_time_ratio(12, 8).value
    1.5
    """
    actual, ideal = exact([actual_s, ideal_s], "actual, ideal")
    if not ideal or actual is None:
        return Measure.undefined("no-input")
    return Measure(float(Fraction(actual) / ideal))


def tcp_efficiency_percent(transmitted: int, retransmitted: int) -> Measure:
    """Return the share of bytes that were not retransmissions, in per cent.

    Examples
    --------
    >>> round(tcp_efficiency_percent(102_000, 2_000).value, 2)
    98.04

    References
    ----------
    RFC 6349 section 4.2; its example prints 98.03, which is truncated.
    """
    if transmitted == 0:
        return Measure.undefined("all-zero")
    return Measure(float(Fraction(100 * (transmitted - retransmitted), transmitted)))


def buffer_delay_percent(rtts: Sequence[Number], baseline_rtt: Number | None) -> Measure:
    """Return how far the mean RTT lies above the baseline, in per cent of it.

    Parameters
    ----------
    rtts
        RTTs during the transfer, sampled each second, in the baseline's unit.
    baseline_rtt
        From an idle measurement; the smallest RTT of the transfer itself (pass null) is labelled
        ``min-rtt baseline``.

    References
    ----------
    RFC 6349 section 4.3.

    Examples
    --------
    >>> buffer_delay_percent([32], 25).value
    28.0
    """
    samples = [Fraction(value) for value in exact(rtts, "rtts") if value is not None]
    if not samples:
        return Measure.undefined("no-input")
    base = min(samples) if baseline_rtt is None else Fraction(baseline_rtt)
    if base == 0:
        return Measure.undefined("no-input")
    average = sum(samples, Fraction(0)) / len(samples)
    return Measure(float(100 * (average - base) / base), note="min-rtt baseline" if baseline_rtt is None else None)


@dataclass(frozen=True, slots=True)
class BandwidthDelayProduct:
    """The bandwidth-delay product in bytes and in segments."""

    bytes: float
    segments: float


def bdp(capacity_bps: Number, rtt_s: Number, mss_bytes: int) -> BandwidthDelayProduct:
    """Return the bandwidth-delay product.

    Examples
    --------
    >>> bdp(8_000_000, 1, 1000).segments
    1000.0
    """
    if mss_bytes <= 0:
        raise ValueError(f"a maximum segment size of {mss_bytes} bytes: expected more than 0")
    size = Fraction(capacity_bps) * Fraction(rtt_s) / 8
    return BandwidthDelayProduct(float(size), float(size / mss_bytes))


def rfc6349(
    rates: pl.DataFrame, rtts: pl.DataFrame, *, link_bps: int | None = None, mss_bytes: int = 1460
) -> pl.DataFrame:
    """Measure the three numbers of each flow and direction.

    Parameters
    ----------
    rates
        `tracetool.metrics.throughput.throughput` of the flows.
    rtts
        Rows of ``rtts``; averaged per second first, as the RFC samples them.
    link_bps
        The bottleneck's rate on the wire; null leaves the transfer time ratio null.
    mss_bytes
        For the ideal throughput.

    Returns
    -------
    polars.DataFrame
        ``input``, ``flow``, ``direction``, ``transfer_time_ratio``, ``tcp_efficiency_percent``,
        ``buffer_delay_percent``, ``baseline`` (always ``min-rtt``: a capture holds no idle test).
    """
    import polars as pl

    keys = ["input", "flow", "direction"]
    second = pl.col("time").cast(pl.Int64) // 10**9
    sampled = (
        rtts.lazy()
        .with_columns(pl.col("direction").cast(pl.String))
        .group_by(*keys, second.alias("second"))
        .agg(pl.col("rtt_ns").mean().alias("mean"), pl.col("rtt_ns").min().alias("least"))
        .group_by(keys)
        .agg(pl.col("mean").mean(), pl.col("least").min())
    )
    ideal_bps = None if link_bps is None else max_tcp_throughput_bps(link_bps, mss_bytes)
    # Actual over ideal time of one transfer is ideal over actual rate.
    ratio = pl.lit(None, dtype=pl.Float64) if ideal_bps is None else ideal_bps / pl.col("goodput_bps")
    return (
        rates.lazy()
        .join(sampled, on=keys, how="left")
        .select(
            *keys,
            pl.when(pl.col("goodput_bps") > 0).then(ratio).alias("transfer_time_ratio"),
            (100 * pl.min_horizontal("distinct_bytes", "sent_bytes") / pl.col("sent_bytes")).alias(
                "tcp_efficiency_percent"
            ),
            (100 * (pl.col("mean") / pl.col("least") - 1)).alias("buffer_delay_percent"),
            pl.when(pl.col("least").is_not_null()).then(pl.lit("min-rtt")).alias("baseline"),
        )
        .sort(keys)
        .collect()
    )
