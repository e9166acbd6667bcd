"""Packets as records of few bytes, which can wait for the rest of their flows, in memory or on a disk.

A record tells how a packet differs from the one before it of its flow and direction: in 15 bytes, where its numbers
have 80. Those of a flow that were read together are a section, in the order of their frames: the number of the flow, of
packets, SACK edges and bytes, then a record for each packet. Its first four bytes say how many each number takes: none
where it is as foretold, two or four where it is near, else eight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels._jit import kernel
from tracetool.kernels.loads import put32, put64

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

#: Rows of the columns; first what a sender's replay takes of its packets.
(
    TIME, SEQ, ACK, PAYLOAD, WINDOW, TSVAL, TSECR, SEGMENTS, IP_ID, WINDOW_RAW, FRAME, FRAME_BYTES, CAPTURED, FLAGS,
    SACK_AT, COLUMNS,
) = range(16)  # fmt: skip
REPLAYED = WINDOW_RAW + 1
#: Bytes of a section before its records, and those that a record may have beside its SACK edges.
SECTION_BYTES, RECORD_BYTES = 16, 4 + 14 * 8 + 8 + 4
EDGE_BYTES = 8
#: Bytes that are to follow upon packed packets, so that the last number can be read as any other.
SPARE_BYTES = 8
#: Identifications of packets are foretold where they go on by no more than this.
MOST_STEP = 64
#: The first four bytes of a record: two bits for each number, whether it is of the other direction, has SACK edges, or
#: another interface or mark (ECN) than the one before.
AT_FRAME, AT_TIME, AT_SEQ, AT_ACK, AT_TSVAL, AT_TSECR, AT_PAYLOAD, AT_WINDOW, AT_RAW = range(0, 18, 2)
AT_IP_ID, AT_FRAME_BYTES, AT_CAPTURED, AT_SEGMENTS, AT_FLAGS = range(18, 28, 2)
B2A, EDGES, PLACE = 1 << 28, 1 << 29, 1 << 30
#: From the payload on: all numbers of most packets are as foretold.
SELDOM = (1 << 28) - (1 << AT_PAYLOAD)


@bare_kernel
def is_null(bits: Bytes, at: int) -> bool:
    """Whether Arrow's bits say that a value is null; no bits: none is."""
    return len(bits) > 0 and bits[at >> 3] >> (at & 7) & 1 == 0


@bare_kernel
def put_number(packed: Bytes, at: int, head: int, place: int, value: int, foretold: int) -> tuple[int, int]:
    """Write a number at a byte, and its bits into the head of the record; returns where the next goes, and the head.

    Eight bytes are written whatever it needs: the next number goes over those that it does not.
    """
    more = value - foretold
    if more == 0:
        return at, head
    put64(packed, at, more)
    if -0x8000 <= more < 0x8000:
        return at + 2, head | 1 << place
    if -0x80000000 <= more < 0x80000000:
        return at + 4, head | 2 << place
    return at + 8, head | 3 << place


@bare_kernel
def step_of(value: int, before: int) -> int:
    """By how much a counter is held to go on: as the last time, but for leaps."""
    step = value - before
    return step if -MOST_STEP <= step <= MOST_STEP else 0


@kernel
def pack(
    frame: Ints, time: Ints, flow: npt.NDArray[np.int32], way: npt.NDArray[np.int32], payload: Ints,
    segments: npt.NDArray[np.int32], frame_bytes: Ints, captured: Ints,
    seq: Ints, no_seq: Bytes, ack: Ints, no_ack: Bytes, flags: npt.NDArray[np.uint16], no_flags: Bytes, window: Ints,
    no_window: Bytes, raw: npt.NDArray[np.uint16], no_raw: Bytes, tsval: Ints, no_tsval: Bytes, tsecr: Ints,
    no_tsecr: Bytes, ip_id: npt.NDArray[np.int32], no_ip_id: Bytes, ecn: Bytes, no_ecn: Bytes,
    interface: npt.NDArray[np.int32], no_interface: Bytes, edges_at: npt.NDArray[np.int32], edges: Ints, first: int,
    batch_of: Ints, packed: Bytes, parts: Ints,
) -> int:  # fmt: skip
    """Pack rows of `packets`; returns the number of parts.

    Parameters
    ----------
    frame, time, flow, payload, segments, frame_bytes, captured
        Columns that are never null; sorted by flow, direction and frame.
    way, first
        Positions of the directions among their words, and which of these is a2b.
    seq, no_seq, ...
        Columns that may be null, each with Arrow's bits, which are 0 for null; no bits: none is.
    edges_at, edges
        Where the SACK edges of each packet begin, and their number; the edges.
    batch_of
        Of each flow, the batch that it belongs to; -1: it is not wanted.
    packed
        Out; room for `SECTION_BYTES` and `RECORD_BYTES` for each row, and `EDGE_BYTES` for each edge.
    parts : int64, shape (n, 4)
        Out: of each batch that has rows here its number, its rows and SACK edges, and the byte where its part ends.
    """
    rows = len(frame)
    last, steps = np.zeros((2, COLUMNS), np.int64), np.zeros(2, np.int64)  # the packet before, of each direction
    count = at = begin = 0
    while begin < rows:
        mine = flow[begin]
        middle = begin
        while middle < rows and flow[middle] == mine and way[middle] == way[begin]:
            middle += 1
        end = middle
        while end < rows and flow[end] == mine and way[end] != way[begin]:
            end += 1
        if batch_of[mine] < 0:
            begin = end
            continue
        if count == 0 or parts[count - 1, 0] != batch_of[mine]:
            parts[count, 0], parts[count, 1], parts[count, 2] = batch_of[mine], 0, 0
            count += 1
        section = at
        at += SECTION_BYTES
        for w in range(2):
            steps[w] = 0
            for c in range(COLUMNS):
                last[w, c] = 0
        place = np.int64(1 << 62)  # interface and mark: unlike any
        before = 0, 0
        total = 0
        a, b = begin, middle
        for _ in range(begin, end):
            if b >= end or (a < middle and frame[a] <= frame[b]):
                i = a
                a += 1
            else:
                i = b
                b += 1
            back = way[i] != first
            p = last[int(back)]
            head = B2A if back else 0
            start = at
            at += 4
            at, head = put_number(packed, at, head, AT_FRAME, frame[i], before[0])
            at, head = put_number(packed, at, head, AT_TIME, time[i], before[1])
            before = frame[i], time[i]
            value = np.int64(-1) if is_null(no_seq, i) else seq[i]
            at, head = put_number(packed, at, head, AT_SEQ, value, p[SEQ] + p[PAYLOAD])
            p[SEQ] = value
            value = np.int64(-1) if is_null(no_ack, i) else ack[i]
            at, head = put_number(packed, at, head, AT_ACK, value, p[ACK])
            p[ACK] = value
            value = np.int64(-1) if is_null(no_tsval, i) else tsval[i]
            at, head = put_number(packed, at, head, AT_TSVAL, value, p[TSVAL])
            p[TSVAL] = value
            value = np.int64(-1) if is_null(no_tsecr, i) else tsecr[i]
            at, head = put_number(packed, at, head, AT_TSECR, value, p[TSECR])
            p[TSECR] = value
            size = payload[i]
            whole = p[FRAME_BYTES] - p[PAYLOAD] + size
            held = frame_bytes[i] if p[CAPTURED] == p[FRAME_BYTES] else p[CAPTURED]
            known = not is_null(no_raw, i)
            unscaled = np.int64(raw[i]) if known else np.int64(-1)
            # a window of 0 needs no scale
            value = np.int64(0) if unscaled == 0 else np.int64(-1) if is_null(no_window, i) else window[i]
            number = np.int64(-1) if is_null(no_ip_id, i) else np.int64(ip_id[i])
            bits = np.int64(0) if is_null(no_flags, i) else np.int64(flags[i])
            counted = p[IP_ID] + steps[int(back)]
            if (
                size != p[PAYLOAD]
                or value != p[WINDOW]
                or unscaled != p[WINDOW_RAW]
                or number != counted
                or frame_bytes[i] != whole
                or captured[i] != held
                or segments[i] != p[SEGMENTS]
                or bits != p[FLAGS]
            ):
                at, head = put_number(packed, at, head, AT_PAYLOAD, size, p[PAYLOAD])
                at, head = put_number(packed, at, head, AT_WINDOW, value, p[WINDOW])
                at, head = put_number(packed, at, head, AT_RAW, unscaled, p[WINDOW_RAW])
                at, head = put_number(packed, at, head, AT_IP_ID, number, counted)
                at, head = put_number(packed, at, head, AT_FRAME_BYTES, frame_bytes[i], whole)
                at, head = put_number(packed, at, head, AT_CAPTURED, captured[i], held)
                at, head = put_number(packed, at, head, AT_SEGMENTS, np.int64(segments[i]), p[SEGMENTS])
                at, head = put_number(packed, at, head, AT_FLAGS, bits, p[FLAGS])
            steps[int(back)] = step_of(number, p[IP_ID])
            p[PAYLOAD], p[WINDOW], p[WINDOW_RAW], p[IP_ID] = size, value, unscaled, number
            p[FRAME_BYTES], p[CAPTURED], p[SEGMENTS], p[FLAGS] = frame_bytes[i], captured[i], segments[i], bits
            mark = np.int64(0) if is_null(no_ecn, i) else np.int64(ecn[i])
            value = mark | (np.int64(-1) if is_null(no_interface, i) else np.int64(interface[i])) << 8
            if value != place:
                head |= PLACE
                put64(packed, at, value)
                at += 8
                place = value
            many = edges_at[i + 1] - edges_at[i]
            if many:
                head |= EDGES
                put32(packed, at, np.int64(many))
                at += 4
                for k in range(edges_at[i], edges_at[i + 1]):
                    put64(packed, at, edges[k])
                    at += EDGE_BYTES
                total += many
            put32(packed, start, head)
        put32(packed, section, np.int64(mine))
        put32(packed, section + 4, end - begin)
        put32(packed, section + 8, total)
        put32(packed, section + 12, at - section)
        parts[count - 1, 1] += end - begin
        parts[count - 1, 2] += total
        parts[count - 1, 3] = at
        begin = end
    return count
