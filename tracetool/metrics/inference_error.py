"""How far an inferred quantity is from the kernel's word, at every moment at which the kernel spoke.

A kernel log and a capture may run on different clocks. Both show how the cumulative acknowledgement advances, so the
moments at which they reach the same sequence number give the offset; it is taken out before anything is compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

SEQUENCES = 1 << 32
#: Fewer common sequence numbers than this do not give a clock offset.
MIN_MATCHES = 8
TOLERANCE_NS = 5_000_000
#: A sender that hears nothing for so long has timed out (RFC 6298: the RTO starts at one second).
POLL_NS = 1_000_000_000
#: Relative error of each quantity: column of `samples`, and the difference that counts as none.
QUANTITIES = {
    "cwnd_segments": 1,
    "srtt_ns": 0,
    "min_rtt_ns": 0,
    "inflight_bytes": 0,
    "mss_bytes": 0,
}
SSTHRESH_SLACK = 0.05  # a share of ssthresh that counts as agreement
SSTHRESH_SEGMENTS = 2


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How much later a log's clock is than a capture's.

    Attributes
    ----------
    offset_ns
        Median difference; 0 where it could not be estimated.
    spread_ns
        Median absolute deviation of the single differences; None where it could not be estimated.
    matches
        Number of sequence numbers that both have.
    """

    offset_ns: int
    spread_ns: int | None
    matches: int


def sequence_shift(isn_log: int | None, isn_capture: int | None) -> int | None:
    """What to add to a log's relative sequence numbers to have the capture's; None where either base is unknown.

    Examples
    --------
    >>> sequence_shift(5, 4294967290)
    11
    """
    if isn_log is None or isn_capture is None:
        return None
    shift = (isn_log - isn_capture) % SEQUENCES
    return shift - SEQUENCES if shift >= SEQUENCES // 2 else shift


def clock_offset(kernel: pl.DataFrame, inferred: pl.DataFrame, shift: int | None) -> ClockOffset:
    """Estimate the offset of a kernel log's clock against a capture's.

    Parameters
    ----------
    kernel, inferred
        Rows of `samples` of one sender: of a log, and of a capture.
    shift
        See `sequence_shift`.

    Examples
    --------
    >>> from datetime import datetime, timedelta
    >>> rows = pl.DataFrame({"time": [datetime(2026, 1, 1, 0, 0, s) for s in range(20)], "snd_una": range(20)})
    >>> late = rows.with_columns(pl.col("time").cast(pl.Datetime("ns")) + timedelta(milliseconds=5))
    >>> clock_offset(late, rows.with_columns(pl.col("time").cast(pl.Datetime("ns"))), 0).offset_ns
    5000000
    """
    if shift is None:
        return ClockOffset(0, None, 0)
    late = _first_reached(kernel.with_columns(snd_una=pl.col("snd_una") + shift), "log")
    both = late.join(_first_reached(inferred, "capture"), on="snd_una").select(
        difference=pl.col("log") - pl.col("capture")
    )
    if both.height < MIN_MATCHES:
        return ClockOffset(0, None, both.height)
    middle = both.select(pl.col("difference").median().round().cast(pl.Int64)).item()
    spread = both.select((pl.col("difference") - middle).abs().median().round().cast(pl.Int64)).item()
    return ClockOffset(middle, spread, both.height)


def _first_reached(samples: pl.DataFrame, name: str) -> pl.DataFrame:
    """When each acknowledged sequence number was first the state, in ns; the first one is not an arrival."""
    reached = samples.drop_nulls("snd_una").sort("time", maintain_order=True).group_by("snd_una", maintain_order=True)
    return reached.agg(pl.col("time").first().dt.epoch("ns").alias(name)).slice(1)


def aligned(
    kernel: pl.DataFrame,
    inferred: pl.DataFrame,
    *,
    offset_ns: int = 0,
    polled: bool = False,
    tolerance_ns: int | None = None,
) -> pl.DataFrame:
    """Put the inferred row of the same moment beside each kernel row that the capture covers.

    Parameters
    ----------
    kernel, inferred
        Rows of `samples` of one sender: of a log, and of a capture.
    offset_ns
        How much later the log's clock is.
    polled
        Whether the kernel was asked at moments of its own (ss, iperf3): the state then is the one that the next ACK
        finds, so the next inferred row is taken, not the nearest.
    tolerance_ns
        Farthest a row may be; None: `TOLERANCE_NS`, or `POLL_NS` for polled logs.

    Returns
    -------
    polars.DataFrame
        Columns of the kernel's rows, and those of the inferred ones with the suffix ``_inferred`` (null where none is
        within the tolerance); `time` is on the capture's clock.
    """
    shifted = kernel.with_columns(time=pl.col("time") - pl.duration(nanoseconds=offset_ns)).sort("time")
    spoken = inferred.sort("time").with_columns(time_inferred=pl.col("time"))
    spoken_ns = inferred["time"].dt.epoch("ns")  # as integers: a Python datetime has no nanoseconds
    covered = shifted.filter(pl.col("time").dt.epoch("ns").is_between(spoken_ns.min(), spoken_ns.max()))
    tolerance = tolerance_ns or (POLL_NS if polled else TOLERANCE_NS)
    return covered.join_asof(
        spoken,
        on="time",
        strategy="forward" if polled else "nearest",
        tolerance=f"{tolerance}ns",
        suffix="_inferred",
        coalesce=True,
    )


def inference_error(pairs: pl.DataFrame, quantities: Sequence[str] = tuple(QUANTITIES)) -> pl.DataFrame:
    """Errors of every inferred quantity against the kernel's word.

    Parameters
    ----------
    pairs
        As `aligned` gives them.
    quantities
        Columns to compare; those that either side lacks are left out.

    Returns
    -------
    polars.DataFrame
        One row per quantity: `quantity`, `rows` (where the kernel knows it), `missing` (share without an inferred
        value), `median`, `p90`, `p99` (relative errors; a difference of one segment counts as none for cwnd),
        `agreement` (share of rows that agree: for ssthresh, and for the bounds of cwnd) and `width` (median width of
        the bounds against cwnd).
    """
    rows = [_relative(pairs, name) for name in quantities]
    rows += [_ssthresh(pairs), _cover(pairs)]
    schema = {
        "quantity": pl.String,
        "rows": pl.Int64,
        **dict.fromkeys(("missing", "median", "p90", "p99", "agreement", "width"), pl.Float64),
    }
    return pl.DataFrame([row for row in rows if row["rows"]], schema=schema)


def _relative(pairs: pl.DataFrame, name: str) -> dict[str, object]:
    known = pairs.filter(pl.col(name).is_not_null() & (pl.col(name) > 0))
    off = (pl.col(f"{name}_inferred") - pl.col(name)).abs()
    error = known.select(error=pl.when(off <= QUANTITIES.get(name, 0)).then(0.0).otherwise(off / pl.col(name)))["error"]
    found = error.drop_nulls()
    if found.is_empty():
        return {"quantity": name, "rows": 0}
    return {
        "quantity": name,
        "rows": known.height,
        "missing": 1 - len(found) / known.height,
        "median": found.median(),
        "p90": found.quantile(0.9),
        "p99": found.quantile(0.99),
    }


def _ssthresh(pairs: pl.DataFrame) -> dict[str, object]:
    known = pairs.filter(pl.col("cwnd_segments_inferred").is_not_null())
    true, mine, cwnd = (pl.col(name) for name in ("ssthresh_segments", "ssthresh_segments_inferred", "cwnd_segments"))
    slack = pl.max_horizontal(true * SSTHRESH_SLACK, pl.lit(SSTHRESH_SEGMENTS))
    # tcp_probe prints tcp_current_ssthresh(), which is at least 3/4 of cwnd outside of recovery.
    current = pl.max_horizontal(mine, cwnd // 2 + cwnd // 4)
    near = ((mine - true).abs() <= slack) | ((current - true).abs() <= slack)
    agrees = pl.when(true.is_null() | mine.is_null()).then(true.is_null() & mine.is_null()).otherwise(near)
    return {"quantity": "ssthresh_segments", "rows": known.height, "agreement": known.select(agrees.mean()).item()}


def _cover(pairs: pl.DataFrame) -> dict[str, object]:
    known = pairs.filter(pl.col("cwnd_segments").is_not_null() & pl.col("cwnd_low_segments_inferred").is_not_null())
    low, high, cwnd = (
        pl.col(name) for name in ("cwnd_low_segments_inferred", "cwnd_high_segments_inferred", "cwnd_segments")
    )
    inside = (low <= cwnd) & (high.is_null() | (cwnd <= high))
    return {
        "quantity": "cwnd bounds",
        "rows": known.height,
        "agreement": known.select(inside.mean()).item(),
        "width": known.select(((high - low) / cwnd).median()).item(),
    }
