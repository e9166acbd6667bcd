"""Where in a flow's round trip the capture stands: the time from a packet to its echo, on either side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._jit import kernel
from tracetool.kernels.track_memory import TICKS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

SYN, RST, ACK = 2, 4, 16
HALF = 1 << 31
#: A longer round trip is a step of the clock (nanoseconds).
CLOCK_STEP = 600_000_000_000
#: A round trip that the hosts' own delays may make up says nothing.
LEAST_NS = 200_000
#: Share of the round trip below which the capture stands at an end: a host takes its time to answer, too.
AT_AN_END = 8


@kernel
def find_echoes(
    bounds: Ints, time: Ints, way: Bytes, payload: Ints, flags: Ints, tsval: Ints, tsecr: Ints, skip: Bytes,
    ticks: Ints, echo: Ints, handshake: Ints,
) -> None:  # fmt: skip
    """Find the shortest time from a packet of each side to the other side's answer, at the place of the capture.

    Answers are known by the handshake (SYN, SYN-ACK, first ACK) and by timestamps: the first packet that bears a
    TSval, and the first of the other side that echoes it (Veal, Li and Lowenthal, PAM 2005; Nichols' pping). A SYN-ACK
    that is answered by data counts only where it shows the capture to stand at either end: the answer may be missing,
    and the data have waited for the application.

    Parameters
    ----------
    bounds, time, way, payload, flags, tsval, tsecr
        Packets of whole flows, as `kernels.track.track` takes them.
    skip
        1 for packets to leave out.
    ticks
        Room for timestamps, ``(TICKS, 2)``.
    echo
        Out: ``(flows, 2)``, nanoseconds from a packet of side a, and of side b, to its echo; -1 unknown.
    handshake
        Out: the same of the SYN or SYN-ACK alone, where it was sent once.
    """
    for flow in range(len(bounds) - 1):
        waited = -1  # the side whose SYN-ACK was answered by data, and nothing else of it by anything
        for side in range(2):
            oldest = newest = 0
            syn = -1
            syns = 0
            best = -1
            sure = False
            for i in range(bounds[flow], bounds[flow + 1]):
                if skip[i] or flags[i] & RST:
                    continue
                if way[i] == side:
                    if flags[i] & SYN:
                        syn = time[i]
                        syns += 1
                    if tsval[i] >= 0 and (
                        newest == oldest or 0 < ((tsval[i] - ticks[(newest - 1) % TICKS, 0]) & 0xFFFFFFFF) < HALF
                    ):
                        ticks[newest % TICKS, 0] = tsval[i]
                        ticks[newest % TICKS, 1] = time[i]
                        newest += 1
                        oldest = max(oldest, newest - TICKS)
                    continue
                if flags[i] & ACK == 0:
                    continue
                gap = -1
                answered = syn >= 0 and syns == 1
                by_data = answered and payload[i] > 0 and flags[i] & SYN == 0
                if answered:
                    gap = time[i] - syn
                    if 0 <= gap < CLOCK_STEP and not by_data:
                        handshake[flow, side] = gap
                syn = -1
                if tsecr[i] > 0 and newest > oldest:
                    while oldest < newest and 0 < ((tsecr[i] - ticks[oldest % TICKS, 0]) & 0xFFFFFFFF) < HALF:
                        oldest += 1
                    if oldest < newest and ticks[oldest % TICKS, 0] == tsecr[i]:
                        gap = time[i] - ticks[oldest % TICKS, 1]
                        by_data = False
                        oldest += 1
                if 0 <= gap < CLOCK_STEP:
                    best = gap if best < 0 else min(best, gap)
                    sure |= not by_data
            echo[flow, side] = best
            if best >= 0 and not sure:
                waited = side
        if waited >= 0:
            other = echo[flow, 1 - waited]
            if other >= LEAST_NS and echo[flow, waited] * AT_AN_END > echo[flow, waited] + other:
                echo[flow, waited] = -1
