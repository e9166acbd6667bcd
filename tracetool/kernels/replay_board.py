"""The scoreboard of a sender: its outstanding segments in a ring, and the list of them by time of sending.

Segments are numbered from 0 in the order of their sequence numbers and live in row ``number & (rows - 1)`` of the
board. The list by time of sending (`tsorted_sent_queue` of Linux) is what RACK walks: it holds the segments that are
neither SACKed nor held for lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels._jit import kernel
from tracetool.kernels.replay_columns import (
    APP_LIMITED,
    BOARD_WIDTH,
    DELIVERED,
    DELIVERED_TIME,
    END,
    FIRST_TX_TIME,
    HEAD,
    HIGHEST_SACK,
    LAST_TSVAL,
    LOST,
    LOST_OUT,
    LOST_TOTAL,
    MAX_UNSEEN,
    NEWEST,
    NEXT,
    OLDEST,
    ONLY_ONCE,
    PREV,
    RETRANS,
    RETRANS_OUT,
    SACKED,
    SACKED_OUT,
    SENT,
    SEQ,
    SND_NXT,
    SND_UNA,
    TAGS,
    TAIL,
    TX_APP_LIMITED,
    TX_DELIVERED,
    TX_DELIVERED_TIME,
    TX_FIRST_TIME,
    TX_TSVAL,
    UNDO_MARKER,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: A frame, or a hole, is no more segments than this.
MAX_PER_FRAME = 1 << 14
#: Outstanding segments beyond which the oldest are given up: a window of a gigabyte of small segments.
MAX_OUTSTANDING = 1 << 20


@kernel
def grown(board: Ints, s: Ints) -> Ints:
    """A board twice as large with the same segments."""
    rows = board.shape[0]
    larger = np.empty((2 * rows, BOARD_WIDTH), np.int64)
    for n in range(s[HEAD], s[TAIL]):
        for c in range(BOARD_WIDTH):
            larger[n & (2 * rows - 1), c] = board[n & (rows - 1), c]
    return larger


@bare_kernel
def unlink(board: Ints, s: Ints, n: int) -> None:
    """Take segment `n` off the list by time of sending; nothing happens where it is not on it."""
    mask = board.shape[0] - 1
    row = board[n & mask]
    before, after = row[PREV], row[NEXT]
    if before < 0 and s[OLDEST] != n:
        return
    if before >= 0:
        board[before & mask, NEXT] = after
    else:
        s[OLDEST] = after
    if after >= 0:
        board[after & mask, PREV] = before
    else:
        s[NEWEST] = before
    row[PREV] = -1
    row[NEXT] = -1


@bare_kernel
def link_newest(board: Ints, s: Ints, n: int) -> None:
    """Put segment `n` at the end of the list by time of sending."""
    mask = board.shape[0] - 1
    last = s[NEWEST]
    board[n & mask, PREV] = last
    board[n & mask, NEXT] = -1
    if last >= 0:
        board[last & mask, NEXT] = n
    else:
        s[OLDEST] = n
    s[NEWEST] = n


@bare_kernel
def stamp(board: Ints, s: Ints, n: int, time: int) -> None:
    """Note the time of (re)sending and the delivery state then (`tcp_rate_skb_sent`)."""
    row = board[n & (board.shape[0] - 1)]
    if s[TAIL] - s[HEAD] - s[SACKED_OUT] - s[LOST_OUT] + s[RETRANS_OUT] <= 0:
        s[FIRST_TX_TIME] = time
        s[DELIVERED_TIME] = time
    row[SENT] = time
    row[TX_DELIVERED] = s[DELIVERED]
    row[TX_DELIVERED_TIME] = s[DELIVERED_TIME]
    row[TX_FIRST_TIME] = s[FIRST_TX_TIME]
    row[TX_APP_LIMITED] = 1 if s[APP_LIMITED] else 0
    row[TX_TSVAL] = s[LAST_TSVAL]


@bare_kernel
def append(board: Ints, s: Ints, seq: int, end: int, time: int, tags: int) -> None:
    """Add a segment that is sent for the first time; there must be room."""
    n = s[TAIL]
    row = board[n & (board.shape[0] - 1)]
    row[SEQ] = seq
    row[END] = end
    row[TAGS] = tags
    row[PREV] = -1
    row[NEXT] = -1
    stamp(board, s, n, time)
    s[TAIL] = n + 1
    link_newest(board, s, n)


@bare_kernel
def find(board: Ints, s: Ints, seq: int) -> int:
    """Number of the first outstanding segment that ends after `seq` (TAIL where there is none)."""
    mask = board.shape[0] - 1
    low, high = s[HEAD], s[TAIL]
    while low < high:
        middle = (low + high) >> 1
        if board[middle & mask, END] > seq:
            high = middle
        else:
            low = middle + 1
    return low


@bare_kernel
def pipe(s: Ints) -> int:
    """Segments in flight (`tcp_packets_in_flight`): outstanding, less SACKed and lost, plus retransmitted."""
    return s[TAIL] - s[HEAD] - s[SACKED_OUT] - s[LOST_OUT] + s[RETRANS_OUT]


@bare_kernel
def mark_lost(board: Ints, s: Ints, n: int) -> None:
    """Hold segment `n` for lost, or its retransmission where it was lost before (`tcp_mark_skb_lost`)."""
    row = board[n & (board.shape[0] - 1)]
    tags = row[TAGS]
    if tags & SACKED:
        return
    if tags & LOST:
        if tags & RETRANS:
            row[TAGS] = tags & ~RETRANS
            s[RETRANS_OUT] -= 1
            s[LOST_TOTAL] += 1
    else:
        row[TAGS] = tags | LOST
        s[LOST_OUT] += 1
        s[LOST_TOTAL] += 1
    unlink(board, s, n)


@bare_kernel
def drop_head(board: Ints, s: Ints) -> None:
    """Take the first segment off the board: it was acknowledged."""
    n = s[HEAD]
    tags = board[n & (board.shape[0] - 1), TAGS]
    if tags & RETRANS:
        s[RETRANS_OUT] -= 1
    if tags & SACKED:
        s[SACKED_OUT] -= 1
    if tags & LOST:
        s[LOST_OUT] -= 1
    unlink(board, s, n)
    s[HEAD] = n + 1


@bare_kernel
def restart(s: Ints, seq: int) -> None:
    """Begin anew at `seq`: nothing outstanding."""
    s[HEAD] = s[TAIL]
    s[OLDEST] = -1
    s[NEWEST] = -1
    s[SACKED_OUT] = 0
    s[LOST_OUT] = 0
    s[RETRANS_OUT] = 0
    s[SND_UNA] = seq
    s[SND_NXT] = seq
    s[HIGHEST_SACK] = seq  # numbers below 0 are from before the capture
    s[UNDO_MARKER] = -1


@bare_kernel
def sent_once(later: Ints, seq: int, end: int) -> bool:
    """Whether none of the bytes from `seq` to `end` are in the ranges that were sent again."""
    low, high = 0, later.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if later[middle, 0] < end:
            low = middle + 1
        else:
            high = middle
    return low == 0 or later[low - 1, 1] <= seq


@bare_kernel
def add_segments(
    board: Ints, s: Ints, seq: int, end: int, now: int, mss: int, tags: int, elsewhere: bool, later: Ints
) -> None:
    """Put the segments of one frame, or hole, on the board."""
    step = max(mss, (end - seq) // MAX_PER_FRAME)
    while seq < end:
        if s[TAIL] - s[HEAD] >= board.shape[0]:  # of MAX_OUTSTANDING rows: see `has_room`
            restart(s, seq)
        stop = min(seq + step, end)
        append(board, s, seq, stop, now, tags | ONLY_ONCE if elsewhere and sent_once(later, seq, stop) else tags)
        seq = stop


@bare_kernel
def has_room(board: Ints, s: Ints, start: int, end: int, mss: int) -> bool:
    """Whether the board has room for a frame, and the hole before it, or cannot grow."""
    rows = board.shape[0]
    hole = max(start - s[SND_NXT], 0) // mss
    segments = min((end - start) // mss, 2 * MAX_PER_FRAME) + (hole if hole <= MAX_UNSEEN else 0) + 2
    return rows >= MAX_OUTSTANDING or s[TAIL] - s[HEAD] + segments <= rows
