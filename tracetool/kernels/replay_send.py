"""The sender sends: new segments go onto the scoreboard; of old ones the replay says what made it send them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.replay_alert import enter_recovery, start_undo
from tracetool.kernels.replay_board import link_newest, mark_lost, pipe, stamp, unlink
from tracetool.kernels.replay_columns import (
    BACKOFF,
    BY_FAST,
    BY_RTO,
    BY_TLP,
    BY_UNKNOWN,
    CA_RTT,
    CA_STATE,
    DELIVERED,
    DELIVERED_BEFORE,
    DISORDER,
    END,
    EVER_RETRANS,
    FIRST_SEND,
    FRTO,
    HEAD,
    HIGH_SEQ,
    KIND,
    LAST_SEND,
    LAST_SENT,
    LAST_TSVAL,
    LOSS,
    LOST,
    LOST_BEFORE,
    LOST_OUT,
    LOST_TOTAL,
    MIN_RTT,
    MIN_RTT_AFTER,
    MIN_RTT_BEFORE,
    NEWLY_DELIVERED,
    NEWLY_LOST,
    NXT_BEFORE,
    ON_REORDER_TIMER,
    ON_RTO,
    OP_RTO,
    OP_RTO_REDUCE,
    OPS,
    OUT_BEFORE,
    OWED,
    PACKET,
    PIPE,
    PIPE_BEFORE,
    PIPE_SENT,
    RACK_END,
    RACK_RTT,
    RACK_TIME,
    RECOVERY,
    REORDERING,
    RETRANS,
    RETRANS_OUT,
    RETRANS_STAMP,
    RETRANSMITTED,
    RETRANSMITTED_BEFORE,
    RS_DELIVERED,
    RS_INTERVAL,
    RTO,
    RTO_AFTER,
    RTTVAR,
    RTTVAR_BEFORE,
    SACKED,
    SACKED_BEFORE,
    SACKED_OUT,
    SENT,
    SENT_AGAIN,
    SENT_NEW,
    SND_NXT,
    SND_UNA,
    SND_WND,
    SRTT,
    SRTT_AFTER,
    SRTT_BEFORE,
    STATE_AFTER,
    STATE_BEFORE,
    TAGS,
    TAIL,
    TIME,
    TIMER_START,
    TLP_HIGH_SEQ,
    TLP_RETRANS,
    UNA,
    UNA_BEFORE,
    UNDO_RETRANS,
    WND_BEFORE,
)
from tracetool.kernels.replay_loss import rack_detect, reorder_window

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

DUPLICATE_ACKS = 3


@bare_kernel
def note_before(s: Ints, e: Ints, kind: int, packet: int, now: int) -> None:
    """Write the state as an event finds it into the event's row, and that it does nothing: what it does comes later."""
    e[KIND] = kind
    e[PACKET] = packet
    e[TIME] = now
    e[PIPE_BEFORE] = pipe(s)
    e[OUT_BEFORE] = s[TAIL] - s[HEAD]
    e[UNA_BEFORE] = s[SND_UNA]
    e[NXT_BEFORE] = s[SND_NXT]
    e[WND_BEFORE] = s[SND_WND]
    e[SRTT_BEFORE] = s[SRTT] >> 3
    e[RTTVAR_BEFORE] = s[RTTVAR] >> 2
    e[MIN_RTT_BEFORE] = s[MIN_RTT]
    e[STATE_BEFORE] = s[CA_STATE]
    e[SACKED_BEFORE] = s[SACKED_OUT]
    e[LOST_BEFORE] = s[LOST_OUT]
    e[DELIVERED_BEFORE] = s[DELIVERED]
    e[RETRANSMITTED_BEFORE] = s[RETRANSMITTED]
    note_after(s, e)
    e[CA_RTT] = -1
    e[RS_DELIVERED] = -1
    e[RS_INTERVAL] = -1


@bare_kernel
def note_after(s: Ints, e: Ints) -> None:
    """Write the state as an event leaves it into the event's row."""
    e[PIPE] = pipe(s)
    e[STATE_AFTER] = s[CA_STATE]
    e[UNA] = s[SND_UNA]
    e[RTO_AFTER] = s[RTO]
    e[SRTT_AFTER] = s[SRTT] >> 3
    e[MIN_RTT_AFTER] = s[MIN_RTT]


@bare_kernel
def note_timer(s: Ints, e: Ints, lost: int, ops: int) -> None:
    """Write what a timer did into its event's row."""
    e[NEWLY_DELIVERED] = 0
    e[NEWLY_LOST] = lost
    e[OPS] = ops
    note_after(s, e)


@bare_kernel
def why_again(board: Ints, s: Ints, n: int, now: int) -> int:
    """What made the sender send segment `n` again: BY_FAST, BY_RTO, BY_TLP or BY_UNKNOWN.

    What the replay holds for lost is a fast retransmission (or one of the Loss state). Else a timer ran out, and how
    long nothing moved tells which: the timeout for the head of the queue, the probe for its tail.
    """
    row = board[n & (board.shape[0] - 1)]
    tags = row[TAGS]
    quiet = now - s[TIMER_START]
    late = quiet * 8 >= s[RTO] * 7
    if n == s[HEAD] and late and (s[CA_STATE] < RECOVERY or quiet >= s[RTO]):
        return BY_RTO
    if tags & LOST and not tags & RETRANS:
        return BY_RTO if s[CA_STATE] == LOSS else BY_FAST
    sent_before = s[RACK_TIME] > row[SENT] or (s[RACK_TIME] == row[SENT] and s[RACK_END] > row[END])
    if sent_before and s[RACK_RTT] + reorder_window(s) <= now - row[SENT]:
        return BY_FAST
    idle = now - max(s[LAST_SENT], s[TIMER_START])
    if n == s[TAIL] - 1 and s[TLP_HIGH_SEQ] == 0 and s[CA_STATE] <= DISORDER and 4 * idle >= s[SRTT] >> 3:
        return BY_TLP
    if n == s[HEAD] and 2 * quiet >= s[RTO]:
        return BY_RTO
    if sent_before or s[SACKED_OUT] > 0:
        return BY_FAST
    return BY_UNKNOWN


@bare_kernel
def enter_loss(board: Ints, s: Ints, now: int) -> int:
    """A timeout (`tcp_enter_loss`): everything but what was sent recently is lost; returns operations."""
    mask = board.shape[0] - 1
    fresh = s[CA_STATE] < RECOVERY
    for n in range(s[HEAD], s[TAIL]):
        if n != s[HEAD] and s[RACK_RTT] > now - board[n & mask, SENT]:
            continue
        mark_lost(board, s, n)
    ops = OP_RTO
    if s[CA_STATE] <= DISORDER or s[HIGH_SEQ] <= s[SND_UNA] or (s[CA_STATE] == LOSS and s[BACKOFF] == 0):
        ops |= OP_RTO_REDUCE
        start_undo(s)
    if s[CA_STATE] <= DISORDER and s[SACKED_OUT] >= DUPLICATE_ACKS:
        s[REORDERING] = min(s[REORDERING], DUPLICATE_ACKS)
    s[FRTO] = 1 if fresh or s[BACKOFF] > 0 else 0
    s[CA_STATE] = LOSS
    s[HIGH_SEQ] = s[SND_NXT]
    s[TLP_HIGH_SEQ] = 0
    s[BACKOFF] += 1
    s[TIMER_START] = now
    s[RTO] = min(2 * s[RTO], 120_000_000_000)
    return ops


@bare_kernel
def timer_event(board: Ints, s: Ints, e: Ints, why: int, n: int, packet: int, now: int, sack: bool) -> bool:
    """Before a retransmission the replay did not foresee: run the timer that made it; returns whether one ran."""
    tags = board[n & (board.shape[0] - 1), TAGS]
    if why == BY_RTO and not (s[CA_STATE] == LOSS and tags & LOST and not tags & RETRANS and n != s[HEAD]):
        quiet = now - s[TIMER_START]
        if s[CA_STATE] == LOSS and tags & LOST and not tags & RETRANS and 8 * quiet < 7 * s[RTO]:
            return False  # the Loss state sends again what it holds for lost
        note_before(s, e, np.int64(ON_RTO), packet, now)
        if not sack:
            s[SACKED_OUT] = 0
        lost = s[LOST_TOTAL]
        ops = enter_loss(board, s, now)
        note_timer(s, e, s[LOST_TOTAL] - lost, ops)
        return True
    if why == BY_FAST and not (tags & LOST and not tags & RETRANS):
        note_before(s, e, np.int64(ON_REORDER_TIMER), packet, now)
        lost = s[LOST_TOTAL]
        rack_detect(board, s, now)
        tags = board[n & (board.shape[0] - 1), TAGS]
        if not tags & LOST or tags & RETRANS:
            mark_lost(board, s, n)
        ops = enter_recovery(board, s) if s[CA_STATE] < RECOVERY else 0
        note_timer(s, e, s[LOST_TOTAL] - lost, ops)
        e[NEWLY_DELIVERED] = 1 if ops else 0  # tcp_rack_reo_timeout reduces as for one delivery
        return True
    return False


@bare_kernel
def send_again(board: Ints, s: Ints, n: int, now: int, probe: bool) -> None:
    """Segment `n` is sent once more (`tcp_retransmit_skb`)."""
    row = board[n & (board.shape[0] - 1)]
    tags = row[TAGS]
    if probe and not tags & LOST:
        s[TLP_HIGH_SEQ] = s[SND_NXT]
        s[TLP_RETRANS] = 1
    if tags & SACKED:
        return
    if not tags & RETRANS:
        s[RETRANS_OUT] += 1
    row[TAGS] = tags | RETRANS | EVER_RETRANS
    if s[RETRANS_STAMP] == 0:
        s[RETRANS_STAMP] = max(s[LAST_TSVAL], 1)
    s[UNDO_RETRANS] = max(s[UNDO_RETRANS], 0) + 1
    unlink(board, s, n)
    stamp(board, s, n, now)
    link_newest(board, s, n)


@bare_kernel
def send_owed(board: Ints, s: Ints, e: Ints, now: int) -> None:
    """Send again what is held for lost, as far as the capture lacks such packets; it follows upon the event `e`."""
    mask = board.shape[0] - 1
    n = s[HEAD]
    while s[OWED] > 0 and s[RETRANS_OUT] < s[LOST_OUT] and n < s[TAIL]:
        tags = board[n & mask, TAGS]
        if tags & LOST and not tags & RETRANS:
            send_again(board, s, n, now, np.bool_(False))
            if e[SENT_NEW] + e[SENT_AGAIN] == 0:
                e[FIRST_SEND] = now
            e[LAST_SEND] = now
            e[SENT_AGAIN] += 1
            e[PIPE_SENT] = max(e[PIPE_SENT], pipe(s))
            s[RETRANSMITTED] += 1
            s[LAST_SENT] = now
            s[OWED] -= 1
        n += 1
