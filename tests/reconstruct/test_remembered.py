"""What BBR remembers from before its capture: when PROBE_RTT shows, and which smallest RTT fits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.naive import past
from tracetool.kernels import bbr_memory
from tracetool.kernels import replay_columns as rc
from tracetool.kernels import window_columns as wc
from tracetool.reconstruct.models.bbr import remembering
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


@pytest.fixture
def searched(monkeypatch):
    """What the search was asked; a function takes the place of the replay: segments missed by an RTT."""
    asked = []

    def search_by(missed_by):
        def search(events, numbers, smallest, largest, step, finest, rtts, missed):
            tried = sorted(
                {*np.geomspace(smallest / 8, largest, 400).round().tolist(), smallest, largest}, reverse=True
            )
            asked.append((len(events), int(numbers[wc.REMEMBERED_TIME]), smallest, largest, step))
            rtts[: len(tried)] = tried
            missed[: len(tried)] = [missed_by(rtt / MS) for rtt in tried]
            return len(tried)

        monkeypatch.setattr(bbr_memory, "search_rtts", search)
        return asked

    return search_by


def told(events):
    return [one.min_rtt_ns / MS for one in remembered(events, 1448, 0)]


@pytest.mark.parametrize("truth_ms", [12, 30, 44, 50])
def test_the_rtt_that_fits_best_is_taken_with_its_bounds(truth_ms, searched):
    searched(lambda rtt: 20 * abs(rtt - truth_ms))
    found = told(made([40] * 500))
    assert found[0] == pytest.approx(truth_ms, rel=0.01)
    assert truth_ms - 0.6 < min(found) <= found[0] <= max(found) < truth_ms + 0.6  # 20 a millisecond: 8 to 12 segments


def test_what_fits_as_well_is_told_too(searched):
    searched(lambda rtt: 0 if rtt > 30 else 1e6)  # nothing tells an RTT from any other above 30 ms
    found = told(made([40] * 500))
    assert (min(found), max(found)) == (pytest.approx(30, rel=0.01), 50)
    assert min(found) < 30  # where between two tries it ceases to fit nobody looked


def test_no_rtt_above_the_smallest_of_the_first_is_tried(searched):
    asked = searched(lambda rtt: 20 * abs(rtt - 60))
    told(made([40] * 500))
    assert [largest for _, _, _, largest, _ in asked] == [50 * MS]


def test_where_the_rtt_falls_in_the_capture_a_larger_one_was_remembered(searched):
    events = made([40] * 500)
    events[:250, rc.CA_RTT] = 80 * MS
    asked = searched(lambda rtt: 20 * abs(rtt - 60))
    assert told(events)[0] == pytest.approx(60, rel=0.01)
    assert [(smallest, largest) for _, _, smallest, largest, _ in asked] == [(50 * MS, 80 * MS)]


def test_where_nothing_tells_the_middle_is_taken(searched):
    searched(lambda rtt: 0 if rtt > 18 else 1e6)
    assert told(made([40] * 500))[0] == pytest.approx(30, rel=0.02)  # of 18 and 50


def test_only_what_is_before_the_end_of_what_is_remembered_counts(searched):
    asked = searched(lambda rtt: 20 * abs(rtt - 44))
    told(made([40] * 1200, gap_ms=10))
    told(made([40] * 100 + list(range(39, 4, -1)) + [4] * 210 + [40] * 900, gap_ms=2))
    assert [size for size, *_ in asked] == [1000, 100]  # ten seconds; to PROBE_RTT
    assert asked[1][1] < START  # which begins ten seconds after the RTT was measured


def test_few_round_trips_are_searched_with_large_steps(searched):
    asked = searched(lambda rtt: 20 * abs(rtt - 44))
    for size in (10, 1000, 100_000):
        told(made([40] * size))
    assert [step for *_, step in asked] == [pytest.approx(step, abs=1e-3) for step in (1 - 1 / 8, 1 - 1 / 40, 0.99)]


def test_without_an_rtt_nothing_is_said():
    events = made([40] * 50)
    events[:, rc.CA_RTT] = -1
    assert remembered(events, 1448, 0) == []


def probing(rtt_ms=40, count=3000):
    """Events of a sender with 40 segments in flight, 50 and 30 in two of eight round trips; each ACK delivers one."""
    phase = np.arange(count) * 1.0 / rtt_ms % 8
    flights = np.where(phase < 1, 50, np.where(phase < 2, 30, 40))
    events = made(flights.tolist(), rtt_ms=rtt_ms)
    events[:, rc.FIRST_SEND] = events[:, rc.LAST_SEND] = events[:, rc.TIME]
    events[:, rc.UNA] = np.arange(count) + 1
    events[:, rc.NXT] = events[:, rc.UNA] + flights
    events[:, rc.NEWLY_DELIVERED] = 1
    events[:, rc.DELIVERED_BEFORE] = np.arange(count)
    events[:, rc.RS_DELIVERED], events[:, rc.RS_INTERVAL] = rtt_ms, rtt_ms * MS
    events[:, rc.RS_PRIOR_DELIVERED] = np.maximum(np.arange(count) - rtt_ms, 0)
    events[:, rc.SRTT_AFTER] = rtt_ms * MS
    events[:, rc.FLAGS] = rc.ADVANCED | rc.DATA_ACKED | rc.MAY_RAISE
    events[:, rc.ROOM] = -1
    return events


@pytest.mark.parametrize(("smallest", "largest"), [(40 * MS, 40 * MS), (30 * MS, 60 * MS)])
@pytest.mark.parametrize("step", [0.99, 0.9])
def test_the_search_tries_what_its_twin_tries(smallest, largest, step):
    events, numbers = probing(), remembering(smallest, START).numbers(1, 0, 0)
    rtts, missed = np.empty(bbr_memory.MOST_TRIED, np.int64), np.empty(bbr_memory.MOST_TRIED)
    count = bbr_memory.search_rtts(events, numbers, smallest, largest, step, 0.9975, rtts, missed)
    expected = past.rtts(events, numbers, smallest, largest, step, 0.9975)
    most = past.hopeless(missed[:count].min())
    found = zip(rtts[:count].tolist(), missed[:count].tolist(), strict=True)
    assert {rtt: lost for rtt, lost in found if lost <= most} == expected
    assert len(expected) > 3


def test_no_search_goes_on_beyond_its_room():
    rtts, missed = np.empty(5, np.int64), np.empty(5)
    numbers = remembering(40 * MS, START).numbers(1, 0, 0)
    assert bbr_memory.search_rtts(probing(), numbers, 40 * MS, 40 * MS, 0.99, 0.9975, rtts, missed) == 5
