"""What an event does to the window, before anything is sent: growth, reductions and what takes them back.

Linux's `tcp_cong_control` and what it calls, for Reno and CUBIC here; BBR's own is in `bbr`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.bbr import bbr_react, bbr_timeout, bbr_undo
from tracetool.kernels.cubic import cubic_reset, cubic_ssthresh, cubic_update
from tracetool.kernels.hystart import hystart_plus_growth, hystart_plus_update, hystart_reset, hystart_update
from tracetool.kernels.replay_columns import (
    ADVANCED,
    CA_RTT,
    CWR_STATE,
    ECHO,
    FLAGS,
    KIND,
    MAY_RAISE,
    NEWLY_DELIVERED,
    NEWLY_LOST,
    NXT_BEFORE,
    ON_ACK,
    ON_MISSED_ACK,
    ON_REORDER_TIMER,
    ON_RTO,
    OP_CWR,
    OP_EXIT,
    OP_RECOVERY,
    OP_RTO_REDUCE,
    OP_TLP_LOSS,
    OP_UNDO,
    OP_UNDO_LATE,
    OPEN,
    OPS,
    OUT_BEFORE,
    PIPE,
    RECOVERY,
    SRTT_AFTER,
    STATE_AFTER,
    STATE_BEFORE,
    TIME,
    UNA,
)
from tracetool.kernels.window_columns import (
    AT_LEAST,
    BBR,
    CC,
    CNT,
    COUNT,
    CUBIC,
    CWND,
    CWND_STAMP,
    CWND_USED,
    DELAY_MIN,
    EPOCH,
    FOUND,
    GUESSED,
    HYSTART,
    INFINITE,
    INITIAL_WINDOW,
    IS_LIMITED,
    LT_LOST_TOTAL,
    MAX_PACKETS_OUT,
    PACED,
    PLUS_PLUS,
    PRIOR_CWND,
    PRIOR_GUESSED,
    PRIOR_SSTHRESH,
    PRR_DELIVERED,
    PRR_OUT,
    SSTHRESH,
    SSTHRESH_GUESSED,
    UNKNOWN_START,
    USAGE_SEQ,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

SAMPLE_PAUSE_NS = 1_000_000_000  # CUBIC discards RTTs for a second after an epoch began


@bare_kernel
def current_ssthresh(w: Ints, state: int) -> int:
    """Threshold, at least 3/4 of the window outside a reduction (`tcp_current_ssthresh`)."""
    if state == CWR_STATE or state == RECOVERY:
        return w[SSTHRESH]
    return max(w[SSTHRESH], (w[CWND] >> 1) + (w[CWND] >> 2))


@bare_kernel
def lowered_ssthresh(w: Ints, h: Ints) -> int:
    """Ask the congestion control for the threshold after a loss."""
    if h[CC] == CUBIC:
        return cubic_ssthresh(w)
    return max(w[CWND] >> 1, 2)


@bare_kernel
def begin_reduction(w: Ints, h: Ints) -> None:
    """Start a proportional rate reduction (`tcp_init_cwnd_reduction`)."""
    w[SSTHRESH_GUESSED] = 0
    w[COUNT] = 0
    w[PRIOR_CWND] = w[CWND]
    w[PRR_DELIVERED] = 0
    w[PRR_OUT] = 0
    w[SSTHRESH] = lowered_ssthresh(w, h)


@bare_kernel
def keep_ssthresh(w: Ints, state: int) -> None:
    """Keep the threshold for an undo; of one that is only guessed, what is certain of it: 3/4 of the window."""
    w[PRIOR_GUESSED] = w[SSTHRESH_GUESSED]
    if w[SSTHRESH_GUESSED] == GUESSED:
        w[PRIOR_SSTHRESH] = (w[CWND] >> 1) + (w[CWND] >> 2)
    else:
        w[PRIOR_SSTHRESH] = current_ssthresh(w, state)


@bare_kernel
def undo(w: Ints) -> None:
    """Take a reduction back (`tcp_undo_cwnd_reduction`)."""
    if w[PRIOR_SSTHRESH]:
        w[CWND] = max(w[CWND], w[PRIOR_CWND])
        w[SSTHRESH] = max(w[SSTHRESH], w[PRIOR_SSTHRESH])
        if w[PRIOR_GUESSED]:
            w[SSTHRESH_GUESSED] = AT_LEAST


@bare_kernel
def prr(w: Ints, delivered: int, lost: int, advanced: bool, pipe: int) -> None:
    """One step of the proportional rate reduction (`tcp_cwnd_reduction`; RFC 6937)."""
    if delivered <= 0 or w[PRIOR_CWND] == 0:
        return
    w[PRR_DELIVERED] += delivered
    delta = w[SSTHRESH] - pipe
    if delta < 0:
        send = (w[SSTHRESH] * w[PRR_DELIVERED] + w[PRIOR_CWND] - 1) // w[PRIOR_CWND] - w[PRR_OUT]
    else:
        send = max(w[PRR_DELIVERED] - w[PRR_OUT], delivered)
        if advanced and lost == 0:
            send += 1
        send = min(delta, send)
    w[CWND] = pipe + max(send, 0 if w[PRR_OUT] else 1)


@bare_kernel
def grow(w: Ints, h: Ints, acked: int, now: int) -> None:
    """Slow start up to the threshold, then what the congestion control does (`cong_avoid`)."""
    if w[CWND] < w[SSTHRESH]:
        if h[HYSTART] & PLUS_PLUS and not w[FOUND]:
            w[CWND] = min(w[CWND] + hystart_plus_growth(w, acked, h[PACED] != 0), w[SSTHRESH])
            return
        larger = min(w[CWND] + acked, w[SSTHRESH])
        acked -= larger - w[CWND]
        w[CWND] = larger
        if acked == 0:
            return
    if h[CC] == CUBIC:
        cubic_update(w, acked, now)
        need = w[CNT]
    else:
        need = w[CWND]
    # tcp_cong_avoid_ai
    if w[COUNT] >= need:
        w[COUNT] = 0
        w[CWND] += 1
    w[COUNT] += acked
    if w[COUNT] >= need:
        more = w[COUNT] // need
        w[COUNT] -= more * need
        w[CWND] += more


@bare_kernel
def is_limited(w: Ints) -> bool:
    """Whether the window is what limits the sender (`tcp_is_cwnd_limited`)."""
    if w[IS_LIMITED]:
        return True
    return w[CWND] < w[SSTHRESH] and w[CWND] < 2 * w[MAX_PACKETS_OUT]


@bare_kernel
def validate(
    w: Ints, h: Ints, limited: bool, out: int, una: int, nxt: int, now: int, rto: int, state: int, blocked: bool
) -> None:
    """Note how much of the window is used; shrink one that is not (`tcp_cwnd_validate`; RFC 7661)."""
    if una >= w[USAGE_SEQ] or limited or (not w[IS_LIMITED] and out > w[MAX_PACKETS_OUT]):
        w[IS_LIMITED] = 1 if limited else 0
        w[MAX_PACKETS_OUT] = out
        w[USAGE_SEQ] = nxt
    if is_limited(w):
        w[CWND_USED] = 0
        w[CWND_STAMP] = now
        return
    w[CWND_USED] = max(w[CWND_USED], out)
    if now - w[CWND_STAMP] >= rto:
        if state == OPEN and not blocked:  # tcp_cwnd_application_limited
            used = max(w[CWND_USED], h[INITIAL_WINDOW])
            if used < w[CWND]:
                w[SSTHRESH] = current_ssthresh(w, state)
                w[CWND] = (w[CWND] + used) >> 1
            w[CWND_USED] = 0
        w[CWND_STAMP] = now


@bare_kernel
def restart_idle(w: Ints, h: Ints, idle: int, rto: int, now: int, state: int) -> None:
    """After a pause longer than the timeout the window decays (`tcp_cwnd_restart`)."""
    w[SSTHRESH] = current_ssthresh(w, state)
    floor = min(h[INITIAL_WINDOW], w[CWND])
    idle -= rto
    while idle > 0 and w[CWND] > floor:
        w[CWND] >>= 1
        idle -= rto
    w[CWND] = max(w[CWND], floor)
    w[CWND_STAMP] = now
    w[CWND_USED] = 0


@bare_kernel
def react(w: Ints, h: Ints, e: Ints) -> None:
    """Do to the window what an event does to it, up to where new data would be sent."""
    now = e[TIME]
    ops = e[OPS]
    if h[CC] == BBR:
        w[LT_LOST_TOTAL] += e[NEWLY_LOST]
        if ops & (OP_UNDO | OP_UNDO_LATE):
            bbr_undo(w, e)
        if e[KIND] == ON_RTO:
            bbr_timeout(w, h, e)
        elif e[KIND] == ON_ACK or e[KIND] == ON_MISSED_ACK:
            bbr_react(w, h, e)
        return
    if e[KIND] == ON_RTO:
        if ops & OP_RTO_REDUCE:
            keep_ssthresh(w, e[STATE_BEFORE])
            w[SSTHRESH_GUESSED] = 0
            w[PRIOR_CWND] = w[CWND]
            w[SSTHRESH] = lowered_ssthresh(w, h)
        w[CWND] = e[PIPE] + 1
        w[COUNT] = 0
        w[CWND_STAMP] = now
        if h[CC] == CUBIC:
            cubic_reset(w)
            hystart_reset(w, now, e[NXT_BEFORE])
        return
    rtt = 0  # for HyStart++, which looks at it once the window has grown (RFC 9406, section 4.2)
    if (h[CC] == CUBIC or h[HYSTART]) and e[KIND] != ON_REORDER_TIMER and e[CA_RTT] >= 0:
        delay = max(e[CA_RTT], 1)
        if not (w[EPOCH] and now - w[EPOCH] < SAMPLE_PAUSE_NS):
            if w[DELAY_MIN] == 0 or delay < w[DELAY_MIN]:
                w[DELAY_MIN] = delay
            if h[HYSTART] and not w[FOUND] and w[CWND] < w[SSTHRESH]:
                if h[HYSTART] & PLUS_PLUS:
                    rtt = delay
                else:
                    hystart_update(w, h, now, delay, e[UNA], e[NXT_BEFORE], e[SRTT_AFTER], e[OUT_BEFORE])
    if e[FLAGS] & ECHO:
        w[PRIOR_SSTHRESH] = 0
    if ops:
        if ops & OP_TLP_LOSS:
            begin_reduction(w, h)
            w[CWND] = w[SSTHRESH]
        if ops & OP_UNDO:
            undo(w)
        if ops & OP_EXIT and w[SSTHRESH] < INFINITE:
            w[CWND] = w[SSTHRESH]
            w[CWND_STAMP] = now
        if ops & OP_UNDO_LATE:
            undo(w)
        if ops & OP_CWR:
            w[PRIOR_SSTHRESH] = 0
            begin_reduction(w, h)
        if ops & OP_RECOVERY:
            keep_ssthresh(w, OPEN)
            if e[FLAGS] & ECHO:
                w[PRIOR_SSTHRESH] = 0
            begin_reduction(w, h)
    if e[STATE_AFTER] == CWR_STATE or e[STATE_AFTER] == RECOVERY:
        prr(w, e[NEWLY_DELIVERED], e[NEWLY_LOST], e[FLAGS] & ADVANCED != 0, e[PIPE])
    elif e[FLAGS] & MAY_RAISE:
        if is_limited(w) and not w[UNKNOWN_START]:  # what is not known is taken from the flight alone
            grow(w, h, e[NEWLY_DELIVERED], now)
        w[CWND_STAMP] = now
    if rtt:
        hystart_plus_update(w, now, rtt, e[UNA], e[NXT_BEFORE])
