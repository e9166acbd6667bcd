"""What a capture with SACK that begins late tells of the recovery it begins in: as its slow twin, and as it was."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

from tests.kernels.test_scoreboard import MS, MSS, world
from tests.naive import begin_sack as naive
from tests.naive.scoreboard import RECOVERY
from tracetool.kernels import replay_columns as rc
from tracetool.kernels.replay import replay
from tracetool.kernels.replay_begin import BEGIN_HIGH, BEGIN_NXT, BEGIN_UNA, BEGIN_WIDTH
from tracetool.kernels.replay_begin_sack import find_begin_sack, resume_sack
from tracetool.kernels.replay_board import restart

SYN, RST, ACK = 2, 4, 16
SEEDS = range(6)
LOSSES = [(0.02, seed) for seed in SEEDS] + [(0.1, seed) for seed in SEEDS]
REORDERED = [(late, seed) for late in (0.02, 0.05) for seed in SEEDS]
NONE_AGAIN = np.zeros((0, 2), np.int64)


@dataclass
class Columns:
    """Packets as the kernels take them."""

    packets: list
    named: tuple = field(init=False)
    edges: np.ndarray = field(init=False)
    edges_at: np.ndarray = field(init=False)

    def __post_init__(self):
        kinds = np.int64, np.bool_, np.int64, np.int64, np.int64, np.uint16
        rows = zip(*(packet[:6] for packet in self.packets), strict=True) if self.packets else ((),) * 6
        self.named = tuple(np.array(values, kind) for values, kind in zip(rows, kinds, strict=True))
        self.edges = np.array([n for packet in self.packets for n in packet[6]], np.int64)
        self.edges_at = np.cumsum([0, *(len(packet[6]) for packet in self.packets)]).astype(np.int64)


def found_in(packets, mss=MSS):
    """What the kernel finds; None where nothing."""
    some, begun = Columns(packets), np.full(BEGIN_WIDTH, -1)
    find_begin_sack(*some.named[1:], some.edges, some.edges_at, mss, begun)
    if begun[BEGIN_NXT] < 0:
        assert (begun == -1).all()
        return None
    assert begun[BEGIN_HIGH] == begun[BEGIN_NXT]
    return begun


def bounds(begun):
    return None if begun is None else (int(begun[BEGIN_UNA]), int(begun[BEGIN_NXT]))


def replayed(packets, begun, mss=MSS):
    """Events, and why packets were sent again."""
    some, size = Columns(packets), len(packets)
    unknown, window = np.full(size, -1), np.full(size, 1 << 30)
    why, several = np.zeros(size, np.int8), np.zeros(size, np.int32)
    events = np.zeros((size + 2, rc.EVENT_WIDTH), np.int64)
    known = np.full(BEGIN_WIDTH, -1) if begun is None else begun
    rows = replay(
        *some.named, window, unknown, unknown, some.edges, some.edges_at, mss, MS, True, False, NONE_AGAIN, known, why,
        several, events,
    )  # fmt: skip
    return events[:rows], why


def resumed(packets, begun, mss=MSS):
    """The sender's state as `resume_sack` makes it, and its board: whether each segment is SACKed, lost, sent again."""
    some, board, s = Columns(packets), np.zeros((1 << 15, rc.BOARD_WIDTH), np.int64), np.zeros(rc.STATE_WIDTH, np.int64)
    s[[rc.OLDEST, rc.NEWEST]] = -1
    restart(s, begun[BEGIN_UNA])
    resume_sack(board, s, begun, *some.named, some.edges, some.edges_at, mss, NONE_AGAIN)
    rows = board[s[rc.HEAD] : s[rc.TAIL]]
    tags = [tuple((row[rc.TAGS] & np.array([rc.SACKED, rc.LOST, rc.RETRANS]) > 0).tolist()) for row in rows]
    return s, [(int(row[rc.SEQ]), int(row[rc.END]), *tag) for row, tag in zip(rows, tags, strict=True)], board


@dataclass
class Cut:
    """A world from one of its packets on, its numbers relative to that as the decoder has them, and its twin."""

    packets: list
    base: int  # what the numbers are less than those of the world
    nxt: int  # first byte not sent before
    twin: list  # at each ACK that follows

    def recovering(self):
        """Whether the first ACK finds the sender in recovery."""
        return self.twin[0][0] == RECOVERY

    def part_delivered(self):
        """Segments that the first ACK SACKs, and those outstanding."""
        first = self.packets[naive.first_ack(self.packets)]
        return sum(b - a for a, b in naive.beyond([first], 0)) // MSS, (self.nxt - first[3]) // MSS


def relative(packets):
    """Numbers as the decoder counts them: from the first that the capture has (1)."""
    first = packets[0]
    base = (first[2] if first[1] else first[3]) - 1
    return base, [
        (at, out, seq - base, ack, *rest, edges)
        if out
        else (at, out, seq, ack - base, *rest, [n - base for n in edges])
        for at, out, seq, ack, *rest, edges in packets
    ]


@cache
def cuts(loss, late, seed, every=5):
    packets, states, *_ = world(seed, sack=True, loss=loss, late=late)
    found = []
    for place in range(4, len(packets) - 5, every):
        base, some = relative(packets[place:])
        nxt = max(packet[2] + packet[4] for packet in packets[:place] if packet[1]) - base
        left = sum(not packet[1] for packet in some)
        if left:
            found.append(Cut(some, base, nxt, states[len(states) - left :]))
    return found


@pytest.mark.parametrize(
    ("loss", "late", "seed"),
    [*((loss, 0, seed) for loss, seed in LOSSES), *((0.02, late, seed) for late, seed in REORDERED)],
)
def test_the_kernel_finds_and_resumes_what_its_twin_does(loss, late, seed):
    found = 0
    for cut in cuts(loss, late, seed):
        some = cut.packets[:200]
        begun, expected = found_in(some), naive.begin(some, MSS)
        assert bounds(begun) == expected
        if expected is not None:
            same_board(some, begun)
            found += 1
    assert found > 3


def same_board(packets, begun, mss=MSS):
    s, rows, _ = resumed(packets, begun, mss)
    expected = naive.board(packets, *bounds(begun), mss)
    assert rows == [(one.seq, one.end, one.sacked, one.lost, one.again) for one in expected]
    counts = [sum(column) for column in list(zip(*rows, strict=True))[2:]]
    assert s[[rc.SACKED_OUT, rc.LOST_OUT, rc.RETRANS_OUT]].tolist() == counts
    assert s[[rc.SND_UNA, rc.SND_NXT, rc.HIGH_SEQ]].tolist() == [rows[0][0], rows[-1][1], rows[-1][1]]
    assert s[[rc.CA_STATE, rc.STARTED, rc.TIMER_START]].tolist() == [rc.RECOVERY, 1, packets[0][0]]


@pytest.mark.parametrize(("loss", "seed"), LOSSES)
def test_a_recovery_is_found_where_enough_was_sacked(loss, seed):
    """Where more than three segments are, and more than a quarter of those outstanding; and never out of a recovery.

    With less, what is sent again may tell. The first ACK captured tells what is acknowledged, the first new data what
    had been sent: these may differ from what the sender had at the cut only by an ACK that arrives right then.
    """
    for cut in cuts(loss, 0, seed):
        begun, (delivered, out) = found_in(cut.packets), cut.part_delivered()
        if begun is None:
            assert not (cut.recovering() and delivered > 3 and 4 * delivered > out)
            continue
        assert cut.recovering()
        assert bounds(begun) == (cut.packets[naive.first_ack(cut.packets)][3], cut.nxt)


def test_the_cuts_lie_within_recoveries_and_outside():
    some = [cut for loss, seed in LOSSES for cut in cuts(loss, 0, seed)]
    found = [cut for cut in some if found_in(cut.packets) is not None]
    few = [cut for cut in found if 4 * cut.part_delivered()[0] <= cut.part_delivered()[1]]
    assert len(found) > 500
    assert len(few) > 50, "what is sent again tells of these"
    assert sum(not cut.recovering() for cut in some) > 500
    assert sum(cut.packets[0][1] for cut in found) > 200, "captured first is data, and most numbers are below 0"


@pytest.mark.parametrize(("loss", "late", "seed"), [(0.02, late, seed) for late, seed in REORDERED])
def test_where_packets_come_late_what_was_outstanding_is_right_all_the_same(loss, late, seed):
    """So much may be SACKed of a flight that is only out of order that it is taken for a recovery."""
    for cut in cuts(loss, late, seed):
        begun = found_in(cut.packets)
        if begun is not None:
            assert bounds(begun) == (cut.packets[naive.first_ack(cut.packets)][3], cut.nxt)


BEFORE = [rc.STATE_BEFORE, rc.SACKED_BEFORE, rc.PIPE_BEFORE]
AFTER = [rc.PIPE, rc.STATE_AFTER]


@pytest.mark.parametrize(("loss", "seed"), LOSSES)
def test_a_recovery_from_before_is_none_of_now_and_after_it_the_sender_is_known(loss, seed):
    """From the first ACK on that both the replay and the twin find out of recovery.

    The replay's may last longer: it knows what was outstanding at the cut, not when the loss was found. What RACK holds
    for lost as an ACK arrives it may hold for lost by its timer later: it waits for a quarter of the smallest RTT, and
    that was before the cut.
    """
    compared = unknown = found = 0
    for cut in cuts(loss, 0, seed):
        begun = found_in(cut.packets)
        if begun is None:
            continue
        found += 1
        events, why = replayed(cut.packets, begun)
        assert events[0, rc.STATE_BEFORE] == RECOVERY
        over = np.flatnonzero(events[:, rc.UNA] >= begun[BEGIN_HIGH])
        within = events[: over[0] if len(over) else len(events)]
        assert not within[:, rc.OPS].any(), "the window is not reduced, nor restored"
        sent_again = np.flatnonzero(why[: within[-1, rc.PACKET] if len(within) else 0])
        assert set(why[sent_again].tolist()) <= {rc.BY_FAST, rc.BY_UNKNOWN}
        for place in sent_again[why[sent_again] == rc.BY_UNKNOWN]:  # lost, but when it had left nobody saw
            assert begun[BEGIN_UNA] < cut.packets[place][2] < begun[BEGIN_NXT]
            unknown += 1
        kinds = events[:, rc.KIND]
        assert set(kinds.tolist()) <= {rc.ON_ACK, rc.ON_REORDER_TIMER}
        acks = np.flatnonzero(kinds == rc.ON_ACK)
        mine = events[acks]
        twin = np.array([(*row[:2], row[4], row[5], row[6], 1 + row[10] * MSS - cut.base) for row in cut.twin])
        assert len(mine) == len(twin)
        calm = (mine[:, rc.UNA] >= begun[BEGIN_NXT]) & (mine[:, rc.STATE_AFTER] != RECOVERY) & (twin[:, 4] != RECOVERY)
        if not calm.any():
            continue
        following = slice(np.argmax(calm) + 1, None)
        assert mine[following, BEFORE].tolist() == twin[following, :3].tolist()
        assert mine[following, rc.UNA].tolist() == twin[following, 5].tolist()
        differ = np.flatnonzero((mine[:, AFTER] != twin[:, 3:5]).any(1)[following]) + following.start
        assert (kinds[acks[differ] + 1] == rc.ON_REORDER_TIMER).all()
        compared += len(mine) - following.start
    assert compared > 1000
    assert 4 * unknown < found


def test_the_twin_that_is_compared_recovers_again():
    """Later recoveries are noted: they are none of before."""
    noted = 0
    for cut in cuts(0.02, 0, 1):
        begun = found_in(cut.packets)
        noted += begun is not None and bool((replayed(cut.packets, begun)[0][:, rc.OPS] & rc.OP_RECOVERY).any())
    assert noted > 10


def byte(segment):
    return 1 + segment * MSS


def scene(*rows):
    """Packets: a number that is sent, or (number acknowledged, *blocks)."""
    return [
        (n * MS, 1, byte(row), 1, MSS, ACK, [])
        if isinstance(row, int)
        else (n * MS, 0, 1, byte(row[0]), 0, ACK, [byte(edge) for block in row[1:] for edge in block])
        for n, row in enumerate(rows)
    ]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (((10, (11, 18)), 30), (10, 30)),
        ((30, (10, (11, 18)), 31), (10, 30)),  # what is sent before the first ACK counts
        ((30, 31, 32), None),  # no ACK
        (((10, (0, 9)), 12), None),  # the receiver had something twice
        (((10, (0, 9), (11, 18)), 30), (10, 30)),
        (((10,), 30), None),
        (((10, (11, 14)), 20), None),  # three
        (((10, (11, 15)), 20), (10, 20)),  # four
        (((10, (11, 21)), 50, (21,), 51, 52), None),  # a quarter, and the hole fills by itself
        (((10, (11, 22)), 50, (22,), 51, 52), (10, 50)),  # more is no reordering
        (((10, (12, 16), (17, 18)), 10, 50), None),  # the first hole is: the recovery begins now, it may be
        (((10, (12, 16), (17, 18)), 16, 50), (10, 50)),  # another one is: the first one has been
        ((16, (10, (12, 16), (17, 18)), 50), (10, 50)),
        (((10, (12, 16), (17, 18)), (12, (14, 16)), 12, 50), None),  # it is the first by now
        (((10, (12, 14)), 16, 50), None),  # that must have been of a probe, and two tell nothing
        (((10, (12, 16)), 50, 30, 51), (10, 50)),  # beyond all that is SACKed, and sent before
        # holes beyond what the first ACK tells are sent again, too, as later ones find them: no new data before 30
        (((10, (11, 12), (13, 14), (15, 17)), 12, 18, (10, (19, 20)), 20, (10, (21, 30)), 30), (10, 30)),
        (((10, (11, 12), (13, 14), (15, 17)), 12, 18, (10, (18, 19)), 30), (10, 30)),
        (((10, (11, 18)), 20, (10, (11, 21)), 21), (10, 20)),  # nor is what was seen to be sent from before
        (((10, (11, 18)), (18,), 30), (10, 30)),  # new data shows what was sent, if it leaves only then
        (((10, (11, 18)), (18,), 18), (10, 18)),  # all that was sent is SACKed
        (((10, (11, 18)),), (10, 18)),
    ],
)
def test_what_the_first_ack_and_the_next_sends_tell(rows, expected):
    packets = scene(*rows)
    bytes_ = None if expected is None else tuple(byte(number) for number in expected)
    assert bounds(found_in(packets)) == bytes_
    assert naive.begin(packets, MSS) == bytes_


def test_packets_with_their_syn_begin_in_no_recovery():
    some = scene((10, (11, 18)), 30)
    assert found_in(some) is not None
    for out in (0, 1):
        for at in (0, len(some)):
            assert found_in([*some[:at], (0, out, 0, 1, 0, SYN | ACK, []), *some[at:]]) is None


def test_the_ack_of_a_reset_tells_nothing():
    reset = (0, 0, 1, byte(10), 0, RST | ACK, [byte(11), byte(18)])
    assert found_in([reset, *scene(30)]) is None
    assert bounds(found_in([reset, *scene((20, (21, 28)), 40)])) == (byte(20), byte(40))


def test_nothing_is_found_in_nothing():
    assert found_in([]) is None


def test_holes_that_are_sent_again_only_now_were_not_in_flight():
    """Of 20 segments 7 are SACKed and 3 lost, 2 of them are under way again."""
    packets = scene((10, (11, 13), (14, 16), (17, 20)), 16, 30, (10, (11, 13), (14, 20)))
    begun = found_in(packets)
    _, rows, _ = resumed(packets, begun)
    assert [(seq - 1) // MSS for seq, _, _, lost, _ in rows if lost] == [10, 13, 16]
    assert [(seq - 1) // MSS for seq, _, _, _, again in rows if again] == [10, 13]
    events, why = replayed(packets, begun)
    assert events[0, [*BEFORE, rc.OUT_BEFORE, rc.UNA_BEFORE]].tolist() == [RECOVERY, 7, 12, 20, byte(10)]
    assert events[0, [rc.SENT_AGAIN, rc.SENT_NEW, rc.PIPE_SENT]].tolist() == [1, 1, 14]
    assert why.tolist() == [0, rc.BY_FAST, 0, 0]
    assert events[1, [*BEFORE, rc.PIPE]].tolist() == [RECOVERY, 7, 14, 13]


def test_the_list_by_time_of_sending_is_of_what_is_in_flight():
    """Segments neither SACKed nor lost, and after them those that are under way again."""
    packets = scene((10, (11, 13), (14, 16), (17, 20)), 16, 22)
    s, rows, board = resumed(packets, found_in(packets))
    walked, n = [], s[rc.OLDEST]
    while n >= 0:
        walked.append(int(n))
        n = board[n, rc.NEXT]
    assert [(rows[n][0] - 1) // MSS for n in walked] == [20, 21, 10, 13]
    assert s[rc.NEWEST] == walked[-1]


@pytest.mark.parametrize("place", range(1282, 1312, 3))
def test_it_does_not_matter_from_where_numbers_count(place):
    """Captured first is new data, so all that is outstanding has numbers below 0; or nothing has."""
    packets = world(1, sack=True, loss=0.1, late=0)[0][place:]
    _, some = relative(packets)
    columns = [*BEFORE, *AFTER, rc.OPS, rc.NEWLY_DELIVERED]
    events, why = replayed(packets, found_in(packets))
    others, whys = replayed(some, found_in(some))
    assert events[:, columns].tolist() == others[:, columns].tolist()
    assert why.tolist() == whys.tolist()
