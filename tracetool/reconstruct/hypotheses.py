"""Which congestion control a sender ran: every hypothesis replays the window, and the sends judge it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels import replay_columns as rc
from tracetool.kernels import replay_window as rw
from tracetool.kernels import window_columns as wc
from tracetool.reconstruct.models import Hypothesis, hypotheses
from tracetool.reconstruct.under_way import Place, distinct, places

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: BBR does not say when each segment leaves, only how fast: each group of sends costs it this part of a segment,
#: which is what a quantum of two segments leaves open, shared by the ACKs that release it.
LOOSENESS = 1 / 8
#: A hypothesis that misses more than this many segments per group of sends explains nothing.
UNEXPLAINED = 0.25
#: A fit as good as this needs no rare hypothesis beside it.
WELL = 0.02
#: A hypothesis that misses this many times as much as the best so far is given up, or one that explains nothing.
GIVE_UP = 20
NO_LIMIT = 1 << 62
#: Hypotheses whose misfit differs from the best by less than this many segments per group are as good as it.
AS_GOOD = 0.002
#: A sender whose window showed in fewer of its round trips was limited by its application or the receiver.
SELDOM_JUDGED = 0.1
MOSTLY = 0.5
OFTEN = 0.4
#: Fewer groups of sends than this say nothing about the congestion control.
TOO_FEW = 10


@dataclass(frozen=True, slots=True)
class Fit:
    """How one hypothesis fits the sends of a flow.

    Parameters
    ----------
    hypothesis : Hypothesis
    window : int64, shape (events, OUT_WIDTH)
        The window it says, see `tracetool.kernels.replay_window`.
    misfit : float
        Segments by which prediction and sends differ, per group of sends.
    groups : int
        Groups of sends.
    judged : float
        Part of the round trips in which the sender had data all the time, so that its window showed.
    lowered : float
        Part of those in which the window had to be lowered, because it was not filled.
    spread : float
        Part of the groups of three and more sends that left as if paced.
    shown : bool
        Whether the window was ever filled for a round trip, with room in the receiver's.
    """

    hypothesis: Hypothesis
    window: Ints
    misfit: float
    groups: int
    judged: float
    lowered: float
    spread: float
    shown: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """The hypothesis chosen for a flow.

    Parameters
    ----------
    best : Fit
        The one that fits best.
    low, high : int64, shape (events,)
        Least and largest window as each event arrives, segments, of all that fit as well, `best` among them: where
        they differ, nobody can tell.
    agreed : float
        Part of them that see HyStart end slow start first where `best` does.
    cc : str or None
        Congestion control; unknown where nothing fits, None where there is too little to judge.
    confidence : float or None
        0 to 1: how much worse the best hypothesis of another congestion control fits.
    places : tuple of Place
        Where CUBIC may have stood when a capture began in mid-connection, the likeliest first.
    """

    best: Fit
    low: Ints
    high: Ints
    agreed: float
    cc: str | None
    confidence: float | None
    places: tuple[Place, ...] = ()


def fit(
    events: Ints,
    hypothesis: Hypothesis,
    mss: int,
    initial_window: int,
    *,
    tolerance: int = 0,
    limit: int = NO_LIMIT,
    all_groups: int = 0,
) -> Fit:
    """Replay the window of one hypothesis and measure its misfit.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
    hypothesis : Hypothesis
    mss : int
        Bytes.
    initial_window : int
        Segments.
    tolerance : int
        Segments by which the flight may be wrong: it matters to BBR, whose window is bounded by its smallest RTT.
    limit : int
        Give up, without a window, where more segments than this are missed.
    all_groups : int
        Groups of sends in all events, for a replay that was given up.

    Returns
    -------
    Fit
        Its misfit is a lower bound where the replay was given up.
    """
    w = np.zeros(wc.WINDOW_WIDTH, np.int64)
    out = np.zeros((len(events) if limit == NO_LIMIT else 0, rw.OUT_WIDTH), np.int64)
    rw.replay_window(
        events,
        hypothesis.numbers(mss, initial_window, tolerance if hypothesis.algorithm == wc.BBR else 0),
        w,
        out,
        limit,
    )
    groups = int(w[wc.FIT_GROUPS])
    segments = float(w[wc.FIT_SURPLUS] + w[wc.FIT_DEFICIT])
    spread = float(w[wc.FIT_SPREAD]) / max(int(w[wc.FIT_BURSTS]), 1)
    if segments > limit:
        groups = all_groups
    misfit = segments / max(groups, 1) + looseness(hypothesis, spread)
    judged = float(w[wc.FIT_JUDGED]) / max(int(w[wc.FIT_ROUNDS]), 1)
    lowered = float(w[wc.FIT_LOWERED]) / max(int(w[wc.FIT_JUDGED]), 1)
    return Fit(hypothesis, out, misfit, groups, judged, lowered, spread, bool(w[wc.WINDOW_SHOWN]))


def looseness(hypothesis: Hypothesis, spread: float) -> float:
    """What a hypothesis pays for not saying when each segment leaves: half of it where the sends look paced."""
    if hypothesis.algorithm != wc.BBR:
        return 0.0
    return LOOSENESS / 2 if spread > MOSTLY else LOOSENESS


def sends(events: Ints) -> int:
    """Events that were followed by sends."""
    return int(((events[:, rc.SENT_NEW] > 0) | (events[:, rc.SENT_AGAIN] > 0)).sum())


def choose(events: Ints, mss: int, *, begun: bool = True, initial_window: int = 10, tolerance: int = 0) -> Choice:
    """Try the hypotheses on the events of a flow and take the one that explains the sends best.

    Those that are clearly worse than the best so far are given up on the way; rare ones are tried only where the usual
    ones fit badly.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Rows from `tracetool.kernels.replay.replay`.
    mss : int
        Payload of a full segment, bytes.
    begun : bool
        Whether the capture shows how the connection began.
    initial_window : int
        Segments.
    tolerance : int
        Segments by which the flight may be wrong, where it was not seen at the sender.

    Returns
    -------
    Choice
    """
    groups = sends(events)
    candidates = hypotheses(begun=begun)
    if groups < TOO_FEW:
        only = fit(events, candidates[0], mss, initial_window)
        return Choice(only, *_spread(only, ()), None, None)
    found: list[Place] = []
    if not begun:
        found = places(events, lambda some, hypothesis: fit(some, hypothesis, mss, initial_window))
        candidates = (*distinct(found), *candidates)
    near = AS_GOOD + 1 / max(groups, 1)
    fits: list[Fit] = []
    for rare in (False, True):
        least = min((f.misfit for f in fits), default=np.inf)
        if rare and least < WELL:
            break
        for hypothesis in candidates:
            if hypothesis.rare == rare:
                so_far = min((f.misfit for f in fits), default=np.inf)
                enough = min(GIVE_UP * (so_far + near), max(UNEXPLAINED, 2 * so_far))
                most = int(min(enough, 1e6) * groups) if fits else 1 << 40
                tried = fit(events, hypothesis, mss, initial_window, tolerance=tolerance, limit=most, all_groups=groups)
                fits.append(tried)
    least = min(f.misfit for f in fits)
    best = next(f for f in fits if f.misfit <= least + near)
    if best.hypothesis.algorithm != wc.BBR and best.judged < SELDOM_JUDGED:
        # the window hardly showed: pacing is what is left to see
        paced = [
            f for f in fits if f.hypothesis.algorithm == wc.BBR and f.spread > MOSTLY and f.misfit < 2 * UNEXPLAINED
        ]
        best = min(paced, key=lambda f: f.misfit, default=best)
    if begun and best.hypothesis.algorithm != wc.BBR and best.lowered > OFTEN:
        # it never fills the window that it should have: then to say less, as BBR does, is no fault
        less = [f for f in fits if f.hypothesis.algorithm == wc.BBR and f.misfit - LOOSENESS / 2 < best.misfit]
        best = min(less, key=lambda f: f.misfit, default=best)
    if not begun and not best.shown:
        best = fits[0]  # nothing shows the window, nor whose it is
    same = [f for f in fits if f is not best and f.misfit <= best.misfit + near]
    best = fit(events, best.hypothesis, mss, initial_window, tolerance=tolerance)
    others = (fit(events, f.hypothesis, mss, initial_window, tolerance=tolerance) for f in same)
    spread = _spread(best, others)  # one after another: the window of a long flow is large
    if best.misfit - looseness(best.hypothesis, best.spread) > UNEXPLAINED:
        return Choice(best, *spread, "unknown", 0.0, tuple(found))
    other = min((f.misfit for f in fits if f.hypothesis.cc != best.hypothesis.cc), default=best.misfit)
    confidence = 1 - (best.misfit + near) / (other + near)
    return Choice(best, *spread, best.hypothesis.cc, round(min(max(confidence, 0.0), 1.0), 3), tuple(found))


def _spread(best: Fit, others: Iterable[Fit]) -> tuple[Ints, Ints, float]:
    """Least and largest window of fits, and the part of them that see the first exit by HyStart where `best` does."""
    low = high = np.ascontiguousarray(best.window[:, rw.OUT_CWND])
    fired, fits, agreed = _fired(best), 1, 1
    for other in others:
        window = other.window[:, rw.OUT_CWND]
        low, high = np.minimum(low, window), np.maximum(high, window)
        fits += 1
        agreed += _fired(other) == fired
    return low, high, agreed / fits


def _fired(fit: Fit) -> tuple[int, ...]:
    """The event at which HyStart first ended slow start; none where it never did."""
    return tuple(np.flatnonzero(fit.window[:, rw.OUT_FOUND])[:1].tolist())
