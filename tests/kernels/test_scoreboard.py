"""The replay keeps the scoreboard that a slow twin keeps: what is SACKed, lost, sent again after every ACK."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass

import numpy as np
import pytest

from tests.naive.scoreboard import RECOVERY, Board
from tracetool.kernels import replay_columns as rc
from tracetool.kernels.replay import replay
from tracetool.kernels.replay_begin import BEGIN_WIDTH

MSS, MS, START = 1000, 1_000_000, 10**18
SYN, ACK = 2, 16
NOTHING = np.full(BEGIN_WIDTH, -1)  # is known of what was before


@dataclass(frozen=True)
class Stand:
    """A sender before one of its packets; numbers of segments."""

    packet: int
    state: int
    una: int
    nxt: int
    high: int


class Receiver:
    """Acknowledges each segment at once, and tells of what is out of order."""

    def __init__(self):
        self.following, self.beyond = 0, set()

    def take(self, number):
        if number >= self.following:
            self.beyond.add(number)
        while self.following in self.beyond:
            self.beyond.remove(self.following)
            self.following += 1
        blocks = []
        for n in sorted(self.beyond):
            if blocks and blocks[-1][1] == n:
                blocks[-1] = blocks[-1][0], n + 1
            else:
                blocks.append((n, n + 1))
        return self.following, sorted(blocks, key=lambda b: (not b[0] <= number < b[1], -b[0]))[:3]


def world(seed, *, sack, loss, late, most=1500):
    """A sender of a fixed window over a path that loses and delays: packets, and the twin's state at every ACK.

    Also the packets that are sent again, and how the twin stood before each packet. It ends with what would be a
    timeout. The receiver says nothing of data that arrives twice (no D-SACK).
    """
    rnd = random.Random(seed)
    rtt, gap, flight = rnd.choice([10, 40, 100]) * MS, rnd.choice([MS // 10, MS]), rnd.choice([4, 24])
    packets, states, again = [(START, 1, 0, -1, 0, SYN, []), (START + rtt, 0, 0, 1, 0, SYN | ACK, [])], [], []
    stands: list[Stand] = []
    board, receiver, line, now, free = Board(sack, rtt), Receiver(), [], START + rtt, 0
    packets.append((now, 1, 1, 1, 0, ACK, []))

    def stand():
        stands.append(Stand(len(packets), board.state, board.una, board.nxt, board.high))

    def transmit():
        nonlocal now, free
        while board.pipe() < flight or any(s.lost and not s.again for s in board.segments):
            now += 1000
            stand()
            segment = board.send(now)
            if segment.ever:
                again.append(len(packets))
            packets.append((now, 1, 1 + segment.number * MSS, 1, MSS, ACK, []))
            free = max(free, now) + gap
            if rnd.random() >= loss:
                more = rnd.randrange(1, 30) * gap if rnd.random() < late else 0
                heapq.heappush(line, (free + rtt + more, len(packets), segment.number))

    transmit()
    while line and len(packets) < most:
        due = [at for at, _ in board.overdue()] if sack else []
        if due and min(due) < line[0][0]:
            now = max(now + 1000, min(due))
            board.on_timer(now)
            transmit()
            continue
        at, _, number = heapq.heappop(line)
        if at - now > 150 * MS:
            break
        now = max(now + 1000, at)
        ack, blocks = receiver.take(number)
        edges = [1 + n * MSS for block in blocks for n in block] if sack else []
        stand()
        packets.append((now, 0, 1, 1 + ack * MSS, 0, ACK, edges))
        before = board.state, board.sacked_out(), board.delivered, board.lost, board.pipe()
        sample = board.on_ack(now, ack, blocks if sack else [])
        states.append((*before, board.pipe(), board.state, sample, board.delivered, board.lost, board.una))
        transmit()
    return packets, states, again, stands


def replayed(packets, *, sack, begun=NOTHING, stamps=None):
    """Events of the kernel, those of ACKs alone, and the reasons why packets were sent again."""
    time, out, seq, ack, payload, flags, edges = zip(*packets, strict=True)
    none, size = np.full(len(packets), -1), len(packets)
    tsval, tsecr = (none, none) if stamps is None else np.array(stamps).T.copy()
    why, several = np.zeros(size, np.int8), np.zeros(size, np.int32)
    events = np.zeros((size + 2, rc.EVENT_WIDTH), np.int64)
    numbers = (np.array(column) for column in (seq, ack, payload))
    marks, edges_of = np.array(flags, np.uint16), np.array([n for some in edges for n in some], np.int64)
    edges_at = np.concatenate([[0], np.cumsum([len(some) for some in edges])]).astype(np.int64)
    rows = replay(
        np.array(time), np.array(out, bool), *numbers, marks, np.full(size, 1 << 30), tsval, tsecr, edges_of, edges_at,
        MSS, MS, sack, False, np.zeros((0, 2), np.int64), begun, why, several, events,
    )  # fmt: skip
    return events[:rows], why


def followed(packets, states, again, *, sack):
    """Compare; returns how many ACKs found the sender in recovery."""
    events, why = replayed(packets, sack=sack)
    lost_before = np.cumsum(events[:, rc.NEWLY_LOST]) - events[:, rc.NEWLY_LOST]
    acks = events[:, rc.KIND] == rc.ON_ACK
    columns = [rc.STATE_BEFORE, rc.SACKED_BEFORE, rc.DELIVERED_BEFORE]
    mine = np.column_stack([
        events[:, columns], lost_before, events[:, [rc.PIPE_BEFORE, rc.PIPE, rc.STATE_AFTER, rc.CA_RTT]],
        events[:, rc.DELIVERED_BEFORE] + events[:, rc.NEWLY_DELIVERED], lost_before + events[:, rc.NEWLY_LOST],
        (events[:, rc.UNA] - 1) // MSS,
    ])[acks]  # fmt: skip
    assert mine.tolist() == [list(state) for state in states]
    assert np.flatnonzero(why).tolist() == again
    assert set(why[why > 0].tolist()) <= {rc.BY_FAST}
    return sum(state[0] == RECOVERY for state in states)


@pytest.mark.parametrize("sack", [True, False])
@pytest.mark.parametrize(("loss", "late"), [(0.02, 0), (0.1, 0), (0, 0.05), (0.02, 0.02)])
def test_the_scoreboard_is_its_twins(sack, loss, late):
    recoveries = 0
    for seed in range(6):
        packets, states, again, _ = world(seed, sack=sack, loss=loss, late=late)
        recoveries += followed(packets, states, again, sack=sack)
    assert recoveries > 100


@pytest.mark.parametrize("segments", [1, 255, 256, 257, 3000])
@pytest.mark.parametrize("hole", [0, 1, 5000])
def test_the_board_grows_to_all_that_is_outstanding(segments, hole):
    """Segments one by one, a hole in the capture, a frame of many; then an ACK of all."""
    large = 40
    sent = [(1000 * n, 1, 1 + n * MSS, 1, MSS, ACK, []) for n in range(segments)]
    nxt = 1 + (segments + hole) * MSS
    sent.append((1000 * segments, 1, nxt, 1, large * MSS, ACK, []))
    acked = (10 * MS + 1000 * segments, 0, 1, nxt + large * MSS, 0, ACK, [])
    events, why = replayed([(0, 0, 1, 1, 0, ACK, []), *sent, acked], sack=True)
    total = segments + hole + large
    assert events[:, rc.KIND].tolist() == [rc.ON_ACK] * 2
    assert events[:, rc.OUT_SENT].tolist() == [total, 0]
    assert events[0, rc.SENT_NEW] == total
    assert events[1, [rc.PIPE_BEFORE, rc.ACKED, rc.NEWLY_DELIVERED]].tolist() == [total] * 3
    assert not why.any()


def scene(*packets):
    """Events of packets after the first ACK: (ms, sent?, segment or number ACKed, blocks, TSval or TSecr)."""
    first = (0, 0, 1, 1, 0, ACK, [])
    rows = [
        (at * MS, 1, 1 + number * MSS, 1, MSS, ACK, [])
        if out
        else (at * MS, 0, 1, 1 + number * MSS, 0, ACK, [1 + n * MSS for block in blocks for n in block])
        for at, out, number, blocks in packets
    ]
    return replayed([first, *rows], sack=True)


TEN = [(1, 1, n, ()) for n in range(10)]
#: Half are acknowledged after 20 ms, and two round trips later the end is sent again (RFC 8985, 7.2).
PROBED = [*TEN, (21, 0, 5, ()), (80, 1, 9, ())]


def test_a_probe_of_the_tail_is_none_of_a_loss():
    """The receiver had it twice (D-SACK): nothing was lost, and the window stays (RFC 8985, 7.4.1)."""
    events, why = scene(*PROBED, (100, 0, 10, ((9, 10),)))
    assert np.flatnonzero(why).tolist() == [12]
    assert why[12] == rc.BY_TLP
    assert not events[:, rc.OPS].any()
    assert events[:, rc.NEWLY_LOST].sum() == 0


def test_a_probe_that_repaired_a_loss_reduces_the_window():
    """Nobody had it twice: the tail was lost, and only the probe repaired it (RFC 8985, 7.4.2)."""
    events, why = scene(*PROBED, (100, 0, 10, ()), (101, 1, 10, ()), (121, 0, 11, ()))
    assert why[12] == rc.BY_TLP
    assert events[:, rc.OPS].tolist()[-1] == rc.OP_TLP_LOSS
    assert events[:-1, rc.OPS].sum() == 0
    assert events[-1, rc.STATE_AFTER] == rc.OPEN, "over at once"


def test_a_timeout_holds_all_for_lost_and_reduces_once():
    events, why = scene(*TEN, (21, 0, 5, ()), (1021, 1, 5, ()), (3000, 1, 5, ()))
    assert [why[at] for at in (12, 13)] == [rc.BY_RTO] * 2
    timeouts = events[events[:, rc.KIND] == rc.ON_RTO]
    assert timeouts[:, rc.NEWLY_LOST].tolist() == [5, 1], "the second loses the retransmission"
    assert timeouts[:, rc.OPS].tolist() == [rc.OP_RTO | rc.OP_RTO_REDUCE, rc.OP_RTO]
    assert timeouts[:, rc.STATE_AFTER].tolist() == [rc.LOSS] * 2


@pytest.mark.parametrize("needed", [True, False])
def test_a_reduction_is_undone_where_no_retransmission_was_needed(needed):
    """The first segment only came late, as the D-SACK says (RFC 2883): what it cost is taken back (RFC 3708)."""
    blocks = [(21 + n, 0, 0, ((1, 2 + n),)) for n in range(3)]
    last = () if needed else ((0, 1),)
    events, why = scene(*TEN, *blocks, (24, 1, 0, ()), (26, 0, 4, ()), (44, 0, 4, last), (60, 0, 10, ()))
    ops = np.bitwise_or.reduce(events[:, rc.OPS])
    assert why[14] == rc.BY_FAST
    assert ops & rc.OP_RECOVERY
    assert bool(ops & (rc.OP_UNDO | rc.OP_UNDO_LATE)) is not needed
    assert events[-1, rc.STATE_AFTER] == rc.OPEN
