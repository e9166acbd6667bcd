"""Projected times are those of the slow twin, for traffic as it is and for packets made to harm."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.naive import projection as twin
from tests.naive import sender as naive
from tests.reconstruct.packets import FlowPackets, picked, project
from tests.reconstruct.test_replay_kernels import hostile
from tracetool.kernels import departures


def same(packets):
    ours, theirs = project(packets), twin.project(packets)
    for name in FlowPackets.__slots__:
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name


def at_the_receiver(seconds=3):
    """A flow of a simulated sender, its packets half a round trip later, or earlier, than there."""
    rows, _ = naive.run("cubic", naive.Path(rate=1500, delay=30_000, queue=120), seconds)
    packets = naive.packets(rows)
    packets["time_ns"] = packets["time_ns"] + np.where(packets["outbound"], 15_000_000, -15_000_000)
    order = np.argsort(packets["time_ns"], kind="stable")
    counts = np.diff(packets["sack_offsets"])[order]
    starts = packets["sack_offsets"][:-1][order]
    edges = [packets["sack_edges"][a : a + n] for a, n in zip(starts, counts, strict=True)]
    moved = {name: column[order] for name, column in packets.items() if name not in {"sack_edges", "sack_offsets"}}
    return FlowPackets(
        **moved,
        sack_edges=np.concatenate(edges).astype(np.int64),
        sack_offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
    )


def test_a_flow_seen_at_its_receiver():
    packets = at_the_receiver()
    assert len(packets) > 2000
    assert len(packets.sack_edges) > 0
    same(packets)
    assert not np.array_equal(project(packets).time_ns, packets.time_ns)


def test_what_the_network_reordered_left_in_the_order_of_its_numbers():
    packets = at_the_receiver()
    data = np.flatnonzero(packets.outbound & (packets.payload > 0))
    late = data[200]  # it comes after three that were sent after it
    order = np.arange(len(packets))
    order[late : data[203]] = np.arange(late + 1, data[203] + 1)
    order[data[203]] = late
    reordered = picked(packets, order, packets.time_ns)
    reordered = dataclasses.replace(reordered, time_ns=packets.time_ns)
    same(reordered)
    found = project(reordered)
    sent = found.seq[found.outbound & (found.payload > 0)]
    assert (np.diff(sent[190:215]) > 0).all()


def test_what_was_sent_again_is_told():
    packets = at_the_receiver()
    data = packets.seq[packets.outbound & (packets.payload > 0)]
    ranges = departures.sent_again(packets.outbound, packets.seq, packets.payload)
    assert ranges[:, 0].tolist() == sorted(data[1:][data[1:] < np.maximum.accumulate(data)[:-1]].tolist())
    assert (np.diff(ranges[:, 1]) >= 0).all()
    assert not len(departures.sent_again(packets.outbound, packets.seq, np.zeros_like(packets.payload)))


@pytest.mark.parametrize("seed", range(60))
def test_packets_made_to_harm(seed):
    rng = np.random.default_rng(seed)
    packets = hostile(rng, int(rng.integers(0, 200)))
    same(packets)


def test_what_is_too_far_out_of_order_is_left_to_another_sort():
    count = 4000
    time = np.arange(count, 0, -1)
    assert not departures.in_order(time, np.ones(count, bool), np.zeros(count, np.int64), np.empty(count, np.int64))
