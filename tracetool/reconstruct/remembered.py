"""A BBR connection that began before its capture: the smallest round-trip time that it remembers from then.

BBR's window is twice the bandwidth times the smallest RTT of ten seconds, and each phase of its cycle lasts one such
RTT. In the first ten seconds of a capture that RTT may lie before it: no packet shows it, but the sends do. It is a
parameter of the replay, and the value taken is the one under which window and pacing best fit what was sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels import replay_columns as rc
from tracetool.kernels.bbr import MIN_RTT_WINDOW_NS, MIN_WINDOW, PROBE_RTT_NS
from tracetool.reconstruct.models.bbr import remembering

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from tracetool.reconstruct.hypotheses import Fit
    from tracetool.reconstruct.models import Hypothesis

    Ints = npt.NDArray[np.int64]
    Try = Callable[[Ints, Hypothesis], Fit]

#: Smallest RTTs tried: from the smallest that was seen down, each this part of the one before, to this part of it; and
#: up to the smallest of the first so many, since none above that is remembered for long.
FIRST_RTTS = 10
STEP, LEAST = 0.99, 1 / 8
#: Of a longer capture this many such RTTs are enough: over more the phases would run apart between two tries; and so
#: many events, which are soon replayed.
ENOUGH_RTTS, ENOUGH_EVENTS = 256, 1 << 15
#: How often the step is halved around the best.
REFINEMENTS = 2
#: RTTs fit as well that miss no more segments than the best, these, and a part of those; far more ends the search.
CHANCE, PART_OF_CHANCE, HOPELESS = 8, 1 / 2, 4
#: Between those that miss hardly more than the best there is no difference: the middle one is taken.
SAME, PART_OF_SAME = 2, 1 / 10
#: The kernel's clock for PROBE_RTT ticks every 10 ms at least.
JIFFY_NS = 10_000_000


def probe_rtt(events: Ints) -> int:
    """When the first PROBE_RTT of a capture began: for 200 ms no more than four segments are in flight.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Rows from `tracetool.kernels.replay.replay`.

    Returns
    -------
    int
        Nanoseconds; 0 without one.
    """
    few = events[:, rc.PIPE_SENT] <= MIN_WINDOW
    edges = np.flatnonzero(np.diff(few, prepend=False, append=False))
    sent = events[:, rc.SENT_NEW] + events[:, rc.SENT_AGAIN] > 0
    for first, end in edges.reshape(-1, 2).tolist():
        if first == 0 or end == len(events):
            continue
        probing = events[first:end]
        lasted = int(events[end, rc.TIME] - events[first, rc.TIME])
        if (
            lasted >= PROBE_RTT_NS - JIFFY_NS
            and (probing[:, rc.STATE_AFTER] < rc.LOSS).all()
            and (probing[:, rc.PIPE_SENT] == MIN_WINDOW).any()
        ):
            before = np.flatnonzero(sent[:first])
            # nothing leaves from its beginning on until so few are in flight
            return int(events[before[-1] + 1 if len(before) else 0, rc.TIME])
    return 0


def remembered(events: Ints, fit: Try) -> list[Hypothesis]:
    """BBR with the smallest RTTs from before the capture that fit its sends, the best first.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Rows from `tracetool.kernels.replay.replay`.
    fit : callable
        Fits one hypothesis to some events.

    Returns
    -------
    list of Hypothesis
        And the least and the largest that fit as well; none where no RTT was seen.
    """
    start = int(events[0, rc.TIME])
    probed = probe_rtt(events)
    measured = min(probed - MIN_RTT_WINDOW_NS - 1, start) if probed else start
    late = np.flatnonzero(events[:, rc.TIME] >= (measured + MIN_RTT_WINDOW_NS))
    head = events[: late[0]] if len(late) else events
    rtts = head[head[:, rc.CA_RTT] > 0, rc.CA_RTT]
    if not len(rtts):
        return []
    smallest = int(rtts.min())
    late = np.flatnonzero(head[:, rc.TIME] >= start + ENOUGH_RTTS * smallest)
    head = head[: min(int(late[0]) if len(late) else len(head), ENOUGH_EVENTS)]
    missed: dict[int, float] = {}

    def least() -> float:
        return min(missed.values())

    def try_rtt(rtt: float) -> bool:
        at = max(round(rtt), 1000)
        if at not in missed:
            missed[at] = fit(head, remembering(at, measured)).missed
        return missed[at] <= HOPELESS * least() + HOPELESS * CHANCE

    rtt, step, largest = float(smallest), STEP, min(int(rtts[:FIRST_RTTS].min()), int(smallest / LEAST))
    while rtt > smallest * LEAST and try_rtt(rtt):
        rtt *= step
    rtt = float(smallest)
    while rtt < largest:
        rtt = min(rtt / step, largest)
        try_rtt(rtt)
    for _ in range(REFINEMENTS):
        step = step**0.5
        best = min(missed, key=lambda at: missed[at])
        try_rtt(best * step)
        try_rtt(min(best / step, largest))
    most = least() * (1 + PART_OF_CHANCE) + CHANCE
    likely = [at for at in missed if missed[at] <= most]
    same = sorted(at for at in likely if missed[at] <= least() * (1 + PART_OF_SAME) + SAME)
    middle = (same[0] * same[-1]) ** 0.5
    best = min(same, key=lambda at: abs(at - middle))
    return [remembering(at, measured) for at in dict.fromkeys((best, min(likely), max(likely)))]
