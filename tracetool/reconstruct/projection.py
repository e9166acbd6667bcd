"""A capture from elsewhere as the sender would have made it: when its data left, and when ACKs reached it.

An ACK arrives half the way to the sender and back later than it was captured: the way of ACKs is seldom congested. Data
left earlier by the other half and by the time it stood in queues, which nobody saw; but each segment echoes the
timestamp of the last ACK that its sender had got (RFC 7323), and so says between which two ACKs it was sent.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels import departures
from tracetool.reconstruct.flow import FlowPackets

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

_PLAIN = tuple(
    field.name
    for field in dataclasses.fields(FlowPackets)
    if field.name not in {"sack_edges", "sack_offsets", "time_ns"}
)


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

    Examples
    --------
    >>> project(packets).time_ns[:2]  # doctest: +SKIP
    array([1700000000000000000, 1700000000020000000])
    """
    if not len(packets):
        return packets
    time, order = np.empty(len(packets), np.int64), np.empty(len(packets), np.int64)
    departures.project(
        packets.time_ns,
        packets.outbound,
        packets.flags,
        packets.ack,
        packets.payload,
        packets.tsval,
        packets.tsecr,
        time,
    )
    if not departures.in_order(time, packets.outbound, packets.seq, order):
        order = np.lexsort((np.where(packets.outbound, packets.seq, 0), packets.outbound, time))
    return _picked(packets, order, time)


def _picked(packets: FlowPackets, order: Ints, time: Ints) -> FlowPackets:
    """Packets in another order and at other times."""
    edges, offsets = packets.sack_edges, packets.sack_offsets
    if len(edges):
        counts = np.diff(offsets)[order]
        moved = np.zeros_like(offsets)
        np.cumsum(counts, out=moved[1:])
        edges = edges[np.repeat(offsets[:-1][order] - moved[:-1], counts) + np.arange(moved[-1])]
        offsets = moved
    plain = {name: getattr(packets, name)[order] for name in _PLAIN}
    return FlowPackets(time_ns=time[order], sack_edges=edges, sack_offsets=offsets, **plain)
