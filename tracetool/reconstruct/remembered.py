"""A BBR connection that began before its capture: the smallest round-trip time that it remembers from then.

BBR's window is twice the bandwidth times the smallest RTT of ten seconds, and each phase of its cycle lasts one such
RTT. In the first ten seconds of a capture that RTT may lie before it: no packet shows it, but the sends do. It is a
parameter of the replay, and the value taken is the one under which window and pacing best fit what was sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels import bbr_memory as bm
from tracetool.kernels import replay_columns as rc
from tracetool.kernels.bbr import MIN_RTT_WINDOW_NS, MIN_WINDOW, PROBE_RTT_NS
from tracetool.kernels.chance import as_good, as_likely
from tracetool.reconstruct.models.bbr import remembering

if TYPE_CHECKING:
    import numpy.typing as npt

    from tracetool.reconstruct.models import Hypothesis

    Ints = npt.NDArray[np.int64]

#: RTTs are tried up to the smallest of the first so many, since none above that is remembered for long.
FIRST_RTTS = 10
#: Each RTT tried is less than the one before by so much that the phases of the cycle, one RTT each, run apart by half
#: of one over the capture; but by no less than a hundredth, and by no more than an eighth: one phase of a cycle.
DRIFT, FINE, COARSE = 1 / 2, 1 / 100, 1 / 8
#: Of a longer capture this many RTTs are enough: over more the phases would run apart between two fine steps; and so
#: many events, which are soon replayed.
ENOUGH_RTTS, ENOUGH_EVENTS = 256, 1 << 15
#: Around the best the step is halved until it is so small.
FINEST = 1 / 400
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


def remembered(events: Ints, mss: int, tolerance: int) -> list[Hypothesis]:
    """BBR with the smallest RTTs from before the capture that fit its sends, the best first.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Rows from `tracetool.kernels.replay.replay`.
    mss : int
        Payload of a full segment, bytes.
    tolerance : int
        Segments by which the flight may be wrong.

    Returns
    -------
    list of Hypothesis
        And the least and the largest that fit as well; none where no RTT was seen.

    Examples
    --------
    >>> remembered(events, 1448, 0)[0].name  # doctest: +SKIP
    'bbr under way, 40.000 ms'
    """
    start = int(events[0, rc.TIME])
    probed = probe_rtt(events)
    measured = min(probed - MIN_RTT_WINDOW_NS - 1, start) if probed else start
    late = np.flatnonzero(events[:, rc.TIME] >= (measured + MIN_RTT_WINDOW_NS))
    head = events[: late[0]] if len(late) else events
    seen = head[head[:, rc.CA_RTT] > 0, rc.CA_RTT]
    if not len(seen):
        return []
    smallest = int(seen.min())
    late = np.flatnonzero(head[:, rc.TIME] >= start + ENOUGH_RTTS * smallest)
    head = head[: min(int(late[0]) if len(late) else len(head), ENOUGH_EVENTS)]
    largest = min(int(seen[:FIRST_RTTS].min()), int(smallest / bm.LEAST_PART))
    rounds = int(head[-1, rc.TIME] - head[0, rc.TIME]) / smallest
    step = 1 - min(max(DRIFT / max(rounds, 1.0), FINE), COARSE)
    rtts, missed = np.empty(bm.MOST_TRIED, np.int64), np.empty(bm.MOST_TRIED)
    numbers = remembering(smallest, measured).numbers(mss, 0, tolerance)
    count = bm.search_rtts(head, numbers, smallest, largest, step, 1 - FINEST, rtts, missed)
    rtts, missed = rtts[:count], missed[:count]
    order = np.argsort(rtts)
    rtts, missed = rtts[order], missed[order]
    good = np.flatnonzero(missed <= as_good(float(missed.min())))
    # where between two tries it ceases to fit, nobody looked
    least, most = rtts[max(good[0] - 1, 0)], rtts[min(good[-1] + 1, count - 1)]
    same = rtts[missed <= as_likely(float(missed.min()))]  # nothing tells them apart: the middle one is taken
    middle = (float(same.min()) * float(same.max())) ** 0.5
    best = int(same[np.argmin(np.abs(same - middle))])
    return [remembering(at, measured) for at in dict.fromkeys((best, int(least), int(most)))]
