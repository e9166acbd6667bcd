"""Packets as records of fixed size, which can wait on a disk, and as the columns that the other kernels take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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
#: Rows of the columns that are made of them.
(
    FRAME, TIME, SEQ, ACK, PAYLOAD, WINDOW, TSVAL, TSECR, FRAME_BYTES, CAPTURED, SEGMENTS, WINDOW_RAW, IP_ID, FLAGS,
    SACK_AT, COLUMNS,
) = range(16)  # fmt: skip


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
