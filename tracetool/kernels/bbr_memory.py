"""Which smallest round-trip time BBR remembers from before a capture: many are tried on the events of a sender.

All of a search is done in one call: it is dozens of short replays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._jit import kernel
from tracetool.kernels.chance import hopeless
from tracetool.kernels.window_columns import HYPOTHESIS_WIDTH, REMEMBERED_RTT, WINDOW_WIDTH
from tracetool.kernels.window_fit import FIT_WIDTH, MISSED, NO_LIMIT, fit

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

#: RTTs down to this part of the smallest that was seen are tried.
LEAST_PART = 1 / 8
#: No search tries more.
MOST_TRIED = 1 << 9
LEAST_RTT_NS = 1000  # the kernel counts them in microseconds


@kernel
def best_of(missed: Floats, count: int) -> int:
    """Which of those tried misses least; the first one of several."""
    best = 0
    for k in range(count):
        if missed[k] < missed[best]:
            best = k
    return best


@kernel
def attempt(
    events: Ints, h: Ints, w: Ints, found: Floats, nothing: Ints, rtt: float, rtts: Ints, missed: Floats, count: int
) -> int:
    """Try an RTT, unless it was; returns how many were tried."""
    at = max(int(round(rtt)), LEAST_RTT_NS)
    for k in range(count):
        if rtts[k] == at:
            return count
    if count == len(rtts):
        return count
    h[REMEMBERED_RTT] = at
    limit = int(hopeless(missed[best_of(missed, count)])) if count else NO_LIMIT
    fit(events, h, w, nothing, limit, 1, found)
    rtts[count], missed[count] = at, found[MISSED]
    return count + 1


@kernel
def search_rtts(
    events: Ints, hypothesis: Ints, smallest: int, largest: int, step: float, finest: float, rtts: Ints, missed: Floats
) -> int:
    """Try RTTs from the smallest seen down, as long as they fit, and up; then between the best and its neighbours.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Rows from `replay`, as long as BBR may remember an RTT from before.
    hypothesis : int64, shape (HYPOTHESIS_WIDTH,)
        BBR past startup, and when the RTT was measured.
    smallest, largest : int
        Smallest RTT seen, and the largest to be tried, nanoseconds.
    step, finest : float
        What each RTT is of the one before, at first, and at last.
    rtts : int64, missed : float64, shape (most,)
        Out: those tried, and segments that each misses.

    Returns
    -------
    int
        How many were tried.
    """
    w, found, h = np.empty(WINDOW_WIDTH, np.int64), np.empty(FIT_WIDTH), np.empty(HYPOTHESIS_WIDTH, np.int64)
    nothing = events[:0]
    for k in range(HYPOTHESIS_WIDTH):
        h[k] = hypothesis[k]
    count = 0
    rtt = float(smallest)
    while rtt > smallest * LEAST_PART:
        count = attempt(events, h, w, found, nothing, rtt, rtts, missed, count)
        if missed[count - 1] > hopeless(missed[best_of(missed, count)]):
            break
        rtt *= step
    rtt = float(smallest)
    while rtt < largest:
        rtt = min(rtt / step, float(largest))
        count = attempt(events, h, w, found, nothing, rtt, rtts, missed, count)
    while step < finest:
        step = step**0.5
        best = float(rtts[best_of(missed, count)])
        count = attempt(events, h, w, found, nothing, best * step, rtts, missed, count)
        count = attempt(events, h, w, found, nothing, min(best / step, float(largest)), rtts, missed, count)
    return count
