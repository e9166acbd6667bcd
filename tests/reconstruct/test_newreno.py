"""The state of a sender without SACK from its packets: from all of them, and from those after a recovery has begun."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.naive import newreno, sender
from tests.naive.path import Path
from tests.naive.scoreboard import RECOVERY
from tests.reconstruct.inferred import inferred_of
from tests.reconstruct.packets import FlowFacts, FlowPackets, picked

FACTS = FlowFacts(1460, 1460, 7, 7, False, False, False, None, syn_seen=True, vantage="sender")
LATE = replace(FACTS, syn_seen=False, window_scale=None, window_scale_own=None)
#: Slow start overflows the queue: a hundred holes, one mended each round trip. After that, single losses.
PATHS = {"wide": {"rate": 500, "delay": 60_000, "queue": 40}, "narrow": {"rate": 2000, "delay": 60_000, "queue": 20}}


@pytest.fixture(scope="module", params=PATHS)
def case(request):
    rows, truth = newreno.run(Path(**PATHS[request.param]), 9)
    return FlowPackets(**sender.packets(rows)), np.array(truth)


def read(inferred):
    """Its cwnd and ssthresh at each ACK."""
    samples = inferred.samples
    return samples["cwnd_segments"].to_numpy(), samples["ssthresh_segments"].fill_null(newreno.INFINITE).to_numpy()


def first_recovery(truth):
    """The ACKs that find the sender within it: the first, and the first that no more does."""
    within = truth[:, 3] == RECOVERY
    begin = int(np.flatnonzero(within)[0])
    return begin, begin + int(np.flatnonzero(~within[begin:])[0])


def test_of_all_packets_the_state_is_the_senders(case):
    packets, truth = case
    inferred = inferred_of(packets, FACTS)
    cwnd, ssthresh = read(inferred)
    assert (cwnd == truth[:, 1]).mean() > 0.99
    assert (ssthresh == truth[:, 2]).mean() > 0.99
    assert inferred.cc == "reno"


@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_from_within_a_recovery_on_too(case, part):
    """That it goes on until then is known of no other source than the head, which is sent again every round trip."""
    packets, truth = case
    begin, end = first_recovery(truth)
    assert len(set(truth[begin:end, 4])) > 30, "holes that are mended"
    first = begin + int(part * (end - begin))
    kept = np.flatnonzero(packets.time_ns >= truth[first, 0] * 1000)
    inferred = inferred_of(picked(packets, kept, packets.time_ns), LATE)
    cwnd, ssthresh = read(inferred)
    assert len(cwnd) == len(truth) - first
    assert np.abs(cwnd - truth[first:, 1])[end - first :].max() <= 1
    assert np.abs(ssthresh - truth[first:, 2])[end - first :].max() <= 1
    assert set(cwnd[: end - first]) <= {truth[end, 1], truth[end, 1] + 1}
    flight = inferred.samples["inflight_bytes"].to_numpy() / newreno.MSS
    assert np.abs(flight - truth[first:, 1])[: end - first].max() <= 2, (
        "what duplicate ACKs told before is in no flight"
    )
    assert inferred.cc == "reno"
    assert inferred.cc_confidence > 0.5
    assert set(inferred.retransmissions["trigger"]) == {"fast"}
