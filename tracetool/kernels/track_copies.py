"""Frames captured twice: the same packet seen on two interfaces, or written twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._jit import kernel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

#: Buckets for packets seen, at most; a power of two.
BUCKETS = 1 << 12
#: Packets of one bucket that are compared; more within a millisecond make none of the others a copy.
LONGEST_CHAIN = 64
#: A copy follows within this time: one host hands a packet from interface to interface.
COPY_NS = 1_000_000
SYN, WORD = 2, 0xFFFFFFFF


@kernel
def find_copies(
    bounds: Ints, time: Ints, way: Bytes, seq: Ints, ack: Ints, payload: Ints, flags: Ints, window: Ints, tsval: Ints,
    tsecr: Ints, ip_id: Ints, sack_at: Ints, sacks: Ints, bucket: Ints, before: Ints, copies: Ints, copy: Bytes,
) -> None:  # fmt: skip
    """Mark each frame that repeats an earlier one: same flow, direction and headers, within a millisecond.

    A sender gives each packet another IP identification, so equal ones tell a copy from a retransmission or a second
    duplicate ACK. Where there is none (IPv6, or 0), data within so short a time is a copy too, but for datagrams, which
    have no sequence number; a bare ACK or RST is one only if a third or more of the flow's packets that can be told are
    copies, and then no more often than those are.

    Parameters
    ----------
    bounds, time, way, seq, ack, payload, flags, window, tsval, tsecr, ip_id, sack_at, sacks
        Packets of whole flows, as `kernels.track.track` takes them; `window` as sent, unscaled.
    bucket, before, copies
        Room: `BUCKETS` long; and twice one entry per packet, the second all 0.
    copy
        Out: 1 for a copy.
    """
    for flow in range(len(bounds) - 1):
        first, last = bounds[flow], bounds[flow + 1]
        still_a = still_b = 0  # identifications that stand still tell nothing
        last_a = last_b = -1
        for i in range(first, last):
            earlier = last_a if way[i] == 0 else last_b
            if (
                earlier >= 0
                and ip_id[i] == ip_id[earlier]
                and (seq[i] != seq[earlier] or ack[i] != ack[earlier] or time[i] - time[earlier] > COPY_NS)
            ):
                if way[i] == 0:
                    still_a += 1
                else:
                    still_b += 1
            if way[i] == 0:
                last_a = i
            else:
                last_b = i
        size = 1
        while size < BUCKETS and size < last - first:
            size *= 2
        sure = found = 0
        each = 1  # copies of a packet
        for weak in range(2):
            if weak:
                if found == 0 or 3 * found < sure:
                    break
                each = max(1, (2 * found + sure - found) // (2 * (sure - found))) if sure > found else 1
            for place in range(size):
                bucket[place] = -1
            for i in range(first, last):
                told = ip_id[i] > 0 and 16 * (still_a if way[i] == 0 else still_b) <= last - first
                certain = told or (payload[i] > 0 and seq[i] >= 0) or flags[i] & SYN != 0
                if weak == 0 and certain:
                    sure += 1
                if certain == weak:
                    continue
                key = (
                    (seq[i] & WORD) * 40503 + (ack[i] & WORD) * 33829 + (ip_id[i] + 1) * 51749 + 2 * payload[i] + way[i]
                )
                place = (key ^ (key >> 17)) & (size - 1)
                j = bucket[place]
                length = 0
                while j >= 0 and time[i] - time[j] <= COPY_NS and length < LONGEST_CHAIN:
                    same = (
                        way[i] == way[j]
                        and seq[i] == seq[j]
                        and ack[i] == ack[j]
                        and payload[i] == payload[j]
                        and flags[i] == flags[j]
                        and window[i] == window[j]
                        and tsval[i] == tsval[j]
                        and tsecr[i] == tsecr[j]
                        and ip_id[i] == ip_id[j]
                        and sack_at[i + 1] - sack_at[i] == sack_at[j + 1] - sack_at[j]
                        and (weak == 0 or copies[j] < each)
                    )
                    if same:
                        for k in range(sack_at[i + 1] - sack_at[i]):
                            same = same and sacks[sack_at[i] + k] == sacks[sack_at[j] + k]
                    if same:
                        copy[i] = 1
                        copies[j] += 1
                        found += 1
                        break
                    j = before[j]
                    length += 1
                if copy[i] == 0:
                    before[i] = bucket[place]
                    bucket[place] = i
