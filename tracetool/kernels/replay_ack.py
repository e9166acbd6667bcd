"""An ACK arrives: what it delivers, and what the state machine of loss recovery makes of it.

The order of work is that of `tcp_ack`: SACK tagging, taking acknowledged segments off the queue with their RTT, the
tail-loss probe, then `tcp_fastretrans_alert`. None of it depends on the congestion control; what it means for the
window is noted as operations in the event's row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._jit import kernel
from tracetool.kernels.replay_board import drop_head, find, pipe, unlink
from tracetool.kernels.replay_columns import (
    ACKED,
    ADVANCED,
    APP_LIMITED,
    CA_RTT,
    CA_STATE,
    CWR_STATE,
    DATA_ACKED,
    DELIVERED,
    DELIVERED_TIME,
    DISORDER,
    DSACK_SEEN,
    ECHO,
    END,
    EVER_RETRANS,
    FIRST_TX_TIME,
    FLAGS,
    FRTO,
    HEAD,
    HIGH_SEQ,
    HIGHEST_SACK,
    LAST_TSVAL,
    LAST_TSVAL_TIME,
    LOSS,
    LOST,
    LOST_OUT,
    LOST_TOTAL,
    MAX_WND,
    MAY_RAISE,
    MIN_RTT,
    MIN_RTT_AFTER,
    NEWLY_DELIVERED,
    NEWLY_LOST,
    OP_CWR,
    OP_EXIT,
    OP_RECOVERY,
    OP_TLP_LOSS,
    OP_UNDO,
    OP_UNDO_LATE,
    OPEN,
    OPS,
    PIPE,
    RACK_ADVANCED,
    RECOVERY,
    REO_DELIVERED,
    REO_PERSIST,
    REO_SEEN,
    REO_STEPS,
    REORDERING,
    RETRANS,
    RETRANS_OUT,
    RETRANS_STAMP,
    RS_APP_LIMITED,
    RS_DELIVERED,
    RS_INTERVAL,
    RS_PRIOR_DELIVERED,
    RTO,
    RTO_AFTER,
    SACK_CACHE,
    SACKED,
    SACKED_OUT,
    SENT,
    SEQ,
    SND_NXT,
    SND_UNA,
    SND_WND,
    SRTT,
    SRTT_AFTER,
    STALE,
    STATE_AFTER,
    TAGS,
    TAIL,
    TIMER_START,
    TLP_HIGH_SEQ,
    TLP_RETRANS,
    TX_APP_LIMITED,
    TX_DELIVERED,
    TX_DELIVERED_TIME,
    TX_FIRST_TIME,
    TX_TSVAL,
    UNA,
    UNDO_MARKER,
    UNDO_RETRANS,
)
from tracetool.kernels.replay_loss import (
    mark_head_lost,
    rack_advance,
    rack_detect,
    update_min_rtt,
    update_rtt,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

MAX_REORDERING = 300  # tcp_max_reordering
DUPLICATE_ACKS = 3  # tcp_reordering
REO_RECOVERIES = 16  # TCP_RACK_RECOVERY_THRESH

# --- scratch of one ACK ----------------------------------------------------------------------------------------------
FIRST_SACKED, LAST_SACKED, SACK_DELIVERED, REORD, DATA_SACKED, ORIGINAL, DSACKED, DSACK_TLP = 0, 1, 2, 3, 4, 5, 6, 7
FIRST_ACKED, LAST_ACKED, PACKETS_ACKED, RETRANS_ACKED, PRIOR_TIME, PRIOR_DELIVERED = 8, 9, 10, 11, 12, 13
SAMPLE_INTERVAL, SAMPLE_APP_LIMITED, SAMPLE_END = 14, 15, 16
SCRATCH_WIDTH = 17


@kernel
def highest_sack(s: Ints) -> int:
    """End of the highest SACKed segment; snd_una without any (`tcp_highest_sack_seq`)."""
    return max(s[HIGHEST_SACK], s[SND_UNA]) if s[SACKED_OUT] > 0 else s[SND_UNA]


@kernel
def note_reordering(s: Ints, low: int, mss: int) -> None:
    """A segment came late: widen the tolerated reordering (`tcp_check_sack_reordering`)."""
    top = highest_sack(s)
    if low >= top:
        return
    if top - low > s[REORDERING] * mss:
        s[REORDERING] = min((top - low + mss - 1) // mss, MAX_REORDERING)
    s[REO_SEEN] += 1


@kernel
def rate_delivered(row: Ints, s: Ints, x: Ints) -> None:
    """Take the delivery state of a delivered segment, if it is the last sent (`tcp_rate_skb_delivered`)."""
    if row[TX_DELIVERED_TIME] == 0 or row[TAGS] & STALE:
        return
    later = row[SENT] > s[FIRST_TX_TIME] or (row[SENT] == s[FIRST_TX_TIME] and row[END] > x[SAMPLE_END])
    if x[PRIOR_TIME] == 0 or later:
        x[PRIOR_DELIVERED] = row[TX_DELIVERED]
        x[PRIOR_TIME] = row[TX_DELIVERED_TIME]
        x[SAMPLE_APP_LIMITED] = row[TX_APP_LIMITED]
        x[SAMPLE_END] = row[END]
        x[SAMPLE_INTERVAL] = row[SENT] - row[TX_FIRST_TIME]
        s[FIRST_TX_TIME] = row[SENT]
    row[TX_DELIVERED_TIME] = 0


@kernel
def tag_sacked(board: Ints, s: Ints, x: Ints, n: int, now: int, duplicate: bool) -> None:
    """Tag segment `n` as SACKed (`tcp_sacktag_one`)."""
    row = board[n & (board.shape[0] - 1)]
    tags = row[TAGS]
    if duplicate and tags & (RETRANS | EVER_RETRANS):
        if s[UNDO_MARKER] >= 0 and s[UNDO_RETRANS] > 0 and row[END] > s[UNDO_MARKER]:
            s[UNDO_RETRANS] -= 1
        if tags & SACKED:
            x[REORD] = min(x[REORD], row[SEQ])
    if row[END] <= s[SND_UNA]:
        return
    if not tags & SACKED:
        if not tags & STALE:
            rack_advance(s, tags, row[END], row[SENT], now)
        if tags & RETRANS:
            if tags & LOST:
                tags &= ~(LOST | RETRANS)
                s[LOST_OUT] -= 1
                s[RETRANS_OUT] -= 1
        else:
            if not tags & (EVER_RETRANS | STALE):
                if row[SEQ] < highest_sack(s):
                    x[REORD] = min(x[REORD], row[SEQ])
                if row[END] <= s[HIGH_SEQ]:
                    x[ORIGINAL] = 1
                if x[FIRST_SACKED] == 0:
                    x[FIRST_SACKED] = row[SENT]
                x[LAST_SACKED] = row[SENT]
            if tags & LOST:
                tags &= ~LOST
                s[LOST_OUT] -= 1
        tags |= SACKED
        x[DATA_SACKED] = 1
        s[SACKED_OUT] += 1
        x[SACK_DELIVERED] += 1
        rate_delivered(row, s, x)
        unlink(board, s, n)
        s[HIGHEST_SACK] = max(s[HIGHEST_SACK], row[END])
    if duplicate and tags & RETRANS:
        tags &= ~RETRANS
        s[RETRANS_OUT] -= 1
    row[TAGS] = tags


@kernel
def tag_block(board: Ints, s: Ints, x: Ints, left: int, right: int, now: int, duplicate: bool) -> None:
    """Tag the segments inside one SACK block, skipping what the last ACK's blocks covered."""
    mask = board.shape[0] - 1
    n = find(board, s, left)
    while n < s[TAIL]:
        row = board[n & mask]
        if row[END] > right:
            break
        if row[SEQ] >= left:
            if not duplicate and row[TAGS] & SACKED:
                jump = 0
                for c in range(0, 8, 2):
                    if s[SACK_CACHE + c] <= row[SEQ] and row[END] <= s[SACK_CACHE + c + 1]:
                        jump = min(s[SACK_CACHE + c + 1], right)
                if jump > row[END]:
                    n = find(board, s, jump)
                    continue
            else:
                tag_sacked(board, s, x, n, now, duplicate)
        n += 1


@kernel
def tag_blocks(board: Ints, s: Ints, x: Ints, edges: Ints, ack: int, prior_una: int, now: int, mss: int) -> None:
    """Read the SACK option of an ACK (`tcp_sacktag_write_queue`, `tcp_check_dsack`)."""
    x[REORD] = s[SND_NXT]
    blocks = min(len(edges) // 2, 4)
    duplicate = edges[0] < ack or (blocks > 1 and edges[1] <= edges[3] and edges[0] >= edges[2])
    if duplicate:
        length = edges[1] - edges[0]
        if length <= 0 or length > max(s[MAX_WND], 2 * mss):
            duplicate = False
        else:
            count = max(1, (length + mss - 1) // mss)
            if count == 1 and s[TLP_HIGH_SEQ] > 0 and s[TLP_HIGH_SEQ] == edges[1]:
                x[DSACK_TLP] = 1
            if s[REO_SEEN] > 0 and not x[DSACK_TLP]:
                s[DSACK_SEEN] = 1
            x[DSACKED] = 1
            x[SACK_DELIVERED] += count
            if (
                s[UNDO_MARKER] >= 0
                and s[UNDO_RETRANS] > 0
                and edges[1] <= prior_una
                and edges[1] > s[UNDO_MARKER]
            ):
                s[UNDO_RETRANS] = max(0, s[UNDO_RETRANS] - count)
    # in the order of sequence numbers, as the kernel walks its queue
    done = s[SND_UNA]
    for _ in range(blocks):
        best = -1
        for b in range(blocks):
            left, right = edges[2 * b], edges[2 * b + 1]
            if b == 0 and duplicate and right <= s[SND_UNA]:
                continue
            if left < right <= s[SND_NXT] and right > done and (best < 0 or left < edges[2 * best]):
                best = b
        if best < 0:
            break
        tag_block(board, s, x, edges[2 * best], edges[2 * best + 1], now, duplicate and best == 0)
        done = max(done, edges[2 * best + 1])
    if duplicate and blocks > 1 and edges[1] > s[SND_UNA]:
        # a duplicate inside another block: the loop above may have passed it over
        tag_block(board, s, x, edges[0], edges[1], now, True)
    for c in range(4):
        s[SACK_CACHE + 2 * c] = edges[2 * c] if c < blocks and not (c == 0 and duplicate) else 0
        s[SACK_CACHE + 2 * c + 1] = edges[2 * c + 1] if c < blocks and not (c == 0 and duplicate) else 0
    if s[CA_STATE] != LOSS or s[UNDO_MARKER] >= 0:
        note_reordering(s, x[REORD], mss)


@kernel
def echo_before(echoed: int, tsval: int) -> bool:
    """Whether an ACK echoes a timestamp older than `tsval` (32-bit clock; -1: no timestamps)."""
    return echoed >= 0 and 0 < ((tsval - echoed) & 0xFFFFFFFF) < 0x80000000


@kernel
def clean_queue(board: Ints, s: Ints, x: Ints, now: int, sack: bool, echoed: int) -> int:
    """Take what was acknowledged off the board; returns the lowest late segment (`tcp_clean_rtx_queue`)."""
    mask = board.shape[0] - 1
    late = s[SND_NXT]
    while s[HEAD] < s[TAIL]:
        row = board[s[HEAD] & mask]
        if row[END] > s[SND_UNA]:
            break
        tags = row[TAGS]
        if tags & (RETRANS | EVER_RETRANS):
            x[RETRANS_ACKED] = 1
        elif not tags & (SACKED | STALE):
            x[LAST_ACKED] = row[SENT]
            if x[FIRST_ACKED] == 0:
                x[FIRST_ACKED] = row[SENT]
            late = min(late, row[SEQ])
            if row[END] <= s[HIGH_SEQ]:
                x[ORIGINAL] = 1
        if sack and not tags & SACKED:
            s[DELIVERED] += 1
            if not (tags & STALE or (tags & (RETRANS | EVER_RETRANS) and echo_before(echoed, row[TX_TSVAL]))):
                rack_advance(s, tags, row[END], row[SENT], now)
        rate_delivered(row, s, x)
        x[PACKETS_ACKED] += 1
        drop_head(board, s)
    return late


@kernel
def limit_dupacks(s: Ints) -> bool:
    """Without SACK: no more duplicates than segments outstanding less the hole (`tcp_limit_reno_sacked`)."""
    out = s[TAIL] - s[HEAD]
    holes = min(max(s[LOST_OUT], 1), out)
    if s[SACKED_OUT] + holes > out:
        s[SACKED_OUT] = out - holes
        return True
    return False


@kernel
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


@kernel
def remove_dupacks(s: Ints, acked: int) -> None:
    """Without SACK: an ACK of a hole takes its duplicates with it (`tcp_remove_reno_sacks`)."""
    if acked > 0:
        s[DELIVERED] += max(acked - s[SACKED_OUT], 1)
        s[SACKED_OUT] = max(0, s[SACKED_OUT] - (acked - 1))
    if limit_dupacks(s):
        s[REORDERING] = min(s[TAIL] - s[HEAD] + acked, MAX_REORDERING)
        s[REO_SEEN] += 1


@kernel
def any_retransmitted(board: Ints, s: Ints) -> bool:
    """Whether a retransmission may still be under way (`tcp_any_retrans_done`)."""
    if s[RETRANS_OUT] > 0:
        return True
    return s[HEAD] < s[TAIL] and board[s[HEAD] & (board.shape[0] - 1), TAGS] & EVER_RETRANS != 0


@kernel
def packet_delayed(s: Ints, echoed: int, sack: bool) -> bool:
    """Whether the ACK answers something sent before the first retransmission (`tcp_packet_delayed`)."""
    if s[RETRANS_STAMP] > 0:
        return echo_before(echoed, s[RETRANS_STAMP])
    return sack or s[SND_UNA] < s[HIGH_SEQ]


@kernel
def unmark_lost(board: Ints, s: Ints) -> None:
    """Nothing is lost after all."""
    mask = board.shape[0] - 1
    for n in range(s[HEAD], s[TAIL]):
        board[n & mask, TAGS] &= ~LOST
    s[LOST_OUT] = 0


@kernel
def undone(board: Ints, s: Ints, forget_losses: bool) -> None:
    """Undo the reduction (`tcp_undo_cwnd_reduction`, without the window)."""
    if forget_losses:
        unmark_lost(board, s)
    s[UNDO_MARKER] = -1
    s[RACK_ADVANCED] = 1


@kernel
def start_undo(s: Ints) -> None:
    """Remember from where on retransmissions count (`tcp_init_undo`)."""
    s[UNDO_MARKER] = s[SND_UNA]
    s[UNDO_RETRANS] = s[RETRANS_OUT]
    if s[TLP_HIGH_SEQ] > 0 and s[TLP_RETRANS]:
        s[UNDO_RETRANS] += 1
    if s[UNDO_RETRANS] == 0:
        s[UNDO_RETRANS] = -1


@kernel
def keep_open(board: Ints, s: Ints) -> None:
    """Open, or Disorder while something is out of order (`tcp_try_keep_open`)."""
    state = DISORDER if s[SACKED_OUT] + s[LOST_OUT] > 0 or any_retransmitted(board, s) else OPEN
    if s[CA_STATE] != state:
        s[CA_STATE] = state
        s[HIGH_SEQ] = s[SND_NXT]


@kernel
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


@kernel
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


@kernel
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


@kernel
def try_undo_recovery(board: Ints, s: Ints, delayed: bool, sack: bool) -> tuple[int, bool]:
    """At the end of recovery: undo it if nothing was lost; returns operations, and whether the state is held."""
    ops = 0
    if s[UNDO_MARKER] >= 0 and (s[UNDO_RETRANS] == 0 or delayed):
        undone(board, s, False)
        ops = OP_UNDO
    elif s[REO_PERSIST] > 0:
        s[REO_PERSIST] -= 1
    if not sack and s[SND_UNA] == s[HIGH_SEQ]:  # without SACK the state is held until something above is ACKed
        if not any_retransmitted(board, s):
            s[RETRANS_STAMP] = 0
        return ops, True
    s[CA_STATE] = OPEN
    return ops, False


@kernel
def process_loss(board: Ints, s: Ints, x: Ints, advanced: bool, dupacks: int, delayed: bool, sack: bool) -> int:
    """An ACK in the Loss state (`tcp_process_loss`); returns operations on the window."""
    recovered = s[SND_UNA] >= s[HIGH_SEQ]
    may_undo = s[UNDO_MARKER] >= 0 and (s[UNDO_RETRANS] == 0 or delayed)
    frto = s[FRTO] and x[ORIGINAL]
    if (advanced and may_undo) or frto:
        undone(board, s, True)
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


@kernel
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
            undone(board, s, True)
            ops |= OP_UNDO
            keep_open(board, s)
        if s[UNDO_MARKER] >= 0 and s[UNDO_RETRANS] == 0:
            s[REO_PERSIST] = min(REO_RECOVERIES, s[REO_PERSIST] + 1)
            undone(board, s, False)
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
        undone(board, s, False)
        ops |= OP_UNDO_LATE
    find_losses(board, s, now, sack, advanced)
    if s[LOST_OUT] == 0:
        ops |= try_to_open(board, s, echo)
        return ops
    ops |= enter_recovery(board, s)
    return ops


@kernel
def process_ack(
    board: Ints,
    s: Ints,
    x: Ints,
    e: Ints,
    now: int,
    ack: int,
    window: int,
    edges: Ints,
    echo: bool,
    has_data: bool,
    echoed: int,
    tick: int,
    sack: bool,
    mss: int,
) -> None:
    """Process one ACK (`tcp_ack`) and note in the event's row `e` what it did.

    `echoed` is the ACK's TSecr (-1 without), `tick` the sender's timestamp clock in ns.
    """
    for i in range(SCRATCH_WIDTH):
        x[i] = 0
    prior_una, prior_delivered, prior_lost = s[SND_UNA], s[DELIVERED], s[LOST_TOTAL]
    prior_top = highest_sack(s) if sack else s[SND_UNA]
    had_packets = s[TAIL] > s[HEAD]
    advanced = ack > prior_una
    flags = 0
    if advanced:
        flags |= ADVANCED
        s[SND_UNA] = ack
    updated = advanced or window > s[SND_WND] or has_data
    if window >= 0 and (advanced or window > s[SND_WND]):
        s[SND_WND] = window
        s[MAX_WND] = max(s[MAX_WND], window)
    if sack and len(edges) >= 2:
        tag_blocks(board, s, x, edges, ack, prior_una, now, mss)
    else:
        for c in range(8):
            s[SACK_CACHE + c] = 0
    s[DELIVERED] += x[SACK_DELIVERED]
    ops = 0
    rtt = -1
    ca_rtt = -1
    if had_packets:
        prior_sacked = s[SACKED_OUT]
        late = clean_queue(board, s, x, now, sack, echoed)
        if x[FIRST_ACKED] > 0 and not x[RETRANS_ACKED]:
            rtt = now - x[FIRST_ACKED]
            ca_rtt = now - x[LAST_ACKED]
        if x[FIRST_SACKED] > 0:
            ca_rtt = now - x[LAST_SACKED]
            if rtt < 0:
                rtt = now - x[FIRST_SACKED]
        if rtt < 0 and x[PACKETS_ACKED] > 0 and echoed >= 0:
            clock = s[LAST_TSVAL] + (now - s[LAST_TSVAL_TIME]) // tick
            ticks = (clock - echoed) & 0xFFFFFFFF
            if ticks < 0x80000000:
                rtt = max(ticks, 1) * tick
                ca_rtt = rtt
        if rtt >= 0:
            runt = x[PACKETS_ACKED] == 1 and prior_sacked == 0 and ack - prior_una < mss
            if not (runt and ca_rtt > s[MIN_RTT] > 0):
                update_min_rtt(s, ca_rtt, now)
            update_rtt(s, rtt)
        if x[PACKETS_ACKED] > 0:
            flags |= DATA_ACKED
            s[TIMER_START] = now
            if not sack:
                remove_dupacks(s, x[PACKETS_ACKED])
                if x[RETRANS_ACKED]:
                    x[ORIGINAL] = 0
            elif late < prior_top:
                note_reordering(s, late, mss)
        elif rtt >= 0 and x[FIRST_SACKED] > 0 and s[HEAD] < s[TAIL]:
            if x[FIRST_SACKED] < board[s[HEAD] & (board.shape[0] - 1), SENT]:
                s[TIMER_START] = now
        # the reordering window grows with DSACKs, once a round trip (tcp_rack_update_reo_wnd)
        if x[PRIOR_DELIVERED] > 0:
            if x[PRIOR_DELIVERED] < s[REO_DELIVERED]:
                s[DSACK_SEEN] = 0
            if s[DSACK_SEEN]:
                s[REO_STEPS] = min(255, s[REO_STEPS] + 1)
                s[DSACK_SEEN] = 0
                s[REO_DELIVERED] = s[DELIVERED]
                s[REO_PERSIST] = REO_RECOVERIES
            elif s[REO_PERSIST] == 0:
                s[REO_STEPS] = 1
        duplicate = not advanced and not updated and x[PACKETS_ACKED] == 0
        if s[TLP_HIGH_SEQ] > 0 and ack >= s[TLP_HIGH_SEQ]:
            if not s[TLP_RETRANS] or x[DSACK_TLP]:
                s[TLP_HIGH_SEQ] = 0
            elif ack > s[TLP_HIGH_SEQ]:
                s[HIGH_SEQ] = s[SND_NXT]
                s[TLP_HIGH_SEQ] = 0
                s[CA_STATE] = CWR_STATE
                keep_open(board, s)
                ops |= OP_TLP_LOSS
            elif duplicate and not x[DATA_SACKED]:
                s[TLP_HIGH_SEQ] = 0
        dubious = duplicate or x[DATA_SACKED] or x[DSACKED] or echo or s[CA_STATE] != OPEN
        if dubious:
            dupacks = 1 if duplicate and not x[DSACKED] else 0
            ops |= alert(board, s, x, now, mss, prior_una, dupacks, echo, sack, echoed)
    elif x[DSACKED]:
        ops |= alert(board, s, x, now, mss, prior_una, 0, echo, sack, echoed)
    delivered = s[DELIVERED] - prior_delivered
    if delivered > 0:
        s[DELIVERED_TIME] = now
    if s[APP_LIMITED] and s[DELIVERED] > s[APP_LIMITED]:
        s[APP_LIMITED] = 0
    if s[HEAD] == s[TAIL]:  # all is delivered: what comes next had to be written first (tcp_rate_check_app_limited)
        s[APP_LIMITED] = max(s[DELIVERED], 1)
    forward = x[PACKETS_ACKED] > 0 or x[DATA_SACKED]
    if x[PACKETS_ACKED] > 0 or (s[REORDERING] > DUPLICATE_ACKS and forward):
        flags |= MAY_RAISE
    if echo:
        flags |= ECHO
    e[ACKED] = x[PACKETS_ACKED]
    e[NEWLY_DELIVERED] = delivered
    e[NEWLY_LOST] = s[LOST_TOTAL] - prior_lost
    e[FLAGS] = flags
    e[OPS] = ops
    e[CA_RTT] = ca_rtt
    e[PIPE] = pipe(s)
    e[STATE_AFTER] = s[CA_STATE]
    e[UNA] = s[SND_UNA]
    e[RTO_AFTER] = s[RTO]
    e[SRTT_AFTER] = s[SRTT] >> 3
    e[MIN_RTT_AFTER] = s[MIN_RTT]
    e[RS_DELIVERED] = s[DELIVERED] - x[PRIOR_DELIVERED] if x[PRIOR_TIME] > 0 else -1
    interval = max(x[SAMPLE_INTERVAL], now - x[PRIOR_TIME])
    e[RS_INTERVAL] = interval if x[PRIOR_TIME] > 0 and interval >= s[MIN_RTT] else -1
    e[RS_PRIOR_DELIVERED] = x[PRIOR_DELIVERED]
    e[RS_APP_LIMITED] = x[SAMPLE_APP_LIMITED]
