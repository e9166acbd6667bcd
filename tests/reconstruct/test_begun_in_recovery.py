"""Captures with SACK that begin within a recovery: it is none of theirs, and after it the window is the sender's."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.naive import sender as naive
from tests.reconstruct.inferred import inferred_of
from tests.reconstruct.packets import FlowFacts, FlowPackets
from tests.reconstruct.test_sender import FACTS, SENDERS, taken

LATE = FlowFacts(timestamps=True, vantage="sender")
#: Which recovery of which sender: of few losses in congestion avoidance, or of every other segment as slow start ends.
FEW = [("reno", 1), ("reno", 2), ("reno, losses", 1), ("cubic, HyStart", 0)]
MANY = [("reno", 0), ("reno, losses", 0)]


def us(column):
    return column.to_physical().to_numpy() // 1000


@cache
def whole(name):
    """A sender's packets, its state at each ACK, and where its recoveries begin and end (us), from all its packets."""
    cc, more, path = SENDERS[name]
    rows, truth = naive.run(cc, naive.Path(**path), 8, **more)
    packets = FlowPackets(**naive.packets(rows))
    found = inferred_of(packets, FACTS).recoveries
    return packets, np.array(truth), us(found["start"]), us(found["end"])


def begun_at(packets, place):
    """The packets from one on, as a capture that begins there: numbers count from its first, no scale is known."""
    some = taken(packets, np.arange(place, len(packets)))
    out = some.outbound
    base = int(some.seq[0] if out[0] else some.ack[0]) - 1
    return replace(
        some,
        seq=np.where(out, some.seq - base, some.seq),
        ack=np.where(out, some.ack, some.ack - base),
        sack_edges=some.sack_edges - base,
        window=np.full(len(some), -1),
    )


@pytest.mark.parametrize("later", range(4))  # packets: captured first is an ACK, or data
@pytest.mark.parametrize(
    ("name", "which", "part"), [(*case, 0.5) for case in FEW] + [(*case, part) for case in MANY for part in (0.1, 0.2)]
)
def test_a_recovery_from_before_is_not_reported_and_its_window_is_right(name, which, part, later):
    packets, truth, starts, ends = whole(name)
    start, end = starts[which], ends[which]
    place = int(np.searchsorted(packets.time_ns // 1000, start + (end - start) * part)) + later
    found = inferred_of(begun_at(packets, place), LATE)
    assert found.samples["ca_state"][0] == "recovery"
    assert us(found.recoveries["start"]).tolist() == starts[which + 1 :].tolist()
    times = us(found.samples["time"])
    at = np.searchsorted(truth[:, 0], times)
    assert (truth[at, 0] == times).all()
    after = times > end
    assert after.sum() > 100
    cwnd, threshold = (found.samples[name].to_numpy() for name in ("cwnd_segments", "ssthresh_segments"))
    assert np.abs(cwnd - truth[at, 1])[after].max() <= 2
    assert np.abs(threshold - truth[at, 2])[after].max() <= 1
    assert found.samples["ssthresh_basis"][0] == "fitted"
    assert found.cc == name.split(",")[0]
