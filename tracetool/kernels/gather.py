"""From packet records to columns, sorted by flow and direction."""

from __future__ import annotations

from typing import Any

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.prefetch import prefetch

_AHEAD = 12  # records to ask for in advance: a flow's are far apart
BITS = 11  # of the key that one pass of the sort takes


@bare_kernel
def order_by_flow(packets: Any, count: int, order: Any, keys: Any, spare: Any, counts: Any) -> None:
    """Sort by (flow, direction), in order of capture within one: radix sort, as many passes as the numbers need.

    Parameters
    ----------
    packets : PACKET array
        The first ``count`` are sorted.
    order : uint32 array of at least ``count``
        Receives the permutation.
    keys, spare : uint32 arrays of at least ``count``
        Room to work in.
    counts : int64 array of 2^BITS + 1
        Room to work in.
    """
    highest = 0
    lowest = 0x7FFFFFFF
    for k in range(count):
        packet = packets[k]
        highest = max(highest, packet.flow)
        lowest = min(lowest, packet.flow)
        keys[k] = (packet.flow << 1) | packet.direction
        order[k] = k
    first = lowest << 1
    last = ((highest << 1) | 1) - first
    shift = 0
    while last >> shift:
        for k in range((1 << BITS) + 1):
            counts[k] = 0
        for k in range(count):
            counts[(((keys[k] - first) >> shift) & ((1 << BITS) - 1)) + 1] += 1
        for k in range(1 << BITS):
            counts[k + 1] += counts[k]
        for k in range(count):
            row = order[k]
            key = ((keys[row] - first) >> shift) & ((1 << BITS) - 1)
            spare[counts[key]] = row
            counts[key] += 1
        for k in range(count):
            order[k] = spare[k]
        shift += BITS


@bare_kernel
def gather_columns(
    packets: Any, order: Any, count: int, pool: Any, frame: Any, time: Any, flow: Any, direction: Any, protocol: Any,
    seq: Any, ack: Any, payload: Any, segments: Any, flags: Any, window: Any, window_raw: Any, tsval: Any, tsecr: Any,
    offsets: Any, edges: Any, ip_id: Any, ttl: Any, dscp: Any, ecn: Any, ip_bytes: Any, frame_bytes: Any,
    captured_bytes: Any, interface: Any, has: Any,
) -> int:  # fmt: skip
    """Copy records into columns in the given order; return the number of SACK edges."""
    used = 0
    for k in range(count):
        if k + _AHEAD < count:
            prefetch(packets, order[k + _AHEAD])
        packet = packets[order[k]]
        frame[k] = packet.frame
        time[k] = packet.time
        flow[k] = packet.flow
        direction[k] = packet.direction
        protocol[k] = packet.protocol == 17
        seq[k] = packet.seq
        ack[k] = packet.ack
        payload[k] = packet.payload
        segments[k] = packet.segments
        flags[k] = packet.flags
        window[k] = packet.window
        window_raw[k] = packet.window_raw
        tsval[k] = packet.tsval
        tsecr[k] = packet.tsecr
        offsets[k] = used
        for e in range(packet.edges):
            edges[used + e] = pool[packet.sack + e]
        used += packet.edges
        ip_id[k] = packet.ip_id
        ttl[k] = packet.ttl
        dscp[k] = packet.tos >> 2
        ecn[k] = packet.tos & 3
        ip_bytes[k] = packet.ip_bytes
        frame_bytes[k] = packet.frame_bytes
        captured_bytes[k] = packet.captured_bytes
        interface[k] = packet.interface
        has[k] = packet.has
    offsets[count] = used
    return used


@bare_kernel
def pack_bits(has: Any, count: int, bit: int, bitmap: Any) -> int:
    """Write Arrow's validity bitmap for one of the `has` bits; return the number of nulls."""
    nulls = 0
    for place in range((count + 7) // 8):
        byte = 0
        for k in range(min(8, count - 8 * place)):
            if has[8 * place + k] & bit:
                byte |= 1 << k
            else:
                nulls += 1
        bitmap[place] = byte
    return nulls
