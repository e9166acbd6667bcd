"""Twins of `tracetool.kernels.cubic_place` and `bbr_memory`: the searches with Python's own dictionaries, unpruned."""

from __future__ import annotations

import math

import numpy as np

from tracetool.kernels import replay_window as rw
from tracetool.kernels import window_columns as wc
from tracetool.kernels import window_fit

STANDING = (-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)


def missed_by(events, numbers, **changed):
    """Segments that a hypothesis misses, with some of its numbers changed, and its window."""
    numbers = numbers.copy()
    for name, value in changed.items():
        numbers[getattr(wc, name)] = value
    out, found = np.empty((len(events), rw.OUT_WIDTH), np.int64), np.empty(window_fit.FIT_WIDTH)
    window_fit.fit(events, numbers, np.empty(wc.WINDOW_WIDTH, np.int64), out, window_fit.NO_LIMIT, 0, found)
    return float(found[window_fit.MISSED]), out


def as_good(least):
    """Up to where chance may tell two apart."""
    return 1.5 * least + 8


def hopeless(least):
    """Beyond which nothing is sought."""
    return 4 * (least + 8)


def places(events, numbers, kinds):
    """Segments missed by (part, kind, stood), the parts of 1024, of all that are not hopeless."""
    _, out = missed_by(events, numbers)
    shown = np.flatnonzero(out[:, rw.OUT_UNKNOWN] == 0)
    window = int(out[shown[0], rw.OUT_CWND]) if len(shown) else 0
    if window < 2:
        return {}
    found = {}

    def attempt(threshold, kind, stood):
        part = -(-threshold * 1024 // window)
        key = part, kind, round(stood * 1024)
        if not 409 <= part <= 1024 or threshold < 2:
            return math.inf
        if key not in found:
            found[key], _ = missed_by(events, numbers, GROWN_FROM=part, OF_LAST_MAX=kind, STOOD=key[2])
        return found[key]

    def promising(kind):
        least = hopeless(min(found.values()))
        ranked = sorted((key for key in found if key[1] == kind), key=lambda key: found[key])
        parts = list(dict.fromkeys(key[0] for key in ranked if found[key] <= least))
        return [part * window // 1024 for part in parts[:3]]

    coarse = max(math.ceil(window / 20), 1)
    for kind in kinds:
        for k in range(21):
            for stood in (0.5, -0.5):
                attempt(window - k * coarse, kind, stood)
    if max(found.values()) <= as_good(min(found.values())):
        return found
    step = coarse
    while step > 1:
        step = (step + 1) // 2
        for kind in kinds:
            for best in promising(kind):
                for threshold in (best - step, best + step):
                    for stood in (0.5, -0.5):
                        attempt(threshold, kind, stood)
                for other in kinds:
                    if kind and other:
                        attempt((best * other + kind // 2) // kind, other, 0.5)
    for kind in kinds:
        for best in promising(kind):
            for threshold in (best - 1, best, best + 1):
                for stood in STANDING:
                    attempt(threshold, kind, stood)
    for kind in kinds:
        good = [key for key, missed in found.items() if key[1] == kind and missed <= as_good(min(found.values()))]
        if good:
            part = max(key[0] for key in good)
            stood = next(key[2] for key in good if key[0] == part) / 1024
            threshold, step = part * window // 1024, coarse
            while step > 1:
                step = (step + 1) // 2
                if attempt(threshold + step, kind, stood) <= as_good(min(found.values())):
                    threshold += step
    least = hopeless(min(found.values()))
    return {key: missed for key, missed in found.items() if missed <= least}


def rtts(events, numbers, smallest, largest, step, finest):
    """Segments missed by smallest RTTs that BBR may remember, of all that are not hopeless."""
    found = {}

    def attempt(rtt):
        at = max(round(rtt), 1000)
        if at not in found:
            found[at], _ = missed_by(events, numbers, REMEMBERED_RTT=at)
        return found[at] <= hopeless(min(found.values()))

    rtt = smallest
    while rtt > smallest / 8 and attempt(rtt):
        rtt *= step
    rtt = smallest
    while rtt < largest:
        rtt = min(rtt / step, largest)
        attempt(rtt)
    while step < finest:
        step **= 0.5
        best = min(found, key=found.get)
        attempt(best * step)
        attempt(min(best / step, largest))
    least = hopeless(min(found.values()))
    return {rtt: missed for rtt, missed in found.items() if missed <= least}
