"""Windows and thresholds from before a capture that nothing in it shows."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tests.naive import sender as naive
from tests.reconstruct.inferred import inferred_of
from tests.reconstruct.test_sender import FACTS, taken, trickle
from tracetool.kernels import replay_columns as rc
from tracetool.kernels import replay_window as rw
from tracetool.kernels import window_columns as wc
from tracetool.reconstruct.hypotheses import Choices
from tracetool.reconstruct.models import bbr, reno
from tracetool.reconstruct.sender import _never_filled, _threshold_before, infer


def replayed_rows(out, unknown, ops=0):
    """Events with so much outstanding, the last with operations; and windows of 7, known or not."""
    events, window = np.zeros((len(out), rc.EVENT_WIDTH), np.int64), np.zeros((len(out), rw.OUT_WIDTH), np.int64)
    events[:, rc.OUT_SENT] = out
    if ops:
        events[-1, rc.OPS] = ops
    window[:, rw.OUT_CWND], window[:, rw.OUT_UNKNOWN] = 7, unknown
    return window, events


@pytest.mark.parametrize(
    ("out", "unknown", "ops", "cwnd"),
    [
        ([3, 9, 4], 1, 0, 18),  # twice the most that were out
        ([3, 4, 4], 1, 0, 10),  # but the initial window at least
        ([5], 1, 0, 10),
        ([6], 1, rc.OP_EXIT, 12),  # that reduces nothing
        ([3, 9, 4], [1, 1, 0], 0, 7),  # it showed
        *(([3, 9, 4], 1, ops, 7) for ops in (rc.OP_RECOVERY, rc.OP_CWR, rc.OP_TLP_LOSS, rc.OP_RTO | rc.OP_RTO_REDUCE)),
    ],
)
def test_a_window_that_never_shows_is_that_with_which_slow_start_stops_for_want_of_use(out, unknown, ops, cwnd):
    window, events = replayed_rows(out, unknown, ops)
    before = window.copy()
    _never_filled(window, events)
    assert set(window[:, rw.OUT_CWND].tolist()) == {cwnd}
    before[:, rw.OUT_CWND] = cwnd
    assert (window == before).all()


def test_of_nothing_no_window_is_taken():
    window, events = replayed_rows([], 1)
    _never_filled(window, events)
    assert len(window) == 0


def under_way(segments, room=None):
    """A capture of an application that writes less than its window, without its handshake; the window blocks or not."""
    packets = trickle(400, segments, 2000, 900)
    late = taken(packets, np.arange(3, len(packets)))
    room = 1 << 24 if room is None else room * naive.MSS
    return inferred_of(replace(late, window=np.full(len(late), room)), replace(FACTS, syn_seen=False))


@pytest.mark.parametrize(("segments", "cwnd"), [(1, 10), (4, 10), (9, 18)])
def test_who_never_fills_a_window_from_before_the_capture_is_limited_by_nobody_knows_what(segments, cwnd):
    samples = under_way(segments).samples
    assert set(samples["cwnd_segments"]) == {cwnd}
    assert samples["cwnd_high_segments"].is_null().all()
    assert (samples["cwnd_low_segments"] <= segments).all()
    assert set(samples["limited_by"]) == {"unknown"}


@pytest.mark.parametrize(("model", "changed"), [(reno, True), (bbr, False)], ids=["reno", "bbr"])
def test_the_window_of_bbr_that_never_shows_is_left_alone(monkeypatch, model, changed):
    """It does not depend on how much of it is used: it stays as it was replayed."""
    monkeypatch.setattr(Choices, "best", lambda self, sender: model.UNDER_WAY[0])
    found = under_way(9).samples["cwnd_segments"].to_list()
    monkeypatch.setattr(sys.modules[infer.__module__], "_never_filled", lambda window, events: None)
    assert (found != under_way(9).samples["cwnd_segments"].to_list()) == changed


def test_a_receiver_whose_window_blocks_is_named_though_the_senders_never_shows():
    samples = under_way(4, room=4).samples
    assert samples["limited_by"][0] == "unknown"
    assert set(samples["limited_by"][2:]) == {"rwnd"}


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("ecn", [False, True])
def test_the_threshold_of_a_recovery_that_a_capture_begins_in_is_its_window(reduced, ecn):
    """Whatever the next loss makes of it; what was not yet known to be at least that is."""
    window, events = replayed_rows([40] * 6, 0)
    window[:, rw.OUT_CWND] = [31, 31, 31, 32, 33, 17]
    window[:, rw.OUT_GUESSED] = wc.GUESSED
    events[:3, rc.STATE_BEFORE] = rc.RECOVERY
    if reduced:
        events[4, rc.OPS] = rc.OP_RECOVERY
        window[5, [rw.OUT_GUESSED, rw.OUT_SSTHRESH]] = 0, 16
    choices = SimpleNamespace(places={}, best=lambda sender: reno.UNDER_WAY[0])
    _threshold_before(choices, 0, window, events, ecn=ecn)
    told = 5 if reduced else 6
    assert window[:told, rw.OUT_SSTHRESH].tolist() == [31] * told
    assert window[:told, rw.OUT_GUESSED].tolist() == [rw.FITTED] * told
    if reduced:
        assert window[5, [rw.OUT_GUESSED, rw.OUT_SSTHRESH]].tolist() == [0, 16]


@pytest.mark.parametrize("how", ["the capture ends in it", "a timeout ends it", "no window shows after it"])
def test_the_threshold_of_a_recovery_whose_end_does_not_show_is_unknown(how):
    window, events = replayed_rows([40] * 6, 0)
    window[:, rw.OUT_CWND] = 31
    window[:, rw.OUT_GUESSED] = wc.GUESSED
    window[:, rw.OUT_UNKNOWN] = 1
    events[: 3 if how.startswith("no") else 6, rc.STATE_BEFORE] = rc.RECOVERY
    if how == "a timeout ends it":
        events[3, rc.OPS] = rc.OP_RTO | rc.OP_RTO_REDUCE
        events[4:, rc.STATE_BEFORE] = rc.LOSS
        window[4:, [rw.OUT_GUESSED, rw.OUT_SSTHRESH]] = 0, 16
    choices = SimpleNamespace(places={}, best=lambda sender: reno.UNDER_WAY[0])
    _threshold_before(choices, 0, window, events, ecn=False)
    assert set(window[:4, rw.OUT_SSTHRESH].tolist()) == {0}  # which becomes null
    assert set(window[:4, rw.OUT_GUESSED].tolist()) == {rw.ASSUMED}
