"""What a capture without SACK that begins late tells of what was before it: as its slow twin, and as the sender was."""

from __future__ import annotations

from itertools import takewhile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.test_scoreboard import MS, MSS, START, replayed, world
from tests.naive import begin as naive
from tests.naive.scoreboard import RECOVERY
from tracetool.kernels import missed_data as md
from tracetool.kernels import replay_columns as rc
from tracetool.kernels.replay_begin import (
    BEGIN_FLIGHT,
    BEGIN_HIGH,
    BEGIN_NXT,
    BEGIN_REORDERING,
    BEGIN_UNA,
    BEGIN_WIDTH,
    find_begin,
)

FIN, SYN, RST, ACK = 1, 2, 4, 16
WORLDS = [(loss, late, seed) for loss, late in ((0.02, 0), (0.1, 0), (0.02, 0.02)) for seed in range(6)]


def columns(packets):
    """Columns that the kernels take, of rows of (time, sent, seq, ack, payload, flags, ...)."""
    named = zip(*(packet[:6] for packet in packets), strict=True) if packets else ((),) * 6
    kinds = np.int64, np.bool_, np.int64, np.int64, np.int64, np.uint16
    return [np.array(values, kind) for values, kind in zip(named, kinds, strict=True)]


def found_in(packets, mss=MSS):
    begun = np.full(BEGIN_WIDTH, 99)
    find_begin(*columns(packets), mss, begun)
    return begun


def the_twins(packets, mss=MSS):
    twin = naive.begin([naive.Packet(time, bool(out), *rest[:4]) for time, out, *rest in packets], mss)
    found = {
        BEGIN_UNA: twin.una, BEGIN_NXT: twin.nxt, BEGIN_HIGH: twin.high, BEGIN_FLIGHT: twin.flight,
        BEGIN_REORDERING: twin.reordering,
    }  # fmt: skip
    return {at: -1 if number is None else number for at, number in found.items()}


def same(packets, mss=MSS):
    """Kernel and twin agree; returns what they found."""
    begun, expected = found_in(packets, mss), the_twins(packets, mss)
    if begun[BEGIN_NXT] < 0:  # then the others mean nothing
        expected = {at: expected[at] for at in (BEGIN_NXT, BEGIN_REORDERING)}
    assert {at: int(begun[at]) for at in expected} == expected
    return begun


@pytest.mark.parametrize(("loss", "late", "seed"), WORLDS)
def test_the_kernel_finds_what_its_twin_finds(loss, late, seed):
    packets, *_ = world(seed, sack=False, loss=loss, late=late)
    found = [same(packets[cut : cut + 120])[BEGIN_NXT] >= 0 for cut in range(3, len(packets), 17)]
    assert not all(found)


def byte(segment):
    return 1 + segment * MSS


class Cut:
    """A world from one of its packets on, and what its sender was up to then."""

    def __init__(self, packets, states, stands, place):
        self.at = stands[place]
        self.packets = packets[self.at.packet :]
        self.states = states[len(states) - sum(not packet[1] for packet in self.packets) :]
        self.rest = stands[place:]
        self.sends = [(stand, packets[stand.packet][2]) for stand in self.rest if packets[stand.packet][1]]
        self.recovering = self.at.state == RECOVERY and self.at.una < self.at.high

    def shows_a_recovery(self):
        """Its head is sent again, and before all that was outstanding is acknowledged new data leaves.

        That is not next to the head, unless it leaves before.
        """
        mending = takewhile(lambda one: one[0].state == RECOVERY and one[0].una < self.at.high, self.sends)
        heads = [stand.packet for stand, seq in mending if seq == byte(stand.una)]
        new = [(stand, seq) for stand, seq in self.sends if seq == byte(stand.nxt) and stand.una < self.at.nxt]
        return (
            self.recovering and bool(heads and new) and not (new[0][0].packet > heads[0] and self.one_left(new[0][0]))
        )

    def one_left(self, stand):
        return stand.nxt - stand.una == 1

    def una(self):
        """What the first packet shows to be acknowledged: an ACK may have moved on just then."""
        if self.sends[0][0] is self.at and self.sends[0][1] == byte(self.at.una):
            return byte(self.at.una)
        return next(packet[3] for packet in self.packets if not packet[1])

    def after(self):
        """How the sender stands before it first sends after the recovery; None where it does not."""
        return next((stand for stand, _ in self.sends if stand.una >= self.at.high), None)

    def deciding(self):
        """Whether the first ACK captured is the duplicate that makes the sender begin to recover."""
        acks = [k for k, stand in enumerate(self.rest) if not self.packets[stand.packet - self.at.packet][1]]
        return self.at.state != RECOVERY and self.rest[acks[0] + 1].state == RECOVERY


def cuts(loss, late, seed, every=5):
    packets, states, _, stands = world(seed, sack=False, loss=loss, late=late)
    return [Cut(packets, states, stands, place) for place in range(3, len(stands) - 40, every)]


@pytest.mark.parametrize(("loss", "late", "seed"), WORLDS)
def test_what_was_outstanding_within_a_recovery_is_found(loss, late, seed):
    """All that was sent and not acknowledged, and where the recovery ends, as far as packets show it.

    That it is over shows as new data leaves first after an ACK, or duplicates of it make the sender retransmit: the end
    mostly lies below what that acknowledges, and not above the first new data, which left after the recovery began.
    """
    for cut in cuts(loss, late, seed):
        begun = found_in(cut.packets)
        if not cut.shows_a_recovery():
            assert begun[BEGIN_NXT] == -1 or not cut.recovering
            continue
        assert begun[[BEGIN_UNA, BEGIN_NXT]].tolist() == [cut.una(), byte(cut.at.nxt)]
        assert byte(cut.at.high) - 1 <= begun[BEGIN_HIGH] <= byte(cut.at.nxt)
        after = cut.after()
        if after is not None:
            assert begun[BEGIN_HIGH] == min(byte(after.una) - 1, byte(cut.at.nxt))


def test_the_cuts_lie_within_recoveries_and_outside():
    some = [cut for case in WORLDS for cut in cuts(*case)]
    assert sum(cut.shows_a_recovery() for cut in some) > 300
    assert sum(not cut.recovering and not cut.deciding() for cut in some) > 300
    assert sum(cut.recovering and not cut.shows_a_recovery() for cut in some) > 300


@pytest.mark.parametrize(("loss", "late", "seed"), WORLDS)
def test_no_recovery_is_found_outside_of_one(loss, late, seed):
    """But for a capture whose first ACK makes the sender retransmit: nothing shows that it repeats one before.

    Then the recovery begins within its first packets, and what was outstanding is right, too.
    """
    for cut in cuts(loss, late, seed, every=3):
        begun = found_in(cut.packets)
        if cut.deciding() and begun[BEGIN_NXT] >= 0:
            assert begun[[BEGIN_UNA, BEGIN_NXT]].tolist() == [byte(cut.at.una), byte(cut.at.nxt)]
        elif not cut.recovering:
            assert begun[BEGIN_NXT] == -1


def followed(cut, begun):
    """Replay a cut; whether it says what the twin says at all ACKs beyond those that end the recovery.

    And whether what is sent again is so upon losses that it knew of, in the recovery too.
    """
    events, why = replayed(cut.packets, sack=False, begun=begun)
    columns = [rc.STATE_BEFORE, rc.SACKED_BEFORE, rc.PIPE_BEFORE, rc.PIPE, rc.STATE_AFTER]
    beyond = next((k for k, state in enumerate(cut.states) if state[-1] > cut.at.high), len(cut.states)) + 1
    expected = [[state[0], state[1], state[4], state[5], state[6]] for state in cut.states]
    known = not (events[:, rc.KIND] == rc.ON_REORDER_TIMER).any() and set(why.tolist()) <= {rc.NOT_AGAIN, rc.BY_FAST}
    acks = events[events[:, rc.KIND] == rc.ON_ACK]
    return known and acks[beyond:, columns].tolist() == expected[beyond:]


def side(number, end):
    return int(number > end) - int(number < end)


def test_a_replay_from_within_a_recovery_is_the_senders_after_it():
    """State, segments that duplicate ACKs stand for, and what is in flight.

    Unless the ACK that ends it is one of nothing beyond the end: that the sender still holds its state there, and
    counts no duplicates, shows nowhere.
    """
    shown = [cut for case in WORLDS for cut in cuts(*case) if cut.shows_a_recovery()]
    alike = []
    for cut in shown:
        begun = found_in(cut.packets)
        acked = {byte(state[-1]) for state in cut.states}
        if all(side(number, begun[BEGIN_HIGH]) == side(number, byte(cut.at.high)) for number in acked):
            alike.append(cut)
            assert followed(cut, begun)
    assert len(alike) > len(shown) * 0.7
    assert sum(followed(cut, found_in(cut.packets)) for cut in shown) > len(shown) * 0.9
    unaware = np.full(BEGIN_WIDTH, -1)
    assert sum(not followed(cut, unaware) for cut in alike) > 50, "the replay needs it"


def test_what_was_sent_before_the_capture_is_not_missed():
    """Between a head that is sent again and new data there is a hole, which is none of the capture's."""
    for cut in [cut for case in WORLDS for cut in cuts(*case) if cut.shows_a_recovery()][::9]:
        time, out, seq, ack, payload, flags = columns(cut.packets)
        none, found = np.full(len(time), -1), np.zeros((len(time), md.DATA_WIDTH), np.int64)
        known = found_in(cut.packets)[BEGIN_NXT]
        rows = [
            md.find_missed_data(
                time, out, seq, ack, payload, out.astype(np.int32), flags, none, none, none, MSS, MS, nxt, found
            )
            for nxt in (-1, known)
        ]
        assert rows[1] == 0
        assert rows[0] > 0 or cut.sends[0][1] == byte(cut.at.nxt)


def scene(*steps, start=START):
    """Packets of (ms, sent?, segment or number acknowledged, flags beside ACK)."""
    rows = []
    for at, out, number, *flags in steps:
        row = (1, byte(number), 1, MSS) if out else (0, 1, byte(number), 0)
        rows.append((start + round(at * MS), *row, ACK | sum(flags)))
    return rows


def acks(first, last, number):
    """One each millisecond."""
    return [(at, 0, number) for at in range(first, last)]


NEW = [(0, 0, 10), (0.1, 1, 40), (1, 0, 11), (1.1, 1, 41)]


@pytest.mark.parametrize(
    ("steps", "seen"),
    [
        ([*NEW, *acks(2, 5, 11), (5, 1, 11)], 3),
        ([*NEW, *acks(2, 13, 11), (13, 1, 11)], 11),
        ([*NEW, *acks(2, 13, 11), (13, 1, 42), (13.1, 1, 11)], 11),
        ([*NEW, *acks(2, 402, 11), (402, 1, 11)], 300),  # tcp_max_reordering
        ([*NEW, *acks(2, 13, 11), (13, 0, 12), (13.1, 1, 12)], -1),  # the last moved on
        ([*NEW, *acks(2, 4, 11), (4, 1, 11)], -1),  # too few: nothing that duplicate ACKs do
        ([*NEW, *acks(2, 13, 11), (212, 1, 11)], -1),  # a timeout
        ([*NEW, *acks(2, 13, 11), (211.9, 1, 11)], 11),
        ([*NEW, *acks(2, 13, 11), (300, 1, 11), *acks(301, 305, 11), (306, 1, 11)], -1),  # for good
        ([*NEW, (2, 1, 11)], -1),
        ([*NEW, *acks(2, 5, 11)], -1),
        ([*NEW, *acks(2, 5, 11), (5, 0, 9), (6, 0, 11), (7, 1, 11)], -1),  # an old one between: one duplicate since
        ([*acks(0, 4, 11), (4, 1, 11), (4.1, 1, 40)], 3),  # the first is none that repeats
        ([(0, 1, 10, SYN), *NEW[1:], *acks(2, 5, 11), (5, 1, 11)], -1),  # its reordering is known: none
    ],
)
def test_the_first_retransmission_tells_the_reordering_seen(steps, seen):
    assert same(scene(*steps))[BEGIN_REORDERING] == seen


def test_a_sender_retransmits_only_after_as_many_duplicates_as_before():
    """Ten duplicate ACKs and no retransmission are no loss where the sender waits for eleven, as it is seen to do."""
    early = scene((0, 0, 0), *[(0.1 + n / 100, 1, n) for n in range(30)], *acks(20, 30, 0), (30, 0, 30))
    again = scene(*[(31 + n / 100, 1, n) for n in range(30, 60)], *acks(60, 71, 30), (71, 1, 30), (100, 0, 60))
    whole = [(*packet, []) for packet in early + again]
    begun = same(early + again)
    assert begun[BEGIN_REORDERING] == 11
    events, why = replayed(whole, sack=False, begun=begun)
    entered = events[events[:, rc.OPS] & rc.OP_RECOVERY != 0, rc.TIME]
    assert entered.tolist() == [START + 70 * MS]
    assert np.flatnonzero(why).tolist() == [len(whole) - 2]
    wrongly, _ = replayed(whole, sack=False)
    assert wrongly[wrongly[:, rc.OPS] & rc.OP_RECOVERY != 0, rc.TIME][0] == START + 22 * MS


RECOVERING = [(0, 0, 10), (0.1, 1, 10), (1, 0, 10), (1.1, 1, 40), (2, 0, 20), (2.1, 1, 20), (3, 0, 30), (3.1, 1, 41)]


def test_a_recovery_as_few_packets_show_it():
    """The head leaves upon the ACK that moves on to it, twice; the third ACK makes new data leave: it is over."""
    begun = same(scene(*RECOVERING))
    assert begun[[BEGIN_UNA, BEGIN_NXT, BEGIN_HIGH]].tolist() == [byte(10), byte(40), byte(30) - 1]


def test_before_the_senders_first_packet_no_timestamp_tells_an_rtt():
    """What its clock says then nobody knows; from its first packet on an echo tells it, within a recovery too."""
    packets = scene((0, 0, 10), (1, 0, 20), (1.1, 1, 20), (2, 1, 40), (41.5, 0, 30), (41.6, 1, 41))
    base = START // MS % (1 << 32) - 1000  # a clock that stood at 0 with the epoch would tell a second
    told = [(-1, 70), (-1, 75), (100, -1), (101, -1), (-1, 100), (141, -1)]
    stamps = [(base + sent if sent >= 0 else -1, base + echo if echo >= 0 else -1) for sent, echo in told]
    begun = same(packets)
    assert begun[BEGIN_NXT] == byte(40)
    events, _ = replayed([(*packet, []) for packet in packets], sack=False, begun=begun, stamps=stamps)
    assert events[:, rc.CA_RTT].tolist() == [-1, -1, 40 * MS]
    assert events[:, rc.SRTT_AFTER].tolist() == [0, 0, 40 * MS]


@pytest.mark.parametrize(
    "steps",
    [
        [step for n in range(9) for step in ((10 * n, 0, n), (10 * n + 1, 1, n))],  # one request, one response
        [step for n in range(9) for step in ((10 * n, 1, n), (10 * n + 1, 0, n + 1))],
        [(0, 0, 10), (0.1, 1, 10), (0.2, 1, 11), (0.3, 1, 12), (20, 0, 13), (21, 1, 13), (22, 1, 14)],  # all is new
        [(0, 1, 10), (0.2, 1, 11), (0.3, 1, 12), (20, 0, 11), (21, 1, 13), (22, 0, 13), (23, 1, 14)],
        [*NEW, (2, 0, 12), (2.1, 1, 42), *acks(3, 6, 12), (6.1, 1, 12), (7, 0, 20), (7.1, 1, 43)],  # begins later
        [(0, 0, 10), (200, 1, 10), (220, 0, 20), (221, 1, 40)],  # a timeout
        [(0, 1, 40), (5, 0, 10), (6, 0, 10), (300, 1, 10), (320, 0, 20), (321, 1, 41)],
        [(0, 0, 10), (1, 0, 10), (1.1, 1, 10), (2, 0, 20), (2.1, 1, 40)],  # duplicate ACKs sent it
        [(0, 0, 5, SYN), *RECOVERING[1:]],
        [*RECOVERING, (9, 1, 0, SYN)],
        [RECOVERING[0], (0.05, 0, 10, RST), *RECOVERING[1:]],
        [],
        acks(0, 9, 10),
        [(n, 0, n) for n in range(9)],
        [(n, 1, n) for n in range(9)],  # nobody answers
        [(n, 1, 3 * n) for n in range(9)],
        [(0, 0, 10), (0.1, 1, 10)],  # nothing new
        [(0, 0, 10), (0.1, 1, 40), (0.2, 0, 40), (0.3, 1, 40), (0.4, 1, 60)],  # all from before is acknowledged
    ],
)
def test_what_is_no_recovery_is_taken_for_none(steps):
    assert same(scene(*steps))[BEGIN_NXT] == -1


@pytest.mark.parametrize(("beyond", "known"), [(0, True), (1, False), (MSS, False), (1 << 61, False)])
def test_no_more_is_believed_than_a_capture_may_lack(beyond, known):
    """A hole wider than that is another part of the connection. What is believed fits on the board."""
    nxt = 1 + rc.MAX_UNSEEN * MSS + beyond
    packets = [(0, 0, 1, 1, 0, ACK), (1, 1, 1, 1, MSS, ACK), (2, 1, nxt, 1, MSS, ACK), (9, 0, 1, 1 + MSS, 0, ACK)]
    begun = same(packets)
    assert (begun[BEGIN_NXT] >= 0) == known
    events, _ = replayed([(*packet, []) for packet in packets], sack=False, begun=begun)
    assert events[0, rc.OUT_BEFORE] == (rc.MAX_UNSEEN if known else 0)
    assert events[0, rc.OUT_SENT] <= rc.MAX_UNSEEN + 2  # and the two that leave


def test_small_segments_make_no_larger_board():
    packets = [(0, 0, 1, 1, 0, ACK), (1, 1, 1, 1, 1, ACK), (2, 1, 1 + 2 * rc.MAX_UNSEEN - 1, 1, 1, ACK)]
    assert same(packets, mss=1)[BEGIN_NXT] == -1


def hostile(rng, size):
    """Packets that no TCP sends, and some that it does: few numbers, or any."""
    wide = int(rng.choice([4, 12, 1 << 20, 1 << 33, 1 << 62]))
    step = int(rng.choice([1, MSS]))
    base = int(rng.choice([0, 1 << 32, (1 << 62) - 1])) if wide < 1 << 62 else 0
    now, rows, torn = START, [], rng.random() < 0.3
    for _ in range(size):
        now += int(rng.choice([0, 1000, MS, 150 * MS, 250 * MS], p=[0.3, 0.3, 0.3, 0.05, 0.05]))
        out = bool(rng.random() < 0.5)
        if not rows or rng.random() < 0.6:
            number = base + int(rng.integers(0, wide)) * (step if wide < 1 << 40 else 1)
        payload = int(rng.choice([0, 1, MSS, MSS, 2 * MSS, 65535])) if out or rng.random() < 0.1 else 0
        odd = int(rng.choice([0, FIN, RST, SYN])) if rng.random() < 0.02 else 0
        flags = (ACK if rng.random() < 0.98 else 0) | (odd if torn else 0)
        rows.append((now, int(out), number, number, payload, flags))
    return rows


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.sampled_from([1, 7, MSS]))
@settings(max_examples=400, deadline=None)
def test_no_numbers_can_break_it(seed, size, mss):
    packets = hostile(np.random.default_rng(seed), size)
    begun = same(packets, mss)
    events, _ = replayed([(*packet, []) for packet in packets], sack=False, begun=begun)
    if begun[BEGIN_NXT] >= 0:
        assert begun[BEGIN_UNA] <= begun[BEGIN_HIGH] <= begun[BEGIN_NXT]
        assert begun[BEGIN_FLIGHT] >= 0
        assert len(events) == 0 or events[0, rc.OUT_BEFORE] <= rc.MAX_UNSEEN


def test_the_hostile_ones_are_taken_for_recoveries_too():
    some = [found_in(hostile(np.random.default_rng(seed), 40)) for seed in range(400)]
    assert sum(begun[BEGIN_NXT] >= 0 for begun in some) > 20
    assert sum(begun[BEGIN_REORDERING] > 0 for begun in some) > 5


def test_numbers_below_zero_end_it_too():
    rng = np.random.default_rng(1)
    for _ in range(300):
        rows = [(t, s, q - (1 << 33), a - (1 << 33), p, f) for t, s, q, a, p, f in hostile(rng, 40)]
        found_in(rows)


def moved(packets, by):
    """The same packets, their numbers counted from elsewhere."""
    return [(at, out, seq + out * by, ack + (not out) * by, *rest) for at, out, seq, ack, *rest in packets]


@pytest.mark.parametrize("by", [-41 * MSS, -15 * MSS, -1, 1 << 33])
def test_it_does_not_matter_from_where_numbers_count(by):
    """They count from the first packet captured: where that is new data, all that is outstanding lies below 0."""
    steps = [
        (0, 1, 40), (1, 0, 10), (2, 0, 20), (2.1, 1, 20), (3, 0, 22), (3.1, 1, 22), (4, 0, 30), (4.1, 1, 41),
        *acks(5, 12, 30), (12, 1, 30),
    ]  # fmt: skip
    here, there = found_in(scene(*steps)), found_in(moved(scene(*steps), by))
    assert here.tolist() == [byte(10), byte(40), byte(30) - 1, 12, 7]
    numbers = [BEGIN_UNA, BEGIN_NXT, BEGIN_HIGH]
    assert (there[numbers] - by).tolist() == here[numbers].tolist()
    assert there[[BEGIN_FLIGHT, BEGIN_REORDERING]].tolist() == here[[BEGIN_FLIGHT, BEGIN_REORDERING]].tolist()
