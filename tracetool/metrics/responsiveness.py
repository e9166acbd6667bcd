"""Responsiveness under working conditions, in round trips per minute (RPM).

draft-ietf-ippm-responsiveness-09. From a TCP trace only the passive, TCP-only form is possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tracetool.measures import Measure, Number, exact, mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

TRIM_SHARE = Fraction(95, 100)
INTERVAL_NS = 5_000_000_000
INTERVALS = 4
BANDS = ((300, "poor"), (1000, "fair"), (6000, "good"))


def trimmed_mean(x: Sequence[Number | None], *, share: Fraction = TRIM_SHARE) -> Measure:
    """Return the mean of the lower 95 % of the values (at least one).

    Examples
    --------
    >>> trimmed_mean([10] * 19 + [1000]).value
    10.0
    """
    values = sorted(Fraction(value) for value in exact(x) if value is not None)
    if not values:
        return Measure.undefined("no-input")
    average = mean(values[: max(1, int(share * len(values)))])
    return Measure(average or 0.0)


@dataclass(frozen=True, slots=True)
class Responsiveness:
    """Round trips per minute on new connections, on loaded ones, and their mean."""

    foreign: Measure
    loaded: Measure
    rpm: Measure


def responsiveness_rpm(
    *, tcp_f: Number | None, http_l: Number | None, tls_f: Number | None = None, http_f: Number | None = None
) -> Responsiveness:
    """Return the responsiveness from trimmed mean times in milliseconds.

    Parameters
    ----------
    tcp_f, tls_f, http_f
        Handshake and request times of new connections. Those that are missing leave the mean.
    http_l
        Request time on a connection that carries load.

    Examples
    --------
    >>> responsiveness_rpm(tcp_f=20, tls_f=30, http_f=40, http_l=50).rpm.value
    1600.0
    """
    foreign_times = [Fraction(value) for value in exact([tcp_f, tls_f, http_f], "foreign") if value is not None]
    average = mean(foreign_times)
    foreign = Measure(60_000 / average) if average else Measure.undefined("no-input")
    loaded = Measure(float(60_000 / Fraction(http_l))) if http_l else Measure.undefined("no-input")
    if foreign.value is None or loaded.value is None:
        return Responsiveness(foreign, loaded, Measure.undefined("no-input"))
    return Responsiveness(foreign, loaded, Measure((foreign.value + loaded.value) / 2))


def band(rpm: float) -> str:
    """Return the draft's word for a responsiveness: poor, fair, good or excellent.

    Examples
    --------
    >>> band(1600)
    'good'
    """
    return next((name for limit, name in BANDS if rpm < limit), "excellent")


def responsiveness(rtts: pl.DataFrame, *, load_start_ns: int, load_end_ns: int) -> pl.DataFrame:
    """Measure the passive, TCP-only responsiveness of a loaded interval.

    The handshakes seen under load stand for ``tcp_f``; the data-to-ACK RTTs of the loading flows
    are the draft's substitute for ``http_l``. Only the last 20 s of the load count (four
    intervals of 5 s).

    Parameters
    ----------
    rtts
        Rows of ``rtts``.
    load_start_ns, load_end_ns
        When the load ran.

    Returns
    -------
    polars.DataFrame
        One row: ``foreign``, ``loaded``, ``rpm``, ``reason``, ``band``, ``label``. Without a
        handshake under load, ``rpm`` is null with ``no-input`` and ``loaded`` stands alone.
    """
    import polars as pl

    start_ns = max(load_start_ns, load_end_ns - INTERVALS * INTERVAL_NS)
    busy = rtts.filter(pl.col("time").cast(pl.Int64).is_between(start_ns, load_end_ns))
    method = pl.col("method").cast(pl.String)
    handshakes = busy.filter(method == "handshake")["rtt_ns"].to_list()
    acks = busy.filter(method == "ack")["rtt_ns"].to_list()

    def milliseconds(samples: list[int]) -> Fraction | None:
        average = trimmed_mean(samples).value
        return None if average is None else Fraction(average) / 10**6

    found = responsiveness_rpm(tcp_f=milliseconds(handshakes), http_l=milliseconds(acks))
    reason = "no-flows" if rtts.is_empty() else found.rpm.reason
    word = None if found.rpm.value is None else band(found.rpm.value)
    row = (found.foreign.value, found.loaded.value, found.rpm.value, reason, word, "RPM (passive, TCP-only)")
    schema = {
        "foreign": pl.Float64,
        "loaded": pl.Float64,
        "rpm": pl.Float64,
        "reason": pl.String,
        "band": pl.String,
        "label": pl.String,
    }
    return pl.DataFrame([row], schema=schema, orient="row")
