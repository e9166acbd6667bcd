"""Reorder density and reorder buffer-occupancy density (RFC 5236)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracetool.measures import Measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

# Send indices are dense by nature; a span far beyond the arrivals is not worth its memory.
MAX_SPAN_PER_ARRIVAL = 64


@dataclass(frozen=True, slots=True)
class ReorderDensity:
    """The two densities, and the mean absolute displacement and entropy of the first.

    Parameters
    ----------
    rd
        Share of packets by displacement: early below 0, late above.
    rbd
        Share of arrivals by the packets a reassembly buffer then holds.
    """

    rd: dict[int, float]
    rbd: dict[int, float]
    mean_displacement: Measure
    entropy_bits: Measure


def rfc5236(arrival: Sequence[int] | np.ndarray, *, DT: int | None = None, BT: int | None = None) -> ReorderDensity:
    """Return the densities of packets in order of arrival.

    Parameters
    ----------
    arrival
        Send index of each arrival, counted from 1; of duplicates the first counts.
    DT, BT
        The thresholds beyond which a packet is lost: in displacement and in buffered packets
        (default: the whole sequence).

    Raises
    ------
    ValueError
        An index is below 1, or the indices span far more than the arrivals.

    References
    ----------
    RFC 5236 sections 5 and 6.

    Examples
    --------
    >>> rfc5236([1, 3, 2]).rd
    {-1: 0.3333333333333333, 0: 0.3333333333333333, 1: 0.3333333333333333}
    """
    from tracetool.kernels import reordering as kernels

    everything = np.asarray(arrival, np.int64)
    sent = everything[np.sort(np.unique(everything, return_index=True)[1])]
    if sent.size == 0:
        nothing = Measure.undefined("no-flows")
        return ReorderDensity({}, {}, nothing, nothing)
    span = int(sent.max())
    if sent.min() < 1 or span > MAX_SPAN_PER_ARRIVAL * sent.size + 1024:
        raise ValueError(
            f"send indices {sent.min()} to {span} of {sent.size} arrivals: expected 1, 2, … without wide gaps"
        )
    position = np.full(span + 1, -1, np.int64)
    position[sent] = np.arange(sent.size)
    shift, kept = np.zeros(sent.size, np.int64), np.zeros(sent.size, np.bool_)
    kernels.displacement(sent, position, span if DT is None else DT, shift, kept)
    occupancy = np.empty(sent.size, np.int64)
    kernels.buffer_occupancy(sent, span, span if BT is None else BT, occupancy)
    density = _shares(shift[kept])
    entropy = -sum(share * math.log2(share) for share in density.values())
    mean = sum(abs(key) * share for key, share in density.items())
    return ReorderDensity(density, _shares(occupancy), Measure(mean), Measure(max(0.0, entropy)))


def _shares(values: np.ndarray) -> dict[int, float]:
    """Return the share of each value, ascending."""
    found, counts = np.unique(values, return_counts=True)
    return {int(value): int(count) / values.size for value, count in zip(found, counts, strict=True)}


def reorder_density(arrivals: pl.DataFrame, *, DT: int | None = None, BT: int | None = None) -> pl.DataFrame:
    """Measure both densities of each flow and direction.

    Parameters
    ----------
    arrivals
        ``input``, ``flow``, ``direction`` and ``send_index`` (from 1), in order of arrival.
    DT, BT
        As in `rfc5236`.

    Returns
    -------
    polars.DataFrame
        ``input``, ``flow``, ``direction``, ``density`` (``rd`` or ``rbd``), ``key``, ``share``.
    """
    import polars as pl

    flow = ["input", "flow", "direction"]
    rows = []
    for key, part in arrivals.group_by(flow, maintain_order=True):
        found = rfc5236(part["send_index"].to_numpy(), DT=DT, BT=BT)
        for name, density in (("rd", found.rd), ("rbd", found.rbd)):
            rows += [(*key, name, value, share) for value, share in density.items()]
    schema = {name: arrivals.schema[name] for name in flow} | {
        "density": pl.String(),
        "key": pl.Int64(),
        "share": pl.Float64(),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")
