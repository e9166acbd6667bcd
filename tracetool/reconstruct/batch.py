"""The packets of some flows as NumPy arrays, each flow's in order of capture: what the kernels work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels import packet_records as pr
from tracetool.reconstruct.flow import FlowPackets

if TYPE_CHECKING:
    import numpy.typing as npt

    from tracetool.reconstruct.whole_flows import Rows

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
    captured, ecn, interface
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
    interface: npt.NDArray[np.int32]
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


def batch_of(rows: Rows) -> Batch:
    """Arrays of some packets, in any order.

    Examples
    --------
    >>> batch_of(rows).flows  # doctest: +SKIP
    array([0, 1])
    """
    records = rows.records
    size = len(records)
    key = records["flow"].astype(np.int64) << 40 | records["frame"]
    order = np.argsort(key, kind="stable")  # runs sorted already: this merges them
    flow = records["flow"][order].astype(np.int64)
    starts = np.flatnonzero(np.diff(flow, prepend=-1))
    bounds = np.append(starts, size).astype(np.int64)
    columns = np.empty((pr.COLUMNS, size + 1), np.int64)
    way, ecn, sacks = np.empty(size, np.uint8), np.empty(size, np.uint8), np.empty(len(rows.edges), np.int64)
    pr.columns_of(records, order, rows.edges, columns, way, ecn, sacks)
    each = columns[:, :size]
    return Batch(
        flows=flow[starts],
        bounds=bounds,
        flow=np.repeat(np.arange(len(starts)), np.diff(bounds)),
        way=way,
        time=each[pr.TIME],
        frame=each[pr.FRAME],
        seq=each[pr.SEQ],
        ack=each[pr.ACK],
        payload=each[pr.PAYLOAD],
        segments=each[pr.SEGMENTS],
        flags=each[pr.FLAGS],
        window=each[pr.WINDOW],
        window_raw=each[pr.WINDOW_RAW],
        tsval=each[pr.TSVAL],
        tsecr=each[pr.TSECR],
        ip_id=each[pr.IP_ID],
        frame_bytes=each[pr.FRAME_BYTES],
        captured=each[pr.CAPTURED],
        ecn=ecn,
        interface=records["interface"][order],
        sack_at=columns[pr.SACK_AT],
        sacks=sacks,
    )
