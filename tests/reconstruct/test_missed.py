"""What a capture at the sender lacks is put back where it was; and the kernels that do it are their slow twin's."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.naive import missed as twin
from tests.naive import sender as naive
from tests.reconstruct.inferred import inferred_of
from tests.reconstruct.packets import FlowFacts, FlowPackets, picked, with_missed
from tests.reconstruct.test_replay_kernels import hostile
from tracetool.kernels import missed_acks as ma
from tracetool.kernels import missed_data as md
from tracetool.kernels.replay_columns import MISSED

TICK = 1_000_000


def whole(drop=(), queue=60):
    """A simulated flow as captured at its sender, packets of each way numbered."""
    path = naive.Path(rate=1500, delay=30_000, queue=queue, drop=frozenset(drop))
    packets = FlowPackets(**naive.packets(naive.run("reno", path, 2)[0]))
    ids = np.where(packets.outbound, np.cumsum(packets.outbound), np.cumsum(~packets.outbound) + 30_000)
    return dataclasses.replace(packets, ip_id=ids & 0xFFFF)


def without(packets, *places):
    kept = np.delete(np.arange(len(packets)), places)
    return picked(packets, kept, packets.time_ns)


def lacking(packets, seed):
    """One frame in thirty missing, none of the handshake."""
    lost = np.flatnonzero(np.random.default_rng(seed).random(len(packets)) < 1 / 30)
    return without(packets, lost[lost > 2])


def blind(packets, *names):
    """The same without timestamps, or identifications."""
    return dataclasses.replace(packets, **{name: np.full(len(packets), -1, np.int64) for name in names})


def put_back(packets, sack=True):
    more = with_missed(packets, naive.MSS, TICK, sack=sack)
    return more, np.flatnonzero(more.frame < 0)


def same(packets, sack, nxt=-1):
    room = len(packets)
    found = np.zeros((room, ma.ACK_WIDTH), np.int64)
    rows = ma.find_missed_acks(
        packets.time_ns, packets.outbound, packets.seq, packets.ack, packets.payload, packets.segments, packets.flags,
        packets.window, packets.tsval, packets.tsecr, packets.ip_id, packets.sack_edges, packets.sack_offsets,
        naive.MSS, sack, found,
    )  # fmt: skip
    columns = [ma.PLACE, ma.LIKE, ma.AT, ma.ACKED, ma.TRIM, ma.ECHO]
    one_by_one = twin.read(packets)
    assert found[:rows, columns].tolist() == twin.missed_acks(one_by_one, naive.MSS, sack)
    found = np.zeros((room, md.DATA_WIDTH), np.int64)
    rows = md.find_missed_data(
        packets.time_ns, packets.outbound, packets.seq, packets.ack, packets.payload, packets.segments, packets.flags,
        packets.tsval, packets.tsecr, packets.ip_id, naive.MSS, TICK, nxt, found,
    )  # fmt: skip
    columns = [md.PLACE, md.LIKE, md.AT, md.FIRST, md.LENGTH, md.AGAIN]
    assert found[:rows, columns].tolist() == twin.missed_data(one_by_one, naive.MSS, TICK, nxt)


@pytest.mark.parametrize("sack", [True, False])
@pytest.mark.parametrize("unknown", [(), ("ip_id",), ("tsval", "tsecr"), ("ip_id", "tsval", "tsecr")])
def test_the_kernels_find_what_the_twin_finds(unknown, sack):
    for seed in range(4):
        same(blind(lacking(whole(drop={40, 200, 201}), seed), *unknown), sack)


@pytest.mark.parametrize("seed", range(60))
def test_on_packets_made_to_harm_too(seed):
    rng = np.random.default_rng(seed)
    packets = hostile(rng, int(rng.integers(0, 150)))
    packets = dataclasses.replace(packets, ip_id=rng.integers(-1, 40, len(packets)))
    same(packets, bool(seed % 2))
    known = int(rng.choice([*packets.seq, *packets.ack, 0]))
    same(packets, bool(seed % 2), max(known, 0) + int(rng.integers(0, 5)) * naive.MSS)
    more = with_missed(packets, naive.MSS, TICK, sack=bool(seed % 2))
    assert len(more) <= 2 * len(packets)


def test_a_whole_capture_stays_as_it_is():
    packets = whole(drop={40, 200, 201})
    assert (put_back(packets)[0].frame == packets.frame).all()


def test_acks_that_overtook_others_were_not_missed():
    """The sender echoes the newer one; the older, captured behind it, makes no third."""
    packets = whole(drop={40, 200, 201})
    acks = np.flatnonzero(~packets.outbound & (packets.payload == 0))
    later = (packets.tsval[acks[1:]] > packets.tsval[acks[:-1]]) & (packets.ack[acks[1:]] > packets.ack[acks[:-1]])
    for which in np.flatnonzero(later)[[20, 60]]:
        old, new = acks[which : which + 2]
        order = np.arange(len(packets))
        order[[old, new]] = new, old
        swapped = picked(packets, order, packets.time_ns)
        echoes = swapped.tsecr.copy()
        between = np.arange(old + 1, new)[swapped.outbound[old + 1 : new]]
        echoes[between] = packets.tsval[new]
        assert not len(put_back(dataclasses.replace(swapped, tsecr=echoes))[1])


def test_what_came_after_the_last_captured_segment_is_listed_in_order():
    """However the timestamps run that tell when it left: ACKs of a path whose data the capture does not have."""
    packets = whole()
    acks = np.flatnonzero(~packets.outbound & (packets.payload == 0))
    last = np.flatnonzero(packets.payload)[40]
    alone = picked(packets, np.concatenate([np.arange(last + 1), acks[acks > last]]), packets.time_ns)
    stamps = alone.tsecr.copy()
    stamps[last + 1 :] = stamps[last + 1 :][::-1]
    for each in (alone, dataclasses.replace(alone, tsecr=stamps)):
        same(each, sack=True)
        found = np.zeros((len(each), md.DATA_WIDTH), np.int64)
        rows = md.find_missed_data(
            each.time_ns, each.outbound, each.seq, each.ack, each.payload, each.segments, each.flags, each.tsval,
            each.tsecr, each.ip_id, naive.MSS, TICK, -1, found,
        )  # fmt: skip
        assert rows > 100
        assert (np.diff(found[:rows, md.PLACE]) >= 0).all()


def test_missed_data_goes_where_it_left():
    packets = whole(queue=10_000)
    data = np.flatnonzero(packets.payload)
    for place in data[[30, 77, 240, 500]]:
        more, at = put_back(without(packets, place))
        assert at.tolist() == [place]
        assert more.seq[place] == packets.seq[place]
        assert more.payload[place] == packets.payload[place]
        assert abs(more.time_ns[place] - packets.time_ns[place]) < TICK


@pytest.mark.parametrize("unknown", [(), ("ip_id",)])
def test_a_missed_ack_goes_where_the_sender_answered_it(unknown):
    packets = blind(whole(queue=10_000), *unknown)
    acks = np.flatnonzero(~packets.outbound & (packets.payload == 0))
    data = np.flatnonzero(packets.payload)
    for place in acks[[60, 150, 300]]:  # where the rate is that of the bottleneck, and each has its own timestamp
        more, at = put_back(without(packets, place, data[-40]))  # some data, so that the capture is known to lack
        acks_put_back = at[~more.outbound[at]]
        assert acks_put_back.tolist() == [place]
        assert more.ack[place] == packets.ack[place]
        assert more.flags[place] & MISSED
        assert abs(more.time_ns[place] - packets.time_ns[place]) < TICK


def test_a_missed_retransmission_is_owed():
    packets = whole(drop={200})
    data = np.flatnonzero(packets.payload)
    again = data[1:][packets.seq[data[1:]] < np.maximum.accumulate(packets.seq[data])[:-1]]
    assert len(again)
    more, at = put_back(without(packets, again[0]))
    assert more.flags[at].tolist() == [MISSED]
    assert data[data < again[0]][-1] < at[0] <= again[0]


def test_only_captured_acks_have_samples():
    packets = lacking(whole(), 1)
    inferred = inferred_of(packets, FlowFacts(vantage="sender", syn_seen=True, sack_permitted=True))
    acks = ~packets.outbound & (packets.flags & 16 != 0) & (packets.flags & 6 == 0)
    assert inferred.samples.height == acks.sum()
    assert inferred.cc == "reno"


def test_what_was_missed_costs_little_accuracy():
    rows, truth = naive.run("reno", naive.Path(rate=1500, delay=30_000, queue=60), 4)
    packets = FlowPackets(**naive.packets(rows))
    for seed in range(3):
        inferred = inferred_of(
            lacking(packets, seed), FlowFacts(vantage="sender", syn_seen=True, sack_permitted=True, mss_bytes=1460)
        )
        times = np.array([row[0] * 1000 for row in truth])
        cwnd = np.array([row[1] for row in truth])
        mine = inferred.samples["time"].to_physical().to_numpy()
        true = cwnd[np.clip(np.searchsorted(times, mine), 0, len(cwnd) - 1)]
        off = np.abs(inferred.samples["cwnd_segments"].to_numpy() - true)
        assert np.quantile(np.where(off <= 1, 0, off / true), 0.9) <= 0.05
