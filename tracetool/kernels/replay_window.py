"""Replay of the congestion window under one hypothesis, from the events of `replay`.

The hypothesis predicts the window; the sends correct it. A sender never has more in flight than its window, and one
that is limited by it has exactly so much (`tcp_cwnd_test`): where prediction and sends differ, the window is moved to
what was seen, and the difference counts against the hypothesis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.bbr import bbr_start, start_probe_bw
from tracetool.kernels.bbr_resume import bbr_resume
from tracetool.kernels.cubic import cubic_idle, cubic_resume
from tracetool.kernels.hystart import FOREVER, hystart_reset
from tracetool.kernels.replay_columns import (
    CA_RTT,
    CWR_STATE,
    DELIVERED_BEFORE,
    IDLE,
    LAST_SEND,
    MIN_RTT_BEFORE,
    NXT,
    NXT_BEFORE,
    OP_REDUCTIONS,
    OPS,
    OUT_BEFORE,
    OUT_SENT,
    PIPE_BEFORE,
    PIPE_SENT,
    RECOVERY,
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
    BBR_MODE,
    BBR_RATE,
    BLUR,
    CC,
    COUNT,
    CSS_BASE,
    CSS_BEFORE,
    CUBIC,
    CWND,
    CWND_STAMP,
    DELAY_MIN,
    FIT_DEFICIT,
    FIT_EARLY,
    FIT_EARLY_GROUPS,
    FIT_GROUPS,
    FIT_SURPLUS,
    FOUND,
    FOUND_BY,
    GUESSED,
    INFINITE,
    INITIAL_WINDOW,
    IS_LIMITED,
    MAX_PACKETS_OUT,
    PAST_SLOW_START,
    PLUS_PLUS,
    PRIOR_CWND,
    PROBE_BW,
    PRR_OUT,
    REDUCTIONS,
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
from tracetool.kernels.window_judge import begin_round, count_surplus, is_blocked, judge
from tracetool.kernels.window_pace import watch_pace
from tracetool.kernels.window_react import is_limited, react, restart_idle, validate

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: Columns of the result: state as the event arrives, and how much the sends corrected the prediction afterwards.
OUT_CWND, OUT_SSTHRESH, OUT_CORRECTION, OUT_FOUND, OUT_CWND_AFTER, OUT_SSTHRESH_AFTER, OUT_MODE = 0, 1, 2, 3, 4, 5, 6
(
    OUT_LIMITED, OUT_RATE, OUT_ROUND_TIME, OUT_ROUND_RTT, OUT_DELAY_MIN, OUT_REDUCED, OUT_GUESSED, OUT_PRIOR,
    OUT_UNKNOWN, OUT_WIDTH,
) = range(7, 17)  # fmt: skip
#: What a threshold rests on, in OUT_GUESSED: what set it was replayed; or it is from before the capture.
REPLAYED, ASSUMED, FITTED = 0, 1, 2


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
                count_surplus(w, h, correction)
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
            # what seems to be sent too early where departures are estimated is not held against all that follows
            w[PRR_OUT] += sent - (correction if h[BLUR] else 0)
    limited = e[PIPE_SENT] >= w[CWND]
    if h[CC] != BBR and (sent > 0 or limited):
        now = max(e[LAST_SEND], e[TIME])
        validate(w, h, limited, e[OUT_SENT], e[UNA], e[NXT], now, e[RTO_AFTER], state, is_blocked(h, e))
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
def note_reaction(w: Ints, o: Ints) -> None:
    """Write down what an event made of the window."""
    o[OUT_CWND_AFTER] = w[CWND]
    o[OUT_SSTHRESH_AFTER] = w[SSTHRESH]
    o[OUT_PRIOR] = w[PRIOR_CWND]


@bare_kernel
def note_exit(w: Ints, e: Ints, o: Ints) -> None:
    """Write down why HyStart fired at an event, or must have."""
    o[OUT_FOUND] = w[FOUND_BY]
    o[OUT_ROUND_TIME] = e[TIME] - w[ROUND_START]
    o[OUT_ROUND_RTT] = w[ROUND_RTT] if w[ROUND_RTT] < FOREVER else 0
    o[OUT_DELAY_MIN] = w[DELAY_MIN]
    if w[FOUND_BY] == PLUS_PLUS:
        o[OUT_ROUND_RTT] = w[CSS_BASE]
        o[OUT_DELAY_MIN] = w[CSS_BEFORE]


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
        w[SSTHRESH_GUESSED] = GUESSED
    if rows:
        w[CWND_STAMP] = events[0, TIME]
        hystart_reset(w, events[0, TIME], events[0, NXT_BEFORE])
        bbr_start(w, events[0, TIME], events[0, DELIVERED_BEFORE], events[0, MIN_RTT_BEFORE])
        if h[START] == PAST_SLOW_START or (h[CC] == BBR and h[START] != AT_BEGINNING):
            for r in range(rows):  # the smallest RTT is from before: the smallest that follows is the best guess
                rtt = events[r, CA_RTT]
                if rtt > 0 and (w[DELAY_MIN] <= 0 or rtt < w[DELAY_MIN]):
                    w[DELAY_MIN] = rtt
        if h[START] == PAST_SLOW_START and h[CC] == BBR:
            bbr_resume(w, h, events, w[DELAY_MIN])
        w[MAX_PACKETS_OUT] = events[0, OUT_BEFORE]
        w[IS_LIMITED] = 1 if events[0, PIPE_BEFORE] >= w[CWND] else 0
        w[USAGE_SEQ] = events[0, NXT_BEFORE]
    # of a recovery that the events begin within: events until it was over; its window is what it is as that first shows
    recovered, timed_out, flight = 0, False, 0
    recovering = rows > 0 and events[0, STATE_BEFORE] == RECOVERY and h[CC] != BBR
    for r in range(rows):
        e = events[r]
        timed_out |= recovering and e[OPS] & OP_REDUCTIONS != 0  # then its window shows nowhere
        if recovering and e[STATE_BEFORE] != RECOVERY:
            recovering = False
            recovered, flight = 0 if timed_out else r, e[PIPE_BEFORE]
            w[CWND] = 1  # what was in flight meanwhile is not known so well
            w[WINDOW_SHOWN] = 0
            begin_round(w, e[UNA], e[TIME])  # anew with this event, as if it were the first
        if r == 0 or w[UNKNOWN_START]:  # once it is known, only sends raise it: duplicate ACKs may cease to count
            w[CWND] = max(w[CWND], e[PIPE_BEFORE])
        if write:
            note_before(w, out[r])
        if recovered and (w[WINDOW_SHOWN] or e[OPS] & OP_REDUCTIONS):
            # that a window grows by an eighth in its first round trip is rare: then it took some ACKs to fill it again
            window = w[CWND] if 8 * (w[CWND] - flight) > w[CWND] else flight
            for q in range(recovered if write else 0):
                out[q, OUT_CWND] = window
            recovered = 0
        if w[UNKNOWN_START] and w[WINDOW_SHOWN] and not recovering:  # it was filled for a round trip: now it is known
            w[UNKNOWN_START] = 0
            if h[START] == PAST_SLOW_START and h[CC] == CUBIC:
                cubic_resume(w, h, e[TIME], e[SRTT_AFTER])
        found = w[FOUND]
        if e[OPS] & OP_REDUCTIONS:
            w[REDUCTIONS] += 1
        react(w, h, e)
        if write:
            note_reaction(w, out[r])
        correction = observe(w, h, e)
        if write:
            note_after(w, out[r], correction)
            if w[FOUND] and not found:
                note_exit(w, e, out[r])
        if w[REDUCTIONS] < 2:
            w[FIT_EARLY] = w[FIT_SURPLUS] + w[FIT_DEFICIT]
            w[FIT_EARLY_GROUPS] = w[FIT_GROUPS]
        if h[CC] == BBR and h[START] != AT_BEGINNING and r + 1 < rows:
            watch_pace(w, h, e, events[r + 1, TIME])
        if w[FIT_SURPLUS] + w[FIT_DEFICIT] > limit:
            break
