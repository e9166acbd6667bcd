"""Segments that a sender sent, but its capture lacks: what they were, and after which ACK they left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels._jit import kernel
from tracetool.kernels.clocks import after
from tracetool.kernels.missed_acks import ACK, FIN, MOST_MISSED, RST, SYN, counts_packets, leap
from tracetool.kernels.replay_columns import MAX_UNSEEN, MAX_UNSEEN_PER_PACKET
from tracetool.kernels.window_judge import AT_ONCE_NS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

#: Columns of what is found: the packet before which it left, the one that it is like, its time, its number and length;
#: without length so many segments of old data, sent again.
PLACE, LIKE, AT, FIRST, LENGTH, AGAIN, DATA_WIDTH = 0, 1, 2, 3, 4, 5, 6
#: The ACK of a segment is looked for among so many packets.
LOOK_AHEAD = 1 << 11


@bare_kernel
def most(packets: int) -> int:
    """Segments that may be missing among so many packets."""
    return MAX_UNSEEN + MAX_UNSEEN_PER_PACKET * packets


@bare_kernel
def let_go(
    time: Ints, outbound: Flags, ack: Ints, payload: Ints, flags: npt.NDArray[np.uint16], before: int, now: int,
    mss: int,
) -> tuple[int, int]:  # fmt: skip
    """Place and time at which a missed segment left between two captured ones, `before` and `now`.

    A sender that is limited by its window answers every ACK: where one found no answer, it was this. Else it belongs
    to the end of the burst before, or to the beginning of the one after: to that which has less for what its ACK
    acknowledged. Where sends do not follow upon ACKs (pacing), it left in the middle.
    """
    first, acks, last = -1, 0, -1
    for k in range(before + 1, now):
        if not outbound[k] and flags[k] & ACK:
            acks += 1
            last = k
            if first < 0:
                first = k
    if acks == 0:
        return now, time[before] + (time[now] - time[before]) // 2
    if time[now] - time[last] > AT_ONCE_NS:
        middle = time[before] + (time[now] - time[before]) // 2
        place = before + 1
        while place < now and time[place] <= middle:
            place += 1
        return place, middle
    if acks > 1:
        return first + 1, time[first]
    earlier, behind = 0, before  # what the burst before has sent, and which ACK let it go
    while behind >= 0 and outbound[behind]:
        earlier += payload[behind]
        behind -= 1
    previous = behind - 1
    while previous >= 0 and outbound[previous]:
        previous -= 1
    if behind < 0 or previous < 0:
        return now, time[now]
    later, ahead = 0, now
    while ahead < len(outbound) and outbound[ahead]:
        later += payload[ahead]
        ahead += 1
    lacks_before = max(ack[behind] - ack[previous], mss) - earlier
    lacks_after = max(ack[first] - ack[behind], mss) - later
    if lacks_before > lacks_after:
        return before + 1, time[before]
    return now, time[now]


@bare_kernel
def echoed(outbound: Flags, ack: Ints, flags: npt.NDArray[np.uint16], tsecr: Ints, now: int, seq: int) -> int:
    """Timestamp of the segment at `seq`, as the ACK says that follows upon one of all before it; -1 unknown."""
    known = -1
    for k in range(now - 1, max(now - LOOK_AHEAD, -1), -1):
        if not outbound[k] and flags[k] & ACK:
            known = ack[k]
            break
    for k in range(now + 1, min(len(outbound), now + LOOK_AHEAD)):
        if not outbound[k] and flags[k] & ACK:
            if ack[k] > seq:
                return tsecr[k] if known == seq else -1
            known = ack[k]
    return -1


@bare_kernel
def placed(
    time: Ints, outbound: Flags, ack: Ints, payload: Ints, flags: npt.NDArray[np.uint16], tsval: Ints, tsecr: Ints,
    before: int, now: int, seq: int, mss: int, tick: int,
) -> tuple[int, int]:  # fmt: skip
    """Place and time at which the missed segment at `seq` left: by its timestamp, or else as `let_go` says."""
    if tsval[before] >= 0 and tsval[now] != tsval[before]:
        stamp = echoed(outbound, ack, flags, tsecr, now, seq)
        if stamp == tsval[now]:
            return now, time[now]
        if stamp == tsval[before]:
            return before + 1, time[before]
        if stamp >= 0 and after(stamp, tsval[before]) > 0 and after(tsval[now], stamp) > 0:
            at = min(time[before] + ((stamp - tsval[before]) & 0xFFFFFFFF) * tick, time[now])
            place = before + 1
            while place < now and time[place] <= at:
                place += 1
            return place, at
    return let_go(time, outbound, ack, payload, flags, before, now, mss)


@kernel
def find_missed_data(
    time: Ints, outbound: Flags, seq: Ints, ack: Ints, payload: Ints, segments: npt.NDArray[np.int32],
    flags: npt.NDArray[np.uint16], tsval: Ints, tsecr: Ints, ip_id: Ints, mss: int, tick: int, nxt: int,
    found: Ints,
) -> int:  # fmt: skip
    """Find the segments that a capture made at the sender lacks; returns their number, `found.shape[0]` at most.

    New data leaves in the order of its numbers: a hole in them was sent between the segments around it. What is
    acknowledged beyond the last captured segment was sent after that. Where identifications count the packets, a leap
    without a hole is data sent again.

    Parameters
    ----------
    time, outbound, seq, ack, payload, segments, flags, tsval, tsecr, ip_id
        The packets of a flow, as captured at the sender.
    mss : int
        Payload of a full segment, bytes.
    tick : int
        Sender's timestamp clock, nanoseconds.
    nxt : int
        What lies before this number was sent before the capture began; -1 unknown.
    found : int64, shape (n, DATA_WIDTH)
        Out: in the order of their places.
    """
    counted = counts_packets(outbound, ip_id, segments, True)
    rows, last = 0, -1
    missed = 0  # segments found
    since = 0  # of these since the last captured packet
    earlier = -1  # the first leap since the last new data
    reached, latest = 0, 0  # place and time of what was last found behind the last captured packet
    for i in range(len(outbound)):
        if rows + 2 > found.shape[0]:
            break
        if flags[i] & (SYN | RST):
            continue
        if not outbound[i]:
            beyond = ack[i] - nxt if flags[i] & ACK else 0
            count = (beyond + mss - 1) // mss
            if last >= 0 and beyond > 0 and count <= MAX_UNSEEN and missed + count <= most(i):
                at = time[last]
                if tsecr[i] >= 0 and tsval[last] >= 0:
                    ticks = (tsecr[i] - tsval[last]) & 0xFFFFFFFF
                    at = min(at + (ticks * tick if ticks < 1 << 31 else 0), time[i])
                if reached > last:
                    at = max(at, latest)
                place = max(last + 1, reached)
                while place < i and time[place] <= at:
                    place += 1
                reached, latest = place, at
                found[rows, PLACE] = place
                found[rows, LIKE] = last
                found[rows, AT] = at
                found[rows, FIRST] = nxt
                found[rows, LENGTH] = beyond
                found[rows, AGAIN] = 0
                rows += 1
                nxt = ack[i]
                since += count
                missed += count
            continue
        size = payload[i] + (1 if flags[i] & FIN else 0)
        if size == 0:
            if last >= 0:
                last, since = i, 0
            continue
        if last >= 0:
            hole = max(seq[i] - nxt, 0)
            count = (hole + mss - 1) // mss
            if count > MAX_UNSEEN or missed + count > most(i):
                hole = count = 0
            missed += count
            leapt = leap(ip_id, segments, last, i) - since if counted else 0
            if hole > 0 and earlier >= 0 and leapt < count:  # it left before the data that was sent again
                found[earlier, FIRST] = nxt
                found[earlier, LENGTH] = hole
                found[earlier, AGAIN] = 0
                count = 0
            elif hole > 0:
                place, at = placed(
                    time, outbound, ack, payload, flags, tsval, tsecr, last, i, nxt, mss, tick
                )  # fmt: skip
                found[rows, PLACE] = place
                found[rows, LIKE] = i if place == i else last
                found[rows, AT] = at
                found[rows, FIRST] = nxt
                found[rows, LENGTH] = hole
                found[rows, AGAIN] = 0
                rows += 1
            if 0 < leapt - count <= MOST_MISSED:
                found[rows, PLACE] = last + 1
                found[rows, LIKE] = last
                found[rows, AT] = time[last]
                found[rows, FIRST] = nxt
                found[rows, LENGTH] = 0
                found[rows, AGAIN] = leapt - count
                if earlier < 0:
                    earlier = rows
                rows += 1
            if seq[i] + size > nxt:
                earlier = -1
        last, since = i, 0
        nxt = max(nxt, seq[i] + size)
    return rows
