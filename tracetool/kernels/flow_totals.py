"""Totals of each flow and direction that need no more than the packets and what `track` said of each: one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._jit import kernel
from tracetool.kernels.track import KEEP_ALIVE, OUT_OF_ORDER, RETRANSMISSION, SPURIOUS, WINDOW_PROBE
from tracetool.kernels.track_acks import DUPLICATE, THIRD, ZERO_WINDOW
from tracetool.kernels.track_reasons import FAST, RTO, TLP
from tracetool.kernels.track_sacks import tells_duplicate

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

#: Columns of the totals of a direction, in the names of `flow_stats` where it has them.
(
    PACKETS, RESETS_SENT, ACK_PACKETS, PURE_ACKS, SACK_PACKETS, DSACK_PACKETS, MAX_SACK_BLOCKS, DATA_PACKETS,
    DATA_BYTES, DATA_SEGMENTS, MISSING, RETRANSMITTED_PACKETS, RETRANSMITTED_SEGMENTS, RETRANSMITTED_BYTES,
    SPURIOUS_SEGMENTS, FAST_RETRANSMISSIONS, RTO_RETRANSMISSIONS, TAIL_LOSS_PROBES, OUT_OF_ORDER_PACKETS,
    WINDOW_PROBES, WINDOW_PROBE_BYTES, KEEP_ALIVES, PUSH_PACKETS, URGENT_PACKETS, SYN_PACKETS, FIN_PACKETS,
    MAX_SEGMENT_BYTES, MIN_SEGMENT_BYTES, MAX_WINDOW_BYTES, MIN_WINDOW_BYTES, WINDOWS, WINDOW_SUM, ZERO_WINDOWS,
    TRUNCATED_BYTES, TRUNCATED_PACKETS, FIRST_DATA, LAST_DATA, IDLE_MAX, LAST_TIME, CE_PACKETS, ECE_PACKETS,
    CWR_PACKETS, DUPLICATE_ACKS, TRIPLE_DUPLICATE_ACKS, MISSING_OTHER, TOTALS,
) = range(46)  # fmt: skip
FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = 1, 2, 4, 8, 16, 32, 64, 128
CE = 3


@kernel
def flow_totals(
    bounds: Ints, way: Bytes, time: Ints, ack: Ints, payload: Ints, segments: Ints, flags: Ints, window: Ints,
    frame_bytes: Ints, captured: Ints, ecn: Bytes, sack_at: Ints, sacks: Ints, copy: Bytes, kind: Bytes,
    trigger: Bytes, again: Ints, again_segments: Ints, missing: Ints, marks: Bytes, out: Ints,
) -> None:  # fmt: skip
    """Add up what each direction of every flow sent, and what was said of its data.

    Parameters
    ----------
    bounds, way, time, ack, payload, segments, flags, window, frame_bytes, captured, ecn, sack_at, sacks
        Packets of whole flows, as `kernels.track.track` takes them; bytes on the wire and in the capture; ECN field.
    copy
        1 for a frame captured twice: it is left out.
    kind, trigger, again, again_segments, missing
        What `kernels.track.track` found.
    marks
        What `kernels.track_acks.read_acks` found.
    out
        Out: ``(flows, 2, TOTALS)``, zero at the start. Least values are -1 where nothing has one, largest are, too,
        but for MAX_SACK_BLOCKS; FIRST_DATA and LAST_DATA hold where there are DATA_PACKETS, IDLE_MAX where there are
        two PACKETS.
    """
    for flow in range(len(bounds) - 1):
        for side in range(2):
            for column in (MAX_SEGMENT_BYTES, MIN_SEGMENT_BYTES, MAX_WINDOW_BYTES, MIN_WINDOW_BYTES):
                out[flow, side, column] = -1
        for i in range(bounds[flow], bounds[flow + 1]):
            if copy[i]:
                continue
            mine, other = out[flow, way[i]], out[flow, 1 - way[i]]
            bits, size = flags[i], payload[i]
            ends = bits & (SYN | FIN | RST) != 0
            gap = time[i] - mine[LAST_TIME]
            if mine[PACKETS] == 1 or (mine[PACKETS] > 1 and gap > mine[IDLE_MAX]):
                mine[IDLE_MAX] = gap
            mine[LAST_TIME] = time[i]
            mine[PACKETS] += 1
            mine[RESETS_SENT] += bits & RST != 0
            mine[ACK_PACKETS] += bits & ACK != 0
            mine[PURE_ACKS] += bits & ACK != 0 and size <= 0 and not ends
            mine[PUSH_PACKETS] += bits & PSH != 0
            mine[URGENT_PACKETS] += bits & URG != 0
            mine[SYN_PACKETS] += bits & SYN != 0
            mine[FIN_PACKETS] += bits & FIN != 0
            mine[ECE_PACKETS] += bits & ECE != 0 and bits & SYN == 0
            mine[CWR_PACKETS] += bits & CWR != 0 and bits & SYN == 0
            mine[CE_PACKETS] += ecn[i] == CE
            edges = sack_at[i + 1] - sack_at[i]
            mine[MAX_SACK_BLOCKS] = max(mine[MAX_SACK_BLOCKS], edges // 2)
            mine[SACK_PACKETS] += edges > 1
            mine[DSACK_PACKETS] += tells_duplicate(sacks, sack_at[i], sack_at[i + 1], ack[i])
            if size > 0:
                if mine[DATA_PACKETS] == 0:
                    mine[FIRST_DATA] = mine[LAST_DATA] = time[i]
                mine[FIRST_DATA] = min(mine[FIRST_DATA], time[i])
                mine[LAST_DATA] = max(mine[LAST_DATA], time[i])
                mine[DATA_PACKETS] += 1
                mine[DATA_SEGMENTS] += segments[i]
                if segments[i] != 0:
                    wire = (size + segments[i] - 1) // segments[i]
                    least = mine[MIN_SEGMENT_BYTES]
                    mine[MAX_SEGMENT_BYTES] = max(mine[MAX_SEGMENT_BYTES], wire)
                    mine[MIN_SEGMENT_BYTES] = wire if least < 0 else min(least, wire)
            mine[DATA_BYTES] += size
            cut = min(max(frame_bytes[i] - captured[i], 0), size)
            mine[TRUNCATED_BYTES] += cut
            mine[TRUNCATED_PACKETS] += cut > 0
            if window[i] >= 0 and bits & ACK != 0 and bits & (SYN | RST) == 0:
                least = mine[MIN_WINDOW_BYTES]
                mine[MAX_WINDOW_BYTES] = max(mine[MAX_WINDOW_BYTES], window[i])
                mine[MIN_WINDOW_BYTES] = window[i] if least < 0 else min(least, window[i])
                mine[WINDOWS] += 1
                mine[WINDOW_SUM] += window[i]
            mine[ZERO_WINDOWS] += marks[i] & ZERO_WINDOW != 0
            mine[MISSING] += missing[i, 0]
            other[MISSING_OTHER] += missing[i, 1]
            other[DUPLICATE_ACKS] += marks[i] & DUPLICATE != 0
            other[TRIPLE_DUPLICATE_ACKS] += marks[i] & THIRD != 0
            if kind[i] == RETRANSMISSION or kind[i] == SPURIOUS:
                mine[RETRANSMITTED_PACKETS] += 1
                mine[RETRANSMITTED_SEGMENTS] += again_segments[i]
                mine[RETRANSMITTED_BYTES] += again[i]
                if kind[i] == SPURIOUS:
                    mine[SPURIOUS_SEGMENTS] += again_segments[i]
                if trigger[i] == FAST:
                    mine[FAST_RETRANSMISSIONS] += again_segments[i]
                elif trigger[i] == RTO:
                    mine[RTO_RETRANSMISSIONS] += again_segments[i]
                elif trigger[i] == TLP:
                    mine[TAIL_LOSS_PROBES] += again_segments[i]
            elif kind[i] == OUT_OF_ORDER:
                mine[OUT_OF_ORDER_PACKETS] += 1
            elif kind[i] == WINDOW_PROBE:
                mine[WINDOW_PROBES] += 1
                mine[WINDOW_PROBE_BYTES] += size
            elif kind[i] == KEEP_ALIVE:
                mine[KEEP_ALIVES] += 1


@kernel
def payload_bytes(bounds: Ints, way: Bytes, payload: Ints, out: Ints) -> None:
    """Add up the payload of each flow and direction into `out`, ``(flows, 2)``, zero at the start."""
    for flow in range(len(bounds) - 1):
        for i in range(bounds[flow], bounds[flow + 1]):
            out[flow, way[i]] += payload[i]


@kernel
def spans(bounds: Ints, time: Ints, copy: Bytes, out: Ints) -> None:
    """Find the time from the first packet of each flow to the last, without frames captured twice; 0 without any."""
    for flow in range(len(bounds) - 1):
        begun = False
        first = last = np.int64(0)
        for i in range(bounds[flow], bounds[flow + 1]):
            if not copy[i]:
                first = min(first, time[i]) if begun else time[i]
                last = max(last, time[i]) if begun else time[i]
                begun = True
        out[flow] = last - first
