"""Which hypothesis explains the sends of a sender best: each replays the window of its events, and the sends judge.

One call works on the senders of a whole batch: what Python would cost for each of them is more than a replay takes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels._jit import kernel
from tracetool.kernels.replay_window import OUT_CWND, OUT_FOUND, OUT_WIDTH
from tracetool.kernels.window_columns import BBR, CC, HYPOTHESIS_WIDTH, PACED, WINDOW_WIDTH
from tracetool.kernels.window_fit import (
    AS_GOOD,
    EARLY,
    EARLY_GROUPS,
    FIT_WIDTH,
    JUDGED,
    LOOSENESS,
    MISFIT,
    MOSTLY,
    NO_LIMIT,
    SHOWN,
    SPREAD,
    STUCK,
    UNUSED,
    fit,
    idle,
    looseness,
    sends,
    set_up,
)
from tracetool.kernels.window_judge import MOST_PER_MISS

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]
    Bytes = npt.NDArray[np.uint8]

#: A hypothesis that misses more than this many segments per group of sends explains nothing.
UNEXPLAINED = 0.25
#: A fit as good as this needs no rare hypothesis beside it.
WELL = 0.02
#: A hypothesis that misses this many times as much as the best so far is given up, or one that explains nothing.
GIVE_UP = 20
FIRST_LIMIT = 1 << 40  # of the first hypothesis, which has no other to be compared with
#: Nor do those as good differ by more than this many segments until the second reduction, half of what one odd moment
#: may count: that tells when slow start ended, and over a long flow it would not show.
AS_GOOD_EARLY = MOST_PER_MISS // 2
#: A sender whose window showed in fewer of its round trips was limited by its application or the receiver.
SELDOM_JUDGED = 0.1
#: A window that grows in one round trip and is taken back in the next is lowered in half of them; this is near that.
TAKEN_BACK = 0.4  # where the flight was seen: a guess is noise that lowers it, too
#: A sender that leaves a larger part of its window unused, on average, does not fill it: windows are known so well.
MOST_UNUSED = 0.02
TOO_FEW = 10  # groups of sends say nothing about the congestion control

#: What is chosen for a sender: the hypothesis, and what is to be said of it. HIDDEN: when its data left nobody saw.
BEST, SAID, CHOICE_WIDTH = range(3)
TOO_LITTLE, NOTHING_FITS, NAMED, HIDDEN = range(4)
#: And with it: misfit of the best, and without what it pays for looseness; the part of those as good that agree about
#: HyStart; confidence.
TOLD_MISFIT, TOLD_MISSED, TOLD_AGREED, TOLD_CONFIDENCE, TOLD_WIDTH = range(5)


@bare_kernel
def first_exit(window: Ints) -> int:
    """The event at which HyStart first ended slow start; -1 where it never did."""
    for r in range(window.shape[0]):
        if window[r, OUT_FOUND]:
            return r
    return -1


@bare_kernel
def fits_early(fit: Floats, missed: float) -> bool:
    """Whether a hypothesis misses no more until the second reduction than another that misses `missed` segments."""
    return fit[EARLY] <= missed + AS_GOOD_EARLY + AS_GOOD * fit[EARLY_GROUPS]


@bare_kernel
def least_early(table: Ints, order: Ints, fits: Floats, tried: int, algorithm: int, most: float) -> float:
    """Least segments missed until the second reduction by an algorithm's hypotheses of a misfit up to `most`."""
    least = math.inf
    for k in range(tried):
        if table[order[k], CC] == algorithm and fits[k, MISFIT] <= most:
            least = min(least, fits[k, EARLY])
    return least


@bare_kernel
def pick(table: Ints, order: Ints, fits: Floats, tried: int, near: float, begun: bool) -> int:
    """Which of those tried is taken: the most usual one that fits as well as the best, with four exceptions.

    Of one congestion control's it has to fit the first slow start and what follows as well as any.
    """
    least = math.inf
    for k in range(tried):
        least = min(least, fits[k, MISFIT])
    best = 0
    while fits[best, MISFIT] > least + near:
        best += 1
    algorithm = table[order[best], CC]
    if begun and algorithm != BBR:
        early = least_early(table, order, fits, tried, algorithm, least + near)
        while not (
            table[order[best], CC] == algorithm and fits[best, MISFIT] <= least + near and fits_early(fits[best], early)
        ):
            best += 1
    if table[order[best], CC] != BBR and fits[best, JUDGED] < SELDOM_JUDGED:
        # the window hardly showed: pacing is what is left to see
        found = -1
        for k in range(tried):
            paced = table[order[k], CC] == BBR and fits[k, SPREAD] > MOSTLY and fits[k, MISFIT] < 2 * UNEXPLAINED
            if paced and (found < 0 or fits[k, MISFIT] < fits[found, MISFIT]):
                found = k
        best = found if found >= 0 else best
    # under way every window is moved to the flight, and has to be lowered in most round trips if it is not filled
    unfilled = fits[best, UNUSED] > MOST_UNUSED and (begun or fits[best, STUCK] > MOSTLY)
    if table[order[best], CC] != BBR and unfilled:
        # it never fills the window that it should have: then to say less, as BBR does, is no fault
        found = -1
        for k in range(tried):
            less = table[order[k], CC] == BBR and fits[k, MISFIT] - LOOSENESS / 2 < fits[best, MISFIT]
            if less and (found < 0 or fits[k, MISFIT] < fits[found, MISFIT]):
                found = k
        best = found if found >= 0 else best
    if not begun and not fits[best, SHOWN]:
        best = 0  # nothing shows the window, nor whose it is
    return best


@bare_kernel
def explained(table: Ints, order: Ints, fits: Floats, tried: int, most: float, begun: bool) -> bool:
    """Whether some hypothesis of a misfit up to `most` explains the first slow start, too."""
    for k in range(tried):
        if fits[k, MISFIT] <= most and (not begun or table[order[k], CC] == BBR or fits_early(fits[k], 0.0)):
            return True
    return False


@kernel
def hold(
    events: Ints, table: Ints, rare: Bytes, mss: int, tolerance: int, h: Ints, w: Ints, order: Ints, fits: Floats,
    groups: int,
) -> int:  # fmt: skip
    """Try the usual hypotheses again, but BBR, as those of a sender that something else than its window holds back.

    A window that grows and is taken back all the time is not what it waits for: that is a rate that its socket must
    not exceed, or its application. Parameters as of `choose`; returns how many were tried.
    """
    tried = 0
    for k in range(table.shape[0]):
        if not rare[k] and table[k, CC] != BBR:
            set_up(h, table[k], mss, tolerance, np.bool_(True))
            fit(events, h, w, events[:0], NO_LIMIT, groups, fits[tried])
            order[tried] = k
            tried += 1
    return tried


@bare_kernel
def pick_held(table: Ints, order: Ints, fits: Floats, tried: int, near: float, waits: bool) -> int:
    """Return the most usual of those that fit best: a paced one where sends look paced that did not wait for data."""
    best = paced = -1
    least = math.inf
    for k in range(tried):
        least = min(least, fits[k, MISFIT])
    for k in range(tried - 1, -1, -1):
        if fits[k, MISFIT] <= least + near:
            best = k
            if table[order[k], PACED] and fits[k, SPREAD] > MOSTLY and not waits:
                paced = k
    return paced if paced >= 0 else best


@kernel
def choose(
    events: Ints, table: Ints, rare: Bytes, mss: int, tolerance: int, begun: bool, h: Ints, w: Ints, order: Ints,
    fits: Floats, other: Ints, window: Ints, low: Ints, high: Ints, choice: Ints, told: Floats,
) -> None:  # fmt: skip
    """Try hypotheses on the events of one sender and take the one that explains the sends best.

    Those that are clearly worse than the best so far are given up on the way; rare ones are tried only where the usual
    ones fit badly. Parameters as of `choose_all`, for one sender; `h`, `w`, `order`, `fits` and `other` are scratch.
    """
    rows = events.shape[0]
    groups = sends(events)
    near = AS_GOOD + 1 / max(groups, 1)
    tried = 0
    least = math.inf
    for turn in range(2):
        if groups < TOO_FEW or (turn and least < WELL and explained(table, order, fits, tried, least + near, begun)):
            break
        for k in range(table.shape[0]):
            if rare[k] != turn:
                continue
            limit = FIRST_LIMIT
            if tried:
                enough = min(GIVE_UP * (least + near), max(UNEXPLAINED, 2 * least))
                limit = int(min(enough, 1e6) * groups)
            set_up(h, table[k], mss, tolerance, np.bool_(False))
            fit(events, h, w, other[:0] if tried else window, limit, groups, fits[tried])
            least = min(least, fits[tried, MISFIT])
            order[tried] = k
            tried += 1
    best = 0
    if tried:
        best = pick(table, order, fits, tried, near, begun)
    else:
        order[0] = 0
    held = tried > 0 and begun and table[order[best], CC] != BBR
    held = held and fits[best, STUCK] > (MOSTLY if tolerance else TAKEN_BACK)
    # BBR's pacing leaves windows unfilled and sends apart, and so does an application that writes little at a time
    waits = tried > 0 and table[order[best], CC] == BBR and idle(events) > MOSTLY
    if held or (waits and begun):
        held = True
        tried = hold(events, table, rare, mss, tolerance, h, w, order, fits, groups)
        best = pick_held(table, order, fits, tried, near, waits)
    elif not tried:  # so little does not fill a window
        held = begun
    algorithm = table[order[best], CC]
    final = fits[0]
    if best or held or not tried:  # else its window was written when it was tried
        final = fits[fits.shape[0] - 1]
        set_up(h, table[order[best]], mss, tolerance if tried else 0, held)
        fit(events, h, w, window, NO_LIMIT, groups, final)
    fired = first_exit(window)
    for r in range(rows):
        low[r] = window[r, OUT_CWND]
        high[r] = window[r, OUT_CWND]
    equal = agreed = 1
    elsewhere = math.inf  # misfit of the best of another congestion control
    for k in range(tried):
        if table[order[k], CC] != algorithm:
            elsewhere = min(elsewhere, fits[k, MISFIT])
        if k == best or fits[k, MISFIT] > fits[best, MISFIT] + near:
            continue
        same = begun and algorithm != BBR and table[order[k], CC] == algorithm
        if same and not fits_early(fits[k], fits[best, EARLY]):
            continue
        set_up(h, table[order[k]], mss, tolerance, held)
        fit(events, h, w, other[:rows], NO_LIMIT, groups, fits[fits.shape[0] - 2])
        for r in range(rows):
            low[r] = min(low[r], other[r, OUT_CWND])
            high[r] = max(high[r], other[r, OUT_CWND])
        equal += 1
        agreed += first_exit(other[:rows]) == fired
    told[TOLD_MISFIT] = final[MISFIT]
    told[TOLD_MISSED] = final[MISFIT] - looseness(algorithm, final[SPREAD])
    told[TOLD_AGREED] = agreed / equal
    told[TOLD_CONFIDENCE] = 0.0
    choice[BEST] = order[best]
    choice[SAID] = TOO_LITTLE
    if tried:
        choice[SAID] = NOTHING_FITS
        if told[TOLD_MISSED] <= UNEXPLAINED and not waits:
            choice[SAID] = NAMED
            reached = elsewhere if elsewhere < math.inf else final[MISFIT]
            told[TOLD_CONFIDENCE] = 1 - (final[MISFIT] + near) / (reached + near)


@kernel
def choose_all(
    events: Ints, at: Ints, mss: Ints, tolerance: Ints, begun: Bytes, table: Ints, rare: Bytes, first: Ints,
    beyond: Ints, window: Ints, low: Ints, high: Ints, choice: Ints, told: Floats,
) -> None:  # fmt: skip
    """Choose a hypothesis for each of some senders.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Rows from `replay`, of one sender after the other.
    at : int64, shape (senders + 1,)
        Where those of each sender begin, and their number.
    mss : int64, shape (senders,)
        Payload of a full segment, bytes.
    tolerance : int64, shape (senders,)
        Segments by which the flight may be wrong, where it was not seen at the sender.
    begun : uint8, shape (senders,)
        Whether the capture shows how the connection began.
    table : int64, shape (hypotheses, HYPOTHESIS_WIDTH)
        All hypotheses.
    rare : uint8, shape (hypotheses,)
        1 for those tried only where no other fits well.
    first, beyond : int64, shape (senders,)
        Which of them are about a sender: rows of the table, the most usual first.
    window : int64, shape (n, OUT_WIDTH)
        Out: the window that the chosen one says, see `replay_window`.
    low, high : int64, shape (n,)
        Out: least and largest window as each event arrives, segments, of all that fit as well.
    choice : int64, shape (senders, CHOICE_WIDTH), told : float64, shape (senders, TOLD_WIDTH)
        Out.
    """
    most = longest = 0
    for d in range(len(mss)):
        most = max(most, beyond[d] - first[d])
        longest = max(longest, at[d + 1] - at[d])
    h, w = np.empty(HYPOTHESIS_WIDTH, np.int64), np.empty(WINDOW_WIDTH, np.int64)
    order = np.empty(most + 1, np.int64)
    fits = np.empty((most + 2, FIT_WIDTH))
    other = np.empty((longest, OUT_WIDTH), np.int64)
    for d in range(len(mss)):
        a, b = at[d], at[d + 1]
        choose(
            events[a:b], table[first[d] : beyond[d]], rare[first[d] : beyond[d]], mss[d], tolerance[d], begun[d] != 0,
            h, w, order, fits, other, window[a:b], low[a:b], high[a:b], choice[d], told[d],
        )  # fmt: skip
        choice[d, BEST] += first[d]
