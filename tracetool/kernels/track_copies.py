"""Frames captured twice: the same packet seen on two interfaces, or written twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._jit import kernel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

#: Places in the table of packets seen; a power of two.
PLACES = 1 << 12
#: A copy follows within this time: one host hands a packet from interface to interface.
COPY_NS = 1_000_000
SYN, WORD = 2, 0xFFFFFFFF


@kernel
def find_copies(
    bounds: Ints, time: Ints, way: Bytes, seq: Ints, ack: Ints, payload: Ints, flags: Ints, window: Ints, tsval: Ints,
    tsecr: Ints, ip_id: Ints, sack_at: Ints, sacks: Ints, seen: Ints, copy: Bytes,
) -> None:  # fmt: skip
    """Mark each frame that repeats an earlier one: same flow, direction and headers, within a millisecond.

    A sender gives each packet another IP identification, so equal ones tell a copy from a retransmission or a second
    duplicate ACK. Where there is none (IPv6, or 0), data within so short a time is a copy too; a bare ACK is one only
    if a third or more of the flow's packets that can be told are copies.

    Parameters
    ----------
    bounds, time, way, seq, ack, payload, flags, window, tsval, tsecr, ip_id, sack_at, sacks
        Packets of whole flows, as `kernels.track.track` takes them; `window` as sent, unscaled.
    seen
        Room, `PLACES` long.
    copy
        Out: 1 for a copy.
    """
    for flow in range(len(bounds) - 1):
        first, last = bounds[flow], bounds[flow + 1]
        # identifications that stand still tell nothing
        still_a = still_b = 0
        last_a = last_b = -1
        for i in range(first, last):
            before = last_a if way[i] == 0 else last_b
            if before >= 0 and ip_id[i] == ip_id[before] and (seq[i] != seq[before] or ack[i] != ack[before]):
                if way[i] == 0:
                    still_a += 1
                else:
                    still_b += 1
            if way[i] == 0:
                last_a = i
            else:
                last_b = i
        mask = 1
        while mask < PLACES and mask < last - first:
            mask *= 2
        for place in range(mask):
            seen[place] = -1
        mask -= 1
        sure = found = 0
        for weak in range(2):
            if weak and (found == 0 or 3 * found < sure):
                break
            for i in range(first, last):
                key = (seq[i] & WORD) * 40503 + (ack[i] & WORD) * 33829 + ip_id[i] * 51749 + 2 * payload[i] + way[i]
                place = (key ^ (key >> 17)) & mask
                told = ip_id[i] > 0 and 16 * (still_a if way[i] == 0 else still_b) <= last - first
                certain = told or payload[i] > 0 or flags[i] & SYN != 0
                j = seen[place]
                same = (
                    j >= first
                    and j < i
                    and time[i] - time[j] <= COPY_NS
                    and way[i] == way[j]
                    and seq[i] == seq[j]
                    and ack[i] == ack[j]
                    and payload[i] == payload[j]
                    and flags[i] == flags[j]
                    and window[i] == window[j]
                    and tsval[i] == tsval[j]
                    and tsecr[i] == tsecr[j]
                    and ip_id[i] == ip_id[j]
                    and sack_at[i + 1] - sack_at[i] == sack_at[j + 1] - sack_at[j]
                )
                if same:
                    for k in range(sack_at[i + 1] - sack_at[i]):
                        same = same and sacks[sack_at[i] + k] == sacks[sack_at[j] + k]
                if weak == 0 and certain:
                    sure += 1
                if same and (certain or weak):
                    if copy[i] == 0:
                        copy[i] = 1
                        found += 1
                else:
                    seen[place] = i
