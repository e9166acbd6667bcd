"""A connection without SACK that began before its capture: what its sender held then, as far as what follows tells.

How much reordering it had seen decides how many duplicate ACKs make it retransmit. And where the capture begins within
a recovery, what was outstanding then, and where the recovery ends: NewReno mends one hole a round trip (RFC 6582), so
its recoveries are long, and a capture often begins within one. There is the head then, sent again as an ACK moves on
to it, and little else. Taken for new data, the head hides hundreds of segments behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels._jit import kernel
from tracetool.kernels.replay_board import add_segments, mark_lost
from tracetool.kernels.replay_columns import (
    CA_STATE,
    DUPLICATE_ACKS,
    HEAD,
    HIGH_SEQ,
    MAX_REORDERING,
    MAX_UNSEEN,
    MISSED,
    RECOVERY,
    SACKED_OUT,
    SND_NXT,
    STALE,
    STARTED,
    TAIL,
    TIMER_START,
    UNSEEN,
)
from tracetool.kernels.replay_loss import RTO_MIN_NS

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]
    Marks = npt.NDArray[np.uint16]

#: What is found: first byte outstanding, first byte that was not sent yet, where the recovery ends, segments in flight
#: as it has ended; and how many duplicate ACKs it takes to retransmit.
BEGIN_UNA, BEGIN_NXT, BEGIN_HIGH, BEGIN_FLIGHT, BEGIN_REORDERING, BEGIN_WIDTH = range(6)
FIN, SYN, RST, ACK = 1, 2, 4, 16


@bare_kernel
def first_ack(outbound: Flags, flags: Marks) -> int:
    """The first captured ACK from the receiver; -1 without one, or if the packets have the connection's SYN."""
    first = -1
    for i in range(len(outbound)):
        if flags[i] & SYN:
            return -1
        if first < 0 and not outbound[i] and flags[i] & ACK and not flags[i] & (RST | MISSED):
            first = i
    return first


@bare_kernel
def begun_in_recovery(time: Ints, outbound: Flags, seq: Ints, ack: Ints, payload: Ints, flags: Marks, b: Ints) -> bool:
    """Whether packets begin within a recovery: an ACK moves on, and at once the head is sent again.

    The recovery is proven by the head being sent again where no duplicate ACKs and no timeout ask for it: what lies
    beyond it either was sent before, or is sent only later, with a gap.

    Parameters
    ----------
    time, outbound, seq, ack, payload, flags
        The packets of a flow, as the sender saw them.
    b : int64, shape (BEGIN_WIDTH,)
        Out: `BEGIN_UNA` and `BEGIN_NXT`.
    """
    una = top = nxt = -1
    heads, advanced, when = 0, True, time[0]
    heard = False  # the first ACK may be one that moves on, whatever is known from behind it
    for i in range(len(time)):
        if flags[i] & (SYN | RST):
            return False
        if not outbound[i]:
            if flags[i] & ACK:
                advanced, when = una < ack[i] or not heard, time[i]
                heard = True
                una = max(una, ack[i])
                b[BEGIN_UNA] = una if b[BEGIN_UNA] < 0 else b[BEGIN_UNA]
                if 0 <= nxt <= una:
                    return False  # all that was from before is acknowledged
            continue
        end = seq[i] + payload[i] + (flags[i] & FIN)
        if end == seq[i] or seq[i] < una:
            continue
        if una < 0:
            following = first_ack(outbound[i:], flags[i:])
            if following < 0:
                return False
            una = min(seq[i], ack[i + following])
            b[BEGIN_UNA] = una
        if seq[i] == una and (nxt < 0 or end <= nxt):
            if not advanced or time[i] - when >= RTO_MIN_NS:
                return False
            heads += 1
            top = max(top, end)
        elif nxt < 0:
            if seq[i] == top:
                return False  # what follows the head was not sent before
            nxt = seq[i]
        if heads and nxt >= 0:
            b[BEGIN_NXT] = nxt
            return True
    return False


@bare_kernel
def find_end(outbound: Flags, seq: Ints, ack: Ints, payload: Ints, flags: Marks, mss: int, b: Ints) -> None:
    """Find where the recovery ends: the first ACK that moves on without making the sender send its head again.

    It mostly moves on beyond the end, since new data left meanwhile; and where duplicates follow before the head is
    sent again, that is the next recovery. So the end is taken to lie just below: from there on duplicates count.
    The flight is the largest in the round trip after that, since it may take some ACKs to fill the window again; not
    where duplicate ACKs let go more.

    Parameters
    ----------
    outbound, seq, ack, payload, flags
        The packets of a flow, as the sender saw them.
    mss : int
        Bytes.
    b : int64, shape (BEGIN_WIDTH,)
        As `begun_in_recovery` leaves it; out: `BEGIN_HIGH` and `BEGIN_FLIGHT`.
    """
    una, head = b[BEGIN_UNA], -1  # an ACK that moved on, and nothing was sent since
    top, flight, goal = b[BEGIN_NXT], 0, -1
    b[BEGIN_HIGH] = b[BEGIN_NXT]
    b[BEGIN_FLIGHT] = (b[BEGIN_NXT] - b[BEGIN_UNA]) // mss
    over, repeated = False, 0
    for i in range(len(outbound)):
        if not outbound[i]:
            if flags[i] & ACK and ack[i] > una:
                una = head = ack[i]
                repeated = 0
                if over and una > b[BEGIN_HIGH]:
                    goal = top if goal < 0 else goal
                    if una > goal:
                        break
            elif flags[i] & ACK and ack[i] == una:
                repeated += 1
        elif payload[i] > 0:
            if not over and head >= 0 and (seq[i] != head or repeated >= DUPLICATE_ACKS):
                b[BEGIN_HIGH] = min(head - 1, b[BEGIN_NXT])
                over = True
            head = -1
            top = max(top, seq[i] + payload[i])
            if over and una > b[BEGIN_HIGH] and repeated == 0:
                flight = max(flight, top - una)
    if flight > 0:
        b[BEGIN_FLIGHT] = max(flight // mss, 1)


@bare_kernel
def reordering_seen(time: Ints, outbound: Flags, seq: Ints, ack: Ints, payload: Ints, flags: Marks) -> int:
    """Duplicate ACKs that made the sender retransmit first; -1 where none did (`tcp_check_reno_reordering`).

    Parameters
    ----------
    time, outbound, seq, ack, payload, flags
        The packets of a flow, as the sender saw them.
    """
    una, duplicates, when = -1, 0, time[0]
    for i in range(len(time)):
        if not outbound[i] and flags[i] & ACK:
            duplicates = duplicates + 1 if ack[i] == una and payload[i] == 0 else 0
            una, when = max(una, ack[i]), time[i]
        elif outbound[i] and payload[i] > 0 and seq[i] == una and duplicates > 0:
            if duplicates >= DUPLICATE_ACKS and time[i] - when < RTO_MIN_NS:
                return min(duplicates, MAX_REORDERING)
            return -1
    return -1


@kernel
def find_begin(
    time: Ints, outbound: Flags, seq: Ints, ack: Ints, payload: Ints, flags: Marks, mss: int, b: Ints
) -> None:
    """Find what the packets of a sender without SACK tell of what was before them; nothing if they have its SYN.

    Parameters
    ----------
    time, outbound, seq, ack, payload, flags, mss
        As of `begun_in_recovery` and `find_end`.
    b : int64, shape (BEGIN_WIDTH,)
        Out; -1 unknown. `BEGIN_NXT` is known where they begin within a recovery.
    """
    b[:] = -1
    if first_ack(outbound, flags) < 0:
        return
    lowest = np.int64(0)  # numbers count from the first packet, and what is acknowledged later may lie before it
    for i in range(len(time)):
        lowest = min(lowest, seq[i] if outbound[i] else ack[i])
    sent, acked = seq - lowest, ack - lowest
    b[BEGIN_REORDERING] = reordering_seen(time, outbound, sent, acked, payload, flags)
    begun = begun_in_recovery(time, outbound, sent, acked, payload, flags, b)
    if begun and b[BEGIN_NXT] - b[BEGIN_UNA] <= MAX_UNSEEN * mss:
        find_end(outbound, sent, acked, payload, flags, mss, b)
        for c in (BEGIN_UNA, BEGIN_NXT, BEGIN_HIGH):
            b[c] += lowest
    else:
        b[BEGIN_NXT] = -1


@bare_kernel
def be_within(board: Ints, s: Ints, b: Ints, now: int, mss: int, later: Ints) -> None:
    """Be in Recovery with what was outstanding; the board has room, and begins at `BEGIN_UNA`."""
    add_segments(board, s, b[BEGIN_UNA], b[BEGIN_NXT], now, mss, UNSEEN | STALE, np.bool_(False), later)
    s[SND_NXT] = b[BEGIN_NXT]
    s[CA_STATE] = RECOVERY
    s[HIGH_SEQ] = b[BEGIN_HIGH]
    s[TIMER_START] = now
    s[STARTED] = 1


@bare_kernel
def resume(board: Ints, s: Ints, b: Ints, now: int, mss: int, later: Ints) -> None:
    """Be within the recovery that a capture without SACK begins in; `later` is not looked at.

    Its window is the threshold, and so is the flight at its end: what is outstanding beyond that, duplicate ACKs have
    told to be delivered.
    """
    be_within(board, s, b, now, mss, later)
    s[SACKED_OUT] = max(s[TAIL] - s[HEAD] - max(b[BEGIN_FLIGHT], 1), 0)
    mark_lost(board, s, s[HEAD])
