"""Which of the hypotheses that were tried is taken: as a twin that compares objects does."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tests.naive import choice as naive
from tracetool.kernels import window_columns as wc
from tracetool.kernels import window_fit as wf
from tracetool.kernels._jit import kernel
from tracetool.kernels.window_choice import pick

NEAR = 0.004
ALGORITHMS = {"reno": wc.RENO, "cubic": wc.CUBIC, "bbr": wc.BBR}


@kernel
def picked(table, order, fits, tried, near, begun):
    return pick(table, order, fits, tried, near, begun)


def fit(cc, misfit=0.0, **more):
    """How a hypothesis fits; nothing is odd about it."""
    usual = {
        "judged": 1.0,
        "unused": 0.0,
        "spread": 0.0,
        "shown": True,
        "early": 0.0,
        "early_groups": 100,
        "stuck": 0.0,
    }
    return naive.Fit(hypothesis=SimpleNamespace(cc=cc), window=None, misfit=misfit, **{**usual, **more})


def taken(fits, *, begun):
    """Which one the kernel takes, and the twin too."""
    rows = np.zeros((len(fits), wf.FIT_WIDTH))
    table = np.zeros((len(fits), wc.HYPOTHESIS_WIDTH), np.int64)
    order = np.arange(len(fits))[::-1].copy()
    for k, one in enumerate(fits):
        table[order[k], wc.CC] = ALGORITHMS[one.hypothesis.cc]
        rows[k, [wf.MISFIT, wf.JUDGED, wf.UNUSED, wf.SPREAD]] = one.misfit, one.judged, one.unused, one.spread
        rows[k, [wf.SHOWN, wf.EARLY, wf.EARLY_GROUPS, wf.STUCK]] = one.shown, one.early, one.early_groups, one.stuck
    place = int(picked(table, order, rows, len(fits), NEAR, begun))
    assert fits[place] is naive.picked(fits, NEAR, begun)
    return place


#: It leaves a part of its window unused, and had to be lowered after most round trips.
UNFILLED = {"unused": 0.03, "stuck": 0.6}
#: BBR pays this for saying less, and misses less without it.
LOOSE = wf.LOOSENESS / 2


@pytest.mark.parametrize("cc", ["reno", "cubic"])
@pytest.mark.parametrize(
    ("more", "bbr", "best"),
    [
        (UNFILLED, 0.01 + LOOSE - 0.001, 1),
        (UNFILLED, 0.01 + LOOSE + 0.001, 0),
        ({**UNFILLED, "stuck": 0.5}, 0.02, 0),  # in half of the round trips it was filled: it grows, and is taken back
        ({**UNFILLED, "stuck": 0.51}, 0.02, 1),
        ({**UNFILLED, "unused": 0.02}, 0.02, 0),  # windows are not known better than that
        ({**UNFILLED, "unused": 0.021}, 0.02, 1),
    ],
)
def test_under_way_bbr_is_taken_where_others_leave_their_window_unfilled(cc, more, bbr, best):
    assert taken([fit(cc, 0.01, **more), fit("bbr", bbr)], begun=False) == best


def test_of_several_the_best_is_taken():
    some = [fit("reno", 0.01, **UNFILLED), fit("bbr", 0.05), fit("cubic", 0.03), fit("bbr", 0.04), fit("bbr", 0.06)]
    assert taken(some, begun=False) == 3


@pytest.mark.parametrize(("stuck", "begun", "best"), [(0.0, True, 1), (0.0, False, 0), (0.6, False, 1)])
def test_where_the_beginning_shows_an_unfilled_window_is_enough(stuck, begun, best):
    assert taken([fit("reno", 0.01, unused=0.03, stuck=stuck), fit("bbr", 0.02)], begun=begun) == best


def test_under_way_a_window_that_never_showed_is_the_first_ones():
    some = [fit("cubic", 0.02), fit("reno", 0.0, shown=False)]
    assert taken(some, begun=False) == 0
    assert taken(some, begun=True) == 1


@pytest.mark.parametrize("begun", [True, False])
def test_the_kernel_takes_what_its_twin_takes(begun):
    rng = np.random.default_rng(7)
    seen = set()
    for _ in range(3000):
        some = [
            fit(
                str(rng.choice(["reno", "cubic", "bbr"])),
                float(rng.choice([0, 0.002, 0.01, 0.05, 0.1, 0.4])),
                judged=float(rng.choice([0.05, 0.5, 1])),
                unused=float(rng.choice([0, 0.01, 0.05])),
                spread=float(rng.choice([0, 0.8])),
                shown=bool(rng.random() < 0.8),
                early=float(rng.integers(0, 30)),
                early_groups=int(rng.integers(0, 1000)),
                stuck=float(rng.choice([0, 0.5, 0.9])),
            )
            for _ in range(rng.integers(1, 7))
        ]
        place = taken(some, begun=begun)
        seen.add((some[place].hypothesis.cc, place > 0))
    assert len(seen) == 6
