"""Whatever a capture with SACK says as it begins: the kernel is its twin, and the board stays small."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.test_replay_begin_sack import ACK, RST, bounds, byte, found_in, replayed, resumed, same_board, scene
from tests.kernels.test_scoreboard import MS, MSS
from tests.naive import begin_sack as naive
from tracetool.kernels import replay_columns as rc
from tracetool.kernels.replay_board import MAX_OUTSTANDING


def sends(numbers, payloads, flags):
    return st.tuples(st.just(1), numbers, st.just(1), payloads, flags, st.just([]))


def acks(numbers, edges, flags):
    return st.tuples(st.just(0), st.just(1), numbers, st.just(0), flags, st.lists(edges, max_size=8))


NEAR, FLAGS = st.integers(0, 60).map(byte), st.sampled_from([ACK, ACK, ACK, ACK | RST, 0])
TAME = st.one_of(
    sends(st.integers(5, 80).map(byte), st.sampled_from([MSS, 700, 2500]), st.just(ACK)),
    acks(st.integers(0, 12).map(byte), NEAR, st.just(ACK)),
)
FAR = st.sampled_from([0, 1, -1, 1 << 31, 1 << 32, -(1 << 40), 1 << 61, 1 << 62, -(1 << 62)])
ANY = st.one_of(NEAR, st.integers(-5000, 60_000), FAR)
HOSTILE = st.one_of(sends(ANY, st.sampled_from([0, MSS, 700, 1 << 16, 1 << 40]), FLAGS), acks(ANY, ANY, FLAGS))


@settings(max_examples=400, deadline=None)
@given(st.lists(TAME, min_size=2, max_size=30))
def test_the_kernel_is_its_twin_whatever_is_sent_and_sacked(some):
    """Blocks upside down, empty, overlapping, beyond what was ever sent; any data."""
    packets = [(n * MS, *packet) for n, packet in enumerate(some)]
    begun = found_in(packets)
    assert bounds(begun) == naive.begin(packets, MSS)
    if begun is not None:
        same_board(packets, begun)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(HOSTILE, max_size=4), st.lists(HOSTILE, max_size=20), st.booleans(), st.sampled_from([48, MSS, 1 << 30])
)
def test_no_numbers_make_the_board_large_or_the_replay_fail(before, after, within, mss):
    """Among them packets that begin within a recovery."""
    known = [packet[1:] for packet in scene((10, (12, 16), (17, 30)), 16, 40)] if within else []
    packets = [(n * MS, *packet) for n, packet in enumerate([*before, *known, *after])]
    begun = found_in(packets, mss)
    if begun is None:
        return
    una, nxt = bounds(begun)
    assert 0 < nxt - una <= rc.MAX_UNSEEN * mss
    events, _ = replayed(packets, begun, mss)
    assert 0 < len(events) <= len(packets)
    assert (events[:, rc.PIPE_BEFORE] >= 0).all()
    assert (events[:, rc.OUT_BEFORE] <= MAX_OUTSTANDING).all()


@pytest.mark.parametrize(("out", "found"), [(rc.MAX_UNSEEN, True), (rc.MAX_UNSEEN + 1, False)])
def test_no_more_is_outstanding_than_a_hole_may_be(out, found):
    packets = scene((0, (1, out // 2)), out, (0, (1, out // 2 + 1)))
    begun = found_in(packets)
    assert (begun is not None) == found
    if found:
        assert replayed(packets, begun)[0][0, rc.OUT_BEFORE] == out


@pytest.mark.parametrize("payload", [MSS, 1 << 40, (1 << 63) - 1 - byte(16)])
def test_a_frame_larger_than_everything_sends_every_hole_again(payload):
    packets = scene((10, (12, 16), (17, 20)), 11, 30)
    packets[1] = (*packets[1][:4], payload, *packets[1][5:])
    begun = found_in(packets)
    _, rows, _ = resumed(packets, begun)
    again = [(seq - 1) // MSS for seq, *_, again in rows if again]
    assert again == ([10, 16] if payload == MSS else [10])
