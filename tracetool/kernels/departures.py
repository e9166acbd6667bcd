"""When a sender's packets left it, and when it got those of its peer, from a capture made elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels._jit import kernel
from tracetool.kernels.clocks import after, nearest_tick
from tracetool.kernels.sorting import sort_positions

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

SYN, ACK = 2, 16
#: ACKs that arrive closer together than this belong to one stretch, over which the data they let go is spread evenly.
STRETCH_NS = 4_000_000
#: Data that left within this time of an ACK was let go by it.
LET_GO_NS = 2_000_000
#: What an ACK that tells nothing new lets go, bytes: a usual segment.
SEGMENT_BYTES = 1448
NEVER = 0x7FFFFFFFFFFFFFFF
#: Packets may on average be so far from their places; more is another method's work.
MOST_MOVES = 16
#: A timestamp is looked for among so many before it is searched.
NEAR = 16
#: A packet that came late is looked for among so many that came before it.
MOST_LATE = 256


@bare_kernel
def below(values: Ints, low: int, high: int, value: float) -> int:
    """How many values, which ascend, are below one; as is known, at least `low` and at most `high`."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@bare_kernel
def below_near(values: Ints, count: int, value: int, near: int) -> int:
    """How many of the first `count` values, which ascend, are below one: about as many as `near`, most often."""
    for _ in range(NEAR):
        if near > 0 and values[near - 1] >= value:
            near -= 1
        elif near < count and values[near] < value:
            near += 1
        else:
            return near
    return below(values, 0, count, value)


@bare_kernel
def find_ranges(
    outbound: Flags, flags: npt.NDArray[np.uint16], tsval: Ints, tsecr: Ints, acks: Ints, clock: Ints, data: Ints,
    first: Ints, beyond: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Find the packets that arrive at the sender, its packets that echo one, and for each of these which it may echo.

    The sender had got the first of the range, and not yet the one after it. Returns how many arrive, and how many echo.
    """
    arrive = echo = 0
    base = highest = 0
    for i in range(len(outbound)):
        if not outbound[i] and tsval[i] >= 0:
            if arrive == 0:
                base = tsval[i]
                highest = after(tsval[i], base)
            highest = max(highest, after(tsval[i], base))
            acks[arrive] = i
            clock[arrive] = highest
            arrive += 1
    if arrive == 0:
        return 0, 0
    near = 0
    for i in range(len(outbound)):
        if outbound[i] and tsecr[i] >= 0 and flags[i] & SYN == 0:
            echoed = after(tsecr[i], base)
            data[echo] = i
            near = first[echo] = below_near(clock, arrive, echoed, near)
            beyond[echo] = below_near(clock, arrive, echoed + 1, near)
            echo += 1
    return arrive, echo


@bare_kernel
def way_to_sender(
    time: Ints, outbound: Flags, flags: npt.NDArray[np.uint16], acks: Ints, arrive: int, data: Ints, echo: int,
    first: Ints, beyond: Ints,
) -> int:  # fmt: skip
    """Time from the capture to the sender and back, nanoseconds; 0 where it cannot be told.

    The shortest of what the handshake took (a packet of the receiver that the sender answers at once) and the times
    from an ACK to data that echoes its timestamp: either may have met a queue.
    """
    shortest = NEVER
    syn_ack = -1
    for i in range(len(outbound)):
        if not outbound[i] and flags[i] & (SYN | ACK) == SYN | ACK:
            syn_ack = i
    if syn_ack >= 0:
        for i in range(syn_ack, len(outbound)):
            if outbound[i] and flags[i] & (SYN | ACK) == ACK:
                shortest = time[i] - time[syn_ack]
                break
    for k in range(echo):
        if first[k] < arrive and beyond[k] > first[k]:
            shortest = min(shortest, time[data[k]] - time[acks[first[k]]])
    return 0 if shortest == NEVER else max(shortest, 0)


@bare_kernel
def tick_of(tsval: Ints, time: Ints, data: Ints, echo: int) -> int:
    """Tick of the sender's timestamp clock, nanoseconds; 0 where it has none, or it stands still."""
    if echo < 2:
        return 0
    for k in range(echo):
        if tsval[data[k]] < 0:
            return 0
    span = after(tsval[data[echo - 1]], tsval[data[0]])
    if span <= 0:
        return 0
    return nearest_tick(span, time[data[echo - 1]] - time[data[0]])


@bare_kernel
def put_before(outbound: Flags, seq: Ints, payload: Ints, tsval: Ints, highest: Ints, out: Ints) -> None:
    """Data that the network reordered left before all that goes beyond it and has no older timestamp.

    Data that is sent again has a newer one: it leaves a round trip later, and the clock ticks meanwhile. `highest` is
    scratch: the largest sequence number up to each packet.
    """
    top = -1
    for i in range(len(outbound)):
        if outbound[i] and payload[i] > 0:
            k, steps = i - 1, 0
            while k >= 0 and steps < MOST_LATE and highest[k] > seq[i] and tsval[i] >= 0:
                if outbound[k] and payload[k] > 0:
                    if seq[k] > seq[i] and tsval[k] >= 0 and after(tsval[k], tsval[i]) >= 0:
                        out[i] = min(out[i], out[k])
                    steps += 1
                k -= 1
            top = max(top, seq[i])
        highest[i] = top


@kernel
def project(
    time: Ints, outbound: Flags, flags: npt.NDArray[np.uint16], seq: Ints, ack: Ints, payload: Ints, tsval: Ints,
    tsecr: Ints, out: Ints,
) -> None:  # fmt: skip
    """Estimate at which times the sender sent and received the packets of a flow.

    Parameters
    ----------
    time, outbound, flags, seq, ack, payload, tsval, tsecr
        The packets of a flow, as captured at the receiver, or on the way.
    out : int64
        Out: nanoseconds.
    """
    count = len(time)
    acks, clock, data = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    first, beyond = np.empty(count, np.int64), np.empty(count, np.int64)
    arrive, echo = find_ranges(outbound, flags, tsval, tsecr, acks, clock, data, first, beyond)
    half = way_to_sender(time, outbound, flags, acks, arrive, data, echo, first, beyond) // 2
    for i in range(count):
        out[i] = time[i] - half if outbound[i] else time[i] + half
    if arrive == 0 or echo == 0:
        return
    last = arrive - 1
    tick = tick_of(tsval, time, data, echo)
    offset = NEVER  # how the sender's clock stands: the packet that queued least shows it
    weight = clock  # bytes that all ACKs until here let go
    top = ack[acks[0]]
    total = 0
    for k in range(arrive):
        freed = ack[acks[k]] - top
        top = max(top, ack[acks[k]])
        total += freed if freed > 0 else SEGMENT_BYTES
        weight[k] = total
    whole, so_far = np.zeros(arrive + 1, np.int64), np.zeros(arrive + 1, np.int64)
    for k in range(echo):
        i = data[k]
        whole[first[k]] += max(payload[i], 1)
        if tick > 0:
            offset = min(offset, out[i] - after(tsval[i], tsval[data[0]]) * tick)
    for k in range(echo):
        i = data[k]
        begin, end = first[k], beyond[k]
        latest = out[i]
        low = out[acks[min(begin, last)]]
        size = max(payload[i], 1)
        so_far[begin] += size
        if begin > last:
            out[i] = min(latest, max(latest, low))
            continue
        if end > begin + 1 and out[acks[min(max(end - 1, 0), last)]] - low <= STRETCH_NS:
            # in a stretch of ACKs the data goes with them evenly
            part = (so_far[begin] - size / 2) / whole[begin]
            floor = weight[max(min(begin, last + 1) - 1, 0)] if begin > 0 else 0
            target = floor + part * (weight[min(max(end, 1) - 1, last)] - floor)
            chosen = below(weight, begin, max(end - 1, begin), target)
            estimate = out[acks[min(chosen, last)]]
        else:
            # the sender's own clock, to its tick
            high = out[acks[end]] if end <= last else NEVER
            estimate = after(tsval[i], tsval[data[0]]) * tick + offset if tick > 0 else latest
            estimate = min(max(estimate, low), max(high - 1, low))
            if estimate - low <= LET_GO_NS:
                estimate = low
        out[i] = min(estimate, max(latest, low))
    put_before(outbound, seq, payload, tsval, first, out)


@kernel
def in_order(time: Ints, outbound: Flags, seq: Ints, order: Ints) -> bool:
    """Sort packets by time; of one time, what the sender received first, then what it sent by its number.

    Parameters
    ----------
    time, outbound, seq
        The packets of a flow, almost in order.
    order : int64
        Out: positions.

    Returns
    -------
    bool
        False where they are too far out of order: `order` means nothing then.
    """
    count = len(time)
    received, sent = np.empty(count, np.int64), np.empty(count, np.int64)
    here = there = moves = 0
    for i in range(count):
        if outbound[i]:
            k = there
            while k > 0 and (
                time[sent[k - 1]] > time[i] or (time[sent[k - 1]] == time[i] and seq[sent[k - 1]] > seq[i])
            ):
                sent[k] = sent[k - 1]
                k -= 1
            sent[k] = i
            moves += there - k
            there += 1
        else:
            k = here
            while k > 0 and time[received[k - 1]] > time[i]:
                received[k] = received[k - 1]
                k -= 1
            received[k] = i
            moves += here - k
            here += 1
        if moves > MOST_MOVES * (i + 64):
            return False
    a = b = 0
    for i in range(count):
        if b >= there or (a < here and time[received[a]] <= time[sent[b]]):
            order[i] = received[a]
            a += 1
        else:
            order[i] = sent[b]
            b += 1
    return True


@kernel
def sent_again(outbound: Flags, seq: Ints, payload: Ints) -> Ints:
    """Ranges of sequence numbers that were sent again.

    Parameters
    ----------
    outbound, seq, payload
        Arrays of one flow's packets, in the order in which they were sent.

    Returns
    -------
    int64, shape (n, 2)
        Begin, ascending, and the largest end of this range and those before it.
    """
    begin, end = np.empty(len(outbound), np.int64), np.empty(len(outbound), np.int64)
    begun, top, again = False, 0, 0
    for i in range(len(outbound)):
        if outbound[i] and payload[i] > 0:
            if begun and seq[i] < top:
                begin[again], end[again] = seq[i], min(seq[i] + payload[i], top)
                again += 1
            top = max(top, seq[i] + payload[i]) if begun else seq[i] + payload[i]
            begun = True
    order = np.empty(again, np.int64)
    sort_positions(begin[:again], end[:again], end[:again], order)
    found = np.empty((again, 2), np.int64)
    for k in range(again):
        found[k, 0] = begin[order[k]]
        found[k, 1] = max(end[order[k]], found[k - 1, 1]) if k else end[order[k]]
    return found
