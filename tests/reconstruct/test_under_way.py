"""Where CUBIC stood when a capture began: which places explain its growth, and which of them is taken."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tests.naive import past
from tracetool.kernels import replay_columns as rc
from tracetool.kernels import replay_window as rw
from tracetool.kernels import window_columns as wc
from tracetool.kernels.cubic import cubic_resume, cubic_update
from tracetool.kernels.cubic_place import MOST_TRIED, TRIED_WIDTH, search_places
from tracetool.reconstruct.models import reno
from tracetool.reconstruct.models.cubic import OF_LAST_MAX, grown
from tracetool.reconstruct.sender import _threshold_before
from tracetool.reconstruct.under_way import (
    LONG_ENOUGH,
    TOO_SHORT,
    Place,
    distinct,
    grows_as_reno,
    head,
    likely,
    places,
)

NO_FAST, FAST, NO_MAX = OF_LAST_MAX


def place(threshold, last=NO_FAST, window=100, missed=0):
    return Place(grown(threshold / window, last), missed, threshold, window)


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


def capture_of(threshold, last_max, *, before=40, seen=40, rtt=50_000_000, jitter=0, reno=False):
    """Events of a sender some round trips after CUBIC's epoch began, each ACK delivers a segment; and its window."""
    rng = np.random.default_rng(jitter)
    w = np.zeros(wc.WINDOW_WIDTH, np.int64)
    w[wc.CWND] = w[wc.SSTHRESH] = threshold
    w[wc.LAST_MAX] = last_max
    w[wc.DELAY_MIN] = rtt
    now, una, nxt = 10**18, 0, threshold
    sent = [now] * threshold  # when each segment in flight left
    rows, first = [], 0
    for turn in range(before + seen):
        if turn == before:
            first = int(w[wc.CWND])
        for _ in range(int(w[wc.CWND])):
            now = max(now + 1000, sent[una] + rtt + (int(rng.integers(0, jitter)) if jitter else 0))
            una += 1
            cubic_update(w, 1, now)
            w[wc.COUNT] += 1
            if w[wc.COUNT] >= (w[wc.CWND] if reno else w[wc.CNT]):
                w[wc.COUNT] = 0
                w[wc.CWND] += 1
            fresh = int(w[wc.CWND]) - (nxt - una)
            sent += [now] * fresh
            if turn >= before:
                e = np.zeros(rc.EVENT_WIDTH, np.int64)
                e[rc.TIME] = e[rc.FIRST_SEND] = e[rc.LAST_SEND] = now
                e[rc.PIPE_BEFORE] = e[rc.OUT_BEFORE] = nxt - una + 1
                e[rc.UNA_BEFORE], e[rc.NXT_BEFORE], e[rc.UNA], e[rc.NXT] = una - 1, nxt, una, nxt + fresh
                e[rc.ACKED] = e[rc.NEWLY_DELIVERED] = 1
                e[rc.PIPE] = nxt - una
                e[rc.FLAGS] = rc.ADVANCED | rc.DATA_ACKED | rc.MAY_RAISE
                e[rc.CA_RTT] = e[rc.SRTT_AFTER] = e[rc.MIN_RTT_BEFORE] = rtt
                e[rc.RTO_AFTER] = rtt + 200_000_000
                e[rc.PIPE_SENT] = e[rc.OUT_SENT] = nxt + fresh - una
                e[rc.SENT_NEW], e[rc.ROOM] = fresh, -1
                rows.append(e)
            nxt += fresh
    return np.array(rows), first


def found_in(events):
    return places(events, 1, np.empty((len(events), rw.OUT_WIDTH), np.int64))


@pytest.mark.parametrize(("threshold", "last_max"), [(140, 200), (165, 200), (280, 400)])
def test_the_growth_tells_the_maximum_it_heads_for(threshold, last_max):
    """A loss at that maximum explains it, and one beyond it by fast convergence, if the window had grown from there."""
    events, first = capture_of(threshold, last_max, before=10)
    best = {}
    for one in found_in(events):
        best.setdefault(one.hypothesis.of_last_max, one.threshold)
    for kind in (NO_FAST, FAST):
        assert (kind in best) == (kind * last_max <= first)
        assert best.get(kind, kind * last_max) == pytest.approx(kind * last_max, rel=0.03)
    assert NO_MAX not in best


def test_a_flow_that_hardly_shows_any_growth_is_not_searched():
    events, _ = capture_of(140, 200)
    assert {one.threshold for one in found_in(events[: TOO_SHORT - 1])} == {0}


def test_a_window_that_is_never_filled_tells_no_place():
    events, _ = capture_of(140, 200)
    events[:, rc.FIRST_SEND] += 3_000_000  # nothing leaves as an ACK arrives: there was nothing to send
    assert {one.threshold for one in found_in(events)} == {0}


@pytest.mark.parametrize(("threshold", "last_max"), [(140, 200), (165, 200), (30, 36), (8, 11), (4, 5)])
@pytest.mark.parametrize("jitter", [0, 4_000_000])
def test_the_search_tries_what_its_twin_tries(threshold, last_max, jitter):
    events, _ = capture_of(threshold, last_max, jitter=jitter)
    numbers, kinds = grown(1.0, 0.0).numbers(1, 0), np.array([round(1024 * last) for last in OF_LAST_MAX])
    tried = np.empty((MOST_TRIED, TRIED_WIDTH), np.int64)
    count = search_places(events, numbers, kinds, np.empty((len(events), rw.OUT_WIDTH), np.int64), tried)
    found = {(part, kind, stood): missed for part, kind, stood, missed in tried[:count].tolist()}
    expected = past.places(events, numbers, kinds.tolist())
    assert {key: missed for key, missed in found.items() if missed <= past.hopeless(min(found.values()))} == expected
    assert 0 < count < MOST_TRIED


def test_no_search_goes_on_beyond_its_room():
    events, _ = capture_of(140, 200, jitter=4_000_000)
    tried = np.empty((20, TRIED_WIDTH), np.int64)
    kinds = np.array([round(1024 * last) for last in OF_LAST_MAX])
    out = np.empty((len(events), rw.OUT_WIDTH), np.int64)
    assert search_places(events, grown(1.0, 0.0).numbers(1, 0), kinds, out, tried) == 20


@pytest.mark.parametrize(
    ("how", "exact"),
    [
        ({"reno": True, "seen": 12}, True),
        ({"reno": True, "seen": 5}, False),  # so little may be anything
        ({"rtt": 5_000_000, "before": 20}, False),  # CUBIC in Reno's region: eight segments in fifteen round trips
        ({}, False),
    ],
)
def test_growth_that_is_exactly_renos_is_renos(how, exact):
    events, _ = capture_of(70, 100, **how)
    assert grows_as_reno(events, 1, found_in(events), np.empty((len(events), rw.OUT_WIDTH), np.int64)) == exact


def test_the_places_that_are_tried_differ_in_their_kind_first():
    some = [place(part, NO_MAX) for part in range(100, 40, -5)] + [place(80), place(90, FAST)]
    assert [one.of_last_max for one in distinct(some)] == [NO_MAX, NO_FAST, FAST, NO_MAX, NO_MAX, NO_MAX]


@pytest.mark.parametrize(
    ("cwnd", "reduced", "threshold"),
    [
        ([1, 40, 50, 60, 30], rc.OP_RECOVERY, 30),  # the next loss halves 60
        ([1, 25, 45, 60, 30], rc.OP_RECOVERY, 18),  # of which 25 cannot have been
        ([1, 36, 50, 60, 30], rc.OP_CWR, 27),  # a mark may come at any window
        ([1, 40, 50, 60, 61], 0, 31),
        ([1, 25, 50, 60, 61], 0, 18),
        ([1, 1, 1, 1, 1], 0, 0),
    ],
)
def test_renos_threshold_is_none_that_its_window_contradicts(cwnd, reduced, threshold):
    events = np.zeros((len(cwnd), rc.EVENT_WIDTH), np.int64)
    events[-2, rc.OPS] = reduced
    window = np.zeros((len(cwnd), rw.OUT_WIDTH), np.int64)
    window[:, rw.OUT_CWND] = cwnd
    window[:, rw.OUT_UNKNOWN] = np.array(cwnd) == 1
    window[:, rw.OUT_GUESSED] = wc.GUESSED
    if reduced:
        window[-1, [rw.OUT_GUESSED, rw.OUT_SSTHRESH]] = 0, 30
    choices = SimpleNamespace(places={}, best=lambda sender: reno.UNDER_WAY[0])
    _threshold_before(choices, 0, window, events, ecn=False)
    assert set(window[: len(cwnd) - bool(reduced), rw.OUT_SSTHRESH].tolist()) == {threshold}


def test_places_that_agree_are_no_assumption():
    assert likely([place(80), place(82)], 0, 150, marked=False) == (82, True)


@pytest.mark.parametrize(
    ("lost_at", "reached", "threshold"),
    [
        (141, 140, 99),  # the loss before came where the next one did
        (115, 115, 80),
        (0, 130, 99),  # 115 was passed unharmed, 142 was not reached
        (0, 105, 80),  # both are beyond: the nearer one
        (0, 150, 99),  # both were passed: the last one
    ],
)
def test_losses_recur_at_the_same_window(lost_at, reached, threshold):
    assert likely([place(80), place(99, FAST)], lost_at, reached, marked=False) == (threshold, False)


@pytest.mark.parametrize(("lost_at", "marked"), [(144, False), (110, True)])
def test_where_losses_do_not_recur_the_threshold_is_one_that_the_kernel_shows_like_others(lost_at, marked):
    """The window showed with 100: no loss at 144 had made it 101, and a mark may come anywhere."""
    some = [place(77, FAST), place(74), place(60), place(95, NO_MAX)]
    assert likely(some, lost_at, lost_at, marked=marked) == (74, False)  # as 60 and all others up to 75
    assert likely([place(77, FAST), place(95, NO_MAX)], lost_at, lost_at, marked=marked) == (77, False)


def test_where_a_mark_may_have_come_none_of_the_windows_is_likelier():
    """No loss and no mark was seen, but ECN is in use: a threshold like most others, not one that was not reached."""
    some = [place(77, FAST), place(74), place(60), place(95, NO_MAX)]
    assert likely(some, 0, 107, marked=True) == (74, False)
    assert likely(some, 0, 107, marked=False) == (77, False)


def test_a_better_place_of_a_kind_counts_for_more_than_one_whose_loss_is_nearer():
    some = [place(80), place(86, missed=5), place(99, FAST)]
    assert likely(some, 116, 116, marked=False) == (80, False)  # 115, 123 and 142
    assert likely(some, 122, 122, marked=False) == (99, False)  # not 115, which was passed
    assert likely(some, 0, 115, marked=False) == (99, False)
    worse = [place(80), place(78, missed=5), place(99, FAST)]
    assert likely(worse, 111, 111, marked=False) == (80, False)  # though 112 is nearer than 115


@pytest.mark.parametrize(
    ("thresholds", "lost_at", "threshold"),
    [
        ((80, 99), 115, 80),
        ((80, 99), 117, 80),  # 115 is as good as reached
        ((80, 99), 118, 99),  # 115 was passed; 142 was not, however far that is
        ((70, 80, 90, 99), 118, 90),  # of those that were not, the nearest
        ((78, 88), 130, 88),  # all were passed: the nearest
        ((88, 78), 130, 88),
    ],
)
def test_the_loss_before_did_not_come_at_a_window_that_is_passed_unharmed(thresholds, lost_at, threshold):
    """By more than windows are known (`NEAR`); they came at 100, 112, 115, 126, 129 and 142."""
    some = [place(one, OF_LAST_MAX[at % 3]) for at, one in enumerate(thresholds)]
    assert likely(some, lost_at, lost_at, marked=False) == (threshold, False)


@pytest.mark.parametrize(("reached", "threshold"), [(112, 80), (113, 99), (115, 99), (139, 99)])
def test_without_a_loss_a_window_that_came_near_enough_was_reached(reached, threshold):
    """The loss before was at 115 or 142; 113 is within 2 % of 115, at which none came."""
    assert likely([place(80), place(99, FAST)], 0, reached, marked=False)[0] == threshold


def test_what_was_passed_unharmed_is_believed_before_the_better_fit():
    assert likely([place(80), place(86, missed=5), place(75, missed=3)], 0, 118, marked=False) == (
        86,
        False,
    )  # 115, 123 and 108


def test_of_places_that_fit_alike_the_middle_one_is_taken():
    some = [place(threshold, FAST) for threshold in range(83, 98)]
    # of 92 to 97, whose loss was beyond 128 and what is within NEAR of it: that of 91 was at 130
    assert likely(some, 0, 128, marked=False) == (95, False)


def test_nothing_is_told_where_the_window_never_showed():
    assert likely([place(0)], 100, 100, marked=False) is None


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


def replayed(events, hypothesis):
    out = np.zeros((len(events), rw.OUT_WIDTH), np.int64)
    rw.replay_window(events, hypothesis.numbers(1, 10), np.zeros(wc.WINDOW_WIDTH, np.int64), out, 1 << 62)
    return out


def within_a_recovery(events, count):
    """Events of a recovery before these, with anything in flight: what left it duplicate ACKs do not say."""
    rng = np.random.default_rng(3)
    mended = np.repeat(events[:1], count, axis=0)
    mended[:, rc.TIME] -= np.arange(count, 0, -1) * 1_000_000
    mended[:, rc.FIRST_SEND] = mended[:, rc.LAST_SEND] = mended[:, rc.TIME]
    mended[:, rc.STATE_BEFORE] = mended[:, rc.STATE_AFTER] = rc.RECOVERY
    mended[:, rc.FLAGS] = 0
    mended[:, rc.PIPE_BEFORE], mended[:, rc.PIPE_SENT] = rng.integers(1, 500, (2, count))
    return np.concatenate([mended, events])


@pytest.mark.parametrize("hypothesis", reno.UNDER_WAY, ids=str)
@pytest.mark.parametrize("count", [1, 30, 200])
@pytest.mark.parametrize("filling", [0, 10])
def test_a_recovery_from_before_has_the_window_with_which_it_ends(hypothesis, count, filling):
    """It shows once it was filled for a round trip, in which it may have grown by one; that may take some ACKs."""
    events, first = capture_of(70, 100, reno=True, seen=12)
    events[:filling, [rc.PIPE_BEFORE, rc.PIPE, rc.PIPE_SENT]] -= 60
    alone, after = replayed(events, hypothesis), replayed(within_a_recovery(events, count), hypothesis)
    assert set(after[:count, rw.OUT_CWND].tolist()) <= {first, first + 1}
    assert (after[count:, rw.OUT_CWND] == alone[:, rw.OUT_CWND]).all()


def test_without_a_recovery_the_same_flights_are_windows():
    """The test above can fail: where the sender is in no recovery, what is in flight is allowed by the window."""
    events, first = capture_of(70, 100, reno=True, seen=12)
    some = within_a_recovery(events, 30)
    some[:30, [rc.STATE_BEFORE, rc.STATE_AFTER]] = rc.OPEN
    assert replayed(some, reno.UNDER_WAY[0])[29, rw.OUT_CWND] > 2 * first


@pytest.mark.parametrize("hypothesis", [reno.UNDER_WAY[0], reno.HYPOTHESES[0]], ids=str)
def test_what_is_in_flight_raises_no_window_that_is_known(hypothesis):
    """As duplicate ACKs stop counting more seems to be in flight; only what is sent shows a larger window."""
    events, first = capture_of(70, 100, reno=True, seen=12)
    expected = replayed(events, hypothesis)[:, rw.OUT_CWND]
    assert expected[0] == first, "the first event raises it, whatever the hypothesis"
    more = events.copy()
    more[600:620, rc.PIPE_BEFORE] += 400
    assert (replayed(more, hypothesis)[:, rw.OUT_CWND] == expected).all()
    more[610, rc.PIPE_SENT] += 400
    assert replayed(more, hypothesis)[611, rw.OUT_CWND] > first + 350
