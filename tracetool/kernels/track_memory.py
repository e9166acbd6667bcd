"""What `kernels.track` keeps of a sender beside its outstanding segments: its clock, its RTT, what it sent again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

US = 1_000
HALF, WORD = 1 << 31, 0xFFFFFFFF  # of the timestamps' 32 bits
MOST_US = 1 << 31  # of longer times the squares would not fit
TICKS = 8192  # timestamps remembered
RECENT = 512  # retransmissions remembered for a late DSACK


@bare_kernel
def remember(ticks: Ints, oldest: int, newest: int, value: int, now: int) -> tuple[int, int]:
    """Remember when a timestamp was first sent; returns the new oldest and newest."""
    if newest == oldest or 0 < ((value - ticks[(newest - 1) % TICKS, 0]) & WORD) < HALF:
        ticks[newest % TICKS, 0] = value
        ticks[newest % TICKS, 1] = now
        newest += 1
        if newest - oldest > TICKS:
            oldest = newest - TICKS
    return oldest, newest


@bare_kernel
def answered(ticks: Ints, oldest: int, newest: int, echo: int, now: int) -> tuple[int, int]:
    """Forget timestamps up to the one that is echoed; returns the new oldest, and since when it is under way, or -1."""
    while oldest < newest and 0 < ((echo - ticks[oldest % TICKS, 0]) & WORD) < HALF:
        oldest += 1
    if oldest < newest and ticks[oldest % TICKS, 0] == echo:
        return oldest + 1, now - ticks[oldest % TICKS, 1]
    return oldest, -1


@bare_kernel
def further(before: int, after: int, least: int, mask: int) -> int:
    """How far a counter went on from one packet to another; 0 where either is not known."""
    return (after - before) & mask if before >= least and after >= least else 0


@bare_kernel
def is_older(echo: int, value: int) -> bool:
    """Whether a timestamp that is echoed is from before another one; not where either is not known."""
    return echo > 0 and value >= 0 and ((echo - value) & WORD) >= HALF


@bare_kernel
def smoothed(srtt: int, rttvar: int, sample: int) -> tuple[int, int]:
    """Take an RTT sample into the mean and the deviation (RFC 6298)."""
    if srtt == 0:
        return sample, sample // 2
    return srtt + (sample - srtt) // 8, rttvar + (abs(sample - srtt) - rttvar) // 4


@bare_kernel
def add(total: Ints, count: int, least: int, value: int) -> None:
    """Add a time to a count of them, and to the least, largest, sum and squares that stand behind one another."""
    total[least] = value if total[count] == 0 else min(total[least], value)
    total[least + 1] = max(total[least + 1], value)
    total[least + 2] += value
    total[least + 3] = min(total[least + 3] + min(value // US, MOST_US) ** 2, MOST_US**2 - 1)
    total[count] += 1


@bare_kernel
def note_again(recent: Ints, sent_again: int, start: int, end: int, packet: int, now: int) -> int:
    """Remember a retransmission; returns their new number."""
    at = sent_again % RECENT
    recent[at, 0] = start
    recent[at, 1] = end
    recent[at, 2] = packet
    recent[at, 3] = now
    return sent_again + 1


@bare_kernel
def last_again(recent: Ints, sent_again: int, left: int, right: int, kind: Bytes, wanted: int) -> int:
    """Packet that was last to send some of the bytes again and is of a kind; -1 if none is remembered."""
    for back in range(sent_again - 1, max(sent_again - RECENT, 0) - 1, -1):
        packet = recent[back % RECENT, 2]
        if recent[back % RECENT, 0] < right and recent[back % RECENT, 1] > left and kind[packet] == wanted:
            return packet
    return -1
