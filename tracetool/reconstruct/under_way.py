"""A connection that began before its capture: where on CUBIC's curve it stood, and the threshold it had grown from.

Nothing before the capture was seen, but the growth that follows goes on from there. Up to the first reduction the
window follows a cube whose place depends on the threshold at which its epoch began and on the maximum before that
(`tracetool.reconstruct.models.cubic.OF_LAST_MAX`): the grid of both is searched, then refined around what fits best
of each kind of maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels import replay_columns as rc
from tracetool.kernels import replay_window as rw
from tracetool.kernels.cubic import BETA, BETA_SCALE
from tracetool.reconstruct.models.cubic import GROWN_FROM, OF_LAST_MAX, grown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from tracetool.reconstruct.hypotheses import Fit
    from tracetool.reconstruct.models import Hypothesis

    Ints = npt.NDArray[np.int64]
    Try = Callable[[Ints, Hypothesis], Fit]

#: Operations that set a new threshold: what was before the capture then no longer shows.
REDUCTIONS = rc.OP_TLP_LOSS | rc.OP_CWR | rc.OP_RECOVERY | rc.OP_RTO_REDUCE
#: The grid is halved around its best points of each kind until the threshold is known to a segment.
BEST_OF_KIND = 3
#: Which part of its time the window may have stood (see `Hypothesis.stood`): while it is searched, and in the end.
HALF, STANDING = 0.5, (-0.75, -0.25, 0.0, 0.25, 0.75, 1.0)
#: A kind of maximum is given up where it misses this many times as much as the best, and as many for chance.
HOPELESS = 4
#: Places on the curve explain the growth as well that miss no more segments than the best, these, and a part of those.
CHANCE, PART_OF_CHANCE = 8, 1 / 2
#: Thresholds that differ by less than this factor agree.
AGREE = 1.1
#: Fewer events show no growth; more show no more of the curve, and would take long.
TOO_SHORT, LONG_ENOUGH = 64, 1 << 15
#: Places that are tried on the whole flow.
MOST_PLACES = 6


@dataclass(frozen=True, slots=True)
class Place:
    """A place on CUBIC's curve.

    Parameters
    ----------
    hypothesis : Hypothesis
    missed : float
        Segments by which the growth up to the first reduction differs from it.
    threshold : int
        Threshold from before the capture, segments; 0 where the window never showed.
    window : int
        Window when it first showed, segments.
    """

    hypothesis: Hypothesis
    missed: float
    threshold: int
    window: int

    @property
    def shown(self) -> int:
        """The threshold as the kernel tells it: at least 3/4 of the window (`tcp_current_ssthresh`)."""
        return max(self.threshold, self.window * 3 // 4)

    @property
    def lost_at(self) -> int:
        """Window at which the loss came that set the threshold."""
        return self.threshold * BETA_SCALE // BETA


def head(events: Ints) -> Ints:
    """Events up to the first reduction of the window, but not too many.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Rows from `tracetool.kernels.replay.replay`.

    Returns
    -------
    int64 array
        A view of the first rows.
    """
    reductions = np.flatnonzero(events[:, rc.OPS] & REDUCTIONS)
    return events[: min(int(reductions[0]) if len(reductions) else len(events), LONG_ENOUGH)]


def places(events: Ints, fit: Try) -> list[Place]:
    """Where CUBIC may have stood when the capture began, the best first.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Rows from `tracetool.kernels.replay.replay`.
    fit : callable
        Fits one hypothesis to some events.

    Returns
    -------
    list of Place
        Those that explain the growth as well as the best.

    Examples
    --------
    >>> places(events, fit)[0].threshold  # doctest: +SKIP
    56
    """
    before = head(events)
    unknown = [Place(grown(1.0, last), 0.0, 0, 0) for last in OF_LAST_MAX]
    if len(before) < TOO_SHORT:
        return unknown
    found: dict[tuple[float, float, float], Place] = {}

    def place(part: float, last: float, stood: float) -> float:
        key = (round(part, 4), last, stood)
        if not (GROWN_FROM[-1] <= part <= 1 and -1 <= stood <= 1):
            return np.inf
        if key not in found:
            fitted = fit(before, grown(*key))
            shown = np.flatnonzero(fitted.window[:, rw.OUT_UNKNOWN] == 0)
            at = int(shown[0]) if len(shown) else -1
            threshold, window = fitted.window[at, [rw.OUT_SSTHRESH_AFTER, rw.OUT_CWND]].tolist()
            found[key] = Place(fitted.hypothesis, fitted.misfit * fitted.groups, threshold if len(shown) else 0, window)
        return found[key].missed

    place(1.0, OF_LAST_MAX[0], HALF)
    first = next(iter(found.values()))
    window = first.window
    if not first.threshold:
        return unknown  # it never shows
    for last in OF_LAST_MAX:
        for part in GROWN_FROM:
            for stood in (HALF, -HALF):
                place(part, last, stood)
    step = GROWN_FROM[0] - GROWN_FROM[1]
    while step * window >= 1:
        step /= 2
        for part, last, _ in _promising(found):
            for nearby in (part - step, part + step):
                for stood in (HALF, -HALF):
                    place(nearby, last, stood)
            for other in OF_LAST_MAX:  # the same maximum, reached from another threshold
                place(part * other / last if last else 0.0, other, HALF)
    for part, last, _ in _promising(found):
        for nearby in (part - 1 / window, part, part + 1 / window):
            for stood in STANDING:
                place(nearby, last, stood)
    most = _as_good(found)
    for last in OF_LAST_MAX:  # how far up a threshold may be that explains it
        good = [key for key, one in found.items() if key[1] == last and one.missed <= most]
        if good:
            part, _, stood = max(good)
            step = GROWN_FROM[0] - GROWN_FROM[1]
            while step * window >= 1:
                step /= 2
                part += step if place(part + step, last, stood) <= most else 0.0
    most = _as_good(found)
    ranked = sorted(found.values(), key=lambda one: one.missed)
    return [one for one in ranked if one.missed <= most]


def likely(found: Sequence[Place], lost_at: int, reached: int) -> tuple[int, bool] | None:
    """Threshold from before the capture, and whether the growth alone tells it.

    The growth shows the maximum it heads for, but not always what that was: the window of the last loss, or less of
    it after fast convergence; and where it follows Reno's line not even that. Losses recur at the same window where
    nothing else changes, and not at a window that is passed unharmed: the place is taken whose loss was nearest to the
    next one, or, without one, the nearest beyond the largest window, or the last before it.

    Parameters
    ----------
    found : sequence of Place
        From `places`.
    lost_at : int
        Window at the first loss seen; 0 without one.
    reached : int
        Largest window up to there.

    Returns
    -------
    tuple or None
        The threshold, and whether it is fitted (else assumed); None where nothing tells it.

    Examples
    --------
    >>> likely([Place(grown(0.8, 0.7), 2.0, 80, 100), Place(grown(0.94, 0.82), 2.0, 94, 100)], 135, 135)
    (94, False)
    """
    shown = [one for one in found if one.threshold]
    if not shown:
        return None
    thresholds = [one.shown for one in shown]
    if max(thresholds) <= min(thresholds) * AGREE:
        return shown[0].threshold, True
    if lost_at:
        return min(shown, key=lambda one: abs(one.lost_at - lost_at)).threshold, False
    return min(shown, key=lambda one: (one.lost_at <= reached, abs(one.lost_at - reached))).threshold, False


def _as_good(found: Mapping[tuple[float, float, float], Place]) -> float:
    return min(one.missed for one in found.values()) * (1 + PART_OF_CHANCE) + CHANCE


def _promising(found: Mapping[tuple[float, float, float], Place]) -> list[tuple[float, float, float]]:
    """Return the best of each kind of maximum, unless all of a kind are far worse than the best."""
    most = HOPELESS * (min(one.missed for one in found.values()) + CHANCE)
    chosen = []
    for last in OF_LAST_MAX:
        ranked = sorted((key for key in found if key[1] == last), key=lambda key: found[key].missed)
        parts = dict.fromkeys(key[0] for key in ranked[: 2 * BEST_OF_KIND] if found[key].missed <= most)
        chosen += [(part, last, HALF) for part in list(parts)[:BEST_OF_KIND]]
    return chosen


def distinct(found: list[Place]) -> list[Hypothesis]:
    """Few of the places, the best first, that differ in their last maximum: the next loss depends on it.

    Examples
    --------
    >>> distinct([Place(grown(0.9, 0.0), 1.0, 50, 55), Place(grown(0.89, 0.0), 2.0, 49, 55)])[0].grown_from
    0.9
    """
    step = GROWN_FROM[0] - GROWN_FROM[1]
    chosen: dict[tuple[float, int], Hypothesis] = {}
    for one in found:
        chosen.setdefault((one.hypothesis.of_last_max, round(one.hypothesis.grown_from / step)), one.hypothesis)
    return list(chosen.values())[:MOST_PLACES]
