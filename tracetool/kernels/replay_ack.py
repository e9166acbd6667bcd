"""An ACK arrives: what it delivers, and what the state machine of loss recovery makes of it.

The order of work is that of `tcp_ack`: SACK tagging, taking acknowledged segments off the queue with their RTT, the
tail-loss probe, then `tcp_fastretrans_alert`. None of it depends on the congestion control; what it means for the
window is noted as operations in the event's row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.replay_alert import alert, keep_open, remove_dupacks
from tracetool.kernels.replay_board import pipe
from tracetool.kernels.replay_columns import (
    ACKED,
    ADVANCED,
    APP_LIMITED,
    CA_RTT,
    CA_STATE,
    CWR_STATE,
    DATA_ACKED,
    DATA_SACKED,
    DELIVERED,
    DELIVERED_TIME,
    DSACK_SEEN,
    DSACK_TLP,
    DSACKED,
    DUPLICATE_ACKS,
    ECHO,
    FIRST_ACKED,
    FIRST_SACKED,
    FLAGS,
    HEAD,
    HIGH_SEQ,
    LAST_ACKED,
    LAST_SACKED,
    LAST_TSVAL,
    LAST_TSVAL_TIME,
    LOST_TOTAL,
    MAX_WND,
    MAY_RAISE,
    MIN_RTT,
    MIN_RTT_AFTER,
    NEWLY_DELIVERED,
    NEWLY_LOST,
    OP_TLP_LOSS,
    OPEN,
    OPS,
    ORIGINAL,
    PACKETS_ACKED,
    PIPE,
    PRIOR_DELIVERED,
    PRIOR_TIME,
    REO_DELIVERED,
    REO_PERSIST,
    REO_RECOVERIES,
    REO_STEPS,
    REORDERING,
    RETRANS_ACKED,
    RS_APP_LIMITED,
    RS_DELIVERED,
    RS_INTERVAL,
    RS_PRIOR_DELIVERED,
    RTO,
    RTO_AFTER,
    SACK_CACHE,
    SACK_DELIVERED,
    SACKED_OUT,
    SAMPLE_APP_LIMITED,
    SAMPLE_INTERVAL,
    SCRATCH_WIDTH,
    SENT,
    SND_NXT,
    SND_UNA,
    SND_WND,
    SRTT,
    SRTT_AFTER,
    STATE_AFTER,
    TAIL,
    TIMER_START,
    TLP_HIGH_SEQ,
    TLP_RETRANS,
    UNA,
    UNSEEN_ACKED,
)
from tracetool.kernels.replay_loss import (
    update_min_rtt,
    update_rtt,
)
from tracetool.kernels.replay_sack import clean_queue, highest_sack, note_reordering, tag_blocks

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


@bare_kernel
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
    guessed: bool,
    echoed: int,
    tick: int,
    sack: bool,
    mss: int,
) -> None:
    """Process one ACK (`tcp_ack`) and note in the event's row `e` what it did.

    Of one that acknowledges less than one before it only the SACK blocks count (`old_ack` there), for the scoreboard
    and for what is lost, but not for the RTT, the rate and the window. `guessed` is whether the capture lacks it;
    `echoed` is its TSecr (-1 without), `tick` the sender's timestamp clock in ns.
    """
    for i in range(SCRATCH_WIDTH):
        x[i] = 0
    prior_una, prior_delivered, prior_lost = s[SND_UNA], s[DELIVERED], s[LOST_TOTAL]
    prior_top = highest_sack(s) if sack else s[SND_UNA]
    had_packets = s[TAIL] > s[HEAD]
    advanced, old = ack > prior_una, ack < prior_una
    flags = 0
    if advanced:
        flags |= ADVANCED
        s[SND_UNA] = ack
    updated = advanced or window > s[SND_WND] or has_data
    if window >= 0 and not old and (advanced or window > s[SND_WND]):
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
        clocked = echoed >= 0 and s[LAST_TSVAL_TIME] > 0  # before its first packet the sender's clock is not known
        if rtt < 0 and x[PACKETS_ACKED] > 0 and clocked and not x[UNSEEN_ACKED]:
            clock = s[LAST_TSVAL] + (now - s[LAST_TSVAL_TIME]) // tick
            ticks = (clock - echoed) & 0xFFFFFFFF
            if ticks < 0x80000000:
                rtt = max(ticks, 1) * tick
                ca_rtt = rtt
        if guessed and rtt >= 0:  # a time that is a guess says nothing of the smallest one
            rtt = max(rtt, s[MIN_RTT])
            ca_rtt = max(ca_rtt, s[MIN_RTT])
        if old:
            rtt = -1
            ca_rtt = -1
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
        if s[TLP_HIGH_SEQ] > 0 and ack >= max(s[TLP_HIGH_SEQ], prior_una):
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
        ops |= alert(board, s, x, now, mss, prior_una, np.int64(0), echo, sack, echoed)
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
    if old:
        e[NEWLY_DELIVERED] = 0
        e[FLAGS] = flags & ~MAY_RAISE
        e[RS_DELIVERED] = -1
        e[RS_INTERVAL] = -1
