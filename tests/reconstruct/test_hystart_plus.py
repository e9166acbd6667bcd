"""HyStart++ (RFC 9406) is told from packets alone: those that a slow simulated sender makes over a few bottlenecks."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from tests.naive import sender as naive
from tests.naive.hystart_plus import HyStartPlus
from tests.reconstruct.inferred import inferred_of
from tests.reconstruct.packets import FlowFacts, FlowPackets

FACTS = FlowFacts(1460, 1460, 7, 7, True, True, False, None, syn_seen=True, vantage="sender")
#: A cause of which the inference is no surer than this is one of two that fit alike.
UNSURE = 0.5


def seen(cc, path, seconds, *, plus=None, **more):
    """What is said of a simulated sender; its state, and how far off window and threshold are, at each ACK."""
    rows, truth = naive.run(cc, naive.Path(**path), seconds, plus=plus, **more)
    inferred = inferred_of(FlowPackets(**naive.packets(rows)), FACTS)
    state = np.array(truth)
    window = np.abs(inferred.samples["cwnd_segments"].to_numpy() - state[:, 1])
    threshold = inferred.samples["ssthresh_segments"].fill_null(naive.INFINITE).to_numpy()
    return inferred, state, window, np.abs(threshold - state[:, 2])


def first(inferred):
    return inferred.slow_starts.row(0, named=True)


def bottleneck(rate, delay, deep):
    """A path of so many segments a second and microseconds, with a queue of so many round trips."""
    return {"rate": rate, "delay": delay, "queue": rate * delay // 10**6 * deep}


def cases(count):
    """So many senders over bottlenecks that hold 15 to 60 segments: a path, congestion control, paced, ACK every."""
    grid = itertools.product([500, 1000, 2000, 3000], [10_000, 20_000, 40_000, 60_000], [1, 2, 4, 9])
    paths = [one for one in grid if 15 <= one[0] * one[1] / 1e6 <= 60]
    every = list(itertools.product(paths, ["reno", "cubic"], [False, True], [1, 2, 4]))
    return random.Random(9406).sample(every, count)


def faults(path, cc, paced, every):
    """What is wrong about what is said of one of them; what it is not sure of must lie within the bounds."""
    twin = HyStartPlus(1000, paced)
    inferred, state, window, threshold = seen(
        cc, bottleneck(*path), 1500 / path[0], plus=twin, paced=paced, every=every
    )
    start, samples = first(inferred), inferred.samples
    left = state[state[:, 2] < naive.INFINITE]
    low, high = samples["cwnd_low_segments"].to_numpy(), samples["cwnd_high_segments"].fill_null(1 << 40).to_numpy()
    wrong = {
        "bounds": ((low <= state[:, 1]) & (state[:, 1] <= high)).mean() < 0.97,
        "congestion control": inferred.cc != cc and inferred.cc_confidence >= UNSURE,
    }
    if start["confidence"] is None or start["confidence"] > UNSURE:
        cause = "none" if not len(left) else "hystart_delay" if twin.over else "loss"
        wrong["cause"] = start["exit_cause"] != cause
        wrong["exit"] = len(left) and abs(start["ssthresh_segments"] - left[0, 2]) > 2
    if inferred.cc == cc:
        wrong["window"] = np.quantile(window, 0.5) > 1 or np.quantile(window, 0.99) > 4
        wrong["threshold"] = (threshold <= 2).mean() < 0.97
    return [name for name, is_wrong in wrong.items() if is_wrong]


def test_the_window_is_followed_over_nearly_any_bottleneck():
    found = {case: faults(*case) for case in cases(40)}
    wrong = {case: names for case, names in found.items() if names}
    assert len(wrong) <= 4, wrong


@pytest.mark.parametrize("path", [(1000, 20_000, 2), (2000, 20_000, 4), (500, 40_000, 9), (2000, 10_000, 2)])
@pytest.mark.parametrize("cc", ["reno", "cubic"])
def test_it_is_sure_of_what_it_saw(path, cc):
    inferred, *_ = seen(cc, bottleneck(*path), 1500 / path[0], plus=HyStartPlus(1000))
    assert inferred.cc == cc
    assert inferred.cc_confidence > UNSURE
    assert first(inferred)["confidence"] > UNSURE


@pytest.mark.parametrize("cc", ["reno", "cubic"])
@pytest.mark.parametrize("paced", [False, True])
def test_it_leaves_slow_start_after_five_slower_rounds(cc, paced):
    twin = HyStartPlus(1000, paced)
    inferred, state, window, threshold = seen(
        cc, {"rate": 1000, "delay": 20_000, "queue": 500}, 3, plus=twin, paced=paced
    )
    start = first(inferred)
    assert twin.over
    assert start["exit_cause"] == "hystart_delay"
    assert abs(start["ssthresh_segments"] - state[-1, 2]) <= 2
    assert "HyStart++" in start["evidence"]
    entered = next(n for n, one in enumerate(twin.rounds) if len(one) >= 8 and min(one) >= twin.baseline)
    assert f"{twin.baseline / 1000:.1f} ms" in start["evidence"]
    assert f"{min(twin.rounds[entered - 1]) / 1000:.1f} ms" in start["evidence"]
    assert window.max() <= 3
    assert (threshold <= 2).mean() > 0.99
    assert inferred.cc == cc


@pytest.mark.parametrize("cc", ["reno", "cubic"])
def test_slow_start_resumes_where_the_round_trip_falls_back(cc):
    path = {"rate": 3000, "delay": 60_000, "queue": 100, "detour": (230_000, 330_000, 8_000)}
    twin = HyStartPlus(1000)
    inferred, state, window, threshold = seen(cc, path, 1.5, plus=twin)
    assert twin.spurious == 1
    assert window.max() <= 4
    assert (threshold <= 2).mean() > 0.99
    assert first(inferred)["exit_cause"] == "loss"
    assert abs(first(inferred)["ssthresh_segments"] - state[state[:, 2] < naive.INFINITE][0, 2]) <= 2


@pytest.mark.parametrize(("rate", "detector"), [(1000, "hystart_train"), (400, "hystart_delay")])
def test_classic_hystart_is_not_taken_for_it(rate, detector):
    inferred, state, window, _ = seen("cubic", {"rate": rate, "delay": 40_000, "queue": 300}, 3, hystart=True)
    start = first(inferred)
    assert start["exit_cause"] == detector
    assert "HyStart++" not in start["evidence"]
    assert abs(start["ssthresh_segments"] - state[state[:, 2] < naive.INFINITE][0, 2]) <= 1
    assert np.quantile(window, 0.99) <= 2


def test_a_slow_start_that_neither_ended_is_said_to_be_lost():
    inferred, *_ = seen("reno", {"rate": 1000, "delay": 40_000, "queue": 10}, 2)
    assert first(inferred)["exit_cause"] == "loss"
    assert first(inferred)["confidence"] > UNSURE


def test_a_loss_ends_conservative_slow_start():
    path = {"rate": 500, "delay": 50_000, "queue": 60, "drop": frozenset(range(200, 270))}
    twin = HyStartPlus(1000)
    inferred, _, window, threshold = seen("reno", path, 4, plus=twin)
    assert twin.css
    assert not twin.over
    assert first(inferred)["exit_cause"] == "loss"
    assert window.max() <= 1
    assert threshold.max() <= 1
