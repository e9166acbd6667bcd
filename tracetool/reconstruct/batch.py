"""The packets of some flows as NumPy arrays, each flow's in order of capture: what the kernels work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels import packet_columns as pc
from tracetool.kernels import packet_records as pr
from tracetool.reconstruct.memory import empty

if TYPE_CHECKING:
    import numpy.typing as npt

    from tracetool.reconstruct.whole_flows import Packed

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
    columns
        Those of eight bytes together, see `tracetool.kernels.packet_records`.
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
    columns: Ints

    def __len__(self) -> int:
        """Return the number of packets."""
        return len(self.time)


def batch_of(packed: Packed) -> Batch:
    """Arrays of packed packets.

    Examples
    --------
    >>> batch_of(packed).flows  # doctest: +SKIP
    array([0, 1])
    """
    size = packed.rows
    flows, bounds = np.empty(size, np.int64), np.empty(size + 1, np.int64)
    count = pc.sections(packed.content, flows, bounds)
    flows, bounds = flows[:count].copy(), bounds[: count + 1].copy()
    columns = empty((pr.COLUMNS, size + 1))
    way, ecn, interface = np.empty(size, np.uint8), np.empty(size, np.uint8), np.empty(size, np.int32)
    sacks = np.empty(packed.edges, np.int64)
    pc.unpack(packed.content, flows, bounds, columns, way, ecn, interface, sacks)
    return made_of(columns, flows, bounds, way, ecn, interface, sacks)


def made_of(
    columns: Ints,
    flows: Ints,
    bounds: Ints,
    way: Bytes,
    ecn: Bytes,
    interface: npt.NDArray[np.int32],
    sacks: Ints,
) -> Batch:
    """A batch from its arrays.

    Parameters
    ----------
    columns
        ``(COLUMNS, n + 1)``, see `tracetool.kernels.packet_records`.
    flows, bounds, way, ecn, interface, sacks
        As `Batch` has them.
    """
    each = columns[:, : len(way)]
    return Batch(
        flows=flows,
        bounds=bounds,
        flow=np.repeat(np.arange(len(flows)), np.diff(bounds)),
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
        interface=interface,
        sack_at=columns[pr.SACK_AT],
        sacks=sacks,
        columns=columns,
    )
