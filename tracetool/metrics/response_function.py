"""TCP-friendly rates: what a loss rate and a round-trip time allow a standard TCP."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tracetool.measures import Measure

if TYPE_CHECKING:
    import polars as pl


def tcp_rate_simple(p: float, rtt_s: float) -> Measure:
    """Return ``1.2/(RTT·√p)`` in packets per second (RFC 5166 section 2.1); null without loss.

    Examples
    --------
    >>> round(tcp_rate_simple(0.01, 0.1).value)
    120
    """
    if p <= 0 or rtt_s <= 0:
        return Measure.undefined("no-input")
    return Measure(1.2 / (rtt_s * math.sqrt(p)))


def tfrc_rate(segment_bytes: int, rtt_s: float, p: float) -> Measure:
    """Return TFRC's throughput equation in bytes per second; null without loss.

    Parameters
    ----------
    segment_bytes, rtt_s
        Segment size and round-trip time.
    p
        The loss *event* rate.

    References
    ----------
    RFC 5348 section 3.1 with ``t_RTO = 4R`` and ``b = 1``.

    Examples
    --------
    >>> round(tfrc_rate(1460, 0.1, 0.01).value)
    164005
    """
    if p <= 0 or rtt_s <= 0:
        return Measure.undefined("no-input")
    timeouts = 12 * math.sqrt(3 * p / 8) * p * (1 + 32 * p * p)
    return Measure(segment_bytes / (rtt_s * (math.sqrt(2 * p / 3) + timeouts)))


def tcp_friendly(rates: pl.DataFrame, *, rtt_s: float, segment_bytes: int) -> pl.DataFrame:
    """Compare each flow's goodput with the rate that TFRC's equation allows.

    Parameters
    ----------
    rates
        ``input``, ``flow``, ``direction``, ``goodput_bps`` and ``event_rate``.
    rtt_s, segment_bytes
        Of the path.

    Returns
    -------
    polars.DataFrame
        The keys, ``tfrc_bps`` and ``over_tfrc`` (goodput over it); null without loss.
    """
    import polars as pl

    rows = []
    for row in rates.iter_rows(named=True):
        fair = tfrc_rate(segment_bytes, rtt_s, row["event_rate"] or 0.0).value
        fair_bps = None if fair is None else 8 * fair
        over = None if fair_bps is None or row["goodput_bps"] is None else row["goodput_bps"] / fair_bps
        rows.append((row["input"], row["flow"], row["direction"], fair_bps, over))
    schema = {name: rates.schema[name] for name in ("input", "flow", "direction")}
    return pl.DataFrame(rows, schema=schema | {"tfrc_bps": pl.Float64(), "over_tfrc": pl.Float64()}, orient="row")
