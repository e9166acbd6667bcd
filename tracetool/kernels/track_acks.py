"""What acknowledgements say besides an advance: duplicates, closed windows, answers to probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._jit import kernel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

DUPLICATE, ZERO_WINDOW, WINDOW_UPDATE, KEEP_ALIVE_ACK, WINDOW_PROBE_ACK, WINDOW_FULL, THIRD = 1, 2, 4, 8, 16, 32, 64
FIN, SYN, RST, ACK = 1, 2, 4, 16


@kernel
def read_acks(
    bounds: Ints, way: Bytes, seq: Ints, ack: Ints, payload: Ints, flags: Ints, window: Ints, window_raw: Ints,
    skip: Bytes, marks: Bytes, duplicates: Ints,
) -> None:  # fmt: skip
    """Mark acknowledgements with the meanings that Wireshark gives them (its TCP analysis).

    A duplicate ACK repeats the number of the one before, without payload and with the same window that is not closed
    (RFC 5681 asks for data outstanding as well).

    Parameters
    ----------
    bounds, way, seq, ack, payload, flags, window
        Packets of whole flows, as `kernels.track.track` takes them.
    window_raw
        Window as sent.
    skip
        1 for packets to leave out.
    marks
        Out: sum of the constants above.
    duplicates
        Out: how many duplicates in a row this one makes.
    """
    for flow in range(len(bounds) - 1):
        for side in range(2):
            # of `side`: next number to send, last ACK and window; of its peer: kind of the last packet, window, ACK
            nxt = last_ack = last_window = -1
            peer_probe = 0
            peer_nxt = peer_edge = -1
            count = 0
            for i in range(bounds[flow], bounds[flow + 1]):
                if skip[i]:
                    continue
                ends = flags[i] & (SYN | FIN | RST)
                end = seq[i] + payload[i] + (flags[i] & SYN != 0) + (flags[i] & FIN != 0)
                if way[i] != side:
                    peer_probe = 0
                    if ends == 0 and payload[i] <= 1:
                        if payload[i] == 1 and seq[i] == peer_nxt and last_window == 0:
                            peer_probe = WINDOW_PROBE_ACK
                        elif seq[i] == peer_nxt - 1:
                            peer_probe = KEEP_ALIVE_ACK
                    if peer_probe != WINDOW_PROBE_ACK:
                        peer_nxt = max(peer_nxt, end)
                    if flags[i] & ACK and window[i] >= 0:
                        peer_edge = ack[i] + window[i]
                    continue
                if window_raw[i] == 0 and ends == 0:
                    marks[i] |= ZERO_WINDOW
                if ends == 0 and payload[i] > 0 and end == peer_edge:
                    marks[i] |= WINDOW_FULL
                if flags[i] & ACK:
                    if ends == 0 and payload[i] == 0 and seq[i] == nxt and ack[i] == last_ack:
                        if window_raw[i] != last_window:
                            if window_raw[i] != 0:
                                marks[i] |= WINDOW_UPDATE
                        elif window_raw[i] == 0:
                            if peer_probe == WINDOW_PROBE_ACK:
                                marks[i] |= WINDOW_PROBE_ACK
                        elif peer_probe == KEEP_ALIVE_ACK:
                            marks[i] |= KEEP_ALIVE_ACK
                        else:
                            marks[i] |= DUPLICATE
                            count += 1
                            duplicates[i] = count
                            if count == 3:
                                marks[i] |= THIRD
                    if ack[i] != last_ack:
                        count = 0
                    last_ack = ack[i]
                last_window = window_raw[i]
                nxt = max(nxt, end)
