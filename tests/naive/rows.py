"""Twins of `tracetool.kernels.event_rows` and `rtt_rows`: rows as tuples, sorted by Python."""

from __future__ import annotations

from tracetool.kernels import event_rows as k
from tracetool.kernels import track, track_acks

KINDS = {
    track.RETRANSMISSION: k.K_RETRANSMISSION,
    track.SPURIOUS: k.K_SPURIOUS,
    track.OUT_OF_ORDER: k.K_OUT_OF_ORDER,
    track.KEEP_ALIVE: k.K_KEEP_ALIVE,
    track.WINDOW_PROBE: k.K_WINDOW_PROBE,
}
MARKS = {
    track_acks.DUPLICATE: k.K_DUPLICATE_ACK,
    track_acks.ZERO_WINDOW: k.K_ZERO_WINDOW,
    track_acks.WINDOW_UPDATE: k.K_WINDOW_UPDATE,
    track_acks.WINDOW_FULL: k.K_WINDOW_FULL,
    track_acks.KEEP_ALIVE_ACK: k.K_KEEP_ALIVE_ACK,
    track_acks.WINDOW_PROBE_ACK: k.K_WINDOW_PROBE_ACK,
}
TLP = 3


def events(p, flow_of):
    """Rows of `event_rows`, from columns by their names; `flow_of` each packet."""
    rows = []
    seen = {(flow, way) for flow, way in zip(flow_of, p["way"], strict=True)}
    for i, flow in enumerate(flow_of):
        way, what = p["way"][i], p["kind"][i]
        found = []
        if what in KINDS:
            again = what in {track.RETRANSMISSION, track.SPURIOUS}
            probe = what == track.RETRANSMISSION and p["trigger"][i] == TLP
            found.append(
                (
                    way, k.K_TAIL_LOSS_PROBE if probe else KINDS[what], p["trigger"][i], p["seq"][i],
                    p["again" if again else "payload"][i], p["again_segments" if again else "segments"][i],
                    p["evidence"][i] + (k.LATE if what == track.OUT_OF_ORDER else 0),
                )
            )  # fmt: skip
        found += [(way, kind, 0, p["ack"][i], -1, -1, 0) for mark, kind in MARKS.items() if p["marks"][i] & mark]
        if p["copy"][i]:
            found.append((way, k.K_DUPLICATE_FRAME, 0, p["seq"][i], p["payload"][i], -1, 0))
        for column, side in enumerate((way, 1 - way)):
            if p["missing"][i][column] > 0 and (flow, side) in seen:
                lost = p["missing_at"][i][column], p["missing"][i][column]
                found.append((side, k.K_NOT_CAPTURED, 0, *lost, -1, k.NOT_CAPTURED))
        rows += [(i, *row) for row in found]
    return sorted(rows, key=lambda row: (flow_of[row[0]], row[1], p["time"][row[0]], row[0], row[2]))


def rtts(p, flow_of):
    """Packet, and twice the method and one for a timestamp's, of each RTT sample."""
    opened = {(flow, way) for flow, way, flags in zip(flow_of, p["way"], p["flags"], strict=True) if flags & 2}
    rows = []
    for i, flow in enumerate(flow_of):
        data = 1 - p["way"][i]
        if p["rtt"][i] >= 0:
            first = (flow, data) in opened and p["rtt_seq"][i] == 1
            rows.append((flow, data, p["time"][i], 2 * (1 if first else 0 if p["rtt_seq"][i] >= 0 else 2), i))
        if p["rtt_ticks"][i] >= 0:
            rows.append((flow, data, p["time"][i], 5, i))
    return [(i, key) for *_, key, i in sorted(rows)]


def rtt_columns(p, samples, flow_of):
    """Flow, direction, method, time, RTT and number of the samples that `rtts` lists."""
    return [
        [
            flow_of[i], 1 - p["way"][i], key // 2, p["time"][i], p["rtt_ticks" if key % 2 else "rtt"][i],
            -1 if key % 2 else p["rtt_seq"][i],
        ]
        for i, key in samples
    ]  # fmt: skip
