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

#: A packet: columns of the table `packets`, with the number of its SACK edges, and 0 for a2b, 1 for b2a. It may have to
#: wait on a disk: numbers are as wide as a capture can make them, and `known` tells which may be used.
RECORD = np.dtype(
    [
        ("frame", "i8"), ("time", "i8"), ("seq", "i8"), ("ack", "i8"), ("tsval", "u4"), ("tsecr", "u4"),
        ("payload", "u4"), ("window", "i4"), ("frame_bytes", "u4"), ("captured", "u4"), ("flow", "i4"),
        ("segments", "i4"), ("interface", "i4"), ("ip_id", "u2"), ("window_raw", "u2"), ("flags", "u2"),
        ("edges", "u2"), ("known", "u1"), ("ecn", "u1"), ("way", "u1"), ("spare", "u1"),
    ]
)  # fmt: skip
KNOWN_TSVAL, KNOWN_TSECR, KNOWN_IP_ID, KNOWN_RAW = 1, 2, 4, 8
#: Rows of the columns that are made of them; first what a sender's replay takes of its packets.
(
    TIME, SEQ, ACK, PAYLOAD, WINDOW, TSVAL, TSECR, SEGMENTS, IP_ID, WINDOW_RAW, FRAME, FRAME_BYTES, CAPTURED, FLAGS,
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
        r.window_raw = raw[i]
        r.tsval = tsval[i]
        r.tsecr = tsecr[i]
        r.ip_id = ip_id[i]
        known = 0 if is_null(no_raw, i) else KNOWN_RAW
        # a window of 0 needs no scale
        r.window = 0 if known and raw[i] == 0 else -1 if is_null(no_window, i) else window[i]
        known |= 0 if is_null(no_tsval, i) else KNOWN_TSVAL
        known |= 0 if is_null(no_tsecr, i) else KNOWN_TSECR
        r.known = known | (0 if is_null(no_ip_id, i) else KNOWN_IP_ID)
        r.frame_bytes = frame_bytes[i]
        r.captured = captured[i]
        r.flow = flow[i]
        r.segments = segments[i]
        r.interface = -1 if is_null(no_interface, i) else interface[i]
        r.flags = 0 if is_null(no_flags, i) else flags[i]
        r.edges = edges_at[i + 1] - edges_at[i]
        r.ecn = 0 if is_null(no_ecn, i) else ecn[i]
        r.way = way[i] != first
        r.spare = 0


@bare_kernel
def run_end(order: Ints, frame: Ints, begin: int, end: int) -> int:
    """Where the frame numbers from one position on begin to fall."""
    at = begin + 1
    while at < end and frame[order[at - 1]] <= frame[order[at]]:
        at += 1
    return at


@kernel
def sort_by_frame(order: Ints, frame: Ints, begin: int, end: int, other: Ints) -> None:
    """Sort some positions by frame: what comes in a few sorted runs, two and two, is merged."""
    merged = 0 if begin < end else 1
    while merged != 1:
        merged = 0
        at = begin
        while at < end:
            middle = run_end(order, frame, at, end)
            if middle == end and merged == 0:
                return
            last = run_end(order, frame, middle, end) if middle < end else end
            a, b = at, middle
            for k in range(at, last):
                if b >= last or (a < middle and frame[order[a]] <= frame[order[b]]):
                    other[k] = order[a]
                    a += 1
                else:
                    other[k] = order[b]
                    b += 1
            at = last
            merged += 1
        for k in range(begin, end):
            order[k] = other[k]


@kernel
def sort_records(records: npt.NDArray[np.void], order: Ints, flows: Ints, bounds: Ints) -> int:
    """Sort records by flow and frame; returns the number of flows.

    Parameters
    ----------
    records : RECORD, shape (n,)
        Packets of flows whose numbers are near each other, in sorted runs.
    order : int64, shape (n,)
        Out: positions of the records.
    flows : int64, shape (n,), bounds : int64, shape (n + 1,)
        Out: the flows' numbers, and where the records of each begin, and `n`.
    """
    size = len(records)
    flow, frame = np.empty(size, np.int64), np.empty(size, np.int64)
    least = most = np.int64(records[0].flow)
    for i in range(size):
        flow[i], frame[i] = records[i].flow, records[i].frame
        least, most = min(least, flow[i]), max(most, flow[i])
    places = np.zeros(most - least + 2, np.int64)
    for i in range(size):
        places[flow[i] - least + 1] += 1
    count = 0
    for k in range(most - least + 1):
        if places[k + 1]:
            flows[count], bounds[count] = least + k, places[k]
            count += 1
        places[k + 1] += places[k]
    bounds[count] = size
    for i in range(size):
        order[places[flow[i] - least]] = i
        places[flow[i] - least] += 1
    for k in range(count):
        sort_by_frame(order, frame, bounds[k], bounds[k + 1], flow)
    return count


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
        columns[TSVAL, i] = record.tsval if record.known & KNOWN_TSVAL else -1
        columns[TSECR, i] = record.tsecr if record.known & KNOWN_TSECR else -1
        columns[FRAME_BYTES, i] = record.frame_bytes
        columns[CAPTURED, i] = record.captured
        columns[SEGMENTS, i] = record.segments
        columns[WINDOW_RAW, i] = record.window_raw if record.known & KNOWN_RAW else -1
        columns[IP_ID, i] = record.ip_id if record.known & KNOWN_IP_ID else -1
        columns[FLAGS, i] = record.flags
        way[i] = record.way
        ecn[i] = record.ecn
        columns[SACK_AT, i] = at
        begin = begins[order[i]]
        for k in range(record.edges):
            sacks[at] = edges[begin + k]
            at += 1
    columns[SACK_AT, count] = at
