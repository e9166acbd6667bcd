"""HyStart: when CUBIC leaves slow start before a loss, by the ACK train or by the delay (`hystart_update`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.window_columns import (
    COUNT,
    CSS_BASE,
    CSS_BEFORE,
    CSS_ROUNDS,
    CWND,
    DELAY,
    DELAY_MIN,
    END_SEQ,
    ERA_ALL_ROUNDS,
    FOUND,
    FOUND_BY,
    HYSTART,
    HYSTART_ERA,
    INFINITE,
    LAST_ACK,
    LAST_ROUND_RTT,
    MSS,
    PACED,
    PLUS_PLUS,
    ROUND_RTT,
    ROUND_START,
    SAMPLES,
    SSTHRESH,
    TRAIN,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

LOW_WINDOW = 16  # hystart_low_window, segments
ACK_DELTA_NS = 2_000_000  # hystart_ack_delta_us
MIN_SAMPLES = 8
DELAY_MIN_NS, DELAY_MAX_NS = 4_000_000, 16_000_000
ACK_DELAY_MAX_NS = 1_000_000
GSO_MAX_BYTES = 65536
FOREVER = 1 << 62
CSS_MOST_ROUNDS, CSS_GROWTH_DIVISOR, MOST_PER_ACK = 5, 4, 8


@bare_kernel
def hystart_reset(w: Ints, now: int, nxt: int) -> None:
    """Begin a round (`bictcp_hystart_reset`)."""
    w[ROUND_START] = now
    w[LAST_ACK] = now
    w[END_SEQ] = nxt
    w[ROUND_RTT] = FOREVER
    w[SAMPLES] = 0


@bare_kernel
def ack_delay(w: Ints, h: Ints, srtt: int, out: int) -> int:
    """How long the sender's own bursts may delay ACKs, ns (`hystart_ack_delay`)."""
    if srtt <= 0:
        return ACK_DELAY_MAX_NS
    gain = 200 if 2 * w[CWND] < w[SSTHRESH] else 120
    rate = h[MSS] * max(w[CWND], out) * gain // 100 * 1_000_000 // max(srtt // 1000, 1)  # bytes per second
    return min(ACK_DELAY_MAX_NS, 4 * GSO_MAX_BYTES * 1_000_000_000 // max(rate, 1))


@bare_kernel
def hystart_update(w: Ints, h: Ints, now: int, delay: int, una: int, nxt: int, srtt: int, out: int) -> None:
    """Test one RTT sample of slow start; where a detector fires, ssthresh becomes the window of that moment."""
    if una > w[END_SEQ] and (h[HYSTART_ERA] == ERA_ALL_ROUNDS or w[CWND] >= LOW_WINDOW):
        hystart_reset(w, now, nxt)
    if w[CWND] < LOW_WINDOW:
        return
    if h[HYSTART] & TRAIN and now - w[LAST_ACK] <= ACK_DELTA_NS:
        w[LAST_ACK] = now
        threshold = w[DELAY_MIN] + ack_delay(w, h, srtt, out)
        if not h[PACED]:
            threshold >>= 1
        if now - w[ROUND_START] > threshold:
            w[FOUND] = 1
            w[FOUND_BY] = TRAIN
            w[SSTHRESH] = w[CWND]
    if h[HYSTART] & DELAY:
        w[ROUND_RTT] = min(w[ROUND_RTT], delay)
        if w[SAMPLES] < MIN_SAMPLES:
            w[SAMPLES] += 1
        elif w[ROUND_RTT] > w[DELAY_MIN] + min(max(w[DELAY_MIN] >> 3, DELAY_MIN_NS), DELAY_MAX_NS):
            if not w[FOUND]:
                w[FOUND_BY] = DELAY
            w[FOUND] = 1
            w[SSTHRESH] = w[CWND]


@bare_kernel
def hystart_plus_update(w: Ints, now: int, delay: int, una: int, nxt: int) -> None:
    """Take one RTT sample of HyStart++ (RFC 9406): where a round got slower, slow start becomes conservative first.

    CSS_ROUNDS counts the rounds of conservative slow start from 1; after five of them slow start ends. A round that is
    faster than the one that began it takes it back. Only the first slow start is its own (section 4.3): where anything
    has lowered the threshold before, it is left alone.
    """
    if w[SSTHRESH] < INFINITE:
        return
    if una > w[END_SEQ]:
        w[LAST_ROUND_RTT] = w[ROUND_RTT]
        hystart_reset(w, now, nxt)
        if w[CSS_ROUNDS] > 0:
            w[CSS_ROUNDS] += 1
            if w[CSS_ROUNDS] > CSS_MOST_ROUNDS:
                w[FOUND] = 1
                w[FOUND_BY] = PLUS_PLUS
                w[SSTHRESH] = w[CWND]
                return
    w[ROUND_RTT] = min(w[ROUND_RTT], delay)
    w[SAMPLES] += 1
    if w[SAMPLES] < MIN_SAMPLES:
        return
    if w[CSS_ROUNDS] > 0:
        if w[ROUND_RTT] < w[CSS_BASE]:
            w[CSS_ROUNDS] = 0
    elif 0 < w[LAST_ROUND_RTT] < FOREVER:
        later = min(max(w[LAST_ROUND_RTT] >> 3, DELAY_MIN_NS), DELAY_MAX_NS)
        if w[ROUND_RTT] >= w[LAST_ROUND_RTT] + later:
            w[CSS_BASE] = w[ROUND_RTT]
            w[CSS_BEFORE] = w[LAST_ROUND_RTT]
            w[CSS_ROUNDS] = 1


@bare_kernel
def hystart_plus_growth(w: Ints, acked: int, paced: bool) -> int:
    """Segments by which HyStart++ lets slow start grow: at most eight an ACK unless paced; a quarter in CSS."""
    if w[SSTHRESH] < INFINITE:
        return acked
    if not paced:
        acked = min(acked, MOST_PER_ACK)
    if w[CSS_ROUNDS] == 0:
        return acked
    w[COUNT] += acked
    grown = w[COUNT] // CSS_GROWTH_DIVISOR
    w[COUNT] -= grown * CSS_GROWTH_DIVISOR
    return grown
