"""How well the sends of BBR fit its pacing: what tells the smallest RTT that it remembers from before a capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.bbr import MIN_RTT_WINDOW_NS, max_bw, quantum, start_probe_bw
from tracetool.kernels.bbr_policer import BW_UNIT
from tracetool.kernels.replay_columns import (
    LOSS,
    PIPE_SENT,
    ROOM,
    RS_APP_LIMITED,
    SENT_AGAIN,
    SENT_NEW,
    STATE_AFTER,
    TIME,
)
from tracetool.kernels.window_columns import (
    BBR_CONSERVE,
    BBR_MODE,
    BBR_RATE,
    BBR_ROUNDS,
    CWND,
    DELAY_MIN,
    FIT_PACED,
    INFINITE,
    MSS,
    PACE_DUE,
    PACE_ROOM,
    PACE_SENT,
    PACE_SINCE,
    PACE_UNIT,
    PHASE_SEEN,
    PROBE_BW,
    STARTUP,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: Sends are summed over half a smallest round trip: no phase of the cycle is shorter than that by much.
SLICES_PER_ROUND = 2
#: The pace is BBR's 5/4 rather than 1 where it is beyond the middle of them.
PROBING, PROBING_OF = 9, 8
#: After so many rounds the bandwidth is known well enough.
FEW_ROUNDS = 2
#: A pause as long as BBR remembers an RTT tells of no pace; what 100 Gbit/s make of less fits the numbers below.
LONGEST_NS = MIN_RTT_WINDOW_NS


@bare_kernel
def watch_pace(w: Ints, h: Ints, e: Ints, until: int) -> None:
    """Compare what is sent from an event to the next with what the pacing rate allows where the window has room.

    A sender that has data is held back by its window or by its pacing. As much must leave as the pacing rate says, or
    as fills the window predicted: less tells that the window is smaller; more or less, that the phases of the cycle,
    which last one smallest RTT each, have another length.
    """
    blocked = 0 <= e[ROOM] < h[MSS]
    known = w[BBR_ROUNDS] >= FEW_ROUNDS and (w[BBR_MODE] == PROBE_BW or w[BBR_MODE] == STARTUP)
    if not known or blocked or e[STATE_AFTER] == LOSS or w[BBR_CONSERVE] or e[RS_APP_LIMITED] != 0:
        w[PACE_SINCE] = 0
        return
    if w[PACE_SINCE] == 0:
        w[PACE_SINCE] = e[TIME]
        w[PACE_SENT] = 0
        w[PACE_DUE] = 0
        w[PACE_ROOM] = INFINITE
    took = until - w[PACE_SINCE]
    if not 0 <= took <= LONGEST_NS:
        w[PACE_SINCE] = 0
        return
    w[PACE_SENT] += e[SENT_NEW] + e[SENT_AGAIN]
    w[PACE_DUE] += w[BBR_RATE] * ((until - e[TIME]) // 1000)
    w[PACE_ROOM] = min(w[PACE_ROOM], max(w[CWND] - e[PIPE_SENT], 0))
    if SLICES_PER_ROUND * took < w[DELAY_MIN]:
        return
    sent, room, allowed = w[PACE_SENT] * PACE_UNIT, w[PACE_ROOM] * PACE_UNIT, quantum(w, h) * PACE_UNIT
    due = w[PACE_DUE] * (PACE_UNIT // 64) // (h[MSS] * (1_000_000 // 64))
    usual = max_bw(w) * (took // 1000) * PACE_UNIT // BW_UNIT
    if w[BBR_MODE] == PROBE_BW and not w[PHASE_SEEN] and PROBING_OF * (sent - allowed) > PROBING * usual:
        w[PHASE_SEEN] = 1
        start_probe_bw(w, w[PACE_SINCE], 0)
    w[FIT_PACED] += max((sent - due if sent > due else min(due - sent, room)) - allowed, 0)
    w[PACE_SINCE] = 0
