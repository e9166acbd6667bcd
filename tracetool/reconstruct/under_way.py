"""A connection that began before its capture: where on CUBIC's curve it stood, and the threshold it had grown from.

Nothing before the capture was seen, but the growth that follows goes on from there. Up to the first reduction the
window follows a cube whose place depends on the threshold at which its epoch began and on the maximum before that
(`tracetool.reconstruct.models.cubic.OF_LAST_MAX`): both are searched (`tracetool.kernels.cubic_place`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels import cubic_place as cp
from tracetool.kernels import replay_columns as rc
from tracetool.kernels import replay_window as rw
from tracetool.kernels import window_choice as choice
from tracetool.kernels import window_fit
from tracetool.kernels.chance import as_good, as_likely
from tracetool.kernels.cubic import BETA, BETA_SCALE, FRIENDLY_PER_ROUND, SLOWEST_WITHOUT_LOSS
from tracetool.kernels.window_columns import WINDOW_WIDTH
from tracetool.reconstruct.models import reno
from tracetool.reconstruct.models.cubic import OF_LAST_MAX, grown

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tracetool.reconstruct.models import Hypothesis

    Ints = npt.NDArray[np.int64]

#: Thresholds that differ by less than this factor agree: any of them is off by a tenth at most.
AGREE = 1.1
#: A window that came so near to another has reached it: so well are windows known (`window_choice.MOST_UNUSED`).
NEAR = 1 + choice.MOST_UNUSED
#: In fewer events, each of which mostly delivers two segments, no window grows by more than what chance may do: before
#: any loss CUBIC's does so by one in twenty, and few curves are steeper.
TOO_SHORT = choice.AS_GOOD_EARLY * SLOWEST_WITHOUT_LOSS // 2
#: More events show hardly more of the curve, and would take long.
LONG_ENOUGH = 1 << 15
#: Places that are tried on the whole flow.
MOST_PLACES = 6


@dataclass(frozen=True, slots=True)
class Place:
    """A place on CUBIC's curve.

    Parameters
    ----------
    hypothesis : Hypothesis
    missed : int
        Segments by which the growth up to the first reduction differs from it.
    threshold : int
        Threshold from before the capture, segments; 0 where the window never showed.
    window : int
        Window when it first showed, segments.
    """

    hypothesis: Hypothesis
    missed: int
    threshold: int
    window: int

    @property
    def shown(self) -> int:
        """The threshold as the kernel tells it: at least 3/4 of the window (`tcp_current_ssthresh`)."""
        return max(self.threshold, self.window * 3 // 4)

    @property
    def lost_at(self) -> int:
        """Window at which the loss came that set the threshold."""
        return -(-self.threshold * BETA_SCALE // BETA)  # the kernel rounds the threshold down


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
    reductions = np.flatnonzero(events[:, rc.OPS] & rc.OP_REDUCTIONS)
    return events[: min(int(reductions[0]) if len(reductions) else len(events), LONG_ENOUGH)]


def places(events: Ints, mss: int, scratch: Ints) -> tuple[Place, ...]:
    """Where CUBIC may have stood when the capture began, the best first.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Rows from `tracetool.kernels.replay.replay`.
    mss : int
        Payload of a full segment, bytes.
    scratch : int64, shape (n, OUT_WIDTH)
        Overwritten.

    Returns
    -------
    tuple of Place
        Those that explain the growth as well as the best.

    Examples
    --------
    >>> places(events, 1448, np.empty((len(events), rw.OUT_WIDTH), np.int64))[0].threshold  # doctest: +SKIP
    56
    """
    before = head(events)
    unknown = tuple(Place(grown(1.0, last), 0, 0, 0) for last in OF_LAST_MAX)
    if len(before) < TOO_SHORT:
        return unknown
    kinds = {round(last * cp.WHOLE): last for last in OF_LAST_MAX}
    tried = np.empty((cp.MOST_TRIED, cp.TRIED_WIDTH), np.int64)
    out = scratch[: len(before)]
    count = cp.search_places(before, grown(1.0, 0.0).numbers(mss, 0), np.array([*kinds]), out, tried)
    if not count:
        return unknown
    window = int(out[np.argmin(out[:, rw.OUT_UNKNOWN]), rw.OUT_CWND])
    missed = tried[:count, cp.TRIED_MISSED]
    order = np.argsort(missed, kind="stable")
    good = tried[order[: np.count_nonzero(missed <= as_good(float(missed.min())))]]
    return tuple(
        Place(grown(part / cp.WHOLE, kinds[last], stood / cp.WHOLE), lost, max(window * part // cp.WHOLE, 2), window)
        for part, last, stood, lost in good.tolist()
    )


def grows_as_reno(events: Ints, mss: int, found: Sequence[Place], scratch: Ints) -> bool:
    """Whether a window grew by so much and so exactly as Reno's that this is no chance.

    Reno's grows by a segment a round trip, CUBIC's by anything: of two that fit as well the one is right that could
    have been wrong. CUBIC where it follows Reno grows by 8/15 of a segment (RFC 9438, section 4.3), of which Reno
    misses the rest: half as much is nearer to none.

    Parameters
    ----------
    events, mss, scratch
        As `places` takes them.
    found : sequence of Place
        From `places`.

    Examples
    --------
    >>> grows_as_reno(events, 1448, places(events, 1448, scratch), scratch)  # doctest: +SKIP
    False
    """
    before = head(events)
    if len(before) < TOO_SHORT:
        return False
    out, fits = scratch[: len(before)], np.empty(window_fit.FIT_WIDTH)
    numbers = reno.UNDER_WAY[0].numbers(mss, 0)
    window_fit.fit(before, numbers, np.empty(WINDOW_WIDTH, np.int64), out, window_fit.NO_LIMIT, 0, fits)
    known, missed = out[out[:, rw.OUT_UNKNOWN] == 0, rw.OUT_CWND], float(fits[window_fit.MISSED])
    grew = int(known[-1] - known[0]) if len(known) else 0
    exact = missed <= grew * (1 - FRIENDLY_PER_ROUND) / 2
    return grew >= choice.AS_GOOD_EARLY and exact and missed <= as_likely(min(one.missed for one in found))


def likely(found: Sequence[Place], lost_at: int, reached: int, *, marked: bool) -> tuple[int, bool] | None:
    """Threshold from before the capture, and whether the growth alone tells it.

    The growth shows the maximum it heads for, but not always what that was: the window of the last loss, or less of it
    after fast convergence; and where it follows Reno's line not even that. Of each kind of maximum the places that miss
    least count. Losses recur at the same window where nothing else changes, and not at a window that is passed
    unharmed: of the places whose loss the window did not pass, that is taken whose loss was nearest to the next one,
    unless the window had grown from less; or, without one, the kind with the nearest beyond the largest window, and of
    its places beyond that, which nothing tells apart, the middle one; if need be the nearest of those that fit worse,
    or the last before it. Where losses do not recur so, and what marks packets (ECN) does so by chance, many places are
    alike in what the kernel tells of them (`Place.shown`): those are taken.

    Parameters
    ----------
    found : sequence of Place
        From `places`.
    lost_at : int
        Window at the first loss seen; 0 without one.
    reached : int
        Largest window up to there.
    marked : bool
        Whether that was no loss, but a mark (ECN); without one, whether it might be.

    Returns
    -------
    tuple or None
        The threshold, and whether it is fitted (else assumed); None where nothing tells it.

    Examples
    --------
    >>> likely([Place(grown(0.8, 0.7), 2.0, 80, 100), Place(grown(0.94, 0.82), 2.0, 94, 100)], 135, 135, marked=False)
    (94, False)
    """
    shown = [one for one in found if one.threshold]
    if not shown:
        return None
    near = _as_likely(shown)
    fitted = max(one.shown for one in near) <= AGREE * min(one.shown for one in near)
    if marked or lost_at * BETA > shown[0].window * BETA_SCALE:
        return min(near, key=lambda one: (one.shown, -one.threshold)).threshold, fitted
    if lost_at:
        unharmed = [one for one in near if one.lost_at * NEAR >= lost_at] or near
        return min(unharmed, key=lambda one: abs(one.lost_at - lost_at)).threshold, fitted
    beyond = [one for one in near if one.lost_at > reached * NEAR]
    if beyond:
        kind = min(beyond, key=lambda one: one.lost_at).hypothesis.of_last_max
        alike = sorted({one.threshold for one in beyond if one.hypothesis.of_last_max == kind})
        return alike[len(alike) // 2], fitted
    beyond = [one for one in shown if one.lost_at > reached * NEAR]
    if beyond:
        return min(beyond, key=lambda one: one.lost_at).threshold, False
    return max(near, key=lambda one: one.lost_at).threshold, fitted


def _as_likely(shown: Sequence[Place]) -> list[Place]:
    """Return of each kind of maximum those that miss hardly more than its best."""
    least: dict[float, float] = {}
    for one in shown:
        kind = one.hypothesis.of_last_max
        least[kind] = min(one.missed, least.get(kind, one.missed))
    return [one for one in shown if one.missed <= as_likely(least[one.hypothesis.of_last_max])]


def distinct(found: Sequence[Place]) -> list[Hypothesis]:
    """Few of the places, the best of each kind of maximum first: what the next loss makes of it depends on the kind.

    Examples
    --------
    >>> distinct([Place(grown(0.9, 0.0), 1, 50, 55), Place(grown(0.89, 0.0), 2, 49, 55)])[0].grown_from
    0.9
    """
    kinds: dict[float, dict[int, Hypothesis]] = {}
    for one in found:
        part = round(one.hypothesis.grown_from * cp.COARSE)
        kinds.setdefault(one.hypothesis.of_last_max, {}).setdefault(part, one.hypothesis)
    turns = zip_longest(*(kind.values() for kind in kinds.values()))
    return [one for turn in turns for one in turn if one is not None][:MOST_PLACES]
