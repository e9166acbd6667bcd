"""Names for the arrays of the window replay: what a hypothesis says, and the state of one window."""

from __future__ import annotations

# --- a hypothesis ----------------------------------------------------------------------------------------------------
CC, HYSTART, PACED, HYSTART_ERA, INITIAL_WINDOW, MSS = 0, 1, 2, 3, 4, 5
HYPOTHESIS_WIDTH = 8

RENO, CUBIC, BBR = 0, 1, 2
#: HYSTART is a mask: the ACK-train and the delay detector of Linux, and HyStart++ of RFC 9406.
TRAIN, DELAY, PLUS_PLUS = 1, 2, 4
#: HYSTART_ERA: Linux 5.6 to 6.13 begins a round only once the window has 16 segments; later ones always do.
ERA_LATE_ROUNDS, ERA_ALL_ROUNDS = 0, 1

# --- the window ------------------------------------------------------------------------------------------------------
CWND, SSTHRESH, COUNT, PRIOR_CWND, PRIOR_SSTHRESH, PRR_DELIVERED, PRR_OUT = 0, 1, 2, 3, 4, 5, 6
MAX_PACKETS_OUT, USAGE_SEQ, IS_LIMITED, CWND_USED, CWND_STAMP = 7, 8, 9, 10, 11
# CUBIC
LAST_MAX, LAST_CWND, LAST_TIME, ORIGIN, K, DELAY_MIN, EPOCH, ACK_COUNT, TCP_CWND, CNT = 12, 13, 14, 15, 16, 17, 18, 19, 20, 21
# HyStart
FOUND, ROUND_START, LAST_ACK, END_SEQ, ROUND_RTT, SAMPLES, FOUND_BY = 22, 23, 24, 25, 26, 27, 28
LAST_ROUND_RTT, CSS_BASE, CSS_ROUNDS = 29, 30, 31
# how well the hypothesis fits
FIT_GROUPS, FIT_RAISED, FIT_SURPLUS, FIT_LOWERED, FIT_DEFICIT = 32, 33, 34, 35, 36
SLACK, SLACK_SEQ = 37, 38
LOW_CWND, HIGH_CWND = 39, 40
WINDOW_WIDTH = 48

INFINITE = 0x7FFFFFFF  # TCP_INFINITE_SSTHRESH
