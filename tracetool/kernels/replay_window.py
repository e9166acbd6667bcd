"""Replay of the congestion window under one hypothesis, from the events of `replay`.

The hypothesis predicts the window; the sends correct it. A sender never has more in flight than its window, and one
that is limited by it has exactly so much (`tcp_cwnd_test`): where prediction and sends differ, the window is moved to
what was seen, and the difference counts against the hypothesis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.bbr import (
    bbr_react,
    bbr_start,
    bbr_timeout,
    bbr_undo,
    start_probe_bw,
)
from tracetool.kernels.cubic import (
    cubic_idle,
    cubic_reset,
    cubic_resume,
    cubic_ssthresh,
    cubic_update,
)
from tracetool.kernels.hystart import FOREVER, hystart_plus_growth, hystart_plus_update, hystart_reset, hystart_update
from tracetool.kernels.replay_columns import (
    ADVANCED,
    CA_RTT,
    CWR_STATE,
    DELIVERED_BEFORE,
    ECHO,
    FLAGS,
    IDLE,
    KIND,
    LAST_SEND,
    MAY_RAISE,
    MIN_RTT_BEFORE,
    NEWLY_DELIVERED,
    NEWLY_LOST,
    NXT,
    NXT_BEFORE,
    ON_ACK,
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
    OUT_SENT,
    PIPE,
    PIPE_BEFORE,
    PIPE_SENT,
    RECOVERY,
    ROOM,
    RTO_AFTER,
    SENT_AGAIN,
    SENT_NEW,
    SRTT_AFTER,
    STATE_AFTER,
    STATE_BEFORE,
    TIME,
    UNA,
)
from tracetool.kernels.window_columns import (
    ACK_COUNT,
    AT_BEGINNING,
    BBR,
    BBR_CYCLE,
    BBR_FULL_REACHED,
    BBR_MIN_RTT,
    BBR_MODE,
    BBR_RATE,
    CC,
    CNT,
    COUNT,
    CUBIC,
    CWND,
    CWND_STAMP,
    CWND_USED,
    DELAY_MIN,
    EPOCH,
    FIT_DEFICIT,
    FIT_RAISED,
    FIT_SURPLUS,
    FOUND,
    FOUND_BY,
    HYSTART,
    INFINITE,
    INITIAL_WINDOW,
    IS_LIMITED,
    MAX_PACKETS_OUT,
    MSS,
    PACED,
    PAST_SLOW_START,
    PLUS_PLUS,
    PRIOR_CWND,
    PRIOR_SSTHRESH,
    PROBE_BW,
    PRR_DELIVERED,
    PRR_OUT,
    ROUND_RTT,
    ROUND_START,
    SSTHRESH,
    SSTHRESH_GUESSED,
    START,
    TCP_CWND,
    TOLERANCE,
    UNKNOWN_START,
    USAGE_SEQ,
    WINDOW_SHOWN,
)
from tracetool.kernels.window_judge import MOST_PER_MISS, judge

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: Columns of the result: state as the event arrives, and how much the sends corrected the prediction afterwards.
OUT_CWND, OUT_SSTHRESH, OUT_CORRECTION, OUT_FOUND, OUT_CWND_AFTER, OUT_SSTHRESH_AFTER, OUT_MODE = 0, 1, 2, 3, 4, 5, 6
(
    OUT_LIMITED,
    OUT_RATE,
    OUT_ROUND_TIME,
    OUT_ROUND_RTT,
    OUT_DELAY_MIN,
    OUT_REDUCED,
    OUT_GUESSED,
    OUT_PRIOR,
    OUT_UNKNOWN,
) = (
    7,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
)
OUT_WIDTH = 16
#: What a threshold rests on, in OUT_GUESSED: what set it was replayed; or it is from before the capture.
REPLAYED, ASSUMED, FITTED = 0, 1, 2
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
    w[COUNT] = 0
    w[PRIOR_CWND] = w[CWND]
    w[PRR_DELIVERED] = 0
    w[PRR_OUT] = 0
    w[SSTHRESH] = lowered_ssthresh(w, h)


@bare_kernel
def undo(w: Ints) -> None:
    """Take a reduction back (`tcp_undo_cwnd_reduction`)."""
    if w[PRIOR_SSTHRESH]:
        w[CWND] = max(w[CWND], w[PRIOR_CWND])
        w[SSTHRESH] = max(w[SSTHRESH], w[PRIOR_SSTHRESH])


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
        if ops & (OP_UNDO | OP_UNDO_LATE):
            bbr_undo(w)
        if e[KIND] == ON_RTO:
            bbr_timeout(w, e[PIPE])
        elif e[KIND] == ON_ACK:
            bbr_react(w, h, e)
        return
    if e[KIND] == ON_RTO:
        if ops & OP_RTO_REDUCE:
            w[PRIOR_SSTHRESH] = current_ssthresh(w, e[STATE_BEFORE])
            w[PRIOR_CWND] = w[CWND]
            w[SSTHRESH] = lowered_ssthresh(w, h)
        w[CWND] = e[PIPE] + 1
        w[COUNT] = 0
        w[CWND_STAMP] = now
        if h[CC] == CUBIC:
            cubic_reset(w)
            hystart_reset(w, now, e[NXT_BEFORE])
        return
    if (h[CC] == CUBIC or h[HYSTART]) and e[KIND] == ON_ACK and e[CA_RTT] >= 0:
        delay = max(e[CA_RTT], 1)
        if not (w[EPOCH] and now - w[EPOCH] < SAMPLE_PAUSE_NS):
            if w[DELAY_MIN] == 0 or delay < w[DELAY_MIN]:
                w[DELAY_MIN] = delay
            if h[HYSTART] and not w[FOUND] and w[CWND] < w[SSTHRESH]:
                if h[HYSTART] & PLUS_PLUS:
                    hystart_plus_update(w, now, delay, e[UNA], e[NXT_BEFORE])
                else:
                    hystart_update(w, h, now, delay, e[UNA], e[NXT_BEFORE], e[SRTT_AFTER], e[OUT_BEFORE])
    if e[FLAGS] & ECHO:
        w[PRIOR_SSTHRESH] = 0
    if ops & (OP_TLP_LOSS | OP_CWR | OP_RECOVERY) and w[SSTHRESH_GUESSED]:
        w[SSTHRESH_GUESSED] = 0
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
            w[PRIOR_SSTHRESH] = 0 if e[FLAGS] & ECHO else current_ssthresh(w, OPEN)
            begin_reduction(w, h)
    if e[STATE_AFTER] == CWR_STATE or e[STATE_AFTER] == RECOVERY:
        prr(w, e[NEWLY_DELIVERED], e[NEWLY_LOST], e[FLAGS] & ADVANCED != 0, e[PIPE])
    elif e[FLAGS] & MAY_RAISE:
        if is_limited(w) and not w[UNKNOWN_START]:  # what is not known is taken from the flight alone
            grow(w, h, e[NEWLY_DELIVERED], now)
        w[CWND_STAMP] = now


@bare_kernel
def observe(w: Ints, h: Ints, e: Ints) -> int:
    """Take in what was sent after an event; returns by how much it corrected the window."""
    sent = e[SENT_NEW] + e[SENT_AGAIN]
    state = e[STATE_AFTER]
    correction = 0
    if sent > 0:
        if e[IDLE] > 0:
            if h[CC] != BBR and e[IDLE] > e[RTO_AFTER]:
                restart_idle(w, h, e[IDLE], e[RTO_AFTER], e[LAST_SEND], state)
            if h[CC] == CUBIC:
                cubic_idle(w, e[IDLE], e[LAST_SEND])
    judge(w, h, e, sent)
    if sent > 0:
        if e[PIPE_SENT] - h[TOLERANCE] > w[CWND]:
            correction = e[PIPE_SENT] - h[TOLERANCE] - w[CWND]
            if not w[UNKNOWN_START]:
                w[FIT_RAISED] += 1
                w[FIT_SURPLUS] += min(correction, MOST_PER_MISS)
            w[CWND] += correction
            if h[START] == PAST_SLOW_START and correction == 1:
                # which ACKs counted towards this segment before the capture nobody saw
                w[COUNT] = 0
                if w[TCP_CWND] + 1 == w[CWND]:
                    w[TCP_CWND] = w[CWND]
                    w[ACK_COUNT] = 0
            if h[CC] == BBR and w[BBR_MODE] == PROBE_BW and correction <= 2 and w[BBR_CYCLE] != 0:
                start_probe_bw(w, e[LAST_SEND], 0)  # only the probing phase has two segments more
        if state == CWR_STATE or state == RECOVERY:
            w[PRR_OUT] += sent
    limited = e[PIPE_SENT] >= w[CWND]
    if h[CC] != BBR and (sent > 0 or limited):
        blocked = e[ROOM] >= 0 and e[ROOM] < h[MSS]
        validate(w, h, limited, e[OUT_SENT], e[UNA], e[NXT], max(e[LAST_SEND], e[TIME]), e[RTO_AFTER], state, blocked)
    return correction


@bare_kernel
def note_before(w: Ints, o: Ints) -> None:
    """Write down the window as an event finds it."""
    o[OUT_CWND] = w[CWND]
    o[OUT_SSTHRESH] = w[SSTHRESH]
    o[OUT_MODE] = w[BBR_MODE]
    o[OUT_GUESSED] = w[SSTHRESH_GUESSED]
    o[OUT_UNKNOWN] = w[UNKNOWN_START]


@bare_kernel
def note_reaction(w: Ints, e: Ints, o: Ints, fired: bool) -> None:
    """Write down what an event made of the window, and why HyStart fired if it did."""
    o[OUT_CWND_AFTER] = w[CWND]
    o[OUT_SSTHRESH_AFTER] = w[SSTHRESH]
    o[OUT_PRIOR] = w[PRIOR_CWND]
    if fired:
        o[OUT_FOUND] = w[FOUND_BY]
        o[OUT_ROUND_TIME] = e[TIME] - w[ROUND_START]
        o[OUT_ROUND_RTT] = w[ROUND_RTT] if w[ROUND_RTT] < FOREVER else 0
        o[OUT_DELAY_MIN] = w[DELAY_MIN]


@bare_kernel
def note_after(w: Ints, o: Ints, correction: int) -> None:
    """Write down what the sends after an event made of the window."""
    o[OUT_CORRECTION] = correction
    o[OUT_REDUCED] = 1 if w[SSTHRESH] < INFINITE and w[SSTHRESH] != o[OUT_SSTHRESH_AFTER] else 0
    o[OUT_LIMITED] = 1 if is_limited(w) else 0
    o[OUT_RATE] = w[BBR_RATE]


@bare_kernel
def replay_window(events: Ints, h: Ints, w: Ints, out: Ints, limit: int) -> None:
    """Replay the window over all events.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Rows from `replay`.
    h : int64, shape (HYPOTHESIS_WIDTH,)
        The hypothesis.
    w : int64, shape (WINDOW_WIDTH,)
        Scratch, zero at the start; its FIT_* fields tell how well the hypothesis fits.
    out : int64, shape (n, OUT_WIDTH), or without rows
        Filled, if it has rows: the window and what belongs to it as each event arrives and after it.
    limit : int
        Stop where more segments than this are missed.
    """
    rows = events.shape[0]
    write = out.shape[0] == rows
    w[CWND] = h[INITIAL_WINDOW]
    w[SSTHRESH] = INFINITE
    if h[START] != AT_BEGINNING:
        w[CWND] = 1
        w[UNKNOWN_START] = 1
    if h[START] == PAST_SLOW_START:
        w[SSTHRESH] = 1
        w[SSTHRESH_GUESSED] = 1
    if rows:
        w[CWND_STAMP] = events[0, TIME]
        hystart_reset(w, events[0, TIME], events[0, NXT_BEFORE])
        bbr_start(w, events[0, TIME], events[0, DELIVERED_BEFORE], events[0, MIN_RTT_BEFORE])
        if h[START] == PAST_SLOW_START:  # the smallest RTT is from before: the smallest that follows is the best guess
            for r in range(rows):
                rtt = events[r, CA_RTT]
                if rtt > 0 and (w[DELAY_MIN] <= 0 or rtt < w[DELAY_MIN]):
                    w[DELAY_MIN] = rtt
            if h[CC] == BBR:
                w[BBR_FULL_REACHED] = 1
                w[BBR_MIN_RTT] = w[DELAY_MIN]
                start_probe_bw(w, events[0, TIME], 2)
        w[MAX_PACKETS_OUT] = events[0, OUT_BEFORE]
        w[IS_LIMITED] = 1 if events[0, PIPE_BEFORE] >= w[CWND] else 0
        w[USAGE_SEQ] = events[0, NXT_BEFORE]
    for r in range(rows):
        e = events[r]
        w[CWND] = max(w[CWND], e[PIPE_BEFORE])
        if write:
            note_before(w, out[r])
        if w[UNKNOWN_START] and w[WINDOW_SHOWN]:  # after a round trip in which it was filled the window is known
            w[UNKNOWN_START] = 0
            if h[START] == PAST_SLOW_START and h[CC] == CUBIC:
                cubic_resume(w, h, e[TIME], e[SRTT_AFTER])
        found = w[FOUND]
        react(w, h, e)
        if write:
            note_reaction(w, e, out[r], w[FOUND] and not found)
        correction = observe(w, h, e)
        if write:
            note_after(w, out[r], correction)
            if w[FOUND] and not found:
                out[r, OUT_FOUND] = w[FOUND_BY]
        if w[FIT_SURPLUS] + w[FIT_DEFICIT] > limit:
            break
