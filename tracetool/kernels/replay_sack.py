"""What an ACK delivers: SACKed segments are tagged, acknowledged ones leave the scoreboard.

`tcp_sacktag_write_queue` and `tcp_clean_rtx_queue`, with the RTT and delivery-rate samples they yield.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.replay_board import drop_head, find, unlink
from tracetool.kernels.replay_columns import (
    CA_STATE,
    DATA_SACKED,
    DELIVERED,
    DSACK_SEEN,
    DSACK_TLP,
    DSACKED,
    END,
    EVER_RETRANS,
    FIRST_ACKED,
    FIRST_SACKED,
    FIRST_TX_TIME,
    HEAD,
    HIGH_SEQ,
    HIGHEST_SACK,
    LAST_ACKED,
    LAST_SACKED,
    LOSS,
    LOST,
    LOST_OUT,
    MAX_REORDERING,
    MAX_WND,
    ORIGINAL,
    PACKETS_ACKED,
    PRIOR_DELIVERED,
    PRIOR_TIME,
    REO_SEEN,
    REORD,
    REORDERING,
    RETRANS,
    RETRANS_ACKED,
    RETRANS_OUT,
    SACK_CACHE,
    SACK_DELIVERED,
    SACKED,
    SACKED_OUT,
    SAMPLE_APP_LIMITED,
    SAMPLE_END,
    SAMPLE_INTERVAL,
    SENT,
    SEQ,
    SND_NXT,
    SND_UNA,
    STALE,
    TAGS,
    TAIL,
    TLP_HIGH_SEQ,
    TX_APP_LIMITED,
    TX_DELIVERED,
    TX_DELIVERED_TIME,
    TX_FIRST_TIME,
    TX_TSVAL,
    UNDO_MARKER,
    UNDO_RETRANS,
    UNSEEN,
    UNSEEN_ACKED,
)
from tracetool.kernels.replay_loss import rack_advance

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


@bare_kernel
def highest_sack(s: Ints) -> int:
    """End of the highest SACKed segment; snd_una without any (`tcp_highest_sack_seq`)."""
    return max(s[HIGHEST_SACK], s[SND_UNA]) if s[SACKED_OUT] > 0 else s[SND_UNA]


@bare_kernel
def note_reordering(s: Ints, low: int, mss: int) -> None:
    """A segment came late: widen the tolerated reordering (`tcp_check_sack_reordering`)."""
    top = highest_sack(s)
    if low >= top:
        return
    if top - low > s[REORDERING] * mss:
        s[REORDERING] = min((top - low + mss - 1) // mss, MAX_REORDERING)
    s[REO_SEEN] += 1


@bare_kernel
def rate_delivered(row: Ints, s: Ints, x: Ints) -> None:
    """Take the delivery state of a delivered segment, if it is the last sent (`tcp_rate_skb_delivered`)."""
    if row[TX_DELIVERED_TIME] == 0 or row[TAGS] & STALE:
        return
    later = row[SENT] > s[FIRST_TX_TIME] or (row[SENT] == s[FIRST_TX_TIME] and row[END] > x[SAMPLE_END])
    if x[PRIOR_TIME] == 0 or later:
        x[PRIOR_DELIVERED] = row[TX_DELIVERED]
        x[PRIOR_TIME] = row[TX_DELIVERED_TIME]
        x[SAMPLE_APP_LIMITED] = row[TX_APP_LIMITED]
        x[SAMPLE_END] = row[END]
        x[SAMPLE_INTERVAL] = row[SENT] - row[TX_FIRST_TIME]
        s[FIRST_TX_TIME] = row[SENT]
    row[TX_DELIVERED_TIME] = 0


@bare_kernel
def tag_sacked(board: Ints, s: Ints, x: Ints, n: int, now: int, duplicate: bool) -> None:
    """Tag segment `n` as SACKed (`tcp_sacktag_one`)."""
    row = board[n & (board.shape[0] - 1)]
    tags = row[TAGS]
    if duplicate and tags & (RETRANS | EVER_RETRANS):
        if s[UNDO_MARKER] >= 0 and s[UNDO_RETRANS] > 0 and row[END] > s[UNDO_MARKER]:
            s[UNDO_RETRANS] -= 1
        if tags & SACKED:
            x[REORD] = min(x[REORD], row[SEQ])
    if row[END] <= s[SND_UNA]:
        return
    if not tags & SACKED:
        if not tags & STALE:
            rack_advance(s, tags, row[END], row[SENT], now)
        if tags & RETRANS:
            if tags & LOST:
                tags &= ~(LOST | RETRANS)
                s[LOST_OUT] -= 1
                s[RETRANS_OUT] -= 1
        else:
            if not tags & (EVER_RETRANS | STALE):
                if row[SEQ] < highest_sack(s):
                    x[REORD] = min(x[REORD], row[SEQ])
                if row[END] <= s[HIGH_SEQ]:
                    x[ORIGINAL] = 1
                if not tags & UNSEEN:
                    if x[FIRST_SACKED] == 0:
                        x[FIRST_SACKED] = row[SENT]
                    x[LAST_SACKED] = row[SENT]
            if tags & LOST:
                tags &= ~LOST
                s[LOST_OUT] -= 1
        tags |= SACKED
        x[DATA_SACKED] = 1
        s[SACKED_OUT] += 1
        x[SACK_DELIVERED] += 1
        rate_delivered(row, s, x)
        unlink(board, s, n)
        s[HIGHEST_SACK] = max(s[HIGHEST_SACK], row[END])
    if duplicate and tags & RETRANS:
        tags &= ~RETRANS
        s[RETRANS_OUT] -= 1
    row[TAGS] = tags


@bare_kernel
def tag_block(board: Ints, s: Ints, x: Ints, left: int, right: int, now: int, duplicate: bool) -> None:
    """Tag the segments inside one SACK block, skipping what the last ACK's blocks covered."""
    mask = board.shape[0] - 1
    n = find(board, s, left)
    while n < s[TAIL]:
        row = board[n & mask]
        if row[END] > right:
            break
        if row[SEQ] >= left:
            if not duplicate and row[TAGS] & SACKED:
                jump = row[END]
                for c in range(0, 8, 2):
                    if s[SACK_CACHE + c] <= row[SEQ] and row[END] <= s[SACK_CACHE + c + 1]:
                        jump = min(s[SACK_CACHE + c + 1], right)
                if jump > row[END]:
                    n = find(board, s, jump)
                    continue
            else:
                tag_sacked(board, s, x, n, now, duplicate)
        n += 1


@bare_kernel
def tag_blocks(board: Ints, s: Ints, x: Ints, edges: Ints, ack: int, prior_una: int, now: int, mss: int) -> None:
    """Read the SACK option of an ACK (`tcp_sacktag_write_queue`, `tcp_check_dsack`)."""
    x[REORD] = s[SND_NXT]
    blocks = min(len(edges) // 2, 4)
    duplicate = edges[0] < ack or (blocks > 1 and edges[1] <= edges[3] and edges[0] >= edges[2])
    if duplicate:
        length = edges[1] - edges[0]
        if length <= 0 or length > max(s[MAX_WND], 2 * mss):
            duplicate = False
        else:
            count = max(1, (length + mss - 1) // mss)
            if count == 1 and s[TLP_HIGH_SEQ] > 0 and s[TLP_HIGH_SEQ] == edges[1]:
                x[DSACK_TLP] = 1
            if s[REO_SEEN] > 0 and not x[DSACK_TLP]:
                s[DSACK_SEEN] = 1
            x[DSACKED] = 1
            x[SACK_DELIVERED] += count
            if s[UNDO_MARKER] >= 0 and s[UNDO_RETRANS] > 0 and edges[1] <= prior_una and edges[1] > s[UNDO_MARKER]:
                s[UNDO_RETRANS] = max(0, s[UNDO_RETRANS] - count)
    # in the order of sequence numbers, as the kernel walks its queue
    done = s[SND_UNA]
    for _ in range(blocks):
        best = -1
        for b in range(blocks):
            left, right = edges[2 * b], edges[2 * b + 1]
            if b == 0 and duplicate and right <= s[SND_UNA]:
                continue
            if left < right <= s[SND_NXT] and right > done and (best < 0 or left < edges[2 * best]):
                best = b
        if best < 0:
            break
        tag_block(board, s, x, edges[2 * best], edges[2 * best + 1], now, duplicate and best == 0)
        done = max(done, edges[2 * best + 1])
    if duplicate and blocks > 1 and edges[1] > s[SND_UNA]:
        # a duplicate inside another block: the loop above may have passed it over
        tag_block(board, s, x, edges[0], edges[1], now, duplicate)
    for c in range(4):
        s[SACK_CACHE + 2 * c] = edges[2 * c] if c < blocks and not (c == 0 and duplicate) else 0
        s[SACK_CACHE + 2 * c + 1] = edges[2 * c + 1] if c < blocks and not (c == 0 and duplicate) else 0
    if s[CA_STATE] != LOSS or s[UNDO_MARKER] >= 0:
        note_reordering(s, x[REORD], mss)


@bare_kernel
def echo_before(echoed: int, tsval: int) -> bool:
    """Whether an ACK echoes a timestamp older than `tsval` (32-bit clock; -1: no timestamps)."""
    return echoed >= 0 and 0 < ((tsval - echoed) & 0xFFFFFFFF) < 0x80000000


@bare_kernel
def clean_queue(board: Ints, s: Ints, x: Ints, now: int, sack: bool, echoed: int) -> int:
    """Take what was acknowledged off the board; returns the lowest late segment (`tcp_clean_rtx_queue`)."""
    mask = board.shape[0] - 1
    late = s[SND_NXT]
    while s[HEAD] < s[TAIL]:
        row = board[s[HEAD] & mask]
        if row[END] > s[SND_UNA]:
            break
        tags = row[TAGS]
        if tags & (RETRANS | EVER_RETRANS):
            x[RETRANS_ACKED] = 1
        elif not tags & (SACKED | STALE):
            if tags & UNSEEN:  # when it left is a guess
                x[UNSEEN_ACKED] = 1
            else:
                x[LAST_ACKED] = row[SENT]
                if x[FIRST_ACKED] == 0:
                    x[FIRST_ACKED] = row[SENT]
            late = min(late, row[SEQ])
            if row[END] <= s[HIGH_SEQ]:
                x[ORIGINAL] = 1
        if sack and not tags & SACKED:
            s[DELIVERED] += 1
            if not (tags & STALE or (tags & (RETRANS | EVER_RETRANS) and echo_before(echoed, row[TX_TSVAL]))):
                rack_advance(s, tags, row[END], row[SENT], now)
        rate_delivered(row, s, x)
        x[PACKETS_ACKED] += 1
        drop_head(board, s)
    return late
