"""Names for the columns of the arrays that the replay kernels share: plain integers, compiled in as constants."""

from __future__ import annotations

# --- the scoreboard: one row per wire segment outstanding ------------------------------------------------------------
SEQ, END, SENT, TAGS, PREV, NEXT = 0, 1, 2, 3, 4, 5
TX_DELIVERED, TX_DELIVERED_TIME, TX_FIRST_TIME, TX_APP_LIMITED = 6, 7, 8, 9
TX_TSVAL = 10
BOARD_WIDTH = 11

#: Tags of a segment, as TCPCB_* of the kernel: SACKed, held for lost, retransmission outstanding, ever retransmitted,
#: never captured, sent before the capture began (at a time unknown), and never sent again.
SACKED, LOST, RETRANS, EVER_RETRANS, UNSEEN, STALE, ONLY_ONCE = 1, 2, 4, 8, 16, 32, 64

#: Flag of a packet that was not captured, but put back (`tracetool.kernels.missed`): beyond those that TCP has.
MISSED = 1 << 15

#: A hole in the sequence wider than this many segments is no lost frame but another part of the connection; and all
#: that the capture missed may be so many segments for each packet that it has, and those.
MAX_UNSEEN, MAX_UNSEEN_PER_PACKET = 1 << 14, 16

# --- the sender's state, without what depends on the congestion control ----------------------------------------------
HEAD, TAIL, OLDEST, NEWEST = 0, 1, 2, 3  # segments outstanding are HEAD..TAIL-1; ends of the list by time of sending
SND_UNA, SND_NXT, SND_WND, MAX_WND = 4, 5, 6, 7
SACKED_OUT, LOST_OUT, RETRANS_OUT, DELIVERED, LOST_TOTAL = 8, 9, 10, 11, 12
CA_STATE, HIGH_SEQ, UNDO_MARKER, UNDO_RETRANS, RETRANS_STAMP, FRTO = 13, 14, 15, 16, 17, 18
SRTT, MDEV, MDEV_MAX, RTTVAR, RTT_SEQ, RTO, BACKOFF = 19, 20, 21, 22, 23, 24, 25
MIN_RTT, MIN_RTT_TIME = 26, 27
RACK_TIME, RACK_END, RACK_RTT, RACK_ADVANCED = 28, 29, 30, 31
REO_STEPS, REO_PERSIST, REO_SEEN, DSACK_SEEN, REO_DELIVERED, REORDERING = 32, 33, 34, 35, 36, 37
TLP_HIGH_SEQ, TLP_RETRANS = 38, 39
HIGHEST_SACK, LAST_SENT, TIMER_START = 40, 41, 42
DELIVERED_TIME, FIRST_TX_TIME, APP_LIMITED = 43, 44, 45
RETRANSMITTED, ISN = 46, 47
LAST_TSVAL, LAST_TSVAL_TIME = 48, 49
SACK_CACHE = 50  # eight numbers: the blocks of the last ACK
OWED = 58  # segments sent again before the next captured packet of the sender, which the capture lacks
#: How far the replay has come: the next packet, and what it noted of those before.
NEXT_PACKET, EVENTS, STARTED, RUNNING, UNSEEN_SEGMENTS, SYN_SENT, SYN_TIME = 59, 60, 61, 62, 63, 64, 65
STATE_WIDTH = 66

OPEN, DISORDER, CWR_STATE, RECOVERY, LOSS = 0, 1, 2, 3, 4

# --- one row per event that can change the window: an ACK, or a timer ------------------------------------------------
KIND, PACKET, TIME = 0, 1, 2
# as it arrives, before it is processed
PIPE_BEFORE, OUT_BEFORE, UNA_BEFORE, NXT_BEFORE, WND_BEFORE = 3, 4, 5, 6, 7
SRTT_BEFORE, RTTVAR_BEFORE, MIN_RTT_BEFORE, STATE_BEFORE, SACKED_BEFORE, LOST_BEFORE = 8, 9, 10, 11, 12, 13
DELIVERED_BEFORE, RETRANSMITTED_BEFORE = 14, 15
# what it did
ACKED, NEWLY_DELIVERED, NEWLY_LOST, FLAGS, OPS, CA_RTT, PIPE, STATE_AFTER, UNA, RTO_AFTER = (
    16,
    17,
    18,
    19,
    20,
    21,
    22,
    23,
    24,
    25,
)
# what was sent until the next one
PIPE_SENT, OUT_SENT, SENT_NEW, SENT_AGAIN, FIRST_SEND, LAST_SEND, NXT, ROOM, IDLE, SHORT = (
    26,
    27,
    28,
    29,
    30,
    31,
    32,
    33,
    34,
    35,
)
# the rate sample it yields
RS_DELIVERED, RS_INTERVAL, RS_PRIOR_DELIVERED, RS_APP_LIMITED, SRTT_AFTER, MIN_RTT_AFTER = 36, 37, 38, 39, 40, 41
EVENT_WIDTH = 42

#: The last is an ACK that the capture lacks.
ON_ACK, ON_RTO, ON_REORDER_TIMER, ON_MISSED_ACK = 0, 1, 2, 3

#: Flags of an event: snd_una advanced, data acknowledged, ECN echo, the window may grow (tcp_may_raise_cwnd).
ADVANCED, DATA_ACKED, ECHO, MAY_RAISE = 1, 2, 4, 8

#: What an event does to the window, in the order in which it is done.
OP_TLP_LOSS, OP_UNDO, OP_EXIT, OP_UNDO_LATE, OP_CWR, OP_RECOVERY, OP_RTO, OP_RTO_REDUCE = 1, 2, 4, 8, 16, 32, 64, 128
OP_REDUCTIONS = OP_TLP_LOSS | OP_CWR | OP_RECOVERY | OP_RTO_REDUCE  # each sets a new threshold

# --- what the replay says of each packet -----------------------------------------------------------------------------
NOT_AGAIN, BY_UNKNOWN, BY_FAST, BY_RTO, BY_TLP = 0, 1, 2, 3, 4

# --- scratch of one ACK ----------------------------------------------------------------------------------------------
FIRST_SACKED, LAST_SACKED, SACK_DELIVERED, REORD, DATA_SACKED, ORIGINAL, DSACKED, DSACK_TLP = 0, 1, 2, 3, 4, 5, 6, 7
FIRST_ACKED, LAST_ACKED, PACKETS_ACKED, RETRANS_ACKED, PRIOR_TIME, PRIOR_DELIVERED = 8, 9, 10, 11, 12, 13
SAMPLE_INTERVAL, SAMPLE_APP_LIMITED, SAMPLE_END, UNSEEN_ACKED = 14, 15, 16, 17
SCRATCH_WIDTH = 18

#: tcp_max_reordering, tcp_reordering, TCP_RACK_RECOVERY_THRESH.
MAX_REORDERING, DUPLICATE_ACKS, REO_RECOVERIES = 300, 3, 16
