"""Where CUBIC stood when a capture began: which places explain its growth, and which of them is taken."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tracetool.kernels import replay_columns as rc
from tracetool.kernels import replay_window as rw
from tracetool.kernels import window_columns as wc
from tracetool.kernels.cubic import cubic_resume, cubic_update
from tracetool.reconstruct.models.cubic import OF_LAST_MAX, grown
from tracetool.reconstruct.under_way import LONG_ENOUGH, Place, head, likely, places

NO_FAST, FAST, NO_MAX = OF_LAST_MAX


def place(threshold, last=NO_FAST, window=100):
    return Place(grown(threshold / window, last), 0.0, threshold, window)


def events(count):
    made = np.zeros((count, rc.EVENT_WIDTH), np.int64)
    made[:, rc.TIME] = np.arange(count)
    return made


def test_the_head_ends_at_the_first_reduction_and_is_not_too_long():
    some = events(LONG_ENOUGH + 5)
    assert len(head(some)) == LONG_ENOUGH
    some[700, rc.OPS] = rc.OP_CWR
    some[900, rc.OPS] = rc.OP_RECOVERY
    assert len(head(some)) == 700


def valley(truth, window=100):
    """A fit that misses a segment for each by which the last maximum is wrong; whence it came, nothing tells."""
    tries = []

    def fit(some, hypothesis):
        tries.append(hypothesis)
        out = np.zeros((1, rw.OUT_WIDTH), np.int64)
        threshold = int(hypothesis.grown_from * window)
        out[0, rw.OUT_SSTHRESH_AFTER], out[0, rw.OUT_CWND] = threshold, window
        wrong = 1e3 if not hypothesis.of_last_max else 10 * abs(threshold / hypothesis.of_last_max - truth)
        return SimpleNamespace(hypothesis=hypothesis, window=out, misfit=wrong, groups=1)

    return fit, tries


@pytest.mark.parametrize("last_max", [85, 97, 113])
def test_both_kinds_of_maximum_are_found(last_max):
    fit, _ = valley(last_max)
    found = places(events(500), fit)
    for kind in (NO_FAST, FAST):
        thresholds = [one.threshold for one in found if one.hypothesis.of_last_max == kind]
        assert thresholds, kind
        assert all(abs(threshold - kind * last_max) < 2 for threshold in thresholds)
    assert not [one for one in found if one.hypothesis.of_last_max == NO_MAX]


def test_what_shows_no_growth_is_not_searched():
    fit, tries = valley(97)
    assert {one.threshold for one in places(events(20), fit)} == {0}
    assert tries == []

    def never_shown(some, hypothesis):
        tries.append(hypothesis)
        out = np.full((1, rw.OUT_WIDTH), 1, np.int64)
        return SimpleNamespace(hypothesis=hypothesis, window=out, misfit=0.0, groups=1)

    assert {one.threshold for one in places(events(500), never_shown)} == {0}
    assert len(tries) == 1


def test_places_that_agree_are_no_assumption():
    assert likely([place(80), place(82)], 0, 150) == (80, True)


@pytest.mark.parametrize(
    ("lost_at", "reached", "threshold"),
    [
        (141, 140, 99),  # the loss before came where the next one did
        (115, 115, 80),
        (0, 130, 99),  # 114 was passed unharmed, 141 was not reached
        (0, 105, 80),  # both are beyond: the nearer one
        (0, 150, 99),  # both were passed: the last one
    ],
)
def test_losses_recur_at_the_same_window(lost_at, reached, threshold):
    assert likely([place(80), place(99, FAST)], lost_at, reached) == (threshold, False)


def test_nothing_is_told_where_the_window_never_showed():
    assert likely([place(0)], 100, 100) is None


@pytest.mark.parametrize("of_last_max", [NO_FAST, FAST])
@pytest.mark.parametrize("at", [0.4, 0.9])
def test_an_epoch_is_resumed_where_it_stood(of_last_max, at):
    """CUBIC grows on from the middle of its epoch as if the beginning had been seen."""
    w, later = np.zeros((2, wc.WINDOW_WIDTH), np.int64)
    w[wc.CWND] = w[wc.SSTHRESH] = 200
    w[wc.LAST_MAX] = int(200 / of_last_max)
    rtt, start = 50_000_000, 10**18
    plateau = (w[wc.LAST_MAX] - 200) / 0.4
    rounds = int(at * plateau ** (1 / 3) / 0.05)

    def grow(state, first, last):
        for n in range(first, last):  # all of a window is acknowledged in a round trip, ten segments at a time
            steps = max(int(state[wc.CWND]) // 10, 1)
            for step in range(steps):
                now = start + n * rtt + step * rtt // steps
                cubic_update(state, 10, now)
                state[wc.COUNT] += 10
                if state[wc.COUNT] >= state[wc.CNT]:
                    state[wc.COUNT] = 0
                    state[wc.CWND] += 1

    grow(w, 0, rounds)
    h = grown(200 / int(w[wc.CWND]), of_last_max).numbers(1448, 10)
    later[wc.CWND] = w[wc.CWND]
    cubic_resume(later, h, start + rounds * rtt, rtt)
    grow(w, rounds, rounds + 40)
    grow(later, rounds, rounds + 40)
    assert later[wc.CWND] == pytest.approx(int(w[wc.CWND]), rel=0.03)  # how long it stood at its size is not known
    assert later[wc.SSTHRESH] == pytest.approx(200, abs=2)
