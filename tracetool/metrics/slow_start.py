"""Slow start and HyStart: when it ended, how, and how well the exit fitted the path."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tracetool.measures import Measure, Number

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

# TCP_INFINITE_SSTHRESH of the Linux kernel.
SSTHRESH_UNSET = 0x7FFFFFFF
# Linux tcp_cubic.c: HYSTART_DELAY_MIN and HYSTART_DELAY_MAX; RFC 9406 has the same bounds.
DELAY_MIN_MS, DELAY_MAX_MS = 4, 16


@dataclass(frozen=True, slots=True)
class SlowStartExit:
    """The first sample with a set ssthresh: its time, cwnd and ssthresh in segments."""

    t: Number
    cwnd: int
    ssthresh: int


def slow_start_exit(samples: Sequence[tuple[Number, int, int | None]]) -> SlowStartExit | None:
    """Return the end of slow start from samples of ``(time, cwnd, ssthresh)``.

    A ssthresh of 0, null or the kernel's infinity is not set; ``None`` means slow start never ended.

    Examples
    --------
    >>> slow_start_exit([(0, 10, None), (1, 40, 40)]).cwnd
    40
    """
    for time, cwnd, ssthresh in samples:
        if ssthresh and ssthresh != SSTHRESH_UNSET:
            return SlowStartExit(time, cwnd, ssthresh)
    return None


def exit_window_over_bdp(exit_segments: Number | None, bdp_segments: Number | None) -> Measure:
    """Return the exit window over the path's bandwidth-delay product; null where either is unknown.

    Examples
    --------
    >>> exit_window_over_bdp(50, 100).value
    0.5
    """
    if exit_segments is None or not bdp_segments:
        return Measure.undefined("no-input")
    return Measure(float(Fraction(exit_segments) / Fraction(bdp_segments)))


def overshoot_loss(lost_in_first_episode: int, sent_in_last_round: int) -> Measure:
    """Return the segments lost in the first loss episode over those sent in the last round before.

    Examples
    --------
    >>> overshoot_loss(40, 400).value
    0.1
    """
    if sent_in_last_round == 0:
        return Measure.undefined("all-zero")
    return Measure(lost_in_first_episode / sent_in_last_round)


def hystart_delay_threshold_ms(delay_min_ms: Number) -> float:
    """Return how far a round's RTT may rise above the minimum before HyStart's delay test fires.

    An eighth of the minimum, from 4 to 16 ms. Linux fires above it, RFC 9406 at it.

    References
    ----------
    Linux tcp_cubic.c; RFC 9406 section 4.2.

    Examples
    --------
    >>> hystart_delay_threshold_ms(80)
    10.0
    """
    return float(min(max(Fraction(delay_min_ms) / 8, Fraction(DELAY_MIN_MS)), Fraction(DELAY_MAX_MS)))


def mean_exit_cwnd(cwnd_sum: int, detections: int) -> Measure:
    """Return the mean exit window from the kernel's counters, differences over the interval.

    ``TCPHystartTrainCwnd / TCPHystartTrainDetect``, and the same of ``Delay``.

    Examples
    --------
    >>> mean_exit_cwnd(460, 2).value
    230.0
    """
    return Measure(cwnd_sum / detections) if detections > 0 else Measure.undefined("no-input")


def bytes_in_flight(is_ack: Sequence[bool], number: Sequence[int]) -> list[int]:
    """Return the bytes in flight after each packet: highest sequence sent less highest ACK.

    A retransmission adds nothing, and a super-frame counts in full.

    Parameters
    ----------
    is_ack
        Whether each row is an ACK (else data).
    number
        The ACK number, or the end of the data's sequence range.

    Examples
    --------
    >>> bytes_in_flight([False, True], [1000, 1000])
    [1000, 0]
    """
    acks, ends = np.asarray(is_ack, np.bool_), np.asarray(number, np.int64)
    sent = np.maximum.accumulate(np.where(acks, 0, ends)) if ends.size else ends
    acked = np.maximum.accumulate(np.where(acks, ends, 0)) if ends.size else ends
    return np.maximum(sent - acked, 0).tolist()  # type: ignore[no-any-return]


def time_to_share(
    bins: Sequence[int], bin_length: Number, *, target: Number, share: Number = Fraction(9, 10)
) -> Measure:
    """Return when the goodput of a bin first reaches a share of a target (capacity or steady value).

    Parameters
    ----------
    bins
        Goodput bytes per bin from the start.
    bin_length
        1 s or one RTT; the result has its unit.
    target
        Bytes per bin of the capacity, or of the steady state.

    Examples
    --------
    >>> time_to_share([10, 50, 95], 1, target=100).value
    3.0
    """
    for position, size in enumerate(bins):
        if size >= Fraction(share) * Fraction(target):
            return Measure(float(Fraction(bin_length) * (position + 1)))
    return Measure.undefined("not-reached", censored_at=float(Fraction(bin_length) * len(bins)))


def slow_start(slow_starts: pl.DataFrame, *, by: Sequence[str] = ("input", "flow", "direction")) -> pl.DataFrame:
    """Measure the first slow starts of a set of flows: causes and the fit of the exit windows.

    Restarts after idle are not start-ups; only each flow's first episode counts.

    Parameters
    ----------
    slow_starts
        Rows of ``slow_starts``.
    by
        What to group by: one row per flow, or per input for the distribution over runs.

    Returns
    -------
    polars.DataFrame
        The columns of ``by``, ``n``, ``exit_cause`` (of the most), ``exits`` (that happened),
        ``exit_s`` (median), ``cwnd_exit_segments`` (median), ``exit_to_bdp`` (median, least, most).
    """
    import polars as pl

    first = slow_starts.sort("episode").unique(["input", "flow", "direction"], keep="first", maintain_order=True)
    length = (pl.col("end").cast(pl.Int64) - pl.col("start").cast(pl.Int64)) / 1e9
    ratio = pl.col("exit_to_bdp")
    return (
        first.group_by(list(by))
        .agg(
            pl.len().cast(pl.Int64).alias("n"),
            pl.col("exit_cause").cast(pl.String).mode(maintain_order=True).first().alias("exit_cause"),
            pl.col("end").count().cast(pl.Int64).alias("exits"),
            length.median().alias("exit_s"),
            pl.col("cwnd_exit_segments").median().alias("cwnd_exit_segments"),
            ratio.median().alias("exit_to_bdp"),
            ratio.min().alias("exit_to_bdp_min"),
            ratio.max().alias("exit_to_bdp_max"),
        )
        .sort(list(by))
    )
