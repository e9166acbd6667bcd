"""Packets as records of fixed size, which can wait on a disk, and as the columns that the other kernels take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels._jit import kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

#: A packet: columns of the table `packets`, with the number of its SACK edges, and 0 for a2b, 1 for b2a; numbers of
#: eight bytes stand where they are read at once.
RECORD = np.dtype(
    [
        ("frame", "i8"), ("time", "i8"), ("seq", "i8"), ("ack", "i8"), ("payload", "i8"), ("window", "i8"),
        ("tsval", "i8"), ("tsecr", "i8"), ("frame_bytes", "i8"), ("captured", "i8"), ("flow", "i4"),
        ("segments", "i4"), ("window_raw", "i4"), ("ip_id", "i4"), ("interface", "i4"), ("flags", "u2"),
        ("edges", "u2"), ("ecn", "u1"), ("way", "u1"), ("spare", "u2"), ("more", "u4"),
    ]
)  # fmt: skip
#: Rows of the columns that are made of them; first what a sender's replay takes of its packets.
(
    TIME, SEQ, ACK, PAYLOAD, WINDOW, TSVAL, TSECR, SEGMENTS, WINDOW_RAW, FRAME, FRAME_BYTES, CAPTURED, IP_ID, FLAGS,
    SACK_AT, COLUMNS,
) = range(16)  # fmt: skip
REPLAYED = WINDOW_RAW + 1


@bare_kernel
def is_null(bits: Bytes, at: int) -> bool:
    """Whether Arrow's bits say that a value is null; no bits: none is."""
    return len(bits) > 0 and bits[at >> 3] >> (at & 7) & 1 == 0


@kernel
def records_of(
    frame: Ints, time: Ints, flow: npt.NDArray[np.int32], way: npt.NDArray[np.int32], payload: Ints,
    segments: npt.NDArray[np.int32], frame_bytes: Ints, captured: Ints,
    seq: Ints, no_seq: Bytes, ack: Ints, no_ack: Bytes, flags: npt.NDArray[np.uint16], no_flags: Bytes, window: Ints,
    no_window: Bytes, raw: npt.NDArray[np.uint16], no_raw: Bytes, tsval: Ints, no_tsval: Bytes, tsecr: Ints,
    no_tsecr: Bytes, ip_id: npt.NDArray[np.int32], no_ip_id: Bytes, ecn: Bytes, no_ecn: Bytes,
    interface: npt.NDArray[np.int32], no_interface: Bytes, edges_at: npt.NDArray[np.int32], first: int,
    records: npt.NDArray[np.void],
) -> None:  # fmt: skip
    """Make records of columns of `packets`.

    Parameters
    ----------
    frame, time, flow, payload, segments, frame_bytes, captured
        Columns that are never null.
    way, first
        Positions of the directions among their words, and which of these is a2b.
    seq, no_seq, ...
        Columns that may be null, each with Arrow's bits, which are 0 for null; no bits: none is.
    edges_at
        Where the SACK edges of each packet begin, and their number.
    records : RECORD, shape (n,)
        Out.
    """
    for i in range(len(records)):
        r = records[i]
        r.frame = frame[i]
        r.time = time[i]
        r.seq = -1 if is_null(no_seq, i) else seq[i]
        r.ack = -1 if is_null(no_ack, i) else ack[i]
        r.payload = payload[i]
        r.window_raw = -1 if is_null(no_raw, i) else np.int64(raw[i])
        # a window of 0 needs no scale
        r.window = 0 if r.window_raw == 0 else -1 if is_null(no_window, i) else window[i]
        r.tsval = -1 if is_null(no_tsval, i) else tsval[i]
        r.tsecr = -1 if is_null(no_tsecr, i) else tsecr[i]
        r.frame_bytes = frame_bytes[i]
        r.captured = captured[i]
        r.flow = flow[i]
        r.segments = segments[i]
        r.ip_id = -1 if is_null(no_ip_id, i) else ip_id[i]
        r.interface = -1 if is_null(no_interface, i) else interface[i]
        r.flags = 0 if is_null(no_flags, i) else flags[i]
        r.edges = edges_at[i + 1] - edges_at[i]
        r.ecn = 0 if is_null(no_ecn, i) else ecn[i]
        r.way = way[i] != first
        r.spare = 0
        r.more = 0


@kernel
def columns_of(
    records: npt.NDArray[np.void], order: Ints, edges: Ints, columns: Ints, way: Bytes, ecn: Bytes, sacks: Ints
) -> None:
    """Make columns of records in another order.

    Parameters
    ----------
    records : RECORD, shape (n,)
        Packets.
    order : int64, shape (n,)
        Positions of the records, as they are wanted.
    edges : int64
        SACK edges of all records, end to end.
    columns : int64, shape (COLUMNS, n + 1)
        Out. SACK_AT is where the edges of a packet begin in `sacks`, and of one that follows the last; the other rows
        have no last entry.
    way, ecn : uint8, shape (n,), sacks : int64
        Out.
    """
    count = len(records)
    begins = np.empty(count, np.int64)
    total = 0
    for i in range(count):
        begins[i] = total
        total += records[i].edges
    at = 0
    for i in range(count):
        record = records[order[i]]
        columns[FRAME, i] = record.frame
        columns[TIME, i] = record.time
        columns[SEQ, i] = record.seq
        columns[ACK, i] = record.ack
        columns[PAYLOAD, i] = record.payload
        columns[WINDOW, i] = record.window
        columns[TSVAL, i] = record.tsval
        columns[TSECR, i] = record.tsecr
        columns[FRAME_BYTES, i] = record.frame_bytes
        columns[CAPTURED, i] = record.captured
        columns[SEGMENTS, i] = record.segments
        columns[WINDOW_RAW, i] = record.window_raw
        columns[IP_ID, i] = record.ip_id
        columns[FLAGS, i] = record.flags
        way[i] = record.way
        ecn[i] = record.ecn
        columns[SACK_AT, i] = at
        begin = begins[order[i]]
        for k in range(record.edges):
            sacks[at] = edges[begin + k]
            at += 1
    columns[SACK_AT, count] = at
