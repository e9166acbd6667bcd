"""Twin of `tracetool.kernels.replay_begin_sack`: what a capture with SACK tells of the recovery that it begins in.

Packets are tuples of (time, sent?, seq, ack, payload, flags, SACK edges); lists of them are looked through again and
again.
"""

from __future__ import annotations

from dataclasses import dataclass

SYN, RST, ACK = 2, 4, 16
MOST = 1 << 14  # segments outstanding


def first_ack(packets):
    """Place of the first ACK from the receiver; None without one."""
    return next((i for i, p in enumerate(packets) if not p[1] and p[5] & ACK and not p[5] & RST), None)


def sent(packets, before):
    """Data that is sent before a place: (place, first byte, end)."""
    return [(i, p[2], p[2] + p[4]) for i, p in enumerate(packets[:before]) if p[1] and p[4] > 0]


def beyond(packets, first):
    """What the first ACK tells beyond its number: (begin, end) of each block."""
    edges = packets[first][6]
    blocks = zip(edges[::2], edges[1::2], strict=False)
    return [(a, b) for a, b in blocks if packets[first][3] < a < b]


def begin(packets, mss):
    """First byte outstanding and first byte not sent yet, where packets begin within a recovery; else None."""
    first = first_ack(packets)
    if first is None or any(p[5] & SYN for p in packets):
        return None
    una, blocks = packets[first][3], beyond(packets, first)
    top, delivered = max((b for _, b in blocks), default=una), sum(b - a for a, b in blocks)
    old, fresh, nxt, repaired, acked = top, [], top, False, una  # `old`: end of what is known to be from before
    for i, (_, out, seq, ack, payload, flags, edges) in enumerate(packets):
        so_far = max([old, *fresh])
        if out and payload > 0:
            if seq < so_far:  # sent again; a hole that is not the first one: that one has been before
                repaired = repaired or seq > acked
            elif not fresh or seq > so_far:  # new data; or what seemed to be was not, and had been sent before
                repaired = repaired or bool(fresh)
                nxt = seq
            if seq >= old:
                fresh.append(seq + payload)
        elif not out and flags & ACK and i > first:
            acked = max(acked, ack)
            for left, right in zip(edges[::2], edges[1::2], strict=False):
                if left < right and right > max([ack, old, *fresh]):  # nobody saw that it was sent
                    old = nxt = right
                    fresh = []
        if fresh and acked >= old:
            break
    most_is_not_lost = 0 < delivered < nxt - una <= MOST * mss
    if most_is_not_lost and delivered > 3 * mss and (4 * delivered > nxt - una or repaired):
        return una, nxt
    return None


@dataclass
class Segment:
    """What the sender holds of a segment."""

    seq: int
    end: int
    sacked: bool = False
    lost: bool = False
    again: bool = False  # its retransmission is under way


def board(packets, una, nxt, mss):
    """The segments outstanding as the capture begins within a recovery."""
    segments = [Segment(seq, min(seq + mss, nxt)) for seq in range(una, nxt, mss)]
    blocks = [(a, b) for a, b in beyond(packets, first_ack(packets)) if b <= nxt]
    top = max((b for _, b in blocks), default=una)
    acks = [i for i, p in enumerate(packets) if not p[1] and p[5] & ACK and p[3] >= nxt]
    again = [(seq, end) for _, seq, end in sent(packets, min(acks, default=len(packets))) if una <= seq < top]
    for s in segments:
        s.sacked = any(s.seq < b and a < s.end for a, b in blocks)
        s.lost = not s.sacked and s.end < top
        s.again = s.lost and not any(s.seq < end and seq < s.end for seq, end in again)
    return segments
