"""Packed packets as the columns that the other kernels take, sorted by flow and frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels._jit import kernel
from tracetool.kernels.loads import le32, le64
from tracetool.kernels.packet_records import (
    ACK,
    AT_ACK,
    AT_CAPTURED,
    AT_FLAGS,
    AT_FRAME,
    AT_FRAME_BYTES,
    AT_IP_ID,
    AT_PAYLOAD,
    AT_RAW,
    AT_SEGMENTS,
    AT_SEQ,
    AT_TIME,
    AT_TSECR,
    AT_TSVAL,
    AT_WINDOW,
    B2A,
    CAPTURED,
    COLUMNS,
    EDGE_BYTES,
    EDGES,
    FLAGS,
    FRAME,
    FRAME_BYTES,
    IP_ID,
    PAYLOAD,
    PLACE,
    SACK_AT,
    SECTION_BYTES,
    SEGMENTS,
    SELDOM,
    SEQ,
    SPARE_BYTES,
    TIME,
    TSECR,
    TSVAL,
    WINDOW,
    WINDOW_RAW,
    step_of,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]


@bare_kernel
def number(packed: Bytes, at: int, head: int, place: int, foretold: int) -> tuple[int, int]:
    """Read a number that `put_number` wrote; returns where the next is, and the number."""
    size = head >> place & 3
    if size == 0:
        return at, foretold
    more = le64(packed, at)
    if size == 1:
        return at + 2, foretold + ((more << 48) >> 48)
    if size == 2:
        return at + 4, foretold + ((more << 32) >> 32)
    return at + 8, foretold + more


@kernel
def sections(packed: Bytes, flows: Ints, bounds: Ints) -> int:
    """Find the flows of packed packets; returns their number.

    Parameters
    ----------
    packed
        Sections of flows whose numbers are near each other, and `SPARE_BYTES` more.
    flows : int64, shape (n,), bounds : int64, shape (n + 1,)
        Out: the flows' numbers, and where the packets of each begin, and their number.
    """
    least = most = le32(packed, 0)
    at = 0
    while at < len(packed) - SPARE_BYTES:
        least, most = min(least, le32(packed, at)), max(most, le32(packed, at))
        at += le32(packed, at + 12)
    counts = np.zeros(most - least + 1, np.int64)
    at = 0
    while at < len(packed) - SPARE_BYTES:
        counts[le32(packed, at) - least] += le32(packed, at + 4)
        at += le32(packed, at + 12)
    count = 0
    bounds[0] = 0
    for k in range(len(counts)):
        if counts[k]:
            flows[count] = least + k
            bounds[count + 1] = bounds[count] + counts[k]
            count += 1
    return count


@kernel
def unpack(
    packed: Bytes, flows: Ints, bounds: Ints, columns: Ints, way: Bytes, ecn: Bytes, interface: npt.NDArray[np.int32],
    sacks: Ints,
) -> None:  # fmt: skip
    """Make columns of packed packets, sorted by flow and frame.

    Parameters
    ----------
    packed, flows, bounds
        As `sections` takes and makes them.
    columns : int64, shape (COLUMNS, n + 1)
        Out. SACK_AT is where the edges of a packet begin in `sacks`, and of one that follows the last; the other rows
        have no last entry.
    way, ecn : uint8, interface : int32, shape (n,), sacks : int64
        Out.
    """
    count, size = len(flows), len(way)
    least = flows[0]
    which = np.empty(flows[count - 1] - least + 1, np.int64)
    for k in range(count):
        which[flows[k] - least] = k
    place, edge, mixed = np.empty(count, np.int64), np.zeros(count + 1, np.int64), np.zeros(count, np.bool_)
    for k in range(count):
        place[k] = bounds[k]
    begin = 0
    while begin < len(packed) - SPARE_BYTES:
        edge[which[le32(packed, begin) - least] + 1] += le32(packed, begin + 8)
        begin += le32(packed, begin + 12)
    for k in range(count):
        edge[k + 1] += edge[k]
    for c in range(COLUMNS):
        columns[c, size] = 0
    begin = 0
    while begin < len(packed) - SPARE_BYTES:
        k = which[le32(packed, begin) - least]
        rows = le32(packed, begin + 4)
        at, i, e = begin + SECTION_BYTES, place[k], edge[k]
        mixed[k] |= unpack_section(packed, at, i, i + rows, e, i > bounds[k], columns, way, ecn, interface, sacks)
        place[k], edge[k] = i + rows, e + le32(packed, begin + 8)
        begin += le32(packed, begin + 12)
    columns[SACK_AT, size] = len(sacks)
    for k in range(count):
        if mixed[k]:
            sort_packets(bounds[k], bounds[k + 1], columns, way, ecn, interface, sacks)


@bare_kernel
def unpack_section(
    packed: Bytes, at: int, begin: int, end: int, edge: int, more: bool, columns: Ints, way: Bytes, ecn: Bytes,
    interface: npt.NDArray[np.int32], sacks: Ints,
) -> bool:  # fmt: skip
    """Make columns of the records of a section; returns whether frames fall, within it or from what was before it."""
    none = len(way)  # where all numbers are 0
    last, other = none, none  # packets before: of the direction a2b, and of b2a
    last_step = other_step = 0
    frame = time = 0
    highest = columns[FRAME, begin - 1] if more else np.int64(-(1 << 62))
    mixed = False
    mark, where = np.uint8(0), np.int32(0)
    for i in range(begin, end):
        head = le32(packed, at)
        at += 4
        back = head & B2A != 0
        p = other if back else last
        at, frame = number(packed, at, head, AT_FRAME, frame)
        at, time = number(packed, at, head, AT_TIME, time)
        at, columns[SEQ, i] = number(packed, at, head, AT_SEQ, columns[SEQ, p] + columns[PAYLOAD, p])
        at, columns[ACK, i] = number(packed, at, head, AT_ACK, columns[ACK, p])
        at, columns[TSVAL, i] = number(packed, at, head, AT_TSVAL, columns[TSVAL, p])
        at, columns[TSECR, i] = number(packed, at, head, AT_TSECR, columns[TSECR, p])
        payload = columns[PAYLOAD, p]
        whole = columns[FRAME_BYTES, p]
        held = columns[CAPTURED, p]
        counted = columns[IP_ID, p] + (other_step if back else last_step)
        if head & SELDOM:
            at, size = number(packed, at, head, AT_PAYLOAD, payload)
            at, columns[WINDOW, i] = number(packed, at, head, AT_WINDOW, columns[WINDOW, p])
            at, columns[WINDOW_RAW, i] = number(packed, at, head, AT_RAW, columns[WINDOW_RAW, p])
            at, counted = number(packed, at, head, AT_IP_ID, counted)
            full = columns[CAPTURED, p] == whole
            at, whole = number(packed, at, head, AT_FRAME_BYTES, whole - payload + size)
            at, held = number(packed, at, head, AT_CAPTURED, whole if full else held)
            at, columns[SEGMENTS, i] = number(packed, at, head, AT_SEGMENTS, columns[SEGMENTS, p])
            at, columns[FLAGS, i] = number(packed, at, head, AT_FLAGS, columns[FLAGS, p])
            payload = size
        else:
            columns[WINDOW, i], columns[WINDOW_RAW, i] = columns[WINDOW, p], columns[WINDOW_RAW, p]
            columns[SEGMENTS, i], columns[FLAGS, i] = columns[SEGMENTS, p], columns[FLAGS, p]
        if back:
            other_step = step_of(counted, columns[IP_ID, p])
        else:
            last_step = step_of(counted, columns[IP_ID, p])
        columns[IP_ID, i], columns[CAPTURED, i] = counted, held
        columns[FRAME, i], columns[TIME, i] = frame, time
        columns[PAYLOAD, i], columns[FRAME_BYTES, i] = payload, whole
        if head & PLACE:
            mark, where = np.uint8(le64(packed, at) & 0xFF), np.int32(le64(packed, at) >> 8)
            at += 8
        way[i], ecn[i], interface[i] = back, mark, where
        columns[SACK_AT, i] = edge
        if head & EDGES:
            many = le32(packed, at)
            at += 4
            for _ in range(many):
                sacks[edge] = le64(packed, at)
                edge += 1
                at += EDGE_BYTES
        if back:
            other = i
        else:
            last = i
        if frame < highest:
            mixed = True
        highest = frame
    return mixed


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
def sort_packets(
    begin: int, end: int, columns: Ints, way: Bytes, ecn: Bytes, interface: npt.NDArray[np.int32], sacks: Ints
) -> None:
    """Sort the packets of one flow by frame, with their SACK edges."""
    size = end - begin
    order, other = np.empty(size, np.int64), np.empty(size, np.int64)
    for i in range(size):
        order[i] = i
    sort_by_frame(order, columns[FRAME, begin:end], 0, size, other)
    at = columns[SACK_AT, begin]
    edges = sacks[at : columns[SACK_AT, end]].copy()
    starts = columns[SACK_AT, begin : end + 1].copy()
    to = at
    for i in range(size):
        columns[SACK_AT, begin + i] = to
        for k in range(starts[order[i]], starts[order[i] + 1]):
            sacks[to] = edges[k - at]
            to += 1
    for c in range(SACK_AT):
        for i in range(size):
            other[i] = columns[c, begin + order[i]]
        for i in range(size):
            columns[c, begin + i] = other[i]
    for i in range(size):
        other[i] = way[begin + order[i]] | np.int64(ecn[begin + order[i]]) << 8
    for i in range(size):
        way[begin + i], ecn[begin + i] = other[i] & 0xFF, other[i] >> 8
    for i in range(size):
        other[i] = interface[begin + order[i]]
    for i in range(size):
        interface[begin + i] = other[i]
