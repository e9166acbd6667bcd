"""Names for the arrays of the window replay: what a hypothesis says, and the state of one window."""

from __future__ import annotations

# --- a hypothesis ----------------------------------------------------------------------------------------------------
CC, HYSTART, PACED, HYSTART_ERA, INITIAL_WINDOW, MSS, START, TOLERANCE = 0, 1, 2, 3, 4, 5, 6, 7
GROWN_FROM, OF_LAST_MAX, STOOD, REMEMBERED_RTT, REMEMBERED_TIME = 8, 9, 10, 11, 12
HELD, BLUR = 13, 14
HYPOTHESIS_WIDTH = 15

RENO, CUBIC, BBR = 0, 1, 2
#: HYSTART is a mask: the ACK-train and the delay detector of Linux, and HyStart++ of RFC 9406.
TRAIN, DELAY, PLUS_PLUS = 1, 2, 4
#: HYSTART_ERA: Linux 5.6 to 6.13 begins a round only once the window has 16 segments; later ones always do.
ERA_LATE_ROUNDS, ERA_ALL_ROUNDS = 0, 1
#: TOLERANCE: segments by which the flight may be wrong, where it was not seen at the sender, and BBR's window with it;
#: BLUR: the same of any hypothesis, where it does not tell the window but the receiver's room.
#: HELD: something else than the window holds the sender back: what stays unused of it tells nothing.
#: START: the connection began in the capture, or before it: then in slow start or past it. Past it, CUBIC's epoch began
#: at the threshold, which was GROWN_FROM/1024 of the window then, and OF_LAST_MAX/1024 of its last maximum (0: none);
#: of the time for which the window stands at its size, STOOD/1024 were over. BBR remembers a smallest RTT from a time
#: before (0: none).
AT_BEGINNING, IN_SLOW_START, PAST_SLOW_START = 0, 1, 2

# --- the window ------------------------------------------------------------------------------------------------------
CWND, SSTHRESH, COUNT, PRIOR_CWND, PRIOR_SSTHRESH, PRR_DELIVERED, PRR_OUT = 0, 1, 2, 3, 4, 5, 6
MAX_PACKETS_OUT, USAGE_SEQ, IS_LIMITED, CWND_USED, CWND_STAMP = 7, 8, 9, 10, 11
# CUBIC
LAST_MAX, LAST_CWND, LAST_TIME, ORIGIN, K, DELAY_MIN, EPOCH, ACK_COUNT, TCP_CWND, CNT = (
    12,
    13,
    14,
    15,
    16,
    17,
    18,
    19,
    20,
    21,
)
# HyStart
FOUND, ROUND_START, LAST_ACK, END_SEQ, ROUND_RTT, SAMPLES, FOUND_BY = 22, 23, 24, 25, 26, 27, 28
LAST_ROUND_RTT, CSS_BASE, CSS_ROUNDS = 29, 30, 31
# how well the hypothesis fits
FIT_GROUPS, FIT_SURPLUS, FIT_DEFICIT = 32, 34, 36
SLACK, SLACK_SEQ, SLACK_TIME = 37, 38, 39
# BBR: modes, gains in 1/256, bandwidth in segments per 2^24 us (three samples of a windowed maximum), times in ns
BBR_MODE, BBR_MIN_RTT, BBR_MIN_RTT_TIME, BBR_NEXT_ROUND, BBR_ROUNDS, BBR_ROUND_START = 41, 42, 43, 44, 45, 46
BBR_CONSERVE, BBR_PREVIOUS_STATE, BBR_FULL_BW, BBR_FULL_COUNT, BBR_FULL_REACHED = 47, 48, 49, 50, 51
BBR_CYCLE, BBR_CYCLE_TIME, BBR_PACING_GAIN, BBR_GAIN, BBR_RATE = 52, 53, 54, 55, 56
BBR_PROBE_RTT_DONE, BBR_PROBE_RTT_ROUND, BBR_ACK_EPOCH, BBR_ACK_EPOCH_ACKED = 57, 58, 59, 60
BBR_AGGREGATED_INDEX, BBR_AGGREGATED_ROUNDS, BBR_LIMITED_FROM, BBR_LIMITED_TO = 61, 62, 63, 64
BBR_AGGREGATED, BBR_BW = 65, 67  # two and six columns
ROUND_AT_ONCE, ROUND_SENDS, ROUND_TOP, ROUND_DRAINED, SSTHRESH_GUESSED = 73, 74, 75, 76, 77
FIT_ROUNDS, FIT_JUDGED, FIT_BURSTS, FIT_SPREAD, UNKNOWN_START, ROUND_BLOCKED, WINDOW_SHOWN = 78, 79, 80, 81, 82, 83, 84
STREAK, STREAK_SLACK = 85, 86
# how well BBR's pacing fits: sums of a slice of time, what is missed, and whether its cycle was seen to begin
PACE_SINCE, PACE_SENT, PACE_DUE, FIT_PACED, PHASE_SEEN = 87, 88, 89, 90, 91
# BBR's model of a policer: bandwidth from the long term, and the interval that it is measured over
LT_BW, LT_USED, LT_SAMPLING, LT_ROUNDS, LT_STAMP, LT_DELIVERED, LT_LOST, LT_LOST_TOTAL = 92, 93, 94, 95, 96, 97, 98, 99
#: FIT_PACED counts segments in parts of this.
PACE_UNIT = 256
PACE_ROOM, BBR_KNOWN_FROM, PRIOR_GUESSED, ROUND_SURPLUS, FIT_UNUSED = 100, 101, 102, 103, 104
# HyStart++: smallest RTT of the round before conservative slow start; and how well the first slow start fits, with the
# recovery that follows it: reductions seen, segments missed and groups of sends until the second
CSS_BEFORE, REDUCTIONS, FIT_EARLY, FIT_EARLY_GROUPS = 105, 106, 107, 108
# whether frames of several segments left the sender; round trips after which the window was lowered by what was unused;
# and whether the first slow start ended without the hypothesis seeing why
SUPER_FRAMES, FIT_STUCK, FIT_SURPRISE = 109, 110, 111
WINDOW_WIDTH = 112
#: FIT_UNUSED counts windows in parts of this.
UNUSED_UNIT = 1024

#: SSTHRESH_GUESSED: the threshold is from before the capture, and SSTHRESH stands for it, or is its lower bound.
GUESSED, AT_LEAST = 1, 2

STARTUP, DRAIN, PROBE_BW, PROBE_RTT = 0, 1, 2, 3

INFINITE = 0x7FFFFFFF  # TCP_INFINITE_SSTHRESH
