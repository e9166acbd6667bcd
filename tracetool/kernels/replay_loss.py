"""Time in a replayed sender: the RTT estimator with its timeout, and RACK's verdict which segments are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.replay_board import mark_lost, unlink
from tracetool.kernels.replay_columns import (
    CA_STATE,
    END,
    HEAD,
    LOST,
    MDEV,
    MDEV_MAX,
    MIN_RTT,
    MIN_RTT_TIME,
    NEXT,
    OLDEST,
    ONLY_ONCE,
    RACK_ADVANCED,
    RACK_END,
    RACK_RTT,
    RACK_TIME,
    RECOVERY,
    REO_SEEN,
    REO_STEPS,
    REORDERING,
    RETRANS,
    RTO,
    RTT_SEQ,
    RTTVAR,
    SACKED_OUT,
    SENT,
    SND_NXT,
    SND_UNA,
    SRTT,
    TAGS,
    TAIL,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: Floor of rttvar and thereby of the timeout, nanoseconds (TCP_RTO_MIN).
RTO_MIN_NS = 200_000_000
RTO_MAX_NS = 120_000_000_000
#: The minimum RTT is forgotten after this time (`tcp_min_rtt_wlen`, 300 s).
MIN_RTT_WINDOW_NS = 300_000_000_000


@bare_kernel
def update_rtt(s: Ints, rtt: int) -> None:
    """Take one RTT sample into srtt (8-fold), mdev, rttvar (4-fold) and the timeout (`tcp_rtt_estimator`), ns."""
    m = rtt
    if s[SRTT] > 0:
        m -= s[SRTT] >> 3
        s[SRTT] += m
        if m < 0:
            m = -m - (s[MDEV] >> 2)
            if m > 0:  # a falling RTT must not inflate the timeout (Eifel)
                m >>= 3
        else:
            m -= s[MDEV] >> 2
        s[MDEV] += m
        if s[MDEV] > s[MDEV_MAX]:
            s[MDEV_MAX] = s[MDEV]
            s[RTTVAR] = max(s[RTTVAR], s[MDEV_MAX])
        if s[SND_UNA] > s[RTT_SEQ]:
            if s[MDEV_MAX] < s[RTTVAR]:
                s[RTTVAR] -= (s[RTTVAR] - s[MDEV_MAX]) >> 2
            s[RTT_SEQ] = s[SND_NXT]
            s[MDEV_MAX] = RTO_MIN_NS
    else:
        s[SRTT] = m << 3
        s[MDEV] = m << 1
        s[RTTVAR] = max(s[MDEV], RTO_MIN_NS)
        s[MDEV_MAX] = s[RTTVAR]
        s[RTT_SEQ] = s[SND_NXT]
    s[SRTT] = max(1, s[SRTT])
    s[RTO] = min((s[SRTT] >> 3) + s[RTTVAR], RTO_MAX_NS)


@bare_kernel
def update_min_rtt(s: Ints, rtt: int, now: int) -> None:
    """Keep the minimum RTT (`tcp_update_rtt_min`)."""
    if s[MIN_RTT] <= 0 or rtt <= s[MIN_RTT] or now - s[MIN_RTT_TIME] > MIN_RTT_WINDOW_NS:
        s[MIN_RTT] = rtt
        s[MIN_RTT_TIME] = now


@bare_kernel
def rack_advance(s: Ints, tags: int, end: int, sent: int, now: int) -> None:
    """Note the last sent of the delivered segments (RFC 8985, step 2)."""
    rtt = now - sent
    if rtt < s[MIN_RTT] and tags & RETRANS:
        return  # too early for the retransmission: the original was delivered
    s[RACK_ADVANCED] = 1
    s[RACK_RTT] = rtt
    if sent > s[RACK_TIME] or (sent == s[RACK_TIME] and end > s[RACK_END]):
        s[RACK_TIME] = sent
        s[RACK_END] = end


@bare_kernel
def reorder_window(s: Ints) -> int:
    """How much later than the RACK RTT a segment may come before it is lost, ns (`tcp_rack_reo_wnd`)."""
    if s[REO_SEEN] == 0:
        if s[CA_STATE] >= RECOVERY:
            return 0
        if s[SACKED_OUT] >= s[REORDERING]:
            return 0
    return min((s[MIN_RTT] >> 2) * s[REO_STEPS], s[SRTT] >> 3)


@bare_kernel
def rack_detect(board: Ints, s: Ints, now: int) -> None:
    """Hold for lost what was sent before the last delivered segment, and is overdue (RFC 8985, step 5)."""
    mask = board.shape[0] - 1
    window = reorder_window(s)
    n = s[OLDEST]
    while n >= 0:
        row = board[n & mask]
        after = row[NEXT]
        sent = row[SENT]
        if not (s[RACK_TIME] > sent or (s[RACK_TIME] == sent and s[RACK_END] > row[END])):
            break
        overdue = s[RACK_RTT] + window - (now - sent) <= 0
        if row[TAGS] & LOST and not row[TAGS] & RETRANS:
            unlink(board, s, n)
        elif overdue and row[TAGS] & ONLY_ONCE:  # the sender did not hold it for lost
            unlink(board, s, n)
        elif overdue:
            mark_lost(board, s, n)
        n = after


@bare_kernel
def mark_head_lost(board: Ints, s: Ints, advanced: bool) -> None:
    """Without SACK: the head is lost after enough duplicate ACKs, or on a partial ACK (`tcp_newreno_mark_lost`)."""
    if s[HEAD] == s[TAIL]:
        return
    early = s[CA_STATE] < RECOVERY and s[SACKED_OUT] >= s[REORDERING]
    if early or (s[CA_STATE] == RECOVERY and advanced):
        if board[s[HEAD] & (board.shape[0] - 1), TAGS] & LOST:
            return
        mark_lost(board, s, s[HEAD])
