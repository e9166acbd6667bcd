"""How well a hypothesis explains the sends of a sender: its window is replayed, and what is missed is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels._jit import kernel
from tracetool.kernels.replay_columns import RS_APP_LIMITED, RS_DELIVERED, SENT_AGAIN, SENT_NEW
from tracetool.kernels.replay_window import OUT_WIDTH, replay_window
from tracetool.kernels.window_columns import (
    BBR,
    BLUR,
    CC,
    FIT_BURSTS,
    FIT_DEFICIT,
    FIT_EARLY,
    FIT_EARLY_GROUPS,
    FIT_GROUPS,
    FIT_JUDGED,
    FIT_PACED,
    FIT_ROUNDS,
    FIT_SPREAD,
    FIT_STUCK,
    FIT_SURPLUS,
    FIT_SURPRISE,
    FIT_UNUSED,
    HELD,
    HYPOTHESIS_WIDTH,
    MSS,
    PACE_UNIT,
    TOLERANCE,
    UNUSED_UNIT,
    WINDOW_SHOWN,
    WINDOW_WIDTH,
)
from tracetool.kernels.window_judge import MOST_PER_MISS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

#: BBR does not say when each segment leaves, only how fast: each group of sends costs it this part of a segment,
#: which is what a quantum of two segments leaves open, shared by the ACKs that release it.
LOOSENESS = 1 / 8
NO_LIMIT = 1 << 62
#: Hypotheses whose misfit differs from the best by less than this many segments per group are as good as it.
AS_GOOD = 0.002
MOSTLY = 0.5  # more than half

#: How a hypothesis fits: segments that are missed per group of sends; parts of the round trips in which the window
#: showed, and of the window that stayed unused in these; of the larger groups of sends, those that left as if paced;
#: whether the window was ever filled for a round trip; groups of sends; all segments missed, those of BBR's pace too;
#: segments missed until the second reduction, and groups of sends until then; of the round trips in which it showed,
#: those after which the window was lowered by what stayed unused.
MISFIT, JUDGED, UNUSED, SPREAD, SHOWN, GROUPS, MISSED, EARLY, EARLY_GROUPS, STUCK, FIT_WIDTH = range(11)


@bare_kernel
def looseness(algorithm: int, spread: float) -> float:
    """What a hypothesis pays for not saying when each segment leaves: half of it where the sends look paced."""
    if algorithm != BBR:
        return 0.0
    return LOOSENESS / 2 if spread > MOSTLY else LOOSENESS


@bare_kernel
def sends(events: Ints) -> int:
    """Events that were followed by sends."""
    count = 0
    for r in range(events.shape[0]):
        if events[r, SENT_NEW] > 0 or events[r, SENT_AGAIN] > 0:
            count += 1
    return count


@bare_kernel
def idle(events: Ints) -> float:
    """Part of the rate samples whose data found nothing in flight: the application had written nothing before."""
    rated = limited = 0
    for r in range(events.shape[0]):
        if events[r, RS_DELIVERED] > 0:
            rated += 1
            limited += events[r, RS_APP_LIMITED] != 0
    return limited / max(rated, 1)


@kernel
def fit(events: Ints, h: Ints, w: Ints, out: Ints, limit: int, all_groups: int, found: Floats) -> None:
    """Replay the window of one hypothesis and measure its misfit.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Rows from `replay`.
    h : int64, shape (HYPOTHESIS_WIDTH,)
        The hypothesis.
    w : int64, shape (WINDOW_WIDTH,)
        Scratch.
    out : int64, shape (n, OUT_WIDTH), or without rows
        Filled, if it has rows: the window, see `replay_window`.
    limit : int
        Give up where more segments than this are missed: the misfit is a lower bound then.
    all_groups : int
        Groups of sends in all events, for a replay that was given up.
    found : float64, shape (FIT_WIDTH,)
        Out: how it fits.
    """
    for k in range(WINDOW_WIDTH):
        w[k] = 0
    for r in range(out.shape[0]):
        for k in range(OUT_WIDTH):
            out[r, k] = 0
    replay_window(events, h, w, out, limit)
    missed = w[FIT_SURPLUS] + w[FIT_DEFICIT]
    groups = all_groups if missed > limit else w[FIT_GROUPS]
    spread = w[FIT_SPREAD] / max(w[FIT_BURSTS], 1)
    found[MISFIT] = missed / max(groups, 1) + looseness(h[CC], spread)
    found[JUDGED] = w[FIT_JUDGED] / max(w[FIT_ROUNDS], 1)
    found[UNUSED] = w[FIT_UNUSED] / (UNUSED_UNIT * max(w[FIT_JUDGED], 1))
    found[SPREAD] = spread
    found[SHOWN] = w[WINDOW_SHOWN]
    found[GROUPS] = groups
    found[MISSED] = missed + w[FIT_PACED] / PACE_UNIT
    found[EARLY] = w[FIT_EARLY]
    if w[FIT_SURPRISE]:  # slow start does not end for nothing: one that explains it fits better, in any case
        found[EARLY] += MOST_PER_MISS + AS_GOOD * w[FIT_EARLY_GROUPS]
    found[EARLY_GROUPS] = w[FIT_EARLY_GROUPS]
    found[STUCK] = w[FIT_STUCK] / max(w[FIT_JUDGED], 1)


@bare_kernel
def set_up(h: Ints, hypothesis: Ints, mss: int, tolerance: int, held: bool) -> None:
    """Make a hypothesis one about a sender: the flight may be wrong by `tolerance`; `held`: see `HELD`."""
    for k in range(HYPOTHESIS_WIDTH):
        h[k] = hypothesis[k]
    h[MSS] = mss
    h[TOLERANCE] = tolerance if h[CC] == BBR else 0
    h[BLUR] = tolerance
    h[HELD] = held
