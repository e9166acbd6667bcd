"""Kernel of RTT samples from data and its acknowledgement, by Karn's rule."""

from __future__ import annotations

import numpy as np

from tracetool.kernels._jit import kernel


@kernel
def rtt_data_ack(
    is_ack: np.ndarray,
    time_ns: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    rtt_out: np.ndarray,
    counts_out: np.ndarray,
) -> None:
    """Write the RTT sample at each ACK that gives one, and count the segments that give none.

    The rows are one flow's data segments ``[start, end)`` and the ACKs coming back, in order of
    time; an ACK's number stands in ``end``. ``rtt_out`` holds -1 where there is no sample.
    ``counts_out`` is cumulative, nosample, ambiguous: the segment's end is not the ACK's number;
    an earlier segment was retransmitted after it; it was itself retransmitted (RFC 6298 section 3
    and the rules of tcptrace's rexmit.c).
    """
    size = is_ack.size
    seg_start = np.empty(size, np.int64)
    seg_end = np.empty(size, np.int64)
    seg_time = np.empty(size, np.int64)
    seg_sent = np.empty(size, np.int64)
    head = 0
    tail = 0
    highest = np.int64(-(2**62))
    for i in range(size):
        rtt_out[i] = -1
        if is_ack[i]:
            resent_at = np.int64(-(2**62))
            while head < tail and seg_end[head] <= end[i]:
                if seg_end[head] != end[i]:
                    counts_out[0] += 1
                elif seg_sent[head] > 1:
                    counts_out[2] += 1
                elif resent_at > seg_time[head]:
                    counts_out[1] += 1
                else:
                    rtt_out[i] = time_ns[i] - seg_time[head]
                if seg_sent[head] > 1:
                    resent_at = max(resent_at, seg_time[head])
                head += 1
            continue
        if start[i] < highest:
            low = head
            high = tail
            while low < high:
                middle = (low + high) // 2
                if seg_end[middle] > start[i]:
                    high = middle
                else:
                    low = middle + 1
            while low < tail and seg_start[low] < end[i]:
                seg_sent[low] += 1
                seg_time[low] = time_ns[i]
                low += 1
        if end[i] > highest:
            seg_start[tail] = max(start[i], highest)
            seg_end[tail] = end[i]
            seg_time[tail] = time_ns[i]
            seg_sent[tail] = 1
            tail += 1
            highest = end[i]
