"""CUBIC as Linux has it (`tcp_cubic.c`, 4.x to 6.x; RFC 9438): growth, and the threshold after a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.window_columns import (
    ACK_COUNT,
    CNT,
    CWND,
    DELAY_MIN,
    EPOCH,
    FOUND,
    GROWN_FROM,
    LAST_CWND,
    LAST_MAX,
    LAST_TIME,
    OF_LAST_MAX,
    ORIGIN,
    SSTHRESH,
    STOOD,
    TCP_CWND,
    K,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

BETA, BETA_SCALE = 717, 1024
C_SCALED = 410  # C = 0.4, as bic_scale * 10 / 1024
FRIENDLY_SCALE = 15  # 8 * (1024 + 717) / 3 / (1024 - 717): tcp_cwnd grows one per 15/8 windows
CUBE_FACTOR = (1 << 40) // C_SCALED
LONGEST_NS = 1 << 52  # 52 days: no epoch lasts so long, and products of longer times would not fit
FRIENDLY_PER_ROUND = 8 / 15
SLOWEST_WITHOUT_LOSS = 20  # before any loss the window grows by a segment in 20 at least
#: A jiffy is 1, 4 or 10 ms; what Linux does once per jiffy or per HZ/32 is done at these times here.
JIFFY_NS = 4_000_000
SAME_CWND_NS = 1_000_000_000 // 32
#: Where the growth before a capture is worked out: steps of a round trip, and how many at most.
STEPS_PER_ROUND, MOST_STEPS = 4, 1 << 13


@bare_kernel
def cubic_root(a: int) -> int:
    """Largest integer whose cube is at most `a`."""
    x = int(round(float(a) ** (1.0 / 3.0)))
    while x * x * x > a:
        x -= 1
    while (x + 1) ** 3 <= a:
        x += 1
    return x


@bare_kernel
def cubic_reset(w: Ints) -> None:
    """Forget all (`bictcp_reset`): after a timeout."""
    for i in range(LAST_MAX, CNT + 1):
        w[i] = 0
    w[FOUND] = 0


@bare_kernel
def cubic_ssthresh(w: Ints) -> int:
    """Threshold after a loss: 717/1024 of the window; Wmax with fast convergence (`cubictcp_recalc_ssthresh`)."""
    w[EPOCH] = 0
    if w[CWND] < w[LAST_MAX]:
        w[LAST_MAX] = w[CWND] * (BETA_SCALE + BETA) // (2 * BETA_SCALE)
    else:
        w[LAST_MAX] = w[CWND]
    return max(w[CWND] * BETA // BETA_SCALE, 2)


@bare_kernel
def cubic_update(w: Ints, acked: int, now: int) -> None:
    """Work out how many ACKed segments the window needs to grow by one (`bictcp_update`)."""
    cwnd = w[CWND]
    w[ACK_COUNT] += acked
    if w[LAST_CWND] == cwnd and now - w[LAST_TIME] <= SAME_CWND_NS:
        return
    if not (w[EPOCH] and now - w[LAST_TIME] < JIFFY_NS):
        w[LAST_CWND] = cwnd
        w[LAST_TIME] = now
        if w[EPOCH] == 0:
            w[EPOCH] = now
            w[ACK_COUNT] = acked
            w[TCP_CWND] = cwnd
            if w[LAST_MAX] <= cwnd:
                w[K] = 0
                w[ORIGIN] = cwnd
            else:
                w[K] = cubic_root(CUBE_FACTOR * (w[LAST_MAX] - cwnd))
                w[ORIGIN] = w[LAST_MAX]
        t = min(now - w[EPOCH] + w[DELAY_MIN], LONGEST_NS) * 1024 // 1_000_000_000
        # beyond 2^17/1024 s from the plateau the cube would overflow, and the growth is at its limit anyhow
        offset = min(abs(t - w[K]), 1 << 17)
        delta = (C_SCALED * offset * offset * offset) >> 40
        target = w[ORIGIN] - delta if t < w[K] else w[ORIGIN] + delta
        w[CNT] = cwnd // (target - cwnd) if target > cwnd else 100 * cwnd
        if w[LAST_MAX] == 0 and w[CNT] > SLOWEST_WITHOUT_LOSS:
            w[CNT] = SLOWEST_WITHOUT_LOSS
    need = (cwnd * FRIENDLY_SCALE) >> 3
    if need > 0 and w[ACK_COUNT] > need:
        steps = (w[ACK_COUNT] - 1) // need
        w[ACK_COUNT] -= steps * need
        w[TCP_CWND] += steps
    if w[TCP_CWND] > cwnd:
        w[CNT] = min(w[CNT], cwnd // (w[TCP_CWND] - cwnd))
    w[CNT] = max(w[CNT], 2)


@bare_kernel
def cubic_resume(w: Ints, h: Ints, now: int, srtt: int) -> None:
    """Put an epoch that began before the capture where it must stand, if it grew the window from a given part of it.

    Grown from there at the round-trip time of now, how long did it take? In each round trip the window gains what is
    missing to the cube, to Reno's line, or before any loss a part of itself, whichever is most.
    """
    cwnd = w[CWND]
    stood = h[STOOD]
    looked_for = cwnd - 1 if stood < 0 else cwnd
    start = max(cwnd * h[GROWN_FROM] >> 10, 2)
    w[SSTHRESH] = start
    w[LAST_MAX] = -(-start * 1024 // h[OF_LAST_MAX]) if h[OF_LAST_MAX] else 0  # the kernel rounds the threshold down
    w[ORIGIN] = max(w[LAST_MAX], start)
    w[K] = cubic_root(CUBE_FACTOR * (w[ORIGIN] - start))
    grown, line, age, reached = float(start), float(start), 0, -1
    step = min(max(srtt // STEPS_PER_ROUND, 1), LONGEST_NS // MOST_STEPS)
    for _ in range(MOST_STEPS):
        if reached < 0 and grown >= looked_for:
            reached = age
        if grown >= looked_for + 1:
            break
        age += step
        offset = (age + w[DELAY_MIN]) / 1e9 - w[K] / 1024
        gain = max(w[ORIGIN] + C_SCALED / 1024 * offset**3 - grown, 0.0)
        line += FRIENDLY_PER_ROUND / STEPS_PER_ROUND
        gain = max(gain, line - grown)
        if w[LAST_MAX] == 0:
            gain = max(gain, grown / SLOWEST_WITHOUT_LOSS)
        grown += min(gain, grown / 2) / STEPS_PER_ROUND
    if reached >= 0:
        age = reached + (age - reached) * (stood + 1024 if stood < 0 else stood) // 1024
    w[EPOCH] = max(1, now - age)
    w[TCP_CWND] = min(start + int(age * FRIENDLY_PER_ROUND / max(srtt, 1)), cwnd)
    w[CNT] = 100 * cwnd


@bare_kernel
def cubic_idle(w: Ints, idle: int, now: int) -> None:
    """Time without data in flight does not count for the growth (`CA_EVENT_TX_START`)."""
    if w[EPOCH] and idle > 0:
        w[EPOCH] = min(w[EPOCH] + idle, now)
