"""RTT samples of a batch of flows in the order of the table `rtts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._jit import kernel
from tracetool.kernels.sorting import sort_positions

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

SYN = 2
BY_ACK, BY_HANDSHAKE, BY_TIMESTAMP = range(3)
#: Rows of the numbers of samples, and of their words; -1 is unknown.
R_TIME, R_RTT, R_SEQ, NUMBERS = range(4)
R_WAY, R_METHOD, WORDS = range(3)
#: Samples may on average be so far from their places before they are sorted in another way.
MOST_MOVES = 16


@kernel
def sort_samples(time: Ints, packet: Ints, key: Ints) -> None:
    """Sort samples that are far out of order: by time, then key, then packet."""
    count = len(packet)
    when, order = np.empty(count, np.int64), np.empty(count, np.int64)
    for i in range(count):
        when[i] = time[packet[i]]
    sort_positions(when, key, packet, order)
    packets, keys = packet.copy(), key.copy()
    for i in range(count):
        packet[i], key[i] = packets[order[i]], keys[order[i]]


@kernel
def rtt_rows(
    bounds: Ints, way: Bytes, time: Ints, flags: Ints, rtt: Ints, rtt_seq: Ints, rtt_ticks: Ints, packet: Ints,
    key: Ints,
) -> int:  # fmt: skip
    """List the samples by flow, direction of the data, time and method; returns their number.

    Parameters
    ----------
    bounds, way, time, flags
        Packets of whole flows, as `kernels.track.track` takes them.
    rtt, rtt_seq, rtt_ticks
        What `kernels.track.track` found.
    packet : int64
        Out: the packet that made each sample; room for two of each packet.
    key : int64
        Out: twice the method, and one for a sample from `rtt_ticks`. Data is numbered from 1 where the SYN was seen:
        its acknowledgement times the handshake.
    """
    at = 0
    for flow in range(len(bounds) - 1):
        opened = 0
        for i in range(bounds[flow], bounds[flow + 1]):
            if flags[i] & SYN:
                opened |= 1 << way[i]
        for side in range(2):
            begin = at
            moves = 0
            gave_up = False
            for i in range(bounds[flow], bounds[flow + 1]):
                if way[i] == side:
                    continue
                for echo in range(2):
                    if (rtt_ticks[i] if echo else rtt[i]) < 0:
                        continue
                    method = BY_TIMESTAMP
                    if not echo and rtt_seq[i] == 1 and opened >> side & 1:
                        method = BY_HANDSHAKE
                    elif not echo and rtt_seq[i] >= 0:
                        method = BY_ACK
                    mine = 2 * method + echo
                    k = at
                    gave_up |= moves > MOST_MOVES * (at - begin + 64)
                    if not gave_up:
                        while k > begin and (
                            time[packet[k - 1]] > time[i] or (time[packet[k - 1]] == time[i] and key[k - 1] > mine)
                        ):
                            packet[k], key[k] = packet[k - 1], key[k - 1]
                            k -= 1
                        moves += at - k
                    packet[k], key[k] = i, mine
                    at += 1
            if gave_up:
                sort_samples(time, packet[begin:at], key[begin:at])
    return at


@kernel
def rtt_columns(
    packet: Ints, key: Ints, flows: Ints, flow_of: Ints, way: Bytes, time: Ints, rtt: Ints, rtt_seq: Ints,
    rtt_ticks: Ints, flow: npt.NDArray[np.int32], words: npt.NDArray[np.int8], numbers: Ints,
) -> None:  # fmt: skip
    """Make columns of the samples that `rtt_rows` lists.

    Parameters
    ----------
    packet, key, way, time, rtt, rtt_seq, rtt_ticks
        As above.
    flows, flow_of
        Numbers of the flows; of each packet, which it is.
    flow, words : shape (WORDS, rows), numbers : shape (NUMBERS, rows)
        Out.
    """
    for k in range(len(packet)):
        i, echoed = packet[k], key[k] & 1
        flow[k] = flows[flow_of[i]]
        words[R_WAY, k] = 1 - way[i]
        words[R_METHOD, k] = key[k] >> 1
        numbers[R_TIME, k] = time[i]
        numbers[R_RTT, k] = rtt_ticks[i] if echoed else rtt[i]
        numbers[R_SEQ, k] = -1 if echoed else rtt_seq[i]
