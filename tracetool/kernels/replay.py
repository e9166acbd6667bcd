"""Replay of a TCP sender from its packets, as far as the congestion control does not matter.

One pass over the packets of a flow keeps the sender's scoreboard, round-trip times and loss-recovery state as Linux
(`tcp_input.c`, `tcp_recovery.c`, `tcp_output.c`) would, and writes one row per ACK: the state it finds, what it does to
the window (entering or leaving recovery, undo, ...), and what was sent until the next one. The window itself is
replayed from these rows by `replay_window`, once for each hypothesis of the congestion control.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels._jit import kernel
from tracetool.kernels.replay_ack import process_ack
from tracetool.kernels.replay_begin import BEGIN_NXT, BEGIN_REORDERING, BEGIN_UNA, resume
from tracetool.kernels.replay_begin_sack import resume_sack
from tracetool.kernels.replay_board import MAX_PER_FRAME, add_segments, find, grown, has_room, pipe, restart
from tracetool.kernels.replay_columns import (
    BACKOFF,
    BOARD_WIDTH,
    BY_TLP,
    CA_STATE,
    EVENT_WIDTH,
    EVENTS,
    FIRST_SEND,
    HEAD,
    HIGH_SEQ,
    IDLE,
    ISN,
    LAST_SEND,
    LAST_SENT,
    LAST_TSVAL,
    LAST_TSVAL_TIME,
    MAX_UNSEEN,
    MAX_UNSEEN_PER_PACKET,
    MISSED,
    NEWEST,
    NEXT_PACKET,
    NXT,
    OLDEST,
    ON_ACK,
    ON_MISSED_ACK,
    OUT_SENT,
    OWED,
    PIPE_SENT,
    RECOVERY,
    REO_STEPS,
    REORDERING,
    RETRANSMITTED,
    ROOM,
    RTO,
    RUNNING,
    SCRATCH_WIDTH,
    SENT_AGAIN,
    SENT_NEW,
    SHORT,
    SND_NXT,
    SND_UNA,
    SND_WND,
    STALE,
    STARTED,
    STATE_WIDTH,
    SYN_SENT,
    SYN_TIME,
    TAIL,
    TIMER_START,
    UNDO_MARKER,
    UNDO_RETRANS,
    UNSEEN,
    UNSEEN_SEGMENTS,
)
from tracetool.kernels.replay_loss import update_min_rtt, update_rtt
from tracetool.kernels.replay_send import (
    note_before,
    send_again,
    send_owed,
    timer_event,
    why_again,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

INITIAL_RTO_NS = 1_000_000_000
FIN, SYN, RST, ACK, ECE = 1, 2, 4, 16, 64


@bare_kernel
def clear(e: Ints) -> None:
    """Make a row of zeros."""
    for c in range(EVENT_WIDTH):
        e[c] = 0


@kernel
def replay(
    time: Ints,
    outbound: npt.NDArray[np.bool_],
    seq: Ints,
    ack: Ints,
    payload: Ints,
    flags: npt.NDArray[np.uint16],
    window: Ints,
    tsval: Ints,
    tsecr: Ints,
    edges: Ints,
    offsets: Ints,
    mss: int,
    tick: int,
    sack: bool,
    elsewhere: bool,
    later: Ints,
    begun: Ints,
    again: npt.NDArray[np.int8],
    again_segments: npt.NDArray[np.int32],
    events: Ints,
) -> int:
    """Replay the packets of one flow; returns the number of events.

    Parameters
    ----------
    time, outbound, seq, ack, payload, flags, window, tsval, tsecr, edges, offsets
        The packets of a flow, as the sender saw them.
    mss : int
        Payload of a full segment, bytes.
    tick : int
        Sender's timestamp clock, nanoseconds.
    sack : bool
        Whether SACK is in use.
    elsewhere : bool
        Whether the capture was not made at the sender: then times are estimates, and what was not sent again the sender
        did not hold for lost, however late it seems.
    later : int64, shape (n, 2)
        Where that is so, the ranges of sequence numbers that were sent again: begin ascending, and the largest end of
        this one and those before.
    begun : int64, shape (BEGIN_WIDTH,)
        What is known of what was before the packets, see `replay_begin`; -1 unknown.
    again, again_segments
        Filled here, one per packet: why it was sent again (BY_*, 0: it was not), and how many of its segments were.
    events : int64, shape (rows, EVENT_WIDTH)
        Out: one row per event (see `replay_columns`), no more than there are packets; with one row to spare.
    """
    board = np.zeros((256, BOARD_WIDTH), np.int64)
    s = np.zeros(STATE_WIDTH, np.int64)
    x = np.zeros(SCRATCH_WIDTH, np.int64)
    s[OLDEST] = -1
    s[NEWEST] = -1
    s[UNDO_MARKER] = -1
    s[UNDO_RETRANS] = -1
    s[REO_STEPS] = 1
    s[REORDERING] = 3
    s[RTO] = INITIAL_RTO_NS
    s[SND_WND] = -1
    if begun[BEGIN_REORDERING] > 0:
        s[REORDERING] = begun[BEGIN_REORDERING]
    if begun[BEGIN_NXT] >= 0:
        restart(s, begun[BEGIN_UNA])
        while not has_room(board, s, begun[BEGIN_UNA], begun[BEGIN_NXT], mss):
            board = grown(board, s)
        if sack:
            resume_sack(board, s, begun, time, outbound, seq, ack, payload, flags, edges, offsets, mss, later)
        else:
            resume(board, s, begun, time[0], mss, later)
    while True:
        done = replay_packets(
            time, outbound, seq, ack, payload, flags, window, tsval, tsecr, edges, offsets, mss, tick, sack, elsewhere,
            later, again, again_segments, events, board, s, x,
        )  # fmt: skip
        if done:
            return s[EVENTS]
        board = grown(board, s)


@bare_kernel
def replay_packets(
    time: Ints, outbound: npt.NDArray[np.bool_], seq: Ints, ack: Ints, payload: Ints, flags: npt.NDArray[np.uint16],
    window: Ints, tsval: Ints, tsecr: Ints, edges: Ints, offsets: Ints, mss: int, tick: int, sack: bool,
    elsewhere: bool, later: Ints, again: npt.NDArray[np.int8], again_segments: npt.NDArray[np.int32], events: Ints,
    board: Ints, s: Ints, x: Ints,
) -> bool:  # fmt: skip
    """Replay packets from `s[NEXT_PACKET]` on; returns whether all are: else the board has to grow first.

    Parameters as of `replay`; `x` is scratch.
    """
    count = len(time)
    rows, unseen, syn_sent, syn_time = s[EVENTS], s[UNSEEN_SEGMENTS], s[SYN_SENT], s[SYN_TIME]
    started, running = s[STARTED] != 0, s[RUNNING] != 0
    for i in range(s[NEXT_PACKET], count):
        if rows + 2 > events.shape[0]:
            break
        now = time[i]
        e = events[rows - 1]
        if outbound[i]:
            if tsval[i] >= 0:
                s[LAST_TSVAL] = tsval[i]
                s[LAST_TSVAL_TIME] = now
            if flags[i] & SYN:
                syn_sent += 1
                syn_time = now
                s[ISN] = seq[i]
                restart(s, seq[i] + 1)
                started = True
                running = True
                continue
            if flags[i] & RST:
                continue
            if flags[i] == MISSED:  # sent again, and nobody saw what (`tracetool.kernels.missed_data`)
                s[OWED] += min(max(payload[i] // mss, 1), MAX_PER_FRAME)
                if rows > 0 and started:
                    send_owed(board, s, e, now)
                continue
            s[OWED] = 0
            start = seq[i]
            end = start + payload[i] + (1 if flags[i] & FIN else 0)
            if end == start:
                continue
            if not started:  # in the middle of a connection: what the first ACK leaves open was sent before
                una = start
                for k in range(i + 1, min(count, i + MAX_UNSEEN)):
                    if not outbound[k] and flags[k] & ACK:
                        una = min(start, ack[k])
                        break
                if start - una > MAX_UNSEEN * mss:
                    una = start
                restart(s, una)
                started = True
            if not has_room(board, s, start, end, mss):
                s[EVENTS], s[UNSEEN_SEGMENTS], s[SYN_SENT], s[SYN_TIME] = rows, unseen, syn_sent, syn_time
                s[STARTED], s[RUNNING], s[NEXT_PACKET] = started, running, i
                return False
            hole = (start - s[SND_NXT]) // mss
            if hole > 0:
                unseen += hole
                if hole > MAX_UNSEEN or unseen > MAX_UNSEEN + MAX_UNSEEN_PER_PACKET * i:
                    unseen -= hole
                    restart(s, start)
            if start < s[SND_NXT] and end > s[SND_UNA]:
                n = find(board, s, max(start, s[SND_UNA]))
                stop = find(board, s, min(end, s[SND_NXT]) - 1) + 1
                stop = min(stop, s[TAIL])
                if n < stop:
                    why = why_again(board, s, n, now)
                    clear(events[rows])
                    if timer_event(board, s, events[rows], why, n, i, now, sack):
                        rows += 1
                        e = events[rows - 1]
                    again[i] = why
                    again_segments[i] = stop - n
                    for m in range(n, stop):
                        send_again(board, s, m, now, why == BY_TLP and m == stop - 1)
                    if n == s[HEAD]:
                        s[TIMER_START] = now
                    s[RETRANSMITTED] += stop - n
                    if rows > 0:
                        if e[SENT_NEW] + e[SENT_AGAIN] == 0:
                            e[FIRST_SEND] = now
                        e[SENT_AGAIN] += stop - n
            elif start < s[SND_NXT]:
                again[i] = 1
                again_segments[i] = max(1, (payload[i] + mss - 1) // mss)
            if end > s[SND_NXT]:
                new = max(start, s[SND_NXT])
                if rows > 0:
                    if e[SENT_NEW] + e[SENT_AGAIN] == 0:
                        e[FIRST_SEND] = now
                        if s[HEAD] == s[TAIL]:
                            e[IDLE] = now - s[LAST_SENT]
                    e[SHORT] = 1 if payload[i] % mss else 0
                if s[HEAD] == s[TAIL]:
                    s[TIMER_START] = now
                tail = s[TAIL]
                if start > s[SND_NXT]:  # frames the capture missed
                    if elsewhere and s[CA_STATE] == RECOVERY and s[HIGH_SEQ] == s[SND_NXT]:
                        s[HIGH_SEQ] = start  # lost before they came here: queues overflow before the window falls
                    add_segments(
                        board, s, s[SND_NXT], start, now, mss, UNSEEN if running else UNSEEN | STALE, elsewhere, later
                    )
                running = True
                add_segments(
                    board, s, new, end, now, mss, UNSEEN if flags[i] & MISSED else np.int64(0), elsewhere, later
                )
                s[SND_NXT] = end
                if rows > 0:
                    e[SENT_NEW] += s[TAIL] - tail
            s[LAST_SENT] = now
            if rows > 0:
                e[LAST_SEND] = now
                e[PIPE_SENT] = max(e[PIPE_SENT], pipe(s))
                e[OUT_SENT] = s[TAIL] - s[HEAD]
                e[NXT] = s[SND_NXT]
                e[ROOM] = s[SND_UNA] + s[SND_WND] - s[SND_NXT] if s[SND_WND] >= 0 else -1
            continue
        if not flags[i] & ACK or flags[i] & RST:
            continue
        if flags[i] & SYN:
            if syn_sent == 1:
                update_min_rtt(s, now - syn_time, now)
                update_rtt(s, now - syn_time)
            s[SND_WND] = window[i]
            syn_sent = 0
            continue
        if syn_sent == 1 and ack[i] == s[SND_UNA]:  # the third packet of the handshake answers our SYN-ACK
            update_min_rtt(s, now - syn_time, now)
            update_rtt(s, now - syn_time)
        syn_sent = 0
        if not started:
            restart(s, ack[i])
            started = True
        e = events[rows]
        clear(e)
        note_before(s, e, ON_MISSED_ACK if flags[i] & MISSED else ON_ACK, i, now)
        rows += 1
        if ack[i] > s[SND_NXT]:  # it acknowledges what the capture missed
            restart(s, ack[i])
        if ack[i] >= s[SND_UNA] or offsets[i + 1] > offsets[i]:
            if ack[i] > s[SND_UNA]:
                s[BACKOFF] = 0
            process_ack(
                board,
                s,
                x,
                e,
                now,
                ack[i],
                window[i],
                edges[offsets[i] : offsets[i + 1]],
                flags[i] & ECE != 0,
                payload[i] > 0,
                flags[i] & MISSED != 0,
                tsecr[i],
                tick,
                sack,
                mss,
            )
        e[PIPE_SENT] = pipe(s)
        e[OUT_SENT] = s[TAIL] - s[HEAD]
        e[NXT] = s[SND_NXT]
        e[ROOM] = s[SND_UNA] + s[SND_WND] - s[SND_NXT] if s[SND_WND] >= 0 else -1
        if s[OWED] > 0:
            send_owed(board, s, e, now)
    s[EVENTS] = rows
    return True
