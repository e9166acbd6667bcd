"""The packets of some flows as NumPy arrays, each flow's in order of capture: what the kernels work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracetool.reconstruct.flow import FlowPackets

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

DIRECTIONS = ("a2b", "b2a")


@dataclass(frozen=True, slots=True)
class Batch:
    """Packets of whole flows, sorted by flow and frame; -1 is unknown.

    Attributes
    ----------
    flows
        Numbers of the flows that have packets, in order.
    bounds
        Where the packets of each begin, and the number of packets.
    flow, way
        Of each packet: index into `flows`; 0 for a2b, 1 for b2a.
    time, frame, seq, ack, payload, segments, flags, window, window_raw, tsval, tsecr, ip_id, frame_bytes, \
    captured, ecn
        Columns of `packets`; times in nanoseconds since the epoch.
    sack_at, sacks
        Where each packet's SACK edges begin (one entry more), and all edges.
    """

    flows: Ints
    bounds: Ints
    flow: Ints
    way: Bytes
    time: Ints
    frame: Ints
    seq: Ints
    ack: Ints
    payload: Ints
    segments: Ints
    flags: Ints
    window: Ints
    window_raw: Ints
    tsval: Ints
    tsecr: Ints
    ip_id: Ints
    frame_bytes: Ints
    captured: Ints
    ecn: Bytes
    sack_at: Ints
    sacks: Ints

    def __len__(self) -> int:
        """Return the number of packets."""
        return len(self.time)

    def packets(self, index: int, way: int, keep: npt.NDArray[np.bool_]) -> FlowPackets:
        """Packets of one flow as the inference takes them, seen from the sender of one direction.

        Parameters
        ----------
        index
            Index into `flows`.
        way
            0 for the data of a2b, 1 for b2a.
        keep
            Which packets of the batch count (frames captured twice do not).
        """
        first, last = int(self.bounds[index]), int(self.bounds[index + 1])
        part = slice(first, last)
        chosen = keep[part]
        pick: slice | npt.NDArray[np.int64] = part if chosen.all() else first + np.flatnonzero(chosen)
        edges = self.sacks[self.sack_at[first] : self.sack_at[last]]
        counts = np.diff(self.sack_at[first : last + 1])
        if not chosen.all():
            edges, counts = edges[np.repeat(chosen, counts)], counts[chosen]
        return FlowPackets(
            time_ns=self.time[pick],
            outbound=self.way[pick] == way,
            seq=self.seq[pick],
            ack=self.ack[pick],
            payload=self.payload[pick],
            segments=self.segments[pick].astype(np.int32),
            flags=self.flags[pick].astype(np.uint16),
            window=self.window[pick],
            window_raw=self.window_raw[pick],
            tsval=self.tsval[pick],
            tsecr=self.tsecr[pick],
            sack_edges=edges,
            sack_offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
            ecn=self.ecn[pick],
            ip_id=self.ip_id[pick],
            frame=self.frame[pick],
        )


def batch_of(rows: pa.Table) -> Batch:
    """Arrays of some rows of `packets`, in any order.

    Examples
    --------
    >>> batch_of(rows).flows  # doctest: +SKIP
    array([0, 1])
    """
    flow, frame = _ints(rows, "flow"), _ints(rows, "frame")
    raw = _ints(rows, "window_raw")
    window = np.where(raw == 0, 0, _ints(rows, "window_bytes"))  # 0 needs no scale
    order = np.argsort((flow << 40) | frame, kind="stable")  # runs sorted already: this merges them
    flow = flow[order]
    starts = np.flatnonzero(np.diff(flow, prepend=-1))
    bounds = np.append(starts, len(flow)).astype(np.int64)
    direction = rows["direction"]
    sack = rows["sack"].combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(sack), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    edges = pc.list_flatten(sack).to_numpy(zero_copy_only=False).astype(np.int64)
    begins = np.cumsum(lengths) - lengths
    lengths, begins = lengths[order], begins[order]
    sack_at = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return Batch(
        flows=flow[starts],
        bounds=bounds,
        flow=np.repeat(np.arange(len(starts)), np.diff(bounds)),
        way=pc.not_equal(direction, DIRECTIONS[0]).to_numpy().astype(np.uint8)[order],
        time=_ints(rows, "time")[order],
        frame=frame[order],
        seq=_ints(rows, "seq")[order],
        ack=_ints(rows, "ack")[order],
        payload=_ints(rows, "payload_bytes")[order],
        segments=_ints(rows, "segments")[order],
        flags=_ints(rows, "flags", 0)[order],
        window=window[order],
        window_raw=raw[order],
        tsval=_ints(rows, "tsval")[order],
        tsecr=_ints(rows, "tsecr")[order],
        ip_id=_ints(rows, "ip_id")[order],
        frame_bytes=_ints(rows, "frame_bytes")[order],
        captured=_ints(rows, "captured_bytes")[order],
        ecn=_ints(rows, "ecn", 0)[order].astype(np.uint8),
        sack_at=sack_at,
        sacks=edges[np.repeat(begins, lengths) + np.arange(sack_at[-1]) - np.repeat(sack_at[:-1], lengths)],
    )


def _ints(rows: pa.Table, name: str, unknown: int = -1) -> Ints:
    column = rows[name]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if column.null_count:
        column = pc.fill_null(column.cast(pa.int64()), unknown)
    return np.asarray(column.to_numpy(), np.int64)
