"""The state machine of loss recovery (`tcp_fastretrans_alert`): Open, Disorder, CWR, Recovery and Loss.

It does not depend on the congestion control; what it means for the window is returned as operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.replay_columns import (
    CA_STATE,
    CWR_STATE,
    DATA_SACKED,
    DELIVERED,
    DISORDER,
    EVER_RETRANS,
    FRTO,
    HEAD,
    HIGH_SEQ,
    LOSS,
    LOST,
    LOST_OUT,
    MAX_REORDERING,
    OP_CWR,
    OP_EXIT,
    OP_RECOVERY,
    OP_UNDO,
    OP_UNDO_LATE,
    OPEN,
    ORIGINAL,
    RACK_ADVANCED,
    RECOVERY,
    REO_PERSIST,
    REO_RECOVERIES,
    REO_SEEN,
    REORDERING,
    RETRANS_OUT,
    RETRANS_STAMP,
    SACKED_OUT,
    SND_NXT,
    SND_UNA,
    TAGS,
    TAIL,
    TLP_HIGH_SEQ,
    TLP_RETRANS,
    UNDO_MARKER,
    UNDO_RETRANS,
)
from tracetool.kernels.replay_loss import mark_head_lost, rack_detect
from tracetool.kernels.replay_sack import echo_before, note_reordering

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


@bare_kernel
def limit_dupacks(s: Ints) -> bool:
    """Without SACK: no more duplicates than segments outstanding less the hole (`tcp_limit_reno_sacked`)."""
    out = s[TAIL] - s[HEAD]
    holes = min(max(s[LOST_OUT], 1), out)
    if s[SACKED_OUT] + holes > out:
        s[SACKED_OUT] = out - holes
        return True
    return False


@bare_kernel
def add_dupacks(s: Ints, count: int) -> None:
    """Without SACK: a duplicate ACK stands for a segment that left the network (`tcp_add_reno_sack`)."""
    if count == 0:
        return
    before = s[SACKED_OUT]
    s[SACKED_OUT] += count
    if limit_dupacks(s):
        s[REORDERING] = min(s[TAIL] - s[HEAD], MAX_REORDERING)
        s[REO_SEEN] += 1
    s[DELIVERED] += max(0, s[SACKED_OUT] - before)


@bare_kernel
def remove_dupacks(s: Ints, acked: int) -> None:
    """Without SACK: an ACK of a hole takes its duplicates with it (`tcp_remove_reno_sacks`)."""
    if acked > 0:
        s[DELIVERED] += max(acked - s[SACKED_OUT], 1)
        s[SACKED_OUT] = max(0, s[SACKED_OUT] - (acked - 1))
    if limit_dupacks(s):
        s[REORDERING] = min(s[TAIL] - s[HEAD] + acked, MAX_REORDERING)
        s[REO_SEEN] += 1


@bare_kernel
def any_retransmitted(board: Ints, s: Ints) -> bool:
    """Whether a retransmission may still be under way (`tcp_any_retrans_done`)."""
    if s[RETRANS_OUT] > 0:
        return True
    return s[HEAD] < s[TAIL] and board[s[HEAD] & (board.shape[0] - 1), TAGS] & EVER_RETRANS != 0


@bare_kernel
def packet_delayed(s: Ints, echoed: int, sack: bool) -> bool:
    """Whether the ACK answers something sent before the first retransmission (`tcp_packet_delayed`)."""
    if s[RETRANS_STAMP] > 0:
        return echo_before(echoed, s[RETRANS_STAMP])
    return sack or s[SND_UNA] < s[HIGH_SEQ]


@bare_kernel
def unmark_lost(board: Ints, s: Ints) -> None:
    """Nothing is lost after all."""
    mask = board.shape[0] - 1
    for n in range(s[HEAD], s[TAIL]):
        board[n & mask, TAGS] &= ~LOST
    s[LOST_OUT] = 0


@bare_kernel
def undone(board: Ints, s: Ints, forget_losses: bool) -> None:
    """Undo the reduction (`tcp_undo_cwnd_reduction`, without the window)."""
    if forget_losses:
        unmark_lost(board, s)
    s[UNDO_MARKER] = -1
    s[RACK_ADVANCED] = 1


@bare_kernel
def start_undo(s: Ints) -> None:
    """Remember from where on retransmissions count (`tcp_init_undo`)."""
    s[UNDO_MARKER] = s[SND_UNA]
    s[UNDO_RETRANS] = s[RETRANS_OUT]
    if s[TLP_HIGH_SEQ] > 0 and s[TLP_RETRANS]:
        s[UNDO_RETRANS] += 1
    if s[UNDO_RETRANS] == 0:
        s[UNDO_RETRANS] = -1


@bare_kernel
def keep_open(board: Ints, s: Ints) -> None:
    """Open, or Disorder while something is out of order (`tcp_try_keep_open`)."""
    state = DISORDER if s[SACKED_OUT] + s[LOST_OUT] > 0 or any_retransmitted(board, s) else OPEN
    if s[CA_STATE] != state:
        s[CA_STATE] = state
        s[HIGH_SEQ] = s[SND_NXT]


@bare_kernel
def try_to_open(board: Ints, s: Ints, echo: bool) -> int:
    """After an ACK without loss (`tcp_try_to_open`); returns operations on the window."""
    ops = 0
    if not any_retransmitted(board, s):
        s[RETRANS_STAMP] = 0
    if echo and s[CA_STATE] < CWR_STATE:
        s[UNDO_MARKER] = -1
        s[HIGH_SEQ] = s[SND_NXT]
        s[TLP_HIGH_SEQ] = 0
        s[CA_STATE] = CWR_STATE
        ops = OP_CWR
    if s[CA_STATE] != CWR_STATE:
        keep_open(board, s)
    return ops


@bare_kernel
def enter_recovery(board: Ints, s: Ints) -> int:
    """Begin fast recovery (`tcp_enter_recovery`); returns operations on the window."""
    ops = 0
    if not any_retransmitted(board, s):
        s[RETRANS_STAMP] = 0
    start_undo(s)
    if s[CA_STATE] != CWR_STATE and s[CA_STATE] != RECOVERY:
        s[HIGH_SEQ] = s[SND_NXT]
        s[TLP_HIGH_SEQ] = 0
        ops = OP_RECOVERY
    s[CA_STATE] = RECOVERY
    return ops


@bare_kernel
def find_losses(board: Ints, s: Ints, now: int, sack: bool, advanced: bool) -> bool:
    """Mark what is lost (`tcp_identify_packet_loss`); returns whether a retransmission was."""
    retransmitted = s[RETRANS_OUT]
    if s[HEAD] == s[TAIL]:
        return False
    if not sack:
        mark_head_lost(board, s, advanced)
    elif s[RACK_ADVANCED]:
        s[RACK_ADVANCED] = 0
        rack_detect(board, s, now)
    return s[RETRANS_OUT] < retransmitted


@bare_kernel
def try_undo_recovery(board: Ints, s: Ints, delayed: bool, sack: bool) -> tuple[int, bool]:
    """At the end of recovery: undo it if nothing was lost; returns operations, and whether the state is held."""
    ops = 0
    if s[UNDO_MARKER] >= 0 and (s[UNDO_RETRANS] == 0 or delayed):
        undone(board, s, np.bool_(False))
        ops = OP_UNDO
    elif s[REO_PERSIST] > 0:
        s[REO_PERSIST] -= 1
    if not sack and s[SND_UNA] == s[HIGH_SEQ]:  # without SACK the state is held until something above is ACKed
        if not any_retransmitted(board, s):
            s[RETRANS_STAMP] = 0
        return ops, True
    s[CA_STATE] = OPEN
    return ops, False


@bare_kernel
def process_loss(board: Ints, s: Ints, x: Ints, advanced: bool, dupacks: int, delayed: bool, sack: bool) -> int:
    """An ACK in the Loss state (`tcp_process_loss`); returns operations on the window."""
    recovered = s[SND_UNA] >= s[HIGH_SEQ]
    may_undo = s[UNDO_MARKER] >= 0 and (s[UNDO_RETRANS] == 0 or delayed)
    frto = s[FRTO] and x[ORIGINAL]
    if (advanced and may_undo) or frto:
        undone(board, s, np.bool_(True))
        if not (not sack and s[SND_UNA] == s[HIGH_SEQ]) and (sack or frto):
            s[CA_STATE] = OPEN
        return OP_UNDO
    if s[FRTO]:
        if s[SND_NXT] > s[HIGH_SEQ]:
            if x[DATA_SACKED] or dupacks:
                s[FRTO] = 0
        elif advanced and not recovered:
            s[HIGH_SEQ] = s[SND_NXT]  # the sends tell whether new data went out (step 2.b)
            return 0
    if recovered:
        return try_undo_recovery(board, s, delayed, sack)[0]
    if not sack:
        if s[SND_NXT] > s[HIGH_SEQ] and dupacks:
            add_dupacks(s, dupacks)
        elif advanced:
            s[SACKED_OUT] = 0
    return 0


@bare_kernel
def alert(
    board: Ints, s: Ints, x: Ints, now: int, mss: int, prior_una: int, dupacks: int, echo: bool, sack: bool, echoed: int
) -> int:
    """Run the state machine of loss recovery (`tcp_fastretrans_alert`); returns operations on the window."""
    ops = 0
    advanced = s[SND_UNA] > prior_una
    delayed = packet_delayed(s, echoed, sack)
    if s[HEAD] == s[TAIL]:
        s[SACKED_OUT] = 0
    if s[CA_STATE] == OPEN:
        s[RETRANS_STAMP] = 0
    elif s[SND_UNA] >= s[HIGH_SEQ]:
        if s[CA_STATE] == CWR_STATE:
            if s[SND_UNA] != s[HIGH_SEQ]:
                ops |= OP_EXIT
                s[CA_STATE] = OPEN
        elif s[CA_STATE] == RECOVERY:
            if not sack:
                s[SACKED_OUT] = 0
            more, held = try_undo_recovery(board, s, delayed, sack)
            ops |= more
            if held:
                return ops
            if s[UNDO_MARKER] >= 0:
                ops |= OP_EXIT
    if s[CA_STATE] == RECOVERY:
        if not advanced:
            if not sack:
                add_dupacks(s, dupacks)
        elif s[UNDO_MARKER] >= 0 and delayed:
            if sack:
                note_reordering(s, prior_una, mss)
            if s[RETRANS_OUT] > 0:
                return ops
            if not any_retransmitted(board, s):
                s[RETRANS_STAMP] = 0
            undone(board, s, np.bool_(True))
            ops |= OP_UNDO
            keep_open(board, s)
        if s[UNDO_MARKER] >= 0 and s[UNDO_RETRANS] == 0:
            s[REO_PERSIST] = min(REO_RECOVERIES, s[REO_PERSIST] + 1)
            undone(board, s, np.bool_(False))
            ops |= OP_UNDO
            ops |= try_to_open(board, s, echo)
        find_losses(board, s, now, sack, advanced)
        if s[CA_STATE] != RECOVERY and s[LOST_OUT] > 0:
            ops |= enter_recovery(board, s)
        return ops
    if s[CA_STATE] == LOSS:
        ops |= process_loss(board, s, x, advanced, dupacks, delayed, sack)
        again = find_losses(board, s, now, sack, advanced)
        if s[CA_STATE] != OPEN and not again:
            return ops
    if not sack:
        if advanced:
            s[SACKED_OUT] = 0
        add_dupacks(s, dupacks)
    if s[CA_STATE] <= DISORDER and s[UNDO_MARKER] >= 0 and s[UNDO_RETRANS] == 0:
        s[REO_PERSIST] = min(REO_RECOVERIES, s[REO_PERSIST] + 1)
        undone(board, s, np.bool_(False))
        ops |= OP_UNDO_LATE
    find_losses(board, s, now, sack, advanced)
    if s[LOST_OUT] == 0:
        ops |= try_to_open(board, s, echo)
        return ops
    ops |= enter_recovery(board, s)
    return ops
