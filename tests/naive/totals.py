"""Twin of `tracetool.kernels.flow_totals`: each total asked anew of a list of packets."""

from __future__ import annotations

from itertools import pairwise

from tracetool.kernels import flow_totals as ft
from tracetool.kernels import track, track_acks, track_reasons

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = (1 << bit for bit in range(8))


def is_duplicate(p):
    """Whether an ACK's first block tells of data that arrived twice (RFC 2883)."""
    if len(p.sack) < 2 or p.sack[0] >= p.sack[1]:
        return False
    return p.sack[1] <= p.ack or (len(p.sack) >= 4 and p.sack[2] <= p.sack[0] and p.sack[1] <= p.sack[3])


def cut(p):
    """Bytes of the payload that the capture does not hold."""
    return min(max(p.frame_bytes - p.captured, 0), p.payload)


def totals(packets, side):
    """All columns of one direction of a flow, by name."""
    counted = [p for p in packets if not p.copy]
    mine, theirs = [p for p in counted if p.way == side], [p for p in counted if p.way != side]
    data = [p for p in mine if p.payload > 0]
    again = [p for p in mine if p.kind in (track.RETRANSMISSION, track.SPURIOUS)]
    windows = [p.window for p in mine if p.window >= 0 and p.flags & ACK and not p.flags & (SYN | RST)]
    wire = [-(-p.payload // p.segments) for p in data if p.segments]
    times = [p.time for p in mine]

    def flagged(bit, but=0):
        return sum(bool(p.flags & bit and not p.flags & but) for p in mine)

    def sent_again(trigger):
        return sum(p.again_segments for p in again if p.trigger == trigger)

    return {
        "PACKETS": len(mine),
        "RESETS_SENT": flagged(RST),
        "ACK_PACKETS": flagged(ACK),
        "PURE_ACKS": sum(bool(p.flags & ACK and p.payload <= 0 and not p.flags & (SYN | FIN | RST)) for p in mine),
        "SACK_PACKETS": sum(len(p.sack) > 1 for p in mine),
        "DSACK_PACKETS": sum(map(is_duplicate, mine)),
        "MAX_SACK_BLOCKS": max((len(p.sack) // 2 for p in mine), default=0),
        "DATA_PACKETS": len(data),
        "DATA_BYTES": sum(p.payload for p in mine),
        "DATA_SEGMENTS": sum(p.segments for p in data),
        "MISSING": sum(p.missing[0] for p in mine),
        "RETRANSMITTED_PACKETS": len(again),
        "RETRANSMITTED_SEGMENTS": sum(p.again_segments for p in again),
        "RETRANSMITTED_BYTES": sum(p.again for p in again),
        "SPURIOUS_SEGMENTS": sum(p.again_segments for p in again if p.kind == track.SPURIOUS),
        "FAST_RETRANSMISSIONS": sent_again(track_reasons.FAST),
        "RTO_RETRANSMISSIONS": sent_again(track_reasons.RTO),
        "TAIL_LOSS_PROBES": sent_again(track_reasons.TLP),
        "OUT_OF_ORDER_PACKETS": sum(p.kind == track.OUT_OF_ORDER for p in mine),
        "WINDOW_PROBES": sum(p.kind == track.WINDOW_PROBE for p in mine),
        "WINDOW_PROBE_BYTES": sum(p.payload for p in mine if p.kind == track.WINDOW_PROBE),
        "KEEP_ALIVES": sum(p.kind == track.KEEP_ALIVE for p in mine),
        "PUSH_PACKETS": flagged(PSH),
        "URGENT_PACKETS": flagged(URG),
        "SYN_PACKETS": flagged(SYN),
        "FIN_PACKETS": flagged(FIN),
        "MAX_SEGMENT_BYTES": max(wire, default=-1),
        "MIN_SEGMENT_BYTES": min(wire, default=-1),
        "MAX_WINDOW_BYTES": max(windows, default=-1),
        "MIN_WINDOW_BYTES": min(windows, default=-1),
        "WINDOWS": len(windows),
        "WINDOW_SUM": sum(windows),
        "ZERO_WINDOWS": sum(bool(p.marks & track_acks.ZERO_WINDOW) for p in mine),
        "TRUNCATED_BYTES": sum(map(cut, mine)),
        "TRUNCATED_PACKETS": sum(cut(p) > 0 for p in mine),
        "FIRST_DATA": min((p.time for p in data), default=0),
        "LAST_DATA": max((p.time for p in data), default=0),
        "IDLE_MAX": max((b - a for a, b in pairwise(times)), default=0),
        "LAST_TIME": times[-1] if times else 0,
        "CE_PACKETS": sum(p.ecn == 3 for p in mine),
        "ECE_PACKETS": flagged(ECE, but=SYN),
        "CWR_PACKETS": flagged(CWR, but=SYN),
        "DUPLICATE_ACKS": sum(bool(p.marks & track_acks.DUPLICATE) for p in theirs),
        "TRIPLE_DUPLICATE_ACKS": sum(bool(p.marks & track_acks.THIRD) for p in theirs),
        "MISSING_OTHER": sum(p.missing[1] for p in theirs),
    }


def row(packets, side):
    """The same in the order of the columns."""
    known = totals(packets, side)
    names = {getattr(ft, name): name for name in known}
    return [known[names[at]] for at in range(ft.TOTALS)]


def payload(packets, side):
    """Bytes of a direction, those of copies, too."""
    return sum(p.payload for p in packets if p.way == side)


def span(packets):
    """Time from the first packet to the last."""
    times = [p.time for p in packets if not p.copy]
    return max(times) - min(times) if times else 0
