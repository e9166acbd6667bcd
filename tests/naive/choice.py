"""Twin of `tracetool.kernels.window_choice`: hypotheses as objects, tried and compared with Python's own lists."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracetool.kernels import replay_columns as rc
from tracetool.kernels import replay_window as rw
from tracetool.kernels import window_columns as wc

INITIAL_WINDOW = 10
AS_GOOD, GIVE_UP, UNEXPLAINED, WELL, LOOSE = 0.002, 20, 0.25, 0.02, 1 / 8
AS_GOOD_EARLY = 8


@dataclass
class Fit:
    """How a hypothesis fits."""

    hypothesis: object
    window: np.ndarray
    misfit: float
    judged: float
    unused: float
    spread: float
    shown: bool
    early: float
    early_groups: int
    stuck: float

    def as_early(self, missed):
        """Whether it misses no more until the second reduction than another that misses so many segments."""
        return self.early <= missed + AS_GOOD_EARLY + AS_GOOD * self.early_groups


def loose(hypothesis, spread):
    """What BBR pays."""
    return 0 if hypothesis.cc != "bbr" else LOOSE / 2 if spread > 0.5 else LOOSE


def fit(events, hypothesis, mss, tolerance, limit, groups, *, held=False):
    """Replay one hypothesis; beyond the limit the misfit is a lower bound."""
    w = np.zeros(wc.WINDOW_WIDTH, np.int64)
    out = np.zeros((len(events), rw.OUT_WIDTH), np.int64)
    numbers = hypothesis.numbers(mss, INITIAL_WINDOW, tolerance)
    numbers[wc.HELD] = held
    if hypothesis.cc != "bbr":
        numbers[wc.TOLERANCE] = 0
    rw.replay_window(events, numbers, w, out, limit)
    missed = int(w[wc.FIT_SURPLUS] + w[wc.FIT_DEFICIT])
    spread = w[wc.FIT_SPREAD] / max(w[wc.FIT_BURSTS], 1)
    if missed <= limit:
        groups = int(w[wc.FIT_GROUPS])
    surprise = 2 * AS_GOOD_EARLY + AS_GOOD * w[wc.FIT_EARLY_GROUPS] if w[wc.FIT_SURPRISE] else 0
    return Fit(
        hypothesis,
        out,
        missed / max(groups, 1) + loose(hypothesis, spread),
        w[wc.FIT_JUDGED] / max(w[wc.FIT_ROUNDS], 1),
        w[wc.FIT_UNUSED] / (wc.UNUSED_UNIT * max(w[wc.FIT_JUDGED], 1)),
        spread,
        bool(w[wc.WINDOW_SHOWN]),
        w[wc.FIT_EARLY] + surprise,
        int(w[wc.FIT_EARLY_GROUPS]),
        w[wc.FIT_STUCK] / max(w[wc.FIT_JUDGED], 1),
    )


def picked(fits, near, begun):
    """The most usual of the best, but for senders whose window hardly showed, or was never filled."""
    least = min(f.misfit for f in fits)
    good = [f for f in fits if f.misfit <= least + near]
    best = good[0]
    if begun and best.hypothesis.cc != "bbr":
        alike = [f for f in good if f.hypothesis.cc == best.hypothesis.cc]
        best = next(f for f in alike if f.as_early(min(f.early for f in alike)))
    bbr = [f for f in fits if f.hypothesis.cc == "bbr"]
    if best not in bbr and best.judged < 0.1:
        paced = [f for f in bbr if f.spread > 0.5 and f.misfit < 2 * UNEXPLAINED]
        best = min(paced, key=lambda f: f.misfit, default=best)
    if best not in bbr and best.unused > 0.02 and (begun or best.stuck > 0.5):
        less = [f for f in bbr if f.misfit - LOOSE / 2 < best.misfit]
        best = min(less, key=lambda f: f.misfit, default=best)
    return best if begun or best.shown else fits[0]


def picked_held(fits, near, waits):
    """The most usual of the best; of a sender whose sends look paced, the most usual that paces."""
    good = [f for f in fits if f.misfit <= min(f.misfit for f in fits) + near]
    return next((f for f in good if f.hypothesis.paced and f.spread > 0.5 and not waits), good[0])


def first_exit(window):
    """Where HyStart first ended slow start."""
    return np.flatnonzero(window[:, rw.OUT_FOUND])[:1].tolist()


def choose(events, hypotheses, mss, tolerance, *, begun):
    """The hypothesis, its window, least and largest window, part that agrees, what is said, and how sure."""
    groups = int(((events[:, rc.SENT_NEW] > 0) | (events[:, rc.SENT_AGAIN] > 0)).sum())
    unbounded = 1 << 62
    if groups < 10:
        only = fit(events, hypotheses[0], mss, 0, unbounded, groups, held=begun)
        cwnd = only.window[:, rw.OUT_CWND]
        return hypotheses[0], only.window, cwnd, cwnd, 1.0, None, None
    near = AS_GOOD + 1 / groups
    fits: list[Fit] = []
    for rare in (False, True):
        least = min((f.misfit for f in fits), default=np.inf)
        good = [f for f in fits if f.misfit <= least + near]
        if rare and least < WELL and any(not begun or f.hypothesis.cc == "bbr" or f.as_early(0) for f in good):
            break
        for hypothesis in (h for h in hypotheses if h.rare == rare):
            least = min((f.misfit for f in fits), default=np.inf)
            enough = min(GIVE_UP * (least + near), max(UNEXPLAINED, 2 * least))
            limit = int(min(enough, 1e6) * groups) if fits else 1 << 40
            fits.append(fit(events, hypothesis, mss, tolerance, limit, groups))
    best = picked(fits, near, begun)
    held = begun and best.hypothesis.cc != "bbr" and best.stuck > (0.5 if tolerance else 0.4)
    rated = events[events[:, rc.RS_DELIVERED] > 0, rc.RS_APP_LIMITED] != 0
    waits = best.hypothesis.cc == "bbr" and 2 * rated.sum() > len(rated)
    held = held or (waits and begun)
    if held:  # it is not its window that this sender waits for
        usual = [h for h in hypotheses if not h.rare and h.cc != "bbr"]
        fits = [fit(events, h, mss, tolerance, unbounded, groups, held=True) for h in usual]
        best = picked_held(fits, near, waits)
    same = [f for f in fits if f is not best and f.misfit <= best.misfit + near]
    if begun and best.hypothesis.cc != "bbr":
        same = [f for f in same if f.hypothesis.cc != best.hypothesis.cc or f.as_early(best.early)]
    final = fit(events, best.hypothesis, mss, tolerance, unbounded, groups, held=held)
    windows = [fit(events, f.hypothesis, mss, tolerance, unbounded, groups, held=held).window for f in same]
    all_cwnd = np.array([w[:, rw.OUT_CWND] for w in (final.window, *windows)])
    agreed = np.mean([first_exit(w) == first_exit(final.window) for w in (final.window, *windows)])
    shape = best.hypothesis, final.window, all_cwnd.min(axis=0), all_cwnd.max(axis=0), agreed
    if waits or final.misfit - loose(best.hypothesis, final.spread) > UNEXPLAINED:
        return *shape, "unknown", 0.0
    others = (f.misfit for f in fits if f.hypothesis.cc != best.hypothesis.cc)
    sure = 1 - (final.misfit + near) / (min(others, default=final.misfit) + near)
    return *shape, best.hypothesis.cc, round(min(max(sure, 0.0), 1.0), 3)
