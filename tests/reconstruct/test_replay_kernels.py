"""The steps of the replay, each against the arithmetic it stands for; and all of them on packets made to harm."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.reconstruct.inferred import inferred_of
from tests.reconstruct.packets import FlowFacts, FlowPackets
from tracetool.kernels import replay_columns as rc
from tracetool.kernels import window_columns as wc
from tracetool.kernels.cubic import cubic_root, cubic_ssthresh, cubic_update
from tracetool.kernels.hystart import hystart_plus_growth, hystart_plus_update
from tracetool.kernels.replay_board import append, drop_head, find, grown, mark_lost, pipe
from tracetool.kernels.replay_loss import update_rtt
from tracetool.kernels.window_react import prr

FEW = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@given(st.integers(0, 1 << 50))
@FEW
def test_cubic_root_is_the_integer_root(a):
    root = cubic_root(a)
    assert root**3 <= a < (root + 1) ** 3


@given(st.lists(st.integers(1_000_000, 900_000_000), min_size=1, max_size=60))
@FEW
def test_srtt_is_rfc_6298s(samples):
    s = np.zeros(rc.STATE_WIDTH, np.int64)
    smooth = None
    for rtt in samples:
        update_rtt(s, rtt)
        smooth = Fraction(rtt) if smooth is None else smooth * Fraction(7, 8) + Fraction(rtt, 8)
        assert abs((s[rc.SRTT] >> 3) - smooth) <= 8  # the kernel rounds eight times what it keeps
        assert s[rc.RTO] >= (s[rc.SRTT] >> 3) + 200_000_000


def test_a_reduction_brings_the_window_to_the_threshold_in_one_round_trip():
    w = np.zeros(wc.WINDOW_WIDTH, np.int64)
    w[wc.CWND] = w[wc.PRIOR_CWND] = 100
    w[wc.SSTHRESH] = 70
    flight = 99  # the lost one is gone
    for _ in range(100):
        flight -= 1  # a delivery
        prr(w, 1, 0, False, flight)
        sent = w[wc.CWND] - flight
        w[wc.PRR_OUT] += sent
        flight += sent
    assert flight == 70


def test_cubic_grows_along_its_curve():
    w = np.zeros(wc.WINDOW_WIDTH, np.int64)
    w[wc.CWND] = 100
    w[wc.SSTHRESH] = w[wc.CWND] = cubic_ssthresh(w)
    assert w[wc.LAST_MAX] == 100
    assert w[wc.SSTHRESH] == 70
    start, seen = 1_000_000_000, []
    for tick in range(12_000):  # an ACK of one segment each millisecond
        now = start + tick * 1_000_000
        cubic_update(w, 1, now)
        w[wc.COUNT] += 1
        if w[wc.COUNT] >= w[wc.CNT]:
            w[wc.COUNT] = 0
            w[wc.CWND] += 1
        seen.append(int(w[wc.CWND]))
    plateau = (30 / 0.4) ** (1 / 3)
    for at in (2.0, plateau, 7.0):
        curve = 100 + 0.4 * (at - plateau) ** 3
        assert seen[int(at * 1000)] == pytest.approx(curve, rel=0.03)


@given(st.lists(st.sampled_from(["send", "ack", "lose"]), max_size=200), st.integers(0, 1 << 30))
@FEW
def test_the_scoreboard_is_a_list_of_segments(steps, base):
    board, s = np.zeros((4, rc.BOARD_WIDTH), np.int64), np.zeros(rc.STATE_WIDTH, np.int64)
    s[rc.OLDEST] = s[rc.NEWEST] = -1
    plain: list[list[int]] = []
    nxt = base
    for time, step in enumerate(steps):
        if step == "send":
            if s[rc.TAIL] - s[rc.HEAD] >= board.shape[0]:
                board = grown(board, s)
            append(board, s, nxt, nxt + 10, time + 1, 0)
            plain.append([nxt, 0])
            nxt += 10
        elif step == "ack" and plain:
            drop_head(board, s)
            plain.pop(0)
        elif step == "lose" and plain:
            fresh = [n for n, (_, lost) in enumerate(plain) if not lost]
            if fresh:
                mark_lost(board, s, s[rc.HEAD] + fresh[-1])
                plain[fresh[-1]][1] = 1
        assert pipe(s) == sum(not lost for _, lost in plain)
        for n, (seq, _) in enumerate(plain):
            assert find(board, s, seq + 5) == s[rc.HEAD] + n
        by_time, n = [], s[rc.OLDEST]
        while n >= 0:
            by_time.append(int(board[n & (board.shape[0] - 1), rc.SEQ]))
            n = board[n & (board.shape[0] - 1), rc.NEXT]
        assert by_time == [seq for seq, lost in plain if not lost]


def hostile(rng, size):
    """Packets that no TCP sends: any number anywhere, times that run back, windows and edges out of all order."""
    wide = rng.choice([20, 5000, 1 << 20, 1 << 34, 1 << 50])
    counts = rng.integers(0, 5, size) * 2
    flags = rng.choice([0, 1, 2, 4, 16, 17, 18, 20, 24, 64 + 16, 255], size).astype(np.uint16)
    return FlowPackets(
        time_ns=np.cumsum(rng.integers(-5_000_000, 300_000_000, size)) + 10**18,
        outbound=rng.random(size) < 0.5,
        seq=rng.integers(-wide, wide, size),
        ack=rng.integers(-wide, wide, size),
        payload=rng.choice([0, 0, 1, 1448, 65535, 1 << 20], size),
        segments=rng.integers(0, 60, size).astype(np.int32),
        flags=flags,
        window=rng.integers(-1, 1 << 20, size),
        window_raw=rng.integers(-1, 1 << 16, size),
        tsval=rng.integers(-1, 1 << 32, size),
        tsecr=rng.integers(-1, 1 << 32, size),
        sack_edges=rng.integers(-wide, wide, int(counts.sum())),
        sack_offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        ecn=np.zeros(size, np.uint8),
        ip_id=np.full(size, -1, np.int64),
        frame=np.arange(1, size + 1),
    )


@given(st.integers(0, 1 << 32), st.integers(0, 120), st.sampled_from(["sender", "receiver", "unknown"]), st.booleans())
@settings(max_examples=150)
def test_no_packets_can_break_it(seed, size, vantage, syn):
    packets = hostile(np.random.default_rng(seed), size)
    inferred = inferred_of(packets, FlowFacts(vantage=vantage, syn_seen=syn))
    acks = int((~packets.outbound & (packets.flags & 16 != 0) & (packets.flags & 6 == 0)).sum())
    assert inferred.samples.height == acks
    assert (inferred.samples["cwnd_segments"] >= 1).all()
    known = inferred.samples.drop_nulls("cwnd_high_segments")
    assert (known["cwnd_low_segments"] <= known["cwnd_high_segments"]).all()


def test_hystart_plus_slows_down_before_it_stops():
    w = np.zeros(wc.WINDOW_WIDTH, np.int64)
    w[wc.CWND], w[wc.SSTHRESH], w[wc.ROUND_RTT] = 100, wc.INFINITE, 1 << 62
    assert hystart_plus_growth(w, 12, False) == 8
    assert hystart_plus_growth(w, 12, True) == 12
    una = 0
    for round_number, rtt in enumerate([40, 40, 46, 46, 46, 46, 46, 46]):  # ms; the third round is slower
        for sample in range(10):
            una += 1
            hystart_plus_update(w, una, rtt * 1_000_000, una, (round_number + 1) * 10)
            assert (w[wc.CSS_ROUNDS] > 0) == (round_number > 2 or (round_number == 2 and sample >= 7))
            if w[wc.FOUND]:
                break
        if w[wc.FOUND]:
            break
    assert w[wc.FOUND_BY] == wc.PLUS_PLUS
    assert round_number == 7
    assert w[wc.SSTHRESH] == 100
