"""Twin of `tracetool.kernels.departures`, with NumPy: when data left its sender, and when ACKs reached it.

An ACK arrives half the way to the sender and back later than it was captured: the way of ACKs is seldom congested. Data
left earlier by the other half and by the time it stood in queues, which nobody saw; but each segment echoes the
timestamp of the last ACK that its sender had got (RFC 7323), and so says between which two ACKs it was sent.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from tests.reconstruct.packets import ACK, SYN, FlowPackets

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: ACKs that arrive closer together than this belong to one stretch, over which the data they let go is spread evenly.
STRETCH_NS = 4_000_000
#: Data that left within this time of an ACK was let go by it.
LET_GO_NS = 2_000_000
TICKS_NS = (1_000, 1_000_000, 4_000_000, 10_000_000, 100_000_000)
#: A packet that came late is looked for among so many that came before it.
MOST_LATE = 256


def way_to_sender(packets: FlowPackets) -> int:
    """Time from the capture to the sender and back, nanoseconds; 0 where it cannot be told.

    The shortest of what the handshake took (a packet of the receiver that the sender answers at once) and the times
    from an ACK to data that echoes its timestamp: either may have met a queue.

    Parameters
    ----------
    packets : FlowPackets

    Returns
    -------
    int
    """
    ways: list[int] = []
    syn_ack = np.flatnonzero(~packets.outbound & (packets.flags & (SYN | ACK) == SYN | ACK))
    if len(syn_ack):
        later = slice(int(syn_ack[-1]), None)
        answers = np.flatnonzero(packets.outbound[later] & (packets.flags[later] & (SYN | ACK) == ACK))
        if len(answers):
            ways.append(int(packets.time_ns[syn_ack[-1] + answers[0]] - packets.time_ns[syn_ack[-1]]))
    ack, data, first, after = _echoes(packets)
    known = (first < len(ack)) & (after > first)
    if known.any():
        ways.append(int((packets.time_ns[data[known]] - packets.time_ns[ack[first[known]]]).min()))
    return max(0, min(ways, default=0))


def project(packets: FlowPackets) -> FlowPackets:
    """Packets of a flow in the order and at the times at which its sender sent and received them.

    Parameters
    ----------
    packets : FlowPackets
        As captured at the receiver, or on the way.

    Returns
    -------
    FlowPackets
        The same packets with estimated times; what was lost before it reached the capture stays unseen.
    """
    if not len(packets):
        return packets
    half = way_to_sender(packets) // 2
    time = packets.time_ns + np.where(packets.outbound, -half, half)
    ack, data, first, after = _echoes(packets)
    if len(ack) and len(data):
        time[data] = _departures(packets, time, ack, data, first, after)
        _put_before(packets, time)
    order = np.lexsort((np.where(packets.outbound, packets.seq, 0), packets.outbound, time))
    return _picked(packets, order, time)


def _put_before(packets: FlowPackets, time: Ints) -> None:
    """Data that the network reordered left before all that goes beyond it and has no older timestamp."""
    data = [i for i in range(len(packets)) if packets.outbound[i] and packets.payload[i] > 0]
    for place, i in enumerate(data):
        for k in data[max(place - MOST_LATE, 0) : place]:
            known = packets.tsval[i] >= 0 and packets.tsval[k] >= 0 and packets.seq[k] > packets.seq[i]
            if known and _after(packets.tsval[k : k + 1], int(packets.tsval[i]))[0] >= 0:
                time[i] = min(time[i], time[k])


def _echoes(packets: FlowPackets) -> tuple[Ints, Ints, Ints, Ints]:
    """Packets that arrive at the sender, its packets that echo one, and for each of these the range of what it echoes.

    The range counts in the first array: the sender had got the first of it, and not yet the one after it.
    """
    ack = np.flatnonzero(~packets.outbound & (packets.tsval >= 0))
    data = np.flatnonzero(packets.outbound & (packets.tsecr >= 0) & (packets.flags & SYN == 0))
    if not len(ack) or not len(data):
        nothing = np.zeros(0, np.int64)
        return ack, nothing, nothing, nothing
    base = packets.tsval[ack[0]]
    clock = np.maximum.accumulate(_after(packets.tsval[ack], base))
    echoed = _after(packets.tsecr[data], base)
    return ack, data, np.searchsorted(clock, echoed, "left"), np.searchsorted(clock, echoed, "right")


def _after(clock: Ints, base: int) -> Ints:
    """Ticks since `base` of a 32-bit clock."""
    ticks = (clock - base) & 0xFFFFFFFF
    return np.where(ticks >= 1 << 31, ticks - (1 << 32), ticks)


def _departures(packets: FlowPackets, time: Ints, ack: Ints, data: Ints, first: Ints, after: Ints) -> Ints:
    """Estimated times at which the packets `data` left the sender."""
    arrival = time[ack]
    last = len(ack) - 1
    low = arrival[np.minimum(first, last)]
    high = np.where(after <= last, arrival[np.minimum(after, last)], np.iinfo(np.int64).max)
    latest = time[data]
    # the sender's own clock, to its tick; the packet that queued least shows how that clock stands
    estimate = np.clip(_by_clock(packets, data, latest), low, np.maximum(high - 1, low))
    estimate = np.where(estimate - low <= LET_GO_NS, low, estimate)
    # in a stretch of ACKs the data goes with them evenly
    freed = np.diff(np.maximum.accumulate(packets.ack[ack]), prepend=packets.ack[ack[0]])
    weight = np.cumsum(np.where(freed > 0, freed, 1448))
    size = np.maximum(packets.payload[data], 1)
    order = np.lexsort((np.arange(len(data)), first))
    total = np.cumsum(size[order])
    starts = np.flatnonzero(np.diff(first[order], prepend=-1))
    counts = np.diff(np.append(starts, len(order)))
    before = np.repeat(total[starts] - size[order][starts], counts)
    whole = np.repeat(np.add.reduceat(size[order], starts), counts)
    part = np.empty(len(data))
    part[order] = (total - before - size[order] / 2) / whole
    floor = np.where(first > 0, weight[np.maximum(np.minimum(first, last + 1) - 1, 0)], 0)
    target = floor + part * (weight[np.minimum(np.maximum(after, 1) - 1, last)] - floor)
    chosen = np.clip(np.searchsorted(weight, target, "left"), first, np.maximum(after - 1, first))
    spread = arrival[np.minimum(chosen, last)]
    dense = (after > first + 1) & (arrival[np.minimum(np.maximum(after - 1, 0), last)] - low <= STRETCH_NS)
    result: Ints = np.where(first > last, latest, np.where(dense, spread, estimate))
    return np.minimum(result, np.maximum(latest, low))


def _by_clock(packets: FlowPackets, data: Ints, latest: Ints) -> Ints:
    """Departures by the sender's timestamp clock; `latest` where it has none."""
    tsval = packets.tsval[data]
    if (tsval < 0).any() or len(data) < 2:
        return latest
    ticks = _after(tsval, int(tsval[0]))
    span = int(ticks[-1] - ticks[0])
    if span <= 0:
        return latest
    elapsed = int(latest[-1] - latest[0])
    tick = min(TICKS_NS, key=lambda known: abs(np.log(known * span / max(elapsed, 1))))
    return ticks * tick + int((latest - ticks * tick).min())


def _picked(packets: FlowPackets, order: Ints, time: Ints) -> FlowPackets:
    """Packets in another order and at other times."""
    counts = np.diff(packets.sack_offsets)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[order])])
    edges = np.repeat(packets.sack_offsets[:-1][order] - offsets[:-1], counts[order]) + np.arange(offsets[-1])
    plain = {
        field.name: getattr(packets, field.name)[order]
        for field in dataclasses.fields(packets)
        if field.name not in {"sack_edges", "sack_offsets", "time_ns"}
    }
    return FlowPackets(time_ns=time[order], sack_edges=packets.sack_edges[edges], sack_offsets=offsets, **plain)
