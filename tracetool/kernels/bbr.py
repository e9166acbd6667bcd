"""BBR, version 1, as Linux has it (`tcp_bbr.c`): its model of the path, and the window it follows from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.bbr_policer import BW_UNIT, forget_policer, watch_policer
from tracetool.kernels.replay_columns import (
    CA_RTT,
    DELIVERED_BEFORE,
    LOSS,
    NEWLY_DELIVERED,
    NEWLY_LOST,
    PIPE,
    PIPE_BEFORE,
    RECOVERY,
    RS_APP_LIMITED,
    RS_DELIVERED,
    RS_INTERVAL,
    RS_PRIOR_DELIVERED,
    SRTT_AFTER,
    STATE_AFTER,
    TIME,
)
from tracetool.kernels.window_columns import (
    BBR_ACK_EPOCH,
    BBR_ACK_EPOCH_ACKED,
    BBR_AGGREGATED,
    BBR_AGGREGATED_INDEX,
    BBR_AGGREGATED_ROUNDS,
    BBR_BW,
    BBR_CONSERVE,
    BBR_CYCLE,
    BBR_CYCLE_TIME,
    BBR_FULL_BW,
    BBR_FULL_COUNT,
    BBR_FULL_REACHED,
    BBR_GAIN,
    BBR_KNOWN_FROM,
    BBR_LIMITED_FROM,
    BBR_LIMITED_TO,
    BBR_MIN_RTT,
    BBR_MIN_RTT_TIME,
    BBR_MODE,
    BBR_NEXT_ROUND,
    BBR_PACING_GAIN,
    BBR_PREVIOUS_STATE,
    BBR_PROBE_RTT_DONE,
    BBR_PROBE_RTT_ROUND,
    BBR_RATE,
    BBR_ROUND_START,
    BBR_ROUNDS,
    CWND,
    DRAIN,
    INFINITE,
    LT_BW,
    LT_USED,
    MSS,
    PRIOR_CWND,
    PROBE_BW,
    PROBE_RTT,
    SSTHRESH,
    STARTUP,
)
from tracetool.kernels.windowed_max import running_max

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

UNIT = 256  # gains are in 1/256
MOST_PRODUCT = 1 << 62  # rates and times that no path has may have larger ones
HIGH_GAIN, DRAIN_GAIN, CWND_GAIN = 739, 88, 512
BW_ROUNDS = 10
MIN_RTT_WINDOW_NS = 10_000_000_000
PROBE_RTT_NS = 200_000_000
MIN_WINDOW = 4
CYCLE = 8
INIT_CWND = 10
FULL_BW_THRESHOLD, FULL_BW_ROUNDS = 320, 3
AGGREGATION_ROUNDS, AGGREGATION_MAX_US, AGGREGATION_RESET = 5, 100_000, 1 << 20
MAX_TSO_BYTES = 65536 - 1 - 320
MIN_TSO_RATE = 1_200_000 >> 3


@bare_kernel
def bbr_start(w: Ints, now: int, delivered: int, min_rtt: int) -> None:
    """State at the start of the connection (`bbr_init`)."""
    w[BBR_MODE] = STARTUP
    w[BBR_MIN_RTT] = min_rtt
    w[BBR_MIN_RTT_TIME] = now
    w[BBR_NEXT_ROUND] = delivered
    w[BBR_ACK_EPOCH] = now
    w[BBR_LIMITED_FROM] = 1
    w[BBR_LIMITED_TO] = 0
    w[BBR_GAIN] = HIGH_GAIN
    w[BBR_PACING_GAIN] = HIGH_GAIN
    w[BBR_RATE] = 0


@bare_kernel
def max_bw(w: Ints) -> int:
    """Largest delivery rate of the last ten rounds."""
    return w[BBR_BW + 1]


@bare_kernel
def quantum(w: Ints, h: Ints) -> int:
    """Segments that leave at a time (`bbr_tso_segs_goal`)."""
    return min(max(min(w[BBR_RATE] >> 10, MAX_TSO_BYTES) // h[MSS], 1 if w[BBR_RATE] < MIN_TSO_RATE else 2), 127)


@bare_kernel
def bandwidth(w: Ints) -> int:
    """Bandwidth that is reckoned with: of a policer where one is (`bbr_bw`)."""
    return w[LT_BW] if w[LT_USED] else max_bw(w)


@bare_kernel
def budget(w: Ints, h: Ints, segments: int) -> int:
    """Room for what offloads and delayed ACKs need (`bbr_quantization_budget`)."""
    segments = (segments + 3 * quantum(w, h) + 1) & ~1
    if w[BBR_MODE] == PROBE_BW and w[BBR_CYCLE] == 0:
        segments += 2
    return segments


@bare_kernel
def bdp(w: Ints, bw: int, gain: int) -> int:
    """Bandwidth-delay product times a gain, segments (`bbr_bdp`)."""
    if w[BBR_MIN_RTT] <= 0:
        return INIT_CWND
    rtt = w[BBR_MIN_RTT] // 1000
    if float(bw) * rtt * gain > MOST_PRODUCT:
        return INFINITE
    product = (bw * rtt * gain) >> 8
    return (product + BW_UNIT - 1) // BW_UNIT


@bare_kernel
def cycle_gain(phase: int) -> int:
    """Pacing gain of a phase of PROBE_BW."""
    if phase == 0:
        return UNIT * 5 // 4
    return UNIT * 3 // 4 if phase == 1 else UNIT


@bare_kernel
def in_net(w: Ints, h: Ints, pipe: int) -> int:
    """Segments in the network when the next may leave (`bbr_packets_in_net_at_edt`, with nothing queued by pacing)."""
    return pipe + quantum(w, h) if w[BBR_PACING_GAIN] > UNIT else pipe


@bare_kernel
def start_probe_bw(w: Ints, now: int, phase: int) -> None:
    """Enter PROBE_BW (`bbr_reset_probe_bw_mode`); the kernel draws the first phase by lot."""
    w[BBR_MODE] = PROBE_BW
    w[BBR_CYCLE] = phase
    w[BBR_CYCLE_TIME] = now


@bare_kernel
def save_cwnd(w: Ints) -> None:
    """Remember the window to restore it later (`bbr_save_cwnd`)."""
    if w[BBR_PREVIOUS_STATE] < RECOVERY and w[BBR_MODE] != PROBE_RTT:
        w[PRIOR_CWND] = w[CWND]
    else:
        w[PRIOR_CWND] = max(w[PRIOR_CWND], w[CWND])


@bare_kernel
def update_bandwidth(w: Ints, h: Ints, e: Ints, delivered: int) -> None:
    """Take one delivery-rate sample; count rounds (`bbr_update_bw`)."""
    w[BBR_ROUND_START] = 0
    if e[RS_DELIVERED] < 0 or e[RS_INTERVAL] <= 0:
        return
    if e[RS_PRIOR_DELIVERED] >= w[BBR_NEXT_ROUND]:
        w[BBR_NEXT_ROUND] = delivered
        w[BBR_ROUNDS] += 1
        w[BBR_ROUND_START] = 1
        w[BBR_CONSERVE] = 0
    limited = e[RS_APP_LIMITED] != 0 or w[BBR_LIMITED_FROM] <= e[RS_PRIOR_DELIVERED] <= w[BBR_LIMITED_TO]
    if watch_policer(w, h, e, e[NEWLY_LOST], limited):
        start_probe_bw(w, e[TIME], 2)
    bw = e[RS_DELIVERED] * BW_UNIT // max(e[RS_INTERVAL] // 1000, 1)
    if e[RS_PRIOR_DELIVERED] >= w[BBR_KNOWN_FROM] and (not limited or bw >= max_bw(w)):
        running_max(w, BBR_BW, BW_ROUNDS, w[BBR_ROUNDS], bw)


@bare_kernel
def update_aggregation(w: Ints, e: Ints) -> None:
    """Measure how much more than expected is ACKed at once (`bbr_update_ack_aggregation`)."""
    acked = e[NEWLY_DELIVERED]
    if acked <= 0 or e[RS_DELIVERED] < 0 or e[RS_INTERVAL] <= 0:
        return
    if w[BBR_ROUND_START]:
        w[BBR_AGGREGATED_ROUNDS] = min(31, w[BBR_AGGREGATED_ROUNDS] + 1)
        if w[BBR_AGGREGATED_ROUNDS] >= AGGREGATION_ROUNDS:
            w[BBR_AGGREGATED_ROUNDS] = 0
            w[BBR_AGGREGATED_INDEX] = 1 - w[BBR_AGGREGATED_INDEX]
            w[BBR_AGGREGATED + w[BBR_AGGREGATED_INDEX]] = 0
    bw, elapsed = bandwidth(w), (e[TIME] - w[BBR_ACK_EPOCH]) // 1000
    expected = bw * elapsed // BW_UNIT if float(bw) * elapsed < MOST_PRODUCT else INFINITE
    if w[BBR_ACK_EPOCH_ACKED] <= expected or w[BBR_ACK_EPOCH_ACKED] + acked >= AGGREGATION_RESET:
        w[BBR_ACK_EPOCH_ACKED] = 0
        w[BBR_ACK_EPOCH] = e[TIME]
        expected = 0
    w[BBR_ACK_EPOCH_ACKED] = min(0xFFFFF, w[BBR_ACK_EPOCH_ACKED] + acked)
    extra = min(w[BBR_ACK_EPOCH_ACKED] - expected, w[CWND])
    index = BBR_AGGREGATED + w[BBR_AGGREGATED_INDEX]
    w[index] = max(w[index], extra)


@bare_kernel
def update_mode(w: Ints, h: Ints, e: Ints, delivered: int) -> None:
    """Move through STARTUP, DRAIN, PROBE_BW and PROBE_RTT (`bbr_update_model`)."""
    now = e[TIME]
    bw = max_bw(w)
    if w[BBR_MODE] == PROBE_BW:
        full = now - w[BBR_CYCLE_TIME] > w[BBR_MIN_RTT]
        gain = w[BBR_PACING_GAIN]
        pipe = in_net(w, h, e[PIPE_BEFORE])
        if gain > UNIT:
            full = full and (e[NEWLY_LOST] > 0 or pipe >= budget(w, h, bdp(w, bw, gain)))
        elif gain < UNIT:
            full = full or pipe <= budget(w, h, bdp(w, bw, UNIT))
        if full:
            w[BBR_CYCLE] = (w[BBR_CYCLE] + 1) & (CYCLE - 1)
            w[BBR_CYCLE_TIME] = now
    limited = e[RS_APP_LIMITED] != 0 or w[BBR_LIMITED_FROM] <= e[RS_PRIOR_DELIVERED] <= w[BBR_LIMITED_TO]
    if not w[BBR_FULL_REACHED] and w[BBR_ROUND_START] and not limited:
        if bw >= (w[BBR_FULL_BW] * FULL_BW_THRESHOLD) >> 8:
            w[BBR_FULL_BW] = bw
            w[BBR_FULL_COUNT] = 0
        else:
            w[BBR_FULL_COUNT] += 1
            w[BBR_FULL_REACHED] = 1 if w[BBR_FULL_COUNT] >= FULL_BW_ROUNDS else 0
    if w[BBR_MODE] == STARTUP and w[BBR_FULL_REACHED]:
        w[BBR_MODE] = DRAIN
        w[SSTHRESH] = budget(w, h, bdp(w, bw, UNIT))
    if w[BBR_MODE] == DRAIN and in_net(w, h, e[PIPE]) <= budget(w, h, bdp(w, bw, UNIT)):
        start_probe_bw(w, now, 2)
    expired = now > w[BBR_MIN_RTT_TIME] + MIN_RTT_WINDOW_NS
    rtt = e[CA_RTT]
    if rtt >= 0 and (w[BBR_MIN_RTT] <= 0 or rtt < w[BBR_MIN_RTT] or expired):
        w[BBR_MIN_RTT] = max(rtt, 1000)
        w[BBR_MIN_RTT_TIME] = now
    if expired and w[BBR_MODE] != PROBE_RTT:
        save_cwnd(w)
        w[BBR_MODE] = PROBE_RTT
        w[BBR_PROBE_RTT_DONE] = 0
        w[BBR_LIMITED_FROM] = delivered
    if w[BBR_MODE] == PROBE_RTT:
        w[BBR_LIMITED_TO] = delivered + e[PIPE]
        if w[BBR_PROBE_RTT_DONE] == 0 and e[PIPE] <= MIN_WINDOW:
            w[BBR_PROBE_RTT_DONE] = now + PROBE_RTT_NS
            w[BBR_PROBE_RTT_ROUND] = 0
            w[BBR_NEXT_ROUND] = delivered
        elif w[BBR_PROBE_RTT_DONE] > 0:
            if w[BBR_ROUND_START]:
                w[BBR_PROBE_RTT_ROUND] = 1
            if w[BBR_PROBE_RTT_ROUND] and now > w[BBR_PROBE_RTT_DONE]:
                w[BBR_MIN_RTT_TIME] = now
                w[CWND] = max(w[CWND], w[PRIOR_CWND])
                if w[BBR_FULL_REACHED]:
                    start_probe_bw(w, now, 2)
                else:
                    w[BBR_MODE] = STARTUP
    w[BBR_GAIN] = HIGH_GAIN
    if w[BBR_MODE] == STARTUP:
        w[BBR_PACING_GAIN] = HIGH_GAIN
    elif w[BBR_MODE] == DRAIN:
        w[BBR_PACING_GAIN] = DRAIN_GAIN
    elif w[BBR_MODE] == PROBE_BW:
        w[BBR_PACING_GAIN] = UNIT if w[LT_USED] else cycle_gain(w[BBR_CYCLE])
        w[BBR_GAIN] = CWND_GAIN
    else:
        w[BBR_PACING_GAIN] = UNIT
        w[BBR_GAIN] = UNIT


@bare_kernel
def set_rate(w: Ints, h: Ints, srtt: int) -> None:
    """Pacing rate, bytes per second (`bbr_set_pacing_rate`); 1 % below the bandwidth."""
    if w[BBR_RATE] == 0:  # bbr_init_pacing_rate_from_rtt
        rtt_us = max(srtt // 1000, 1) if srtt > 0 else 1000
        bw = w[CWND] * BW_UNIT // rtt_us
        w[BBR_RATE] = (((bw * h[MSS]) * HIGH_GAIN >> 8) * 990_000) >> 24
    rate = (((bandwidth(w) * h[MSS]) * w[BBR_PACING_GAIN] >> 8) * 990_000) >> 24
    if w[BBR_FULL_REACHED] or rate > w[BBR_RATE]:
        w[BBR_RATE] = rate


@bare_kernel
def bbr_react(w: Ints, h: Ints, e: Ints) -> None:
    """Process one ACK (`bbr_main`)."""
    delivered = e[DELIVERED_BEFORE] + e[NEWLY_DELIVERED]
    acked = e[NEWLY_DELIVERED]
    state = e[STATE_AFTER]
    if state >= RECOVERY and w[BBR_PREVIOUS_STATE] < RECOVERY:
        save_cwnd(w)  # ssthresh() is asked when recovery begins
    update_bandwidth(w, h, e, delivered)
    update_aggregation(w, e)
    update_mode(w, h, e, delivered)
    set_rate(w, h, e[SRTT_AFTER])
    cwnd = w[CWND]
    if acked > 0:
        # bbr_set_cwnd_to_recover_or_restore
        previous = w[BBR_PREVIOUS_STATE]
        if e[NEWLY_LOST] > 0:
            cwnd = max(cwnd - e[NEWLY_LOST], 1)
        if state == RECOVERY and previous != RECOVERY:
            w[BBR_CONSERVE] = 1
            w[BBR_NEXT_ROUND] = delivered
            cwnd = e[PIPE] + acked
        elif previous >= RECOVERY and state < RECOVERY:
            cwnd = max(cwnd, w[PRIOR_CWND])
            w[BBR_CONSERVE] = 0
        w[BBR_PREVIOUS_STATE] = state
        if w[BBR_CONSERVE]:
            cwnd = max(cwnd, e[PIPE] + acked)
        else:
            target = bdp(w, bandwidth(w), w[BBR_GAIN])
            if w[BBR_FULL_REACHED]:
                most = bandwidth(w) * AGGREGATION_MAX_US // BW_UNIT
                target += min(max(w[BBR_AGGREGATED], w[BBR_AGGREGATED + 1]), most)
            target = budget(w, h, target)
            if w[BBR_FULL_REACHED]:
                cwnd = min(cwnd + acked, target)
            elif cwnd < target or delivered < INIT_CWND:
                cwnd = cwnd + acked
            cwnd = max(cwnd, MIN_WINDOW)
    w[CWND] = cwnd
    if w[BBR_MODE] == PROBE_RTT:
        w[CWND] = min(cwnd, MIN_WINDOW)


@bare_kernel
def bbr_timeout(w: Ints, h: Ints, e: Ints) -> None:
    """Set the window after a timeout (`bbr_set_state`, `tcp_enter_loss`)."""
    save_cwnd(w)
    w[BBR_PREVIOUS_STATE] = LOSS
    w[BBR_FULL_BW] = 0
    w[BBR_ROUND_START] = 1  # a timeout ends a round, with a loss
    watch_policer(w, h, e, 1, False)
    w[CWND] = e[PIPE] + 1


@bare_kernel
def bbr_undo(w: Ints, e: Ints) -> None:
    """Take note that a reduction was undone (`bbr_undo_cwnd`): there is a new chance to find more bandwidth."""
    w[BBR_FULL_BW] = 0
    w[BBR_FULL_COUNT] = 0
    forget_policer(w, e[TIME], e[DELIVERED_BEFORE] + e[NEWLY_DELIVERED])
