"""Runs the per-packet kernels over a batch of flows: what each packet was, RTT samples, and where the capture stood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracetool.kernels import track, track_acks, track_copies, track_memory, track_vantage
from tracetool.kernels.track_segments import CAPACITY, FIELDS
from tracetool.reconstruct.vantage import behind

if TYPE_CHECKING:
    import numpy.typing as npt

    from tracetool.reconstruct.batch import Batch

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Tracked:
    """What the kernels found; one entry per packet of the batch unless said otherwise.

    Attributes
    ----------
    copy
        Frames captured twice.
    skip
        Packets that count for nothing in the analysis of TCP: copies, and those of other protocols.
    kind, trigger, evidence, again, again_segments, missing_at, missing, rtt, rtt_seq, rtt_full, rtt_ticks
        See `kernels.track.track`.
    marks, duplicates
        See `kernels.track_acks.read_acks`.
    totals
        ``(flows, 2, TOTALS)``, see `kernels.track`.
    echo, handshake
        ``(flows, 2)``, see `kernels.track_vantage.find_echoes`.
    """

    copy: npt.NDArray[np.bool_]
    skip: npt.NDArray[np.bool_]
    kind: Bytes
    trigger: Bytes
    evidence: Bytes
    again: Ints
    again_segments: Ints
    missing_at: Ints
    missing: Ints
    rtt: Ints
    rtt_seq: Ints
    rtt_full: npt.NDArray[np.bool_]
    rtt_ticks: Ints
    marks: Bytes
    duplicates: Ints
    totals: Ints
    echo: Ints
    handshake: Ints


def tracked(batch: Batch, tcp: npt.NDArray[np.bool_], sack: npt.NDArray[np.bool_]) -> Tracked:
    """Run the kernels.

    Parameters
    ----------
    batch
        Packets of whole flows.
    tcp, sack
        Of each flow of the batch: whether it is TCP, and whether it uses SACK.

    Returns
    -------
    Tracked

    Examples
    --------
    >>> tracked(batch, np.array([True]), np.array([True])).totals.shape  # doctest: +SKIP
    (1, 2, 12)
    """
    size, flows = len(batch), len(batch.flows)

    def bytes_() -> Bytes:
        return np.zeros(size, np.uint8)

    def ints(value: int = 0) -> Ints:
        return np.full(size, value, np.int64)

    copy = bytes_()
    track_copies.find_copies(
        batch.bounds, batch.time, batch.way, batch.seq, batch.ack, batch.payload, batch.flags, batch.window_raw,
        batch.tsval, batch.tsecr, batch.ip_id, batch.sack_at, batch.sacks, np.empty(track_copies.BUCKETS, np.int64),
        np.empty(size, np.int64), ints(), copy,
    )  # fmt: skip
    skip = copy if tcp.all() else copy | ~tcp[batch.flow]
    ticks = np.empty((track_memory.TICKS, 2), np.int64)
    echo, handshake = np.full((flows, 2), -1, np.int64), np.full((flows, 2), -1, np.int64)
    track_vantage.find_echoes(
        batch.bounds, batch.time, batch.way, batch.payload, batch.flags, batch.tsval, batch.tsecr, skip, ticks, echo,
        handshake,
    )  # fmt: skip
    out: dict[str, Any] = {
        "kind": bytes_(), "trigger": bytes_(), "evidence": bytes_(), "again": ints(), "again_segments": ints(),
        "missing_at": np.empty((size, 2), np.int64), "missing": np.zeros((size, 2), np.int64), "rtt": ints(-1),
        "rtt_seq": ints(-1), "rtt_full": bytes_(), "rtt_ticks": ints(-1),
        "totals": np.zeros((flows, 2, track.TOTALS), np.int64),
    }  # fmt: skip
    track.track(
        batch.bounds, batch.time, batch.way, batch.seq, batch.ack, batch.payload, batch.segments, batch.flags,
        batch.window, batch.tsval, batch.tsecr, batch.ip_id, skip, batch.sack_at, batch.sacks,
        behind(echo), sack.astype(np.uint8), np.empty((CAPACITY, FIELDS), np.int64), ticks,
        np.empty((track_memory.RECENT, 4), np.int64), *out.values(),
    )  # fmt: skip
    marks, duplicates = bytes_(), ints()
    track_acks.read_acks(
        batch.bounds, batch.way, batch.seq, batch.ack, batch.payload, batch.flags, batch.window, batch.window_raw,
        skip, marks, duplicates,
    )  # fmt: skip
    return Tracked(
        copy=copy.view(np.bool_),
        skip=skip.view(np.bool_),
        marks=marks,
        duplicates=duplicates,
        echo=echo,
        handshake=handshake,
        **{**out, "rtt_full": out["rtt_full"].view(np.bool_)},
    )
