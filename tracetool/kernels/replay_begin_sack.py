"""A connection with SACK that began before its capture, within a recovery: the scoreboard that its sender held then.

The first ACK tells what was delivered out of order. So much of it that a hole is held for lost (RFC 8985) was there
before, or that what is sent again first is not the first hole; what of the holes is not sent again any more has been
sent again already. Otherwise the sender would seem to find the losses only now, and to reduce a window that it has
reduced before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.replay_begin import ACK, BEGIN_HIGH, BEGIN_NXT, BEGIN_UNA, be_within, first_ack
from tracetool.kernels.replay_board import find, link_newest, mark_lost, unlink
from tracetool.kernels.replay_columns import (
    DUPLICATE_ACKS,
    EVER_RETRANS,
    HEAD,
    HIGHEST_SACK,
    MAX_UNSEEN,
    RETRANS,
    RETRANS_OUT,
    SACKED,
    SACKED_OUT,
    SEQ,
    TAGS,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]
    Marks = npt.NDArray[np.uint16]

#: RACK waits a quarter of the smallest RTT for what may be reordered (RFC 8985, section 6.2): so much of the flight.
WAITED_PART = 4


@bare_kernel
def find_begin_sack(
    outbound: Flags, seq: Ints, ack: Ints, payload: Ints, flags: Marks, edges: Ints, edges_at: Ints, mss: int, b: Ints
) -> None:
    """Find whether packets of a sender begin within a recovery, by the SACK blocks of the first ACK.

    What had been sent by then, later ones tell, too: of data that was not seen to be sent.

    Parameters
    ----------
    outbound, seq, ack, payload, flags, edges, edges_at
        The packets of a flow, as the sender saw them.
    mss : int
        Payload of a full segment, bytes.
    b : int64, shape (BEGIN_WIDTH,)
        Out: `BEGIN_UNA`, `BEGIN_NXT` and `BEGIN_HIGH`; as it was where they do not. When in the recovery its last data
        was sent nobody saw: it is held to last until all of it is acknowledged.
    """
    first = first_ack(outbound, flags)
    if first < 0:
        return
    una, top, delivered = ack[first], ack[first], 0
    for k in range(edges_at[first], edges_at[first + 1] - 1, 2):
        if una < edges[k] < edges[k + 1]:  # else a duplicate
            top = max(top, edges[k + 1])
            delivered += edges[k + 1] - edges[k]
    nxt, again, lowest, high = top, False, una, una  # `high`: beyond what is SACKed the capture has sends up to here
    for i in range(len(outbound)):
        if outbound[i] and payload[i] > 0:
            if seq[i] < max(top, high):
                again |= seq[i] > lowest
            elif seq[i] > high:  # new data; what lay before it there was sent again
                again |= high > una
                nxt = seq[i]
            if seq[i] >= top:
                high = max(high, seq[i] + payload[i])
        elif i > first and not outbound[i] and flags[i] & ACK:
            lowest = max(lowest, ack[i])
            for k in range(edges_at[i], edges_at[i + 1] - 1, 2):
                near = edges[k + 1] - una <= MAX_UNSEEN * mss
                if near and max(ack[i], top, high) < edges[k + 1] and edges[k] < edges[k + 1]:
                    top = nxt = edges[k + 1]  # it was not seen to be sent, so it was before
                    high = una
        if high > una and lowest >= top:
            break
    outstanding = nxt - una
    enough = delivered > DUPLICATE_ACKS * mss and (WAITED_PART * delivered > outstanding or again)
    if enough and delivered < outstanding <= MAX_UNSEEN * mss:
        b[BEGIN_UNA], b[BEGIN_NXT], b[BEGIN_HIGH] = una, nxt, nxt


@bare_kernel
def tag_delivered(board: Ints, s: Ints, b: Ints, edges: Ints) -> None:
    """Tag what an ACK says to be SACKed."""
    mask = board.shape[0] - 1
    for k in range(0, len(edges) - 1, 2):
        if b[BEGIN_UNA] < edges[k] < edges[k + 1] <= b[BEGIN_NXT]:
            s[HIGHEST_SACK] = max(s[HIGHEST_SACK], edges[k + 1])
            for n in range(find(board, s, edges[k]), find(board, s, edges[k + 1] - 1) + 1):
                if not board[n & mask, TAGS] & SACKED:
                    board[n & mask, TAGS] |= SACKED
                    s[SACKED_OUT] += 1
                    unlink(board, s, n)


@bare_kernel
def tag_holes(board: Ints, s: Ints, beyond: int) -> None:
    """Hold for lost what is not SACKed before segment `beyond`, and sent again."""
    mask = board.shape[0] - 1
    for n in range(s[HEAD], beyond):
        if not board[n & mask, TAGS] & SACKED:
            mark_lost(board, s, n)
            board[n & mask, TAGS] |= RETRANS | EVER_RETRANS
            s[RETRANS_OUT] += 1
            link_newest(board, s, n)


@bare_kernel
def not_again(board: Ints, s: Ints, seq: int, end: int, beyond: int) -> None:
    """What is sent again only now, before segment `beyond`, had not been yet."""
    mask = board.shape[0] - 1
    for n in range(find(board, s, seq), beyond):
        if board[n & mask, SEQ] >= end:
            break
        if board[n & mask, TAGS] & RETRANS:
            board[n & mask, TAGS] &= ~(RETRANS | EVER_RETRANS)
            s[RETRANS_OUT] -= 1
            unlink(board, s, n)


@bare_kernel
def resume_sack(
    board: Ints, s: Ints, b: Ints, time: Ints, outbound: Flags, seq: Ints, ack: Ints, payload: Ints, flags: Marks,
    edges: Ints, edges_at: Ints, mss: int, later: Ints,
) -> None:  # fmt: skip
    """Be within the recovery that a capture with SACK begins in; parameters as of `replay`, `b` as found."""
    be_within(board, s, b, time[0], mss, later)
    first = first_ack(outbound, flags)
    tag_delivered(board, s, b, edges[edges_at[first] : edges_at[first + 1]])
    beyond = find(board, s, s[HIGHEST_SACK] - 1)
    tag_holes(board, s, beyond)
    for i in range(len(time)):
        if not outbound[i] and flags[i] & ACK and ack[i] >= b[BEGIN_NXT]:
            break
        if outbound[i] and payload[i] > 0 and b[BEGIN_UNA] <= seq[i] < s[HIGHEST_SACK]:
            not_again(board, s, seq[i], seq[i] + payload[i], beyond)
