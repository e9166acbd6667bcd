"""BBR's model of token-bucket policers (`bbr_lt_bw_sampling`): a bandwidth from the long term, where losses are heavy.

A policer lets a burst pass and then drops. Two intervals between losses, of four round trips or more, in which a fifth
of what was sent was lost and the rest came at about the same rate, tell that rate; it is used for 48 round trips.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.replay_columns import DELIVERED_BEFORE, NEWLY_DELIVERED, TIME
from tracetool.kernels.window_columns import (
    BBR_MODE,
    BBR_ROUND_START,
    LT_BW,
    LT_DELIVERED,
    LT_LOST,
    LT_LOST_TOTAL,
    LT_ROUNDS,
    LT_SAMPLING,
    LT_STAMP,
    LT_USED,
    MSS,
    PROBE_BW,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

BW_UNIT = 1 << 24  # bandwidths are in segments per 2^24 us
MIN_ROUNDS, MAX_ROUNDS_USED = 4, 48
LOSS_THRESHOLD = 50  # of 256 delivered
RATIO_PART = 8  # rates that differ by an eighth are consistent
SAME_BYTES_PER_SECOND = 500
LONGEST_MS = 0xFFFFFFFF // 1000


@bare_kernel
def begin_interval(w: Ints, now: int, delivered: int) -> None:
    """Start an interval (`bbr_reset_lt_bw_sampling_interval`)."""
    w[LT_STAMP] = now // 1_000_000
    w[LT_DELIVERED] = delivered
    w[LT_LOST] = w[LT_LOST_TOTAL]
    w[LT_ROUNDS] = 0


@bare_kernel
def forget_policer(w: Ints, now: int, delivered: int) -> None:
    """Start anew (`bbr_reset_lt_bw_sampling`)."""
    w[LT_BW] = 0
    w[LT_USED] = 0
    w[LT_SAMPLING] = 0
    begin_interval(w, now, delivered)


@bare_kernel
def end_interval(w: Ints, h: Ints, bw: int, now: int, delivered: int) -> None:
    """Use the rate if that of the interval before was about the same (`bbr_lt_bw_interval_done`)."""
    if w[LT_BW] > 0:
        apart = abs(bw - w[LT_BW])
        if RATIO_PART * apart <= w[LT_BW] or ((apart * h[MSS] * 990_000) >> 24) <= SAME_BYTES_PER_SECOND:
            w[LT_BW] = (bw + w[LT_BW]) >> 1
            w[LT_USED] = 1
            w[LT_ROUNDS] = 0
            return
    w[LT_BW] = bw
    begin_interval(w, now, delivered)


@bare_kernel
def watch_policer(w: Ints, h: Ints, e: Ints, lost: int, limited: bool) -> bool:
    """Take note of an ACK, or of a timeout, that `lost` segments; returns whether PROBE_BW must begin anew."""
    now = e[TIME]
    delivered = e[DELIVERED_BEFORE] + e[NEWLY_DELIVERED]
    if w[LT_USED]:
        if w[BBR_MODE] == PROBE_BW and w[BBR_ROUND_START]:
            w[LT_ROUNDS] += 1
            if w[LT_ROUNDS] >= MAX_ROUNDS_USED:
                forget_policer(w, now, delivered)
                return True
        return False
    if not w[LT_SAMPLING]:
        if lost == 0:
            return False
        begin_interval(w, now, delivered)
        w[LT_SAMPLING] = 1
    if limited:
        forget_policer(w, now, delivered)
        return False
    if w[BBR_ROUND_START]:
        w[LT_ROUNDS] += 1
    if w[LT_ROUNDS] < MIN_ROUNDS:
        return False
    if w[LT_ROUNDS] > 4 * MIN_ROUNDS:
        forget_policer(w, now, delivered)
        return False
    came = delivered - w[LT_DELIVERED]
    if lost == 0 or came <= 0 or (w[LT_LOST_TOTAL] - w[LT_LOST]) * 256 < LOSS_THRESHOLD * came:
        return False
    took = now // 1_000_000 - w[LT_STAMP]
    if took < 1:
        return False
    if took >= LONGEST_MS:
        forget_policer(w, now, delivered)
        return False
    end_interval(w, h, came * BW_UNIT // (took * 1000), now, delivered)
    return False
