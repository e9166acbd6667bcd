"""What happened to the data of each flow: RTT samples, and which packets were sent again, and why.

One pass over the packets of a flow for each of its directions, in capture order, as the sender of that direction saw
them: a list of outstanding segments (RFC 6675's scoreboard), RTT samples by Karn's rule (RFC 6298) and by timestamps
(RFC 7323), the retransmission timer (RFC 6298 with Linux' least value) and the tail-loss probe (RFC 8985). The twin in
``tests/naive`` says the same slowly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._jit import kernel
from tracetool.kernels.track_memory import (
    RECENT,
    WORD,
    add,
    answered,
    further,
    is_older,
    last_again,
    note_again,
    remember,
    smoothed,
)
from tracetool.kernels.track_reasons import (
    BY_DSACK,
    BY_ECHO,
    BY_EIFEL,
    BY_SILENCE,
    FAST,
    FILLS_HOLE_TIME,
    MS,
    NO_EVIDENCE,
    QUEUES,
    TLP,
    UNKNOWN,
    WAS_ACKED,
    WAS_SACKED,
    is_late,
    timeout,
    why,
)
from tracetool.kernels.track_sacks import block_of, mark_sacked, note_missing, tells_duplicate, without
from tracetool.kernels.track_segments import (
    AGAIN,
    COUNT,
    END,
    PACKET,
    SACKED,
    SENT,
    START,
    append,
    cut,
    find,
    make_room,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

# What a packet with data (or SYN, FIN, or a probe) is.
NOTHING, NEW, RETRANSMISSION, SPURIOUS, OUT_OF_ORDER, KEEP_ALIVE, WINDOW_PROBE = range(7)
# Totals of a direction; times in nanoseconds, squares in microseconds. MIN, MAX, SUM and SQUARES stand together.
(
    SAMPLES, FULL_SAMPLES, CUM_ACKED, AMBIGUOUS, POST_LOSS, TIMEOUTS, MOST_RETRANSMISSIONS, GAPS, GAP_MIN, GAP_MAX,
    GAP_SUM, GAP_SQUARES, MIN_RTT, UNIQUE, LAST_MIN, LAST_MAX, LAST_SUM, LAST_SQUARES, TOTALS,
) = range(19)  # fmt: skip

FIN, SYN, RST, ACK = 1, 2, 4, 16
#: A longer round trip (five times the longest timer) is a step of the clock.
CLOCK_STEP = 600_000 * MS
FOREVER = 1 << 58  # clocks may show any time, and products of longer pauses would not fit
#: A window is smaller (RFC 7323), so a number further ahead is no gap.
WINDOW = 1 << 30


@kernel
def track(
    bounds: Ints, time: Ints, way: Bytes, seq: Ints, ack: Ints, payload: Ints, segments: Ints, flags: Ints,
    window: Ints, tsval: Ints, tsecr: Ints, ip_id: Ints, copy: Bytes, sack_at: Ints, sacks: Ints, behind: Ints,
    sack_ok: Bytes, rows: Ints, ticks: Ints, recent: Ints, kind: Bytes, trigger: Bytes, evidence: Bytes, again: Ints,
    again_segments: Ints, missing_at: Ints, missing: Ints, rtt: Ints, rtt_seq: Ints, rtt_full: Bytes,
    rtt_ticks: Ints, totals: Ints,
) -> None:  # fmt: skip
    """Follow both directions of every flow.

    Parameters
    ----------
    bounds
        Where each flow's packets begin, and the number of packets.
    time, way, seq, ack, payload, segments, flags, window, tsval, tsecr, ip_id
        Packets: nanoseconds; 0 for a2b, 1 for b2a; columns of the table `packets`, -1 unknown.
    copy
        1 for a frame captured twice: it is left out.
    sack_at, sacks
        Where each packet's SACK edges begin, and the edges.
    behind
        For each flow and direction (``2 * flow + way``), the part of the round trip between the sender and the
        capture, nanoseconds.
    sack_ok
        Whether each flow uses SACK.
    rows, ticks, recent
        Room for outstanding segments ``(CAPACITY, FIELDS)``, timestamps ``(TICKS, 2)`` and retransmissions
        ``(RECENT, 4)``.
    kind, trigger, evidence, again, again_segments
        Out: what each packet's data is; payload bytes and wire segments in it that were sent before.
    missing_at, missing
        Out: the first byte, and the number of bytes, that this packet showed to be sent but not captured: ``(n, 2)``,
        of its own direction (it left a gap), and of the other (it acknowledged what was not seen).
    rtt, rtt_seq, rtt_full, rtt_ticks
        Out, for a packet that acknowledges: RTT by Karn's rule (-1 none), what it timed, whether a full segment, and
        the RTT by timestamps.
    totals
        Out: ``(flows, 2, TOTALS)``.
    """
    for flow in range(len(bounds) - 1):
        for side in range(2):
            _follow(
                bounds[flow], bounds[flow + 1], side, time, way, seq, ack, payload, segments, flags, window, tsval,
                tsecr, ip_id, copy, sack_at, sacks, behind[2 * flow + side], sack_ok[flow], rows, ticks, recent, kind,
                trigger, evidence, again, again_segments, missing_at, missing, rtt, rtt_seq, rtt_full, rtt_ticks,
                totals[flow, side],
            )  # fmt: skip


@kernel
def _follow(
    first: int, last: int, side: int, time: Ints, way: Bytes, seq: Ints, ack: Ints, payload: Ints, segments: Ints,
    flags: Ints, window: Ints, tsval: Ints, tsecr: Ints, ip_id: Ints, copy: Bytes, sack_at: Ints, sacks: Ints,
    behind: int, sack_ok: int, rows: Ints, ticks: Ints, recent: Ints, kind: Bytes, trigger: Bytes, evidence: Bytes,
    again: Ints, again_segments: Ints, missing_at: Ints, missing: Ints, rtt: Ints, rtt_seq: Ints, rtt_full: Bytes,
    rtt_ticks: Ints, total: Ints,
) -> None:  # fmt: skip
    head = tail = 0  # outstanding segments are rows[head:tail]
    una = nxt = -1  # unknown until the first number is seen
    probe_end = 0  # end of the byte that a window probe carries
    peer_window = -1
    largest = 1  # payload of a wire segment
    srtt = rttvar = min_rtt = 0
    backoff = 1
    timer = 0  # when the retransmission timer was started
    duplicates = 0
    sacked_to = -1  # highest byte SACKed
    recovery_to = loss_to = -1  # fast recovery, or loss recovery after a timeout, lasts until una is there
    probed = False  # a tail-loss probe is outstanding
    late_at = late_end = late_time = late_packet = -1  # data that was acknowledged before it was seen
    ids = ids_up = 0
    last_id = -1
    newest = oldest = 0  # timestamps are ticks[oldest % TICKS .. newest % TICKS)
    echoed = echoes = echo_end = 0  # which of them may yet be answered one by one, and until when
    sent_again = 0  # retransmissions are recent[.. sent_again % RECENT)
    old_left0 = old_right0 = old_left1 = old_right1 = old_left2 = old_right2 = -1  # SACK blocks known
    for i in range(first, last):
        if copy[i]:
            continue
        now = time[i]
        if way[i] == side:
            # -- a packet of the sender
            if ip_id[i] > 0:
                if last_id >= 0:
                    ids += 1
                    ids_up += 0 < ((ip_id[i] - last_id) & 0xFFFF) <= 256
                last_id = ip_id[i]
            if tsval[i] >= 0:
                oldest, newest = remember(ticks, oldest, newest, tsval[i], now)
            size = payload[i]
            marks = (flags[i] & SYN != 0) + (flags[i] & FIN != 0)
            start = seq[i]
            end = start + size + marks
            if flags[i] & RST:
                continue
            if nxt < 0 and (end > start or una < 0):
                una = nxt = start
            if size <= 1 and marks == 0:
                if peer_window == 0 and ((size == 1 and start == nxt) or (start == nxt - 1 and una >= nxt)):
                    kind[i] = WINDOW_PROBE
                    probe_end = max(probe_end, end)
                    continue
                if start == nxt - 1 and una >= nxt > 1:
                    kind[i] = KEEP_ALIVE
                    continue
            if end == start or start - nxt > WINDOW or nxt - start > WINDOW:
                continue
            head, tail = make_room(rows, head, tail)
            if segments[i] > 0:
                largest = max(largest, (size + segments[i] - 1) // segments[i])
            if start > nxt:  # something before it was not seen
                tail = append(rows, tail, nxt, start, now, 0, i)
                nxt = start
            kind[i] = NEW
            seen_before = 0
            if start < nxt:
                below = min(end, nxt)
                holes = 0
                was_sacked = was_sent = False
                floor = rows[head, START] if head < tail else nxt
                if start < floor:
                    seen_before = min(below, floor) - start
                index = find(rows, head, tail, max(start, floor))
                if index < tail and rows[index, START] < start:
                    tail = cut(rows, tail, index, start)
                    if rows[index, END] == start:
                        index += 1
                at_head = start <= floor
                hole_time = hole_packet = -1
                while index < tail and rows[index, START] < below:
                    if rows[index, END] > below:
                        tail = cut(rows, tail, index, below)
                    share = min(below, rows[index, END]) - max(start, rows[index, START])
                    if rows[index, COUNT] <= 0:
                        holes += share
                        hole_time, hole_packet = rows[index, SENT], rows[index, PACKET]
                        if rows[index, COUNT] == 0:
                            rows[index, SENT] = now
                        was_sacked |= rows[index, COUNT] < 0  # a hole whose data was acknowledged
                        rows[index, COUNT] = 1 if rows[index, COUNT] == 0 else 2
                    else:
                        seen_before += share
                        gap = now - rows[index, AGAIN]
                        if not was_sent:
                            add(total, GAPS, GAP_MIN, gap)
                        was_sent = True
                        rows[index, COUNT] += 1
                        total[MOST_RETRANSMISSIONS] = max(total[MOST_RETRANSMISSIONS], rows[index, COUNT] - 1)
                        was_sacked |= rows[index, SACKED] != 0
                    rows[index, AGAIN] = now
                    rows[index, PACKET] = i
                    index += 1
                reason = NO_EVIDENCE
                if holes > 0 and seen_before == 0:
                    # a hole is filled: late, or sent again?
                    step = tick = 0
                    if way[hole_packet] == side:
                        step = further(ip_id[hole_packet], ip_id[i], 1, 0xFFFF) if 4 * ids_up >= 3 * ids else 0
                        tick = further(tsval[hole_packet], tsval[i], 0, WORD)
                    late, reason = is_late(step, tick, now - hole_time, min_rtt + behind)
                    if late:
                        kind[i] = OUT_OF_ORDER
                        evidence[i] = reason
                elif holes == 0 and start >= late_at and end <= late_end and now - late_time <= QUEUES:
                    kind[i] = OUT_OF_ORDER  # the capture shows the ACK before the data
                    evidence[i] = FILLS_HOLE_TIME
                    missing[late_packet, 1] -= min(missing[late_packet, 1], end - start)
                    seen_before = 0
                if kind[i] != OUT_OF_ORDER:
                    old = holes + seen_before
                    again[i] = min(old, size)
                    whole = max(segments[i], 1)
                    again_segments[i] = whole if old >= end - start else max(1, -(-whole * old // (end - start)))
                    kind[i] = RETRANSMISSION
                    quiet = min(now - timer - behind, FOREVER)
                    expired = at_head and 10 * quiet >= 9 * timeout(srtt, rttvar, backoff, behind)
                    trigger[i], evidence[i] = why(
                        flags[i], una, nxt, below, at_head, sack_ok != 0, sacked_to, duplicates, recovery_to, loss_to,
                        probed, quiet, expired, srtt + behind + 4 * rttvar,
                    )  # fmt: skip
                    if flags[i] & SYN:
                        total[TIMEOUTS] += 1
                    elif trigger[i] == TLP:
                        probed = True
                        timer = now
                    elif evidence[i] == BY_SILENCE:
                        total[TIMEOUTS] += 1
                        backoff = min(2 * backoff, 64)
                        loss_to, recovery_to, duplicates = nxt, -1, 0
                    if trigger[i] == FAST and una >= recovery_to:
                        recovery_to = nxt
                    if reason != NO_EVIDENCE and trigger[i] == UNKNOWN:
                        evidence[i] = reason
                    if at_head:
                        timer = now
                    if was_sacked or (seen_before == end - start and start < floor and below <= floor):
                        kind[i] = SPURIOUS
                        evidence[i] = WAS_SACKED if was_sacked else WAS_ACKED
                    sent_again = note_again(recent, sent_again, start, below, i, now)
            total[UNIQUE] += size - min(seen_before, size)
            if end > nxt:
                if una >= nxt:  # nothing was in flight
                    timer = now
                tail = append(rows, tail, nxt, end, now, 1, i)
                nxt = end
            continue
        # -- a packet of the peer
        same_window = window[i] < 0 or window[i] == peer_window
        if window[i] >= 0:
            peer_window = window[i]
        if flags[i] & ACK == 0 or flags[i] & RST:
            continue
        edge = ack[i]
        if nxt < 0:
            una = nxt = edge
            continue
        if edge - nxt > WINDOW or una - edge > WINDOW:
            continue
        # timestamps: the first packet that echoes a value closes what it opened
        if tsecr[i] > 0 and newest > oldest and edge > una:
            oldest, told = answered(ticks, oldest, newest, tsecr[i], now)
            if 0 <= told < CLOCK_STEP:
                rtt_ticks[i] = told
        head, tail = make_room(rows, head, tail)
        if edge > nxt:
            if edge > probe_end:
                missing_at[i, 1], missing[i, 1] = nxt, edge - nxt
                late_at, late_end, late_time, late_packet = nxt, edge, now, i
            nxt = edge
        low, high = sack_at[i], sack_at[i + 1]
        if tells_duplicate(sacks, low, high, edge):
            packet = last_again(recent, sent_again, sacks[low], sacks[low + 1], kind, RETRANSMISSION)
            if packet >= 0:
                kind[packet] = SPURIOUS
                evidence[packet] = BY_DSACK
            low += 2
        if edge > una:
            clean = lowest = True
            acked = 0
            latest = -1  # when the last sent of what is acknowledged was sent
            sample = timed = lowest_at = latest_low = -1
            while head < tail and rows[head, START] < edge:
                if rows[head, COUNT] == 0 and not rows[head, SACKED]:
                    packet, size = rows[head, PACKET], min(edge, rows[head, END]) - rows[head, START]
                    note_missing(missing_at, missing, packet, int(way[packet] != side), rows[head, START], size)
                elif rows[head, COUNT] > 1:
                    if lowest:
                        lowest_at, latest_low = rows[head, START], rows[head, AGAIN]
                    packet = rows[head, PACKET]
                    if kind[packet] == RETRANSMISSION and lowest and is_older(tsecr[i], tsval[packet]):
                        kind[packet] = SPURIOUS  # Eifel (RFC 3522)
                        evidence[packet] = BY_EIFEL
                lowest = False
                latest = max(latest, rows[head, AGAIN])
                clean = rows[head, COUNT] == 1 and not rows[head, SACKED]
                single = rows[head, COUNT] == 1
                sample, timed = now - rows[head, AGAIN], min(edge, rows[head, END])
                full = timed - rows[head, START] >= largest
                sent = rows[head, AGAIN]
                acked += 1
                if rows[head, END] > edge:  # within a super-frame
                    rows[head, START] = edge
                    break
                head += 1
            if acked:
                total[CUM_ACKED] += acked - 1
                if latest > sent:
                    total[POST_LOSS] += 1
                elif not single:
                    add(total, AMBIGUOUS, LAST_MIN, sample)
                elif clean and 0 <= sample < CLOCK_STEP:
                    rtt[i], rtt_seq[i], rtt_full[i] = sample, timed, full
                    total[SAMPLES] += 1
                    total[FULL_SAMPLES] += full
                    min_rtt = sample if min_rtt == 0 else min(min_rtt, sample)
                    srtt, rttvar = smoothed(srtt, rttvar, sample)
            if not sack_ok and edge == nxt and latest_low >= 0:
                # nothing else is under way: what was sent again after the lowest, and is acknowledged with it, may yet
                # be answered on its own
                echo_end = now + 2 * (srtt + behind)
                echoed, echoes = max(sent_again - RECENT, 0), sent_again
                while echoed < echoes and (
                    recent[echoed % RECENT, 0] <= lowest_at or recent[echoed % RECENT, 3] < latest_low
                ):
                    echoed += 1
            una = edge
            timer = now
            duplicates, backoff, probed = 0, 1, False
            recovery_to = recovery_to if una < recovery_to else -1
            loss_to = loss_to if una < loss_to else -1
        elif edge == una and payload[i] == 0 and same_window and flags[i] & (SYN | FIN) == 0:
            if una < nxt:
                duplicates += 1
            if echoed < echoes and now < echo_end:
                # without SACK, too, each copy that was not needed is answered at once (RFC 9293): in order of arrival
                packet = recent[echoed % RECENT, 2]
                if kind[packet] == RETRANSMISSION:
                    kind[packet] = SPURIOUS
                    evidence[packet] = BY_ECHO
                echoed += 1
        # -- selective acknowledgements: only what the last blocks did not say already is looked at
        for block in range(low, high - 1, 2):
            left, right = max(sacks[block], una), sacks[block + 1]
            if right <= left or right - nxt > WINDOW:
                continue
            head, tail = make_room(rows, head, tail)
            if right > nxt:
                tail = append(rows, tail, nxt, right, now, 0, i)
                nxt = right
            left, right = without(left, right, old_left0, old_right0)
            left, right = without(left, right, old_left1, old_right1)
            left, right = without(left, right, old_left2, old_right2)
            tail = mark_sacked(rows, head, tail, left, right, way, side, missing_at, missing)
        if high - low >= 2:
            old_left0, old_right0 = block_of(sacks, low, high, 0)
            old_left1, old_right1 = block_of(sacks, low, high, 2)
            old_left2, old_right2 = block_of(sacks, low, high, 4)
            sacked_to = max(sacked_to, old_right0, old_right1, old_right2)
    total[MIN_RTT] = min_rtt
