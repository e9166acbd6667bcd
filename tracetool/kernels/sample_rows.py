"""The state of a replayed sender as its packets' ACKs found it: numbers and words of the rows of `samples`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._jit import kernel
from tracetool.kernels.replay_columns import (
    CWR_STATE,
    DELIVERED_BEFORE,
    KIND,
    LOSS,
    LOST_BEFORE,
    MIN_RTT_BEFORE,
    NXT_BEFORE,
    ON_ACK,
    PIPE_BEFORE,
    PIPE_SENT,
    RECOVERY,
    RETRANSMITTED_BEFORE,
    ROOM,
    RTTVAR_BEFORE,
    SACKED_BEFORE,
    SRTT_BEFORE,
    STATE_BEFORE,
    TIME,
    UNA_BEFORE,
    WND_BEFORE,
)
from tracetool.kernels.replay_window import (
    OUT_CWND,
    OUT_GUESSED,
    OUT_LIMITED,
    OUT_MODE,
    OUT_RATE,
    OUT_SSTHRESH,
    OUT_UNKNOWN,
)
from tracetool.kernels.window_choice import (
    BEST,
    HIDDEN,
    NOTHING_FITS,
    SAID,
    TOLD_MISFIT,
)
from tracetool.kernels.window_columns import BBR, CC, INFINITE, PACED

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

#: Rows of the numbers; -1 is unknown where that can be.
(
    S_TIME, S_CWND, S_LOW, S_HIGH, S_SSTHRESH, S_SRTT, S_RTTVAR, S_MIN_RTT, S_INFLIGHT, S_MSS, S_UNA, S_NXT, S_WND,
    S_PACING, S_LOST, S_SACKED, S_RETRANSMITTED, S_DELIVERED, NUMBERS,
) = range(19)  # fmt: skip
#: Rows of the words, and what they count in.
S_PHASE, S_LIMIT, S_STATE, S_BASIS, WORDS = range(5)
NO_WORD = 255
IN_SLOW_START, IN_AVOIDANCE, IN_RECOVERY, IN_LOSS, IN_BBR = range(5)
BY_CWND, BY_RWND, BY_APP, BY_PACING, BY_UNKNOWN = range(5)
#: Margin of the bounds around a window that the replay has pinned down, as a part of it.
MARGIN = 0.02
#: A fit that misses fewer segments than this per group of sends is exact where the window is filled.
SHARP = 0.05
#: Bounds further apart than this part of the window say nothing: then only the lower one is kept.
WIDEST = 0.5


@kernel
def sample_rows(
    events: Ints, window: Ints, low: Ints, high: Ints, mss: int, paced: bool, bbr: bool, sharp: bool, fits: bool,
    margin: float, numbers: Ints, words: Bytes, at: int,
) -> int:  # fmt: skip
    """Write one row for each ACK, with bounds of the window, from row `at` on; returns where the next would be.

    The bounds are the spread over all hypotheses that fit as well, and a margin for what the capture cannot show.
    Whoever is limited by the application or the receiver shows no upper bound by its sends: there the hypotheses must
    agree.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Rows from `replay`.
    window : int64, shape (n, OUT_WIDTH)
        The window under the hypothesis taken, from `replay_window`.
    low, high : int64, shape (n,)
        Least and largest window of the hypotheses that fit as well.
    mss : int
        Bytes.
    paced, bbr : bool
        Whether the hypothesis paces, and whether it is BBR.
    sharp : bool
        Whether it fits so well that it is exact where the window is filled.
    fits : bool
        Whether it fits at all, and the flight was seen: else the window has no upper bound.
    margin : float
        Part of the window by which it may be wrong.
    numbers : int64, shape (NUMBERS, rows), words : uint8, shape (WORDS, rows)
        Out.
    at : int
        The first row that is not written yet.
    """
    for r in range(events.shape[0]):
        e = events[r]
        if e[KIND] != ON_ACK:
            continue
        best = window[r, OUT_CWND]
        rate = 0
        if r == 0:  # what was before, nobody saw
            limit = BY_UNKNOWN
            flight = e[PIPE_BEFORE]
        else:
            flight = events[r - 1, PIPE_SENT]
            rate = 8 * window[r - 1, OUT_RATE]
            if 0 <= events[r - 1, ROOM] < mss:
                limit = BY_RWND
            elif window[r, OUT_UNKNOWN]:
                limit = BY_UNKNOWN
            elif window[r - 1, OUT_LIMITED]:
                limit = BY_CWND
            else:
                limit = BY_PACING if paced else BY_APP
        filled = sharp and limit == BY_CWND and flight >= best
        wide = int(best * margin) + (0 if filled else 1)
        # what was in flight is certain, but says little where it is far below the window
        least = min(low[r] - wide, max(min(flight, best), best - best // 10))
        most = high[r] + wide
        if window[r, OUT_UNKNOWN]:  # it has not shown since the capture began
            least = min(least, flight)
            most = 0
        if not fits:
            least = min(least, e[PIPE_BEFORE])
            most = 0
        if most - least > WIDEST * max(best, 8):
            most = 0
        numbers[S_TIME, at] = e[TIME]
        numbers[S_CWND, at] = max(best, 1)
        numbers[S_LOW, at] = max(least, 1)
        numbers[S_HIGH, at] = most if most > 0 else -1
        threshold = window[r, OUT_SSTHRESH]
        numbers[S_SSTHRESH, at] = threshold if 0 < threshold < INFINITE else -1
        numbers[S_SRTT, at] = e[SRTT_BEFORE] if e[SRTT_BEFORE] > 0 else -1
        numbers[S_RTTVAR, at] = e[RTTVAR_BEFORE] if e[RTTVAR_BEFORE] > 0 else -1
        numbers[S_MIN_RTT, at] = e[MIN_RTT_BEFORE] if e[MIN_RTT_BEFORE] > 0 else -1
        numbers[S_INFLIGHT, at] = max(e[PIPE_BEFORE], 0) * mss
        numbers[S_MSS, at] = mss
        numbers[S_UNA, at] = e[UNA_BEFORE]
        numbers[S_NXT, at] = e[NXT_BEFORE]
        numbers[S_WND, at] = max(e[WND_BEFORE], -1)
        numbers[S_PACING, at] = rate if rate > 0 else -1
        numbers[S_LOST, at] = e[LOST_BEFORE]
        numbers[S_SACKED, at] = e[SACKED_BEFORE]
        numbers[S_RETRANSMITTED, at] = e[RETRANSMITTED_BEFORE]
        numbers[S_DELIVERED, at] = e[DELIVERED_BEFORE]
        state = e[STATE_BEFORE]
        if bbr:
            phase = IN_BBR + window[r, OUT_MODE]
        elif state == LOSS:
            phase = IN_LOSS
        elif state == RECOVERY or state == CWR_STATE:
            phase = IN_RECOVERY
        else:
            phase = IN_AVOIDANCE if best >= threshold else IN_SLOW_START
        words[S_PHASE, at] = phase
        words[S_LIMIT, at] = limit
        words[S_STATE, at] = state
        words[S_BASIS, at] = window[r, OUT_GUESSED] if 0 < threshold < INFINITE else NO_WORD
        at += 1
    return at


@kernel
def sample_rows_of_all(
    events: Ints, begins: Ints, window: Ints, low: Ints, high: Ints, mss: Ints, table: Ints, choice: Ints,
    told: npt.NDArray[np.float64], numbers: Ints, words: Bytes, ends: Ints,
) -> int:  # fmt: skip
    """Write the rows of many senders, one after the other; returns their number.

    Parameters
    ----------
    events, begins, window, low, high, mss, table, choice, told
        As `tracetool.kernels.window_choice.choose_all` takes and makes them.
    numbers, words
        Out.
    ends : int64, shape (senders,)
        Out: where the rows of each sender end.
    """
    at = 0
    for d in range(len(mss)):
        a, b = begins[d], begins[d + 1]
        hypothesis = table[choice[d, BEST]]
        bbr = hypothesis[CC] == BBR
        at = sample_rows(
            events[a:b], window[a:b], low[a:b], high[a:b], mss[d], hypothesis[PACED] != 0, bbr,
            told[d, TOLD_MISFIT] < SHARP, choice[d, SAID] != NOTHING_FITS and choice[d, SAID] != HIDDEN,
            2 * MARGIN if bbr else MARGIN, numbers, words, at,
        )  # fmt: skip
        ends[d] = at
    return at
