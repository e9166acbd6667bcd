"""The senders of a batch of flows, each replayed from its own packets: from the columns of all to the events of each.

A direction's packets are gathered without frames captured twice, put at the times at which its sender had them where
the capture stands elsewhere, and handed to `replay`, which writes one row per event. All of a flow stays in the
processor's cache meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels._jit import kernel
from tracetool.kernels.clocks import after, nearest_tick
from tracetool.kernels.departures import in_order, project, sent_again
from tracetool.kernels.missed import put_back
from tracetool.kernels.packet_records import (
    ACK,
    PAYLOAD,
    REPLAYED,
    SEGMENTS,
    SEQ,
    TIME,
    TSECR,
    TSVAL,
    WINDOW,
    WINDOW_RAW,
)
from tracetool.kernels.replay import replay
from tracetool.kernels.replay_begin import BEGIN_NXT, BEGIN_WIDTH, find_begin
from tracetool.kernels.replay_begin_sack import find_begin_sack
from tracetool.kernels.replay_columns import PACKET
from tracetool.kernels.sorting import sort_positions

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]
    Flags = npt.NDArray[np.bool_]

#: What is known of a sender before its packets are read; -1 unknown. `ELSEWHERE`: the capture was not made there.
FLOW, WAY, MSS_PEER, MSS_OWN, TIMESTAMPS, SACK, ELSEWHERE, ASKED_WIDTH = range(8)
#: What its packets tell: payload of a full segment; whether its SYN is there, whether any packet bears a timestamp, and
#: whether a window was advertised whose scale is known.
SEGMENT, BEGUN, STAMPED, SCALED, FOUND_WIDTH = range(5)
SYN = 2
TIMESTAMP_OPTION_BYTES = 12
#: No TCP sends smaller full segments (Linux: TCP_MIN_MSS, with its options).
LEAST_SEGMENT_BYTES = 48
USUAL_TICK_NS = 1_000_000


@bare_kernel
def segment_bytes(outbound: Flags, payload: Ints, segments: Ints, peer: int, own: int, timestamps: int) -> int:
    """Payload of a full segment: what the handshake allows, or the largest single segment seen; at least 48 bytes.

    Parameters
    ----------
    outbound, payload, segments
        Packets of one flow.
    peer, own, timestamps : int
        MSS options of the receiver and the sender, whether timestamps take their part of it; -1 unknown.
    """
    seen = 0
    super_frames = False
    for i in range(len(outbound)):
        if outbound[i] and payload[i] > 0:
            seen = max(seen, -(-payload[i] // max(segments[i], 1)))
            super_frames |= segments[i] > 1
    if peer <= 0 and own <= 0:
        return max(seen, LEAST_SEGMENT_BYTES)
    allowed = own if peer <= 0 else peer if own <= 0 else min(peer, own)
    if timestamps > 0:
        allowed -= TIMESTAMP_OPTION_BYTES
    # a path with a smaller MTU is told by what is sent; of super-frames only the handshake tells
    return max(allowed if super_frames or seen == 0 else seen, LEAST_SEGMENT_BYTES)


@bare_kernel
def timestamp_tick(outbound: Flags, tsval: Ints, time: Ints) -> int:
    """Tick of the sender's timestamp clock, nanoseconds (RFC 7323 leaves it open: 1 ms where it cannot be told)."""
    first = last = -1
    for i in range(len(outbound)):
        if outbound[i] and tsval[i] >= 0:
            if first < 0:
                first = i
            last = i
    if first == last:
        return USUAL_TICK_NS
    ticks = after(tsval[last], tsval[first])
    return nearest_tick(ticks, time[last] - time[first]) if ticks > 1 else USUAL_TICK_NS


@bare_kernel
def gather(
    order: Ints, count: int, side: int, columns: Ints, way: Bytes, flags: Ints, sack_at: Ints, sacks: Ints,
    mine: Ints, outbound: Flags, marks: npt.NDArray[np.uint16], edges_at: Ints, edges: Ints,
) -> None:  # fmt: skip
    """Copy the packets at some positions, in that order; `side` is the sender's."""
    for c in range(REPLAYED):
        for i in range(count):
            mine[c, i] = columns[c, order[i]]
    at = 0
    for i in range(count):
        p = order[i]
        outbound[i] = way[p] == side
        marks[i] = flags[p]
        edges_at[i] = at
        for k in range(sack_at[p], sack_at[p + 1]):
            edges[at] = sacks[k]
            at += 1
    edges_at[count] = at


@bare_kernel
def read(asked: Ints, count: int, mine: Ints, outbound: Flags, marks: npt.NDArray[np.uint16], found: Ints) -> None:
    """Note what the packets of a sender tell of it."""
    begun = stamped = scaled = False
    for i in range(count):
        begun |= outbound[i] and marks[i] & SYN != 0
        stamped |= mine[TSVAL, i] >= 0
        scaled |= not outbound[i] and mine[WINDOW, i] > 0
    found[BEGUN], found[STAMPED], found[SCALED] = begun, stamped, scaled
    found[SEGMENT] = segment_bytes(
        outbound[:count], mine[PAYLOAD, :count], mine[SEGMENTS, :count], asked[MSS_PEER], asked[MSS_OWN],
        asked[TIMESTAMPS],
    )  # fmt: skip


@kernel
def arrange(mine: Ints, outbound: Flags, marks: npt.NDArray[np.uint16], n: int, time: Ints, order: Ints) -> None:
    """Find when the sender had each of the first `n` packets, and their order there.

    Parameters
    ----------
    mine : int64, shape (REPLAYED, room), outbound, marks
        Packets of one sender in the order of the capture, made elsewhere.
    n : int
    time, order : int64
        Out: nanoseconds, in the order of the capture; positions in it.
    """
    project(
        mine[TIME, :n], outbound[:n], marks[:n], mine[SEQ, :n], mine[ACK, :n], mine[PAYLOAD, :n], mine[TSVAL, :n],
        mine[TSECR, :n], time[:n],
    )  # fmt: skip
    if not in_order(time[:n], outbound[:n], mine[SEQ, :n], order[:n]):
        sent, number = np.zeros(n, np.int64), np.zeros(n, np.int64)
        for i in range(n):
            if outbound[i]:
                sent[i], number[i] = 1, mine[SEQ, i]
        sort_positions(time[:n], sent, number, order[:n])


@kernel
def replay_senders(
    bounds: Ints, columns: Ints, way: Bytes, flags: Ints, sack_at: Ints, sacks: Ints, copy: Bytes, asked: Ints,
    events: Ints, at: Ints, found: Ints, raw: Ints, again: npt.NDArray[np.int8],
    again_segments: npt.NDArray[np.int32],
) -> None:  # fmt: skip
    """Replay the senders of a batch.

    Parameters
    ----------
    bounds
        Where the packets of each flow begin, and the number of packets.
    columns : int64, shape (COLUMNS, packets + 1)
        Packets of whole flows, as `packet_records.columns_of` makes them.
    way, flags, sack_at, sacks, copy
        Of the packets, as `kernels.track.track` takes them.
    asked : int64, shape (senders, ASKED_WIDTH)
        Which senders, and what is known of each.
    events : int64, shape (rows, EVENT_WIDTH)
        Out: rows from `replay` of one sender after the other; twice as many as all their flows have packets, and two:
        as many frames may be put back as were captured.
    at : int64, shape (senders + 1,)
        Out: where those of each sender begin, and their number.
    found : int64, shape (senders, FOUND_WIDTH)
        Out: what the packets of each tell.
    raw : int64, shape (rows,)
        Out: the window field of the packet that made each event; -1 unknown.
    again, again_segments
        Out, one per packet: why it was sent again (BY_*, 0: it was not), and how many of its segments were.
    """
    longest = edges_most = 0
    for d in range(len(asked)):
        a, b = bounds[asked[d, FLOW]], bounds[asked[d, FLOW] + 1]
        longest = max(longest, b - a)
        edges_most = max(edges_most, sack_at[b] - sack_at[a])
    kept, order, time = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest, np.int64)
    mine = np.empty((REPLAYED, longest), np.int64)
    outbound, marks = np.empty(longest, np.bool_), np.empty(longest, np.uint16)
    edges_at, edges = np.empty(longest + 1, np.int64), np.empty(edges_most, np.int64)
    why, several = np.empty(longest, np.int8), np.empty(longest, np.int32)
    none, begun = np.empty((0, 2), np.int64), np.empty(BEGIN_WIDTH, np.int64)
    at[0] = 0
    for d in range(len(asked)):
        flow, side = asked[d, FLOW], asked[d, WAY]
        n = 0
        for i in range(bounds[flow], bounds[flow + 1]):
            if not copy[i]:
                kept[n] = i
                n += 1
        gather(kept, n, side, columns, way, flags, sack_at, sacks, mine, outbound, marks, edges_at, edges)
        if asked[d, ELSEWHERE] and n:
            arrange(mine, outbound, marks, n, time, order)
            moved = order[:n].copy()
            for i in range(n):
                order[i] = kept[moved[i]]
            for i in range(n):
                kept[i] = order[i]
            gather(kept, n, side, columns, way, flags, sack_at, sacks, mine, outbound, marks, edges_at, edges)
            for i in range(n):
                mine[TIME, i] = time[moved[i]]
        read(asked[d], n, mine, outbound, marks, found[d])
        elsewhere = asked[d, ELSEWHERE] != 0
        mss, tick = found[d, SEGMENT], timestamp_tick(outbound[:n], mine[TSVAL, :n], mine[TIME, :n])
        sack = edges_at[n] > 0 if asked[d, SACK] < 0 else asked[d, SACK] > 0
        packets, sent, flag, blocks_at, blocks, origin = mine, outbound, marks, edges_at, edges, kept
        begun[:] = -1
        if not elsewhere and sack:
            find_begin_sack(
                outbound[:n], mine[SEQ, :n], mine[ACK, :n], mine[PAYLOAD, :n], marks[:n], edges, edges_at[: n + 1], mss,
                begun,
            )  # fmt: skip
        elif not elsewhere:
            find_begin(
                mine[TIME, :n], outbound[:n], mine[SEQ, :n], mine[ACK, :n], mine[PAYLOAD, :n], marks[:n], mss, begun
            )
        if elsewhere:
            later = sent_again(outbound[:n], mine[SEQ, :n], mine[PAYLOAD, :n])
        else:
            packets, sent, flag, blocks_at, blocks, origin, n = put_back(
                mine, outbound, marks, edges_at, edges, kept, n, mss, tick, sack, begun[BEGIN_NXT]
            )
            later = none
        if n > len(why):
            why, several = np.empty(n, np.int8), np.empty(n, np.int32)
        why[:n] = 0
        several[:n] = 0
        begin = at[d]
        rows = replay(
            packets[TIME, :n], sent[:n], packets[SEQ, :n], packets[ACK, :n], packets[PAYLOAD, :n], flag[:n],
            packets[WINDOW, :n], packets[TSVAL, :n], packets[TSECR, :n], blocks, blocks_at[: n + 1], mss, tick, sack,
            elsewhere, later, begun, why[:n], several[:n], events[begin:],
        )  # fmt: skip
        at[d + 1] = begin + rows
        for r in range(begin, begin + rows):
            raw[r] = packets[WINDOW_RAW, events[r, PACKET]]
        for i in range(n):
            if sent[i] and origin[i] >= 0:
                again[origin[i]], again_segments[origin[i]] = why[i], several[i]
