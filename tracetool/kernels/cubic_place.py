"""Where CUBIC stood when a capture began: the places on its curve are tried on the events of a sender.

A place is the threshold from which the window had grown when it first showed, what that is of the last maximum, and for
how long the window had stood at its size. All of a search is done in one call: it is hundreds of short replays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._jit import kernel
from tracetool.kernels.chance import as_good, hopeless
from tracetool.kernels.replay_window import OUT_CWND, OUT_UNKNOWN
from tracetool.kernels.window_columns import (
    FIT_DEFICIT,
    FIT_SURPLUS,
    GROWN_FROM,
    HYPOTHESIS_WIDTH,
    OF_LAST_MAX,
    STOOD,
    WINDOW_WIDTH,
)
from tracetool.kernels.window_fit import FIT_WIDTH, NO_LIMIT, fit

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: A row for each place that was tried: the hypothesis's GROWN_FROM, OF_LAST_MAX and STOOD, and segments missed.
TRIED_FROM, TRIED_OF, TRIED_STOOD, TRIED_MISSED, TRIED_WIDTH = range(5)
#: No search tries more places: a hostile capture cannot make it longer.
MOST_TRIED = 1 << 10
#: State of a search: places tried, segments that the best of them misses, and the window when it first showed.
TRIED, LEAST, SHOWN, SEARCH_WIDTH = range(4)
WHOLE = 1024
#: Thresholds from a window's size down to this part of it are tried, first in steps of so many in a window.
LOWEST, COARSE = 2 * WHOLE // 5, 20
#: While thresholds are sought the window has stood for half of its time; in the end, for all these parts of it.
HALF = WHOLE // 2
STANDING = (-768, -HALF, -256, 0, 256, HALF, 768, WHOLE)
BEST_OF_KIND = 3


@kernel
def attempt(
    events: Ints, h: Ints, w: Ints, found: npt.NDArray[np.float64], nothing: Ints, s: Ints, tried: Ints,
    threshold: int, last: int, stood: int,
) -> int:  # fmt: skip
    """Try a place, unless it was; returns the segments that it misses, or more than are hopeless."""
    part = -(-threshold * WHOLE // s[SHOWN])
    if part < LOWEST or part > WHOLE or threshold < 2:
        return NO_LIMIT
    for k in range(s[TRIED]):
        if tried[k, TRIED_FROM] == part and tried[k, TRIED_OF] == last and tried[k, TRIED_STOOD] == stood:
            return tried[k, TRIED_MISSED]
    if s[TRIED] == tried.shape[0]:
        return NO_LIMIT
    h[GROWN_FROM], h[OF_LAST_MAX], h[STOOD] = part, last, stood
    fit(events, h, w, nothing, int(hopeless(s[LEAST])) if s[TRIED] else NO_LIMIT, 1, found)
    missed = w[FIT_SURPLUS] + w[FIT_DEFICIT]
    row = tried[s[TRIED]]
    row[TRIED_FROM], row[TRIED_OF], row[TRIED_STOOD], row[TRIED_MISSED] = part, last, stood, missed
    s[LEAST] = missed if s[TRIED] == 0 else min(s[LEAST], missed)
    s[TRIED] += 1
    return missed


@kernel
def promising(s: Ints, tried: Ints, last: int, best: Ints) -> int:
    """Thresholds of the best places of a kind that are not hopeless, into `best`; returns their number."""
    count = 0
    while count < len(best):
        least, part = int(hopeless(s[LEAST])) + 1, 0
        for k in range(s[TRIED]):
            if tried[k, TRIED_OF] == last and tried[k, TRIED_MISSED] < least:
                seen = False
                for j in range(count):
                    seen |= best[j] == tried[k, TRIED_FROM]
                if not seen:
                    least, part = tried[k, TRIED_MISSED], tried[k, TRIED_FROM]
        if part == 0:
            break
        best[count] = part
        count += 1
    for j in range(count):
        best[j] = best[j] * s[SHOWN] // WHOLE
    return count


@kernel
def search_places(events: Ints, hypothesis: Ints, last: Ints, out: Ints, tried: Ints) -> int:
    """Try places on CUBIC's curve: a grid, then around the best of each kind of maximum.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Rows from `replay`, up to the first reduction.
    hypothesis : int64, shape (HYPOTHESIS_WIDTH,)
        CUBIC past slow start.
    last : int64, shape (kinds,)
        What the threshold may be of the last maximum, in parts of 1024: the kinds of maximum.
    out : int64, shape (n, OUT_WIDTH)
        Scratch.
    tried : int64, shape (most, TRIED_WIDTH)
        Out: the places.

    Returns
    -------
    int
        How many were tried: only the grid where all of it explains the growth; 0 where the window never shows.
    """
    w, found, h = np.empty(WINDOW_WIDTH, np.int64), np.empty(FIT_WIDTH), np.empty(HYPOTHESIS_WIDTH, np.int64)
    s, best = np.zeros(SEARCH_WIDTH, np.int64), np.empty(BEST_OF_KIND, np.int64)
    for k in range(HYPOTHESIS_WIDTH):
        h[k] = hypothesis[k]
    fit(events, h, w, out, NO_LIMIT, 1, found)
    for r in range(events.shape[0]):
        if not out[r, OUT_UNKNOWN]:
            s[SHOWN] = out[r, OUT_CWND]
            break
    if s[SHOWN] < 2:
        return 0
    nothing = out[:0]
    window = s[SHOWN]
    step = max(-(-window // COARSE), 1)
    for kind in range(len(last)):
        for k in range(COARSE + 1):
            for stood in (HALF, -HALF):
                attempt(events, h, w, found, nothing, s, tried, window - k * step, last[kind], stood)
    worst = 0
    for k in range(s[TRIED]):
        worst = max(worst, tried[k, TRIED_MISSED])
    if worst <= as_good(s[LEAST]):
        return s[TRIED]  # nothing tells one place from another
    while step > 1:
        step = (step + 1) // 2
        for kind in range(len(last)):
            for k in range(promising(s, tried, last[kind], best)):
                for threshold in (best[k] - step, best[k] + step):
                    for stood in (HALF, -HALF):
                        attempt(events, h, w, found, nothing, s, tried, threshold, last[kind], stood)
                for other in range(len(last)):  # the same maximum, reached from another threshold
                    if last[kind] and last[other]:
                        same = (best[k] * last[other] + last[kind] // 2) // last[kind]
                        attempt(events, h, w, found, nothing, s, tried, same, last[other], HALF)
    for kind in range(len(last)):
        for k in range(promising(s, tried, last[kind], best)):
            for threshold in range(best[k] - 1, best[k] + 2):
                for stood in STANDING:
                    attempt(events, h, w, found, nothing, s, tried, threshold, last[kind], stood)
    for kind in range(len(last)):  # how far up a threshold may be that explains it
        highest, stood = 0, 0
        for k in range(s[TRIED]):
            if tried[k, TRIED_OF] == last[kind] and tried[k, TRIED_MISSED] <= as_good(s[LEAST]):
                if tried[k, TRIED_FROM] > highest:
                    highest, stood = tried[k, TRIED_FROM], tried[k, TRIED_STOOD]
        if highest:
            threshold, step = highest * window // WHOLE, max(-(-window // COARSE), 1)
            while step > 1:
                step = (step + 1) // 2
                if attempt(events, h, w, found, nothing, s, tried, threshold + step, last[kind], stood) <= as_good(
                    s[LEAST]
                ):
                    threshold += step
    return s[TRIED]
