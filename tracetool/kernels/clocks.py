"""Timestamp clocks of TCP: 32 bits, of an unknown tick (RFC 7323)."""

from __future__ import annotations

import math

from tracetool.kernels._bare import bare_kernel

#: Ticks of timestamp clocks in use, nanoseconds: 1 us, 1 ms, 4 ms and 10 ms, 100 ms.
TICKS_NS = (1_000, 1_000_000, 4_000_000, 10_000_000, 100_000_000)


@bare_kernel
def after(clock: int, base: int) -> int:
    """Ticks since `base` of a 32-bit clock."""
    ticks = (clock - base) & 0xFFFFFFFF
    return ticks - (1 << 32) if ticks >= 1 << 31 else ticks


@bare_kernel
def nearest_tick(ticks: int, elapsed: int) -> int:
    """Tick of a clock, nanoseconds, that went on by so many, at least one, in a time."""
    best, least = TICKS_NS[0], math.inf
    for known in TICKS_NS:
        off = abs(math.log(known * ticks / max(elapsed, 1)))
        if off < least:
            best, least = known, off
    return best
