"""What happened to single packets of a batch of flows, in the order of the table `events`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels import track_acks
from tracetool.kernels._bare import bare_kernel
from tracetool.kernels._jit import kernel
from tracetool.kernels.sorting import sort_positions
from tracetool.kernels.track import KEEP_ALIVE, OUT_OF_ORDER, RETRANSMISSION, SPURIOUS, WINDOW_PROBE
from tracetool.kernels.track_reasons import TLP

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

#: Columns of an event; -1 is unknown.
PACKET, WAY, KIND, TRIGGER, SEQ, BYTES, SEGMENTS, EVIDENCE, ROW_WIDTH = range(9)
#: Its kinds, sorted by their names as the table has them.
(
    K_DUPLICATE_ACK, K_DUPLICATE_FRAME, K_KEEP_ALIVE, K_KEEP_ALIVE_ACK, K_NOT_CAPTURED, K_OUT_OF_ORDER,
    K_RETRANSMISSION, K_SPURIOUS, K_TAIL_LOSS_PROBE, K_WINDOW_FULL, K_WINDOW_PROBE, K_WINDOW_PROBE_ACK,
    K_WINDOW_UPDATE, K_ZERO_WINDOW, KINDS,
) = range(15)  # fmt: skip
#: EVIDENCE is that of `kernels.track`, and so much more for what was late; or that a packet was not captured.
LATE = 17
NOT_CAPTURED = 2 * LATE
#: Packets may on average be so far from their places before they are sorted in another way.
MOST_MOVES = 16
MARKS = (
    (track_acks.DUPLICATE, K_DUPLICATE_ACK),
    (track_acks.KEEP_ALIVE_ACK, K_KEEP_ALIVE_ACK),
    (track_acks.WINDOW_FULL, K_WINDOW_FULL),
    (track_acks.WINDOW_PROBE_ACK, K_WINDOW_PROBE_ACK),
    (track_acks.WINDOW_UPDATE, K_WINDOW_UPDATE),
    (track_acks.ZERO_WINDOW, K_ZERO_WINDOW),
)


@bare_kernel
def put(rows: Ints, at: int, packet: int, way: int, kind: int, seq: int, size: int) -> int:
    """Write an event, if there is room; returns where the next one goes."""
    if at < rows.shape[0]:
        row = rows[at]
        row[PACKET], row[WAY], row[KIND], row[SEQ], row[BYTES] = packet, way, kind, seq, size
        row[TRIGGER], row[SEGMENTS], row[EVIDENCE] = 0, -1, 0
    return at + 1


@bare_kernel
def move_up(rows: Ints, at: int, begin: int, time: Ints) -> int:
    """Put the row before `at` behind the last one that is not later; returns how many it passed."""
    k = at - 1
    now = time[rows[k, PACKET]]
    while k > begin and time[rows[k - 1, PACKET]] > now:
        for c in range(ROW_WIDTH):
            rows[k - 1, c], rows[k, c] = rows[k, c], rows[k - 1, c]
        k -= 1
    return at - 1 - k


@kernel
def sort_rows(rows: Ints, time: Ints) -> None:
    """Sort rows that are far out of order: by time, then packet, then kind."""
    count = rows.shape[0]
    when, order = np.empty(count, np.int64), np.empty(count, np.int64)
    packet, kind = rows[:, PACKET].copy(), rows[:, KIND].copy()
    for k in range(count):
        when[k] = time[packet[k]]
    sort_positions(when, packet, kind, order)
    before = rows.copy()
    for k in range(count):
        for c in range(ROW_WIDTH):
            rows[k, c] = before[order[k], c]


@kernel
def event_rows(
    bounds: Ints, way: Bytes, time: Ints, seq: Ints, ack: Ints, payload: Ints, segments: Ints, copy: Bytes,
    kind: Bytes, trigger: Bytes, evidence: Bytes, again: Ints, again_segments: Ints, missing_at: Ints, missing: Ints,
    marks: Bytes, rows: Ints,
) -> int:  # fmt: skip
    """List events by flow, direction, time, packet and kind; returns their number, for which there may be no room.

    Data that was acknowledged but is not in the capture belongs to its own direction, whichever packet shows it; of a
    direction that was not captured at all, nothing is listed packet by packet. An acknowledgement is named by the
    number that it acknowledges.

    Parameters
    ----------
    bounds, way, time, seq, ack, payload, segments
        Packets of whole flows, as `kernels.track.track` takes them.
    copy, kind, trigger, evidence, again, again_segments, missing_at, missing, marks
        What the tracking kernels found.
    rows : int64, shape (room, ROW_WIDTH)
        Out.
    """
    at = 0
    for flow in range(len(bounds) - 1):
        first, last = bounds[flow], bounds[flow + 1]
        seen = 0
        for i in range(first, last):
            seen |= 1 << way[i]
        for side in range(2):
            begin = at
            moves = 0
            gave_up = False
            latest = np.int64(-(1 << 62))
            for i in range(first, last):
                before = at
                what = kind[i]
                if way[i] != side:
                    if missing[i, 1] > 0 and seen >> side & 1:
                        at = put(rows, at, i, side, K_NOT_CAPTURED, missing_at[i, 1], missing[i, 1])
                        if at <= rows.shape[0]:
                            rows[at - 1, EVIDENCE] = NOT_CAPTURED
                elif marks[i] == 0 and copy[i] == 0 and what < RETRANSMISSION and missing[i, 0] <= 0:
                    continue
                else:
                    at = list_packet(
                        i, way, seq, ack, payload, segments, copy, kind, trigger, evidence, again, again_segments,
                        missing_at, missing, marks, rows, at,
                    )  # fmt: skip
                if at > before and at <= rows.shape[0]:
                    if time[i] < latest:
                        gave_up |= moves > MOST_MOVES * (at - begin + 64)
                        if not gave_up:
                            for k in range(before + 1, at + 1):
                                moves += move_up(rows, k, begin, time)
                    latest = max(latest, time[i])
            if gave_up:
                sort_rows(rows[begin:at], time)
    return at


@bare_kernel
def list_packet(
    i: int, way: Bytes, seq: Ints, ack: Ints, payload: Ints, segments: Ints, copy: Bytes, kind: Bytes, trigger: Bytes,
    evidence: Bytes, again: Ints, again_segments: Ints, missing_at: Ints, missing: Ints, marks: Bytes, rows: Ints,
    at: int,
) -> int:  # fmt: skip
    """List the events of one packet by their kinds; returns where the next ones go."""
    what = kind[i]
    told = -1
    if what == RETRANSMISSION:
        told = K_TAIL_LOSS_PROBE if trigger[i] == TLP else K_RETRANSMISSION
    elif what == SPURIOUS:
        told = K_SPURIOUS
    elif what == OUT_OF_ORDER:
        told = K_OUT_OF_ORDER
    elif what == KEEP_ALIVE:
        told = K_KEEP_ALIVE
    elif what == WINDOW_PROBE:
        told = K_WINDOW_PROBE
    for one in range(KINDS):
        if one == told:
            sent_again = what == RETRANSMISSION or what == SPURIOUS
            at = put(rows, at, i, way[i], told, seq[i], again[i] if sent_again else payload[i])
            if at <= rows.shape[0]:
                rows[at - 1, SEGMENTS] = again_segments[i] if sent_again else segments[i]
                rows[at - 1, TRIGGER] = trigger[i]
                rows[at - 1, EVIDENCE] = evidence[i] + (LATE if what == OUT_OF_ORDER else 0)
        elif one == K_DUPLICATE_FRAME and copy[i]:
            at = put(rows, at, i, way[i], K_DUPLICATE_FRAME, seq[i], payload[i])
        elif one == K_NOT_CAPTURED and missing[i, 0] > 0:
            at = put(rows, at, i, way[i], K_NOT_CAPTURED, missing_at[i, 0], missing[i, 0])
            if at <= rows.shape[0]:
                rows[at - 1, EVIDENCE] = NOT_CAPTURED
        else:
            for mark, meaning in MARKS:
                if one == meaning and marks[i] & mark:
                    at = put(rows, at, i, way[i], meaning, ack[i], -1)
    return at
