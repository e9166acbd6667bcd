"""BBR, version 1 (Linux `tcp_bbr.c`): paced at the bandwidth it measures, deaf to single losses."""

from __future__ import annotations

from tracetool.kernels.window_columns import BBR, IN_SLOW_START, PAST_SLOW_START
from tracetool.reconstruct.models import Hypothesis

HYPOTHESES = (Hypothesis("bbr", "bbr", BBR, paced=True),)

UNDER_WAY = (
    Hypothesis("bbr under way", "bbr", BBR, paced=True, start=PAST_SLOW_START),
    Hypothesis("bbr starting up", "bbr", BBR, paced=True, start=IN_SLOW_START),
)


def remembering(min_rtt_ns: int, since_ns: int) -> Hypothesis:
    """BBR that began before the capture.

    Parameters
    ----------
    min_rtt_ns : int
        Smallest RTT that it remembers.
    since_ns : int
        Time at which it was measured, nanoseconds.

    Examples
    --------
    >>> remembering(40_000_000, 0).name
    'bbr under way, 40.000 ms'
    """
    name = f"bbr under way, {min_rtt_ns / 1e6:.3f} ms"
    return Hypothesis(
        name, "bbr", BBR, paced=True, start=PAST_SLOW_START, min_rtt_ns=min_rtt_ns, min_rtt_since_ns=since_ns
    )
