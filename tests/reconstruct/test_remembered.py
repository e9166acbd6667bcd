"""What BBR remembers from before its capture: when PROBE_RTT shows, and which smallest RTT fits."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tracetool.kernels import replay_columns as rc
from tracetool.reconstruct.remembered import probe_rtt, remembered

MS = 1_000_000
START = 10**18


def made(flights, gap_ms=1, rtt_ms=50):
    """Events `gap_ms` apart with these segments in flight; as many are sent after each as the flight needs."""
    events = np.zeros((len(flights), rc.EVENT_WIDTH), np.int64)
    events[:, rc.TIME] = START + np.arange(len(flights)) * gap_ms * MS
    events[:, rc.PIPE_SENT] = flights
    events[:, rc.SENT_NEW] = np.maximum(1 + np.diff(flights, prepend=flights[0]), 0)  # each ACK delivers one
    events[:, rc.CA_RTT] = rtt_ms * MS
    return events


def test_probe_rtt_begins_where_sending_stops():
    events = made([40] * 100 + list(range(39, 4, -1)) + [4] * 210 + [40] * 50)
    assert probe_rtt(events) == START + 100 * MS


@pytest.mark.parametrize(
    "flights",
    [
        [40] * 400,
        [40] * 100 + list(range(39, 4, -1)) + [4] * 100 + [40] * 50,  # too short
        [40] * 100 + [3] * 300 + [40] * 50,  # fewer than BBR keeps in flight
        [4] * 400 + [40] * 50,  # began before the capture, or was always so
        [40] * 100 + [4] * 300,  # the end of the data
    ],
)
def test_what_is_no_probe_rtt(flights):
    assert probe_rtt(made(flights)) == 0


def test_after_a_timeout_few_are_in_flight_too():
    events = made([40] * 100 + list(range(39, 4, -1)) + [4] * 210 + [40] * 50)
    events[135:345, rc.STATE_AFTER] = rc.LOSS
    assert probe_rtt(events) == 0


def valley(truth_ms, steep):
    """A fit that misses more the farther an RTT is from the truth."""
    tried = []

    def fit(events, hypothesis):
        tried.append((len(events), hypothesis.min_rtt_ns / MS))
        return SimpleNamespace(missed=steep * abs(hypothesis.min_rtt_ns / MS - truth_ms))

    return fit, tried


@pytest.mark.parametrize("truth_ms", [12, 30, 44, 50])
def test_the_rtt_that_fits_best_is_found_with_its_bounds(truth_ms):
    fit, _ = valley(truth_ms, steep=20)
    found = [one.min_rtt_ns / MS for one in remembered(made([40] * 500), fit)]
    assert found[0] == pytest.approx(truth_ms, rel=0.005)
    assert truth_ms - 0.5 < min(found) <= found[0] <= max(found) < truth_ms + 0.5  # 20 a millisecond: 8 to 12 segments


def test_what_fits_as_well_is_told_too():
    def fit(events, hypothesis):  # nothing tells an RTT from any other above 30 ms
        return SimpleNamespace(missed=0 if hypothesis.min_rtt_ns > 30 * MS else 1e6)

    found = [one.min_rtt_ns / MS for one in remembered(made([40] * 500), fit)]
    assert (min(found), max(found)) == (pytest.approx(30, rel=0.01), 50)


def test_no_rtt_above_the_smallest_seen_is_tried():
    fit, tried = valley(60, steep=20)
    remembered(made([40] * 500), fit)
    assert max(rtt for _, rtt in tried) == 50


def test_where_the_rtt_falls_in_the_capture_a_larger_one_was_remembered():
    events = made([40] * 500)
    events[:250, rc.CA_RTT] = 80 * MS
    fit, tried = valley(60, steep=20)
    assert remembered(events, fit)[0].min_rtt_ns / MS == pytest.approx(60, rel=0.005)
    assert max(rtt for _, rtt in tried) == 80


def test_where_nothing_tells_the_middle_is_taken():
    def fit(events, hypothesis):
        return SimpleNamespace(missed=0 if hypothesis.min_rtt_ns > 18 * MS else 1e6)

    assert remembered(made([40] * 500), fit)[0].min_rtt_ns / MS == pytest.approx(30, rel=0.02)  # of 18 and 50


def test_only_what_is_before_the_end_of_what_is_remembered_counts():
    fit, tried = valley(44, steep=20)
    remembered(made([40] * 1200, gap_ms=10), fit)
    assert {size for size, _ in tried} == {1000}  # ten seconds
    fit, tried = valley(44, steep=20)
    remembered(made([40] * 100 + list(range(39, 4, -1)) + [4] * 210 + [40] * 900, gap_ms=2), fit)
    assert {size for size, _ in tried} == {100}  # to PROBE_RTT


def test_without_an_rtt_nothing_is_said():
    events = made([40] * 50)
    events[:, rc.CA_RTT] = -1
    fit, _ = valley(44, steep=20)
    assert remembered(events, fit) == []
