"""BBR in mid-connection: what it must have known when the capture begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.bbr import BW_ROUNDS, UNIT, bdp, budget, start_probe_bw
from tracetool.kernels.bbr_policer import BW_UNIT
from tracetool.kernels.replay_columns import (
    DELIVERED_BEFORE,
    NEWLY_DELIVERED,
    NXT,
    RS_DELIVERED,
    RS_INTERVAL,
    RS_PRIOR_DELIVERED,
    TIME,
    UNA,
)
from tracetool.kernels.window_columns import (
    BBR_BW,
    BBR_FULL_REACHED,
    BBR_KNOWN_FROM,
    BBR_MIN_RTT,
    BBR_MIN_RTT_TIME,
    REMEMBERED_RTT,
    REMEMBERED_TIME,
    SSTHRESH,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


@bare_kernel
def first_bandwidth(w: Ints, events: Ints) -> int:
    """Largest delivery rate of the first ten rounds that are seen whole: as good a guess as any of the ten before.

    What was SACKed before the capture seems to be delivered when its ACKs are first seen. So only those rates count
    whose time begins when all of that has been acknowledged; after how many segments that is, is noted.
    """
    w[BBR_KNOWN_FROM] = -1
    largest, rounds, next_round = 0, 0, 0
    for r in range(events.shape[0]):
        e = events[r]
        delivered = e[DELIVERED_BEFORE] + e[NEWLY_DELIVERED]
        if w[BBR_KNOWN_FROM] < 0:
            if e[UNA] >= events[0, NXT]:
                w[BBR_KNOWN_FROM] = delivered
                next_round = delivered
        elif e[RS_INTERVAL] > 0 and e[RS_PRIOR_DELIVERED] >= w[BBR_KNOWN_FROM]:
            if e[RS_PRIOR_DELIVERED] >= next_round:
                next_round = delivered
                rounds += 1
                if rounds > BW_ROUNDS:
                    break
            largest = max(largest, e[RS_DELIVERED] * BW_UNIT // max(e[RS_INTERVAL] // 1000, 1))
    return largest


@bare_kernel
def bbr_resume(w: Ints, h: Ints, events: Ints, smallest: int) -> None:
    """Go on past STARTUP where a capture begins, with the smallest RTT from before, or else that of the capture."""
    w[BBR_FULL_REACHED] = 1
    w[BBR_MIN_RTT] = h[REMEMBERED_RTT] if h[REMEMBERED_RTT] > 0 else smallest
    w[BBR_MIN_RTT_TIME] = h[REMEMBERED_TIME] if h[REMEMBERED_RTT] > 0 else events[0, TIME]
    bw = first_bandwidth(w, events)
    for i in range(3):  # measured in round 0
        w[BBR_BW + 2 * i + 1] = bw
    start_probe_bw(w, events[0, TIME], 2)
    w[SSTHRESH] = budget(w, h, bdp(w, bw, UNIT))  # set as STARTUP ended, if the path was then as it is now
