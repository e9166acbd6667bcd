"""How well a hypothesis fits is counted as its slow twin counts it, event by event."""

from __future__ import annotations

import numpy as np
import pytest

from tests.naive.judge import INFINITE, MS, Event, Judge
from tracetool.kernels import replay_columns as rc
from tracetool.kernels import window_columns as wc
from tracetool.kernels._jit import kernel
from tracetool.kernels.window_judge import count_surplus, judge

ALGORITHMS = {"reno": wc.RENO, "cubic": wc.CUBIC, "bbr": wc.BBR}
DETECTORS = {"train": wc.TRAIN, "delay": wc.DELAY, "++": wc.PLUS_PLUS}
NAMES = (
    "cwnd", "ssthresh", "groups", "rounds", "judged", "stuck", "bursts", "spread", "surplus", "deficit", "unused",
    "shown", "surprise", "super_frames",
)  # fmt: skip
FIRED = {0: None, wc.TRAIN: "train", wc.DELAY: "delay", wc.PLUS_PLUS: "++"}


@kernel
def judged(w, h, e, sent):
    judge(w, h, e, sent)


@kernel
def counted(w, h, surplus):
    count_surplus(w, h, surplus)


def row(event):
    """An event as the kernels have it."""
    e = np.zeros(rc.EVENT_WIDTH, np.int64)
    for at, value in {
        rc.TIME: event.time, rc.UNA: event.una, rc.NXT: event.nxt, rc.PIPE: event.pipe, rc.PIPE_SENT: event.pipe_sent,
        rc.SENT_NEW: event.new, rc.SENT_AGAIN: event.again, rc.FIRST_SEND: event.first, rc.LAST_SEND: event.last,
        rc.ROOM: event.room, rc.SRTT_AFTER: event.srtt, rc.OUT_BEFORE: event.out,
        rc.STATE_AFTER: rc.OPEN if event.open else rc.RECOVERY,
        rc.FLAGS: rc.ADVANCED if event.advanced else rc.DATA_ACKED,
    }.items():  # fmt: skip
        e[at] = value
    return e


def hypothesis(rng):
    """A twin of any kind."""
    cc = rng.choice(["reno", "cubic", "bbr"])
    kinds = [frozenset(), {"train", "delay"}, {"delay"}, {"++"}] if cc != "bbr" else [frozenset()]
    return Judge(
        cc=str(cc),
        detectors=frozenset(kinds[rng.integers(len(kinds))]),
        paced=bool(rng.random() < 0.3) or cc == "bbr",
        tolerance=int(rng.choice([0, 0, 2])) if cc == "bbr" else 0,
        blur=int(rng.choice([0, 0, 2])),
        held=bool(rng.random() < 0.2),
        late=bool(rng.random() < 0.2),
        cwnd=int(rng.integers(2, 60)),
        least=40 * MS,
    )


def numbers(twin):
    """The twin's hypothesis and window as the kernels have them."""
    h, w = np.zeros(wc.HYPOTHESIS_WIDTH, np.int64), np.zeros(wc.WINDOW_WIDTH, np.int64)
    h[wc.CC], h[wc.MSS], h[wc.PACED] = ALGORITHMS[twin.cc], twin.mss, twin.paced
    h[wc.HYSTART] = sum(DETECTORS[name] for name in twin.detectors)
    h[wc.TOLERANCE], h[wc.BLUR], h[wc.HELD] = twin.tolerance, twin.blur, twin.held
    w[wc.UNKNOWN_START], w[wc.SSTHRESH], w[wc.DELAY_MIN] = twin.late, twin.ssthresh, twin.least
    return h, w


def events(rng, count, *, steady):
    """What a sender may have done: not how TCP would do it, but in its order; long stretches hardly fill a window.

    A steady one answers each ACK at once with as much, over round trips of 60 segments. Some recoveries last long, and
    hardly an ACK moves on.
    """
    now, una, flight, lazy, mending = 10**18, 0, 60 if steady else int(rng.integers(1, 40)), 0, 0
    for _ in range(count):
        now += int(rng.choice([MS // 5, MS, 5 * MS]))
        lazy = int(rng.integers(20, 60)) if lazy == 0 and rng.random() < 0.03 else max(lazy - 1, 0)
        mending = int(rng.integers(20, 60)) if mending == 0 and rng.random() < 0.01 else max(mending - 1, 0)
        acked = 1 if steady else int(rng.integers(0, min(flight, 3) + 1)) if not mending or rng.random() < 0.05 else 0
        una, pipe = una + acked, flight - acked
        new = int(rng.integers(1, 9)) if rng.random() < 0.6 else 0
        new = acked if steady else min(new, acked) if lazy else new
        again = int(rng.random() < 0.05 and not steady)
        flight = max(pipe + new + again, 1) if steady or rng.random() > 0.02 else 1
        first = now + (0 if steady else int(rng.choice([0, MS // 2, 2 * MS], p=[0.8, 0.1, 0.1])))
        yield Event(
            time=now, una=una, nxt=una + flight, pipe=pipe, pipe_sent=flight, new=new, again=again, first=first,
            last=first + int(rng.choice([0, 100_000, MS])), srtt=40 * MS, out=flight,
            room=-1 if steady else int(rng.choice([-1, 100, 2000, 3000, 1 << 20])), advanced=acked > 0,
            open=steady or (not mending and rng.random() > 0.05),
        )  # fmt: skip


def run(seed):
    """Compare kernel and twin over one stream; returns the twin."""
    rng = np.random.default_rng(seed)
    twin = hypothesis(rng)
    h, w = numbers(twin)
    steady = seed % 3 == 0
    for event in events(rng, 400, steady=steady):
        # what other kernels do to the window before
        twin.cwnd += int(rng.integers(0, 3))
        twin.rate = int(rng.choice([0, 10**5, 10**8]))
        twin.conservative, twin.train = bool(rng.random() < 0.5), int(rng.integers(0, 20)) * MS
        twin.reduced |= bool(rng.random() < 0.005)
        if rng.random() < 0.01:
            twin.ssthresh = INFINITE
        w[wc.CWND], w[wc.SSTHRESH], w[wc.BBR_RATE] = twin.cwnd, twin.ssthresh, twin.rate
        w[wc.CSS_ROUNDS], w[wc.LAST_ACK], w[wc.ROUND_START] = twin.conservative, event.time, event.time - twin.train
        w[wc.REDUCTIONS] = twin.reduced
        sent = event.new + event.again
        twin.after(event)
        judged(w, h, row(event), sent)
        if sent and event.pipe_sent > twin.cwnd:
            counted(w, h, event.pipe_sent - twin.cwnd)
            twin.beyond(event.pipe_sent - twin.cwnd)
            twin.cwnd = event.pipe_sent
            w[wc.CWND] = event.pipe_sent
        columns = [
            wc.CWND, wc.SSTHRESH, wc.FIT_GROUPS, wc.FIT_ROUNDS, wc.FIT_JUDGED, wc.FIT_STUCK, wc.FIT_BURSTS,
            wc.FIT_SPREAD, wc.FIT_SURPLUS, wc.FIT_DEFICIT, wc.FIT_UNUSED, wc.WINDOW_SHOWN, wc.FIT_SURPRISE,
            wc.SUPER_FRAMES,
        ]  # fmt: skip
        assert dict(zip(NAMES, w[columns].tolist(), strict=True)) == {name: int(getattr(twin, name)) for name in NAMES}
        assert bool(w[wc.FOUND]) == (twin.fired is not None)
        assert (FIRED[int(w[wc.FOUND_BY])] or "") == (twin.fired or "")
    return twin


@pytest.mark.parametrize("seed", range(60))
def test_the_judge_counts_as_its_twin(seed):
    run(seed)


def test_the_events_meet_every_case():
    twins = [run(seed) for seed in range(60)]
    assert {twin.fired for twin in twins} == {None, "", "train", "delay", "++"}
    counted = (
        "stuck",
        "surplus",
        "deficit",
        "unused",
        "spread",
        "surprise",
        "super_frames",
        "runaways",
        "long_rounds",
        "unseen",
    )
    for name in counted:
        assert any(getattr(twin, name) for twin in twins), name
    assert any(twin.cc == "bbr" and twin.deficit for twin in twins)
