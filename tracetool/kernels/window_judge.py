"""How well a hypothesis fits: the sends after each event against the window that it predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.bbr import quantum
from tracetool.kernels.replay_columns import (
    ADVANCED,
    FIRST_SEND,
    FLAGS,
    LAST_SEND,
    NXT,
    OPEN,
    OUT_BEFORE,
    PIPE,
    PIPE_SENT,
    RECOVERY,
    ROOM,
    SENT_NEW,
    SRTT_AFTER,
    STATE_AFTER,
    TIME,
    UNA,
)
from tracetool.kernels.window_columns import (
    AT_BEGINNING,
    BBR,
    BBR_RATE,
    BLUR,
    CC,
    CSS_ROUNDS,
    CWND,
    DELAY,
    DELAY_MIN,
    FIT_BURSTS,
    FIT_DEFICIT,
    FIT_GROUPS,
    FIT_JUDGED,
    FIT_ROUNDS,
    FIT_SPREAD,
    FIT_STUCK,
    FIT_SURPLUS,
    FIT_SURPRISE,
    FIT_UNUSED,
    FOUND,
    FOUND_BY,
    HELD,
    HYSTART,
    INFINITE,
    LAST_ACK,
    MSS,
    PACED,
    PLUS_PLUS,
    REDUCTIONS,
    ROUND_AT_ONCE,
    ROUND_BLOCKED,
    ROUND_DRAINED,
    ROUND_SENDS,
    ROUND_START,
    ROUND_SURPLUS,
    ROUND_TOP,
    SLACK,
    SLACK_SEQ,
    SLACK_TIME,
    SSTHRESH,
    START,
    STREAK,
    STREAK_SLACK,
    SUPER_FRAMES,
    TOLERANCE,
    TRAIN,
    UNKNOWN_START,
    UNUSED_UNIT,
    WINDOW_SHOWN,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: A sender that is not paced answers an ACK within this time, unless its application has nothing to send.
AT_ONCE_NS = 1_000_000
#: No single miss counts for more segments than this, so that one odd moment does not outweigh a flow.
MOST_PER_MISS = 16
QUANTA = 2  # what leaves at a time, and as much of clock slack
#: Slow start has ended unseen where so many groups of sends in a row left more than this part of the window unused.
LONG_STREAK, STREAK_PART = 32, 8
LEAST_QUANTUM = 2  # segments; `bbr_min_tso_segs`
INITIAL_UNPACED = 10  # Linux does not pace the first ten segments


@bare_kernel
def is_blocked(h: Ints, e: Ints) -> bool:
    """Whether the receiver's window has no room for another segment."""
    return 0 <= e[ROOM] < (1 + h[BLUR]) * h[MSS]


@bare_kernel
def lower(w: Ints, h: Ints, e: Ints) -> None:
    """Lower the window by what stayed unused.

    Slow start that hardly grew in a round trip has ended unseen. After slow start a window of which much is not used
    has been reduced unseen, where losses are: a retransmission that is lost, too, shows late, or nowhere.
    """
    much, slow_start = 8 * w[SLACK] > w[CWND], w[CWND] < w[SSTHRESH]
    w[CWND] = max(w[CWND] - w[SLACK], 1)
    if much and slow_start:
        leave_slow_start(w, h)
    elif much and w[REDUCTIONS] > 0:
        w[SSTHRESH] = min(w[SSTHRESH], max(w[CWND], 2))


@bare_kernel
def leave_slow_start(w: Ints, h: Ints) -> None:
    """Slow start has ended at this window, and the hypothesis did not see it: HyStart must have fired, if it runs.

    HyStart++ does so only from conservative slow start: before that nothing is said to have ended it.
    """
    if w[REDUCTIONS] == 0 and w[SSTHRESH] >= INFINITE:
        w[FIT_SURPRISE] = 1
    w[SSTHRESH] = max(w[CWND], 2)
    if not h[HYSTART] or w[FOUND]:
        return
    w[FOUND] = 1
    if h[HYSTART] & PLUS_PLUS:
        w[FOUND_BY] = PLUS_PLUS if w[CSS_ROUNDS] > 0 else 0
    elif h[HYSTART] & TRAIN and w[LAST_ACK] - w[ROUND_START] > w[DELAY_MIN] // 4:
        w[FOUND_BY] = TRAIN
    else:
        w[FOUND_BY] = DELAY


@bare_kernel
def watch_slow_start(w: Ints, h: Ints, e: Ints, blocked: bool) -> None:
    """In slow start a window runs away within a round trip: end it where many sends in a row left much of it unused."""
    at_once = e[FIRST_SEND] - e[TIME] <= AT_ONCE_NS and not h[PACED] and not blocked
    held = not at_once or e[STATE_AFTER] != OPEN or h[HELD] != 0
    if w[CWND] >= w[SSTHRESH] or h[CC] == BBR or held or w[UNKNOWN_START]:
        w[STREAK] = 0
        return
    slack = max(w[CWND] - e[PIPE_SENT] - h[TOLERANCE], 0)
    w[STREAK_SLACK] = slack if w[STREAK] == 0 else min(w[STREAK_SLACK], slack)
    w[STREAK] += 1
    if w[STREAK] == LONG_STREAK:
        w[STREAK] = 0
        if STREAK_PART * w[STREAK_SLACK] > w[CWND] and not w[ROUND_DRAINED]:
            w[FIT_DEFICIT] += min(slack, MOST_PER_MISS)
            w[CWND] = e[PIPE_SENT]
            leave_slow_start(w, h)


@bare_kernel
def count_surplus(w: Ints, h: Ints, surplus: int) -> None:
    """Count what was sent beyond the window: of BBR the most of each round trip.

    The other windows are moved to what was sent, and count it once. BBR's is set to its target by every ACK, and would
    count the same few segments again and again. Under way they tell how far its target, which is from before the
    capture, is wrong.
    """
    surplus = min(surplus, MOST_PER_MISS)
    if h[CC] == BBR and h[START] == AT_BEGINNING:
        w[FIT_SURPLUS] += max(surplus - w[ROUND_SURPLUS], 0)
        w[ROUND_SURPLUS] = max(surplus, w[ROUND_SURPLUS])
    else:
        w[FIT_SURPLUS] += surplus


@bare_kernel
def begin_round(w: Ints, nxt: int, now: int) -> None:
    """Begin a round trip: it is over when `nxt` is acknowledged."""
    w[SLACK] = INFINITE
    w[SLACK_SEQ] = nxt
    w[SLACK_TIME] = now
    w[ROUND_SENDS] = 0
    w[ROUND_AT_ONCE] = 0
    w[ROUND_TOP] = 0
    w[ROUND_SURPLUS] = 0
    w[ROUND_DRAINED] = 0
    w[ROUND_BLOCKED] = 0


@bare_kernel
def end_round(w: Ints, h: Ints, e: Ints) -> None:
    """A round trip is over: judge how the window was filled in it.

    The smallest part of the window that stayed unused counts against the hypothesis, and the window is lowered by it,
    unless something else held the sender back: the receiver's window, or the application. An application that has
    nothing to send lets the flight drain; a sender with data defers at most a third of its window
    (`tcp_tso_should_defer`), and one that is not paced sends as an ACK arrives.
    """
    if w[ROUND_SENDS] > 0:
        w[FIT_ROUNDS] += 1
        backlogged = not w[ROUND_DRAINED] and (h[PACED] or 2 * w[ROUND_AT_ONCE] >= w[ROUND_SENDS])
        if backlogged and w[SLACK] < INFINITE and not h[HELD]:
            w[FIT_JUDGED] += 1
            if not w[ROUND_BLOCKED]:
                w[WINDOW_SHOWN] = 1
            if w[SLACK] > 0 and h[CC] != BBR:
                w[FIT_UNUSED] += UNUSED_UNIT * w[SLACK] // max(w[CWND], 1)
                if not w[UNKNOWN_START]:
                    w[FIT_DEFICIT] += min(w[SLACK], MOST_PER_MISS)
                if e[STATE_AFTER] == OPEN:
                    w[FIT_STUCK] += 1
                    lower(w, h, e)
    begin_round(w, e[NXT], e[TIME])


@bare_kernel
def judge(w: Ints, h: Ints, e: Ints, sent: int) -> None:
    """Count how far the sends after an event stray from the hypothesis; of BBR, what it sends faster than it paces."""
    if e[UNA] >= w[SLACK_SEQ]:
        end_round(w, h, e)
    if sent == 0:
        if 3 * e[PIPE] < 2 * w[ROUND_TOP] and e[STATE_AFTER] == OPEN:
            w[ROUND_DRAINED] = 1
        return
    w[FIT_GROUPS] += 1
    w[ROUND_SENDS] += 1
    if e[FIRST_SEND] - e[TIME] <= AT_ONCE_NS:
        w[ROUND_AT_ONCE] += 1
    w[ROUND_TOP] = max(w[ROUND_TOP], e[PIPE_SENT])
    blocked = is_blocked(h, e)
    if blocked:
        w[ROUND_BLOCKED] = 1
    w[SLACK] = min(w[SLACK], 0 if blocked else max(w[CWND] - e[PIPE_SENT] - h[TOLERANCE], 0))
    watch_slow_start(w, h, e, blocked)
    took = e[LAST_SEND] - e[FIRST_SEND]
    if e[SENT_NEW] > 2:
        w[FIT_BURSTS] += 1
        # paced, they leave over a time in which about as many are delivered
        if 4 * took * max(w[CWND], 1) > (e[SENT_NEW] - 2) * e[SRTT_AFTER]:
            w[FIT_SPREAD] += 1
    if h[CC] == BBR:
        if took == 0 and sent > QUANTA * LEAST_QUANTUM and h[TOLERANCE] == 0:
            w[SUPER_FRAMES] = 1
        at_a_time = max(quantum(w, h), LEAST_QUANTUM) if w[SUPER_FRAMES] else LEAST_QUANTUM
        paced = w[BBR_RATE] * (took // 1000) // (1_000_000 * h[MSS])
        burst = sent - QUANTA * at_a_time - 2 * h[TOLERANCE] - paced
        if burst > 0 and e[OUT_BEFORE] > INITIAL_UNPACED:
            w[FIT_DEFICIT] += min(burst, MOST_PER_MISS)
    if e[STATE_AFTER] == RECOVERY and not e[FLAGS] & ADVANCED and e[SENT_NEW] > 0:
        # a recovery moves on by a hole a round trip without SACK, and stands while a retransmission is lost; but new
        # data upon a duplicate ACK fills the window
        if 0 < 2 * e[SRTT_AFTER] < e[TIME] - w[SLACK_TIME]:
            end_round(w, h, e)
