"""One short story for each thing that a retransmission, or a gap, can mean."""

from __future__ import annotations

from tests.reconstruct.test_track import tracked
from tests.reconstruct.traffic import ACK, MS, SYN, Packet
from tracetool.kernels import track
from tracetool.kernels import track_reasons as why

RTT = 20 * MS
MSS = 1000


def opened():
    """A handshake and one segment acknowledged: the round trip is known, and byte 1001 is next."""
    return [
        Packet(0, 0, 0, -1, 0, 0, SYN, tsval=1, tsecr=0, ip_id=1),
        Packet(RTT, 1, 0, 1, 0, 0, SYN | ACK, tsval=500, tsecr=1, ip_id=0),
        data(RTT, 0, ip_id=2),
        answer(2 * RTT, 1, tsecr=RTT // MS),
    ]


def data(time, number, *, ip_id=-1, tsval=None):
    """The segment of a number, from 0."""
    return Packet(time, 0, 1 + MSS * number, 1, MSS, 1, ACK, tsval=time // MS if tsval is None else tsval, ip_id=ip_id)


def answer(time, number, *, sack=(), tsecr=0):
    """An ACK of all segments below a number, with the SACKed numbers, each a block."""
    edges = [edge for n in sack for edge in (1 + MSS * n, 1 + MSS * (n + 1))]
    return Packet(time, 1, 1, 1 + MSS * number, 0, 0, ACK, tsval=500, tsecr=tsecr, sack=edges)


def told(packets, **options):
    """What is said of the last packet of the sender: kind, trigger, evidence."""
    out = tracked(packets, **options)
    last = max(i for i, packet in enumerate(packets) if packet.way == 0)
    return out["kind"][last], out["trigger"][last], out["evidence"][last]


def flight(count=4, time=2 * RTT + MS):
    return [data(time + n * MS // 10, 1 + n) for n in range(count)]


def test_later_data_was_sacked():
    story = [*opened(), *flight(), answer(3 * RTT + MS, 1, sack=[2]), data(3 * RTT + 2 * MS, 1)]
    assert told(story) == (track.RETRANSMISSION, why.FAST, why.BY_SACK)


def test_duplicate_acks_without_sack():
    duplicates = [answer(3 * RTT + n * MS, 1) for n in range(3)]
    story = [*opened(), *flight(), *duplicates, data(3 * RTT + 4 * MS, 1)]
    assert told(story, sack_ok=False) == (track.RETRANSMISSION, why.FAST, why.BY_DUPLICATE_ACKS)


def test_silence_of_a_timeout():
    story = [*opened(), *flight(), data(2 * RTT + 260 * MS, 1)]
    assert told(story) == (track.RETRANSMISSION, why.RTO, why.BY_SILENCE)
    story += [answer(3 * RTT + 260 * MS, 2), data(3 * RTT + 261 * MS, 2)]
    assert told(story) == (track.RETRANSMISSION, why.RTO, why.AFTER_TIMEOUT)


def test_the_tail_is_probed_once():
    story = [*opened(), *flight(), data(2 * RTT + 45 * MS, 4)]
    assert told(story) == (track.RETRANSMISSION, why.TLP, why.BY_PROBE_TIME)
    assert told(story, sack_ok=False)[1] != why.TLP, "a probe needs SACK"
    story.append(data(2 * RTT + 400 * MS, 1))
    assert told(story) == (track.RETRANSMISSION, why.RTO, why.BY_SILENCE)


def test_a_syn_that_was_not_answered():
    story = [Packet(n * 1000 * MS, 0, 0, -1, 0, 0, SYN) for n in range(2)]
    assert told(story) == (track.RETRANSMISSION, why.RTO, why.BY_HANDSHAKE)


def test_the_receiver_says_it_had_it_twice():
    story = [*opened(), *flight(), answer(3 * RTT + MS, 1, sack=[2]), data(3 * RTT + 2 * MS, 1)]
    story += [answer(3 * RTT + 3 * MS, 5), answer(4 * RTT + 2 * MS, 5, sack=[1])]
    assert told(story)[::2] == (track.SPURIOUS, why.BY_DSACK)


def test_the_ack_echoes_the_first_copy():
    story = [*opened(), *flight(), answer(3 * RTT + MS, 1, sack=[2]), data(3 * RTT + 9 * MS, 1)]
    first = story[4].tsval
    assert told([*story, answer(3 * RTT + 10 * MS, 5, tsecr=first)])[::2] == (track.SPURIOUS, why.BY_EIFEL)
    again = story[-1].tsval
    assert told([*story, answer(4 * RTT + 9 * MS, 5, tsecr=again)])[0] == track.RETRANSMISSION


def test_a_gap_that_is_filled_late_or_again_or_never():
    before = [*opened(), data(3 * RTT, 1, ip_id=3), data(3 * RTT, 3, ip_id=5)]
    late = [*before, data(3 * RTT + MS, 2, ip_id=4)]
    assert told(late)[::2] == (track.OUT_OF_ORDER, why.FILLS_HOLE_IP_ID)
    again = [*before, answer(4 * RTT, 2, sack=[3]), data(4 * RTT, 2, ip_id=6)]
    assert told(again) == (track.RETRANSMISSION, why.FAST, why.BY_SACK)
    never = tracked([*before, answer(4 * RTT, 4)])
    assert never["missing"].sum() == MSS, "it was acknowledged: the network had it, the capture had not"
    assert never["missing_at"].max() == 1 + 2 * MSS
    assert tracked(again)["missing"].sum() == tracked(late)["missing"].sum() == 0


def test_the_ack_of_what_comes_a_moment_later():
    story = [*opened(), answer(3 * RTT, 2), data(3 * RTT + MS // 2, 1)]
    out = tracked(story)
    assert out["kind"][-1] == track.OUT_OF_ORDER, "two queues of one interface, read in turn"
    assert out["missing"].sum() == 0


def test_a_closed_window_is_probed_and_an_idle_flow_kept_alive():
    closed = answer(3 * RTT, 1)
    closed.window = 0
    probe = Packet(900 * MS, 0, 1 + MSS, 1, 1, 1, ACK)
    assert told([*opened(), closed, probe])[0] == track.WINDOW_PROBE
    alive = Packet(9000 * MS, 0, MSS, 1, 0, 0, ACK)
    assert told([*opened(), alive])[0] == track.KEEP_ALIVE
