"""One file per congestion control: the hypotheses about it that the inference tries.

How the window moves under a hypothesis is in the kernels (`tracetool.kernels.replay_window` and what it calls); a file
here names what can differ between senders that run the same algorithm. A new congestion control is a new file here, its
kernel, and one line in `hypotheses`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracetool.kernels import window_columns as wc


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What a sender may have been running.

    Parameters
    ----------
    name : str
        For people: the congestion control and what is special, e.g. ``"cubic, HyStart, paced"``.
    cc : str
        Congestion control as `flow_stats.cc` names it.
    algorithm : int
        The same for the kernels (RENO, CUBIC, BBR).
    hystart : int
        Mask of HyStart detectors (TRAIN, DELAY, PLUS_PLUS).
    era : int
        How HyStart begins its rounds (ERA_LATE_ROUNDS, ERA_ALL_ROUNDS).
    paced : bool
        Whether the socket is paced.
    start : int
        Whether the connection began in the capture (AT_BEGINNING), or before it, and then in which phase it was.
    grown_from : float
        Of CUBIC past slow start: the threshold from which its window grew, in parts of the window when it became known.
    of_last_max : float
        The same threshold in parts of CUBIC's last maximum; 0 without one.
    stood : float
        Which part of the time for which the window stands at that size was over then, 0 to 1; below 0: as much was
        left of its time at one segment less, since what an ACK before left over may have made it grow early.
    min_rtt_ns, min_rtt_since_ns : int
        Of BBR past startup: the smallest RTT that it remembers from before the capture, and when it was measured.
    rare : bool
        Tried only where nothing usual fits.
    """

    name: str
    cc: str
    algorithm: int
    hystart: int = 0
    era: int = wc.ERA_ALL_ROUNDS
    paced: bool = False
    start: int = wc.AT_BEGINNING
    grown_from: float = 1.0
    of_last_max: float = 0.0
    stood: float = 0.5
    min_rtt_ns: int = 0
    min_rtt_since_ns: int = 0
    rare: bool = False

    def numbers(self, mss: int, initial_window: int, tolerance: int = 0) -> npt.NDArray[np.int64]:
        """Numbers that the window kernel takes; `tolerance` is by how many segments the flight may be wrong."""
        h = np.zeros(wc.HYPOTHESIS_WIDTH, np.int64)
        h[wc.CC] = self.algorithm
        h[wc.HYSTART] = self.hystart
        h[wc.HYSTART_ERA] = self.era
        h[wc.PACED] = self.paced
        h[wc.MSS] = mss
        h[wc.TOLERANCE] = h[wc.BLUR] = tolerance
        h[wc.START] = self.start
        h[wc.GROWN_FROM] = round(self.grown_from * 1024)
        h[wc.STOOD] = round(self.stood * 1024)
        h[wc.OF_LAST_MAX] = round(self.of_last_max * 1024)
        h[wc.REMEMBERED_RTT] = self.min_rtt_ns
        h[wc.REMEMBERED_TIME] = self.min_rtt_since_ns
        h[wc.INITIAL_WINDOW] = initial_window
        return h


def hypotheses(*, begun: bool = True) -> tuple[Hypothesis, ...]:
    """All hypotheses, the most usual first: where the sends cannot tell two apart, the earlier one is taken.

    Parameters
    ----------
    begun : bool
        Whether the capture shows how the connection began.

    Examples
    --------
    >>> [h.cc for h in hypotheses()][:1]
    ['cubic']
    """
    from tracetool.reconstruct.models import bbr, cubic, reno

    if begun:
        return (*cubic.HYPOTHESES, *reno.HYPOTHESES, *bbr.HYPOTHESES)
    return (*cubic.UNDER_WAY, *reno.UNDER_WAY, *bbr.UNDER_WAY)
