"""How much data was outstanding, as seen at the capture: what tcptrace calls owin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._jit import kernel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]
    Floats = npt.NDArray[np.float64]

MOST, LEAST, SUM, COUNT, BYTE_TIME, INITIAL_BYTES, INITIAL_PACKETS, SYN_AT, FIN_AT, FIELDS = range(10)
FIN, SYN, RST, ACK = 1, 2, 4, 16


@kernel
def measure_window(
    bounds: Ints, time: Ints, way: Bytes, seq: Ints, ack: Ints, payload: Ints, flags: Ints, skip: Bytes, out: Floats
) -> None:
    """Measure the data sent and not acknowledged: from the highest byte sent to the highest ACK.

    Parameters
    ----------
    bounds, time, way, seq, ack, payload, flags
        Packets of whole flows, as `kernels.track.track` takes them.
    skip
        1 for packets to leave out.
    out
        Out: ``(flows, 2, FIELDS)``: most and least (not 0) bytes outstanding, their sum and number over the packets
        sent but for the SYN, their integral over time (bytes times nanoseconds), bytes and packets of data before the
        first ACK of data, and the numbers of SYN and FIN (-1: not seen).
    """
    for flow in range(len(bounds) - 1):
        first, last = bounds[flow], bounds[flow + 1]
        for side in range(2):
            total = out[flow, side]
            total[SYN_AT] = total[FIN_AT] = -1
            top = edge = -1
            base = -1  # first byte of data
            before = time[first]
            outstanding = 0
            waiting = True  # no data was acknowledged yet
            for i in range(first, last):
                if skip[i] or flags[i] & RST:
                    continue
                total[BYTE_TIME] += float(outstanding) * float(time[i] - before)
                before = time[i]
                if way[i] == side:
                    end = seq[i] + payload[i]
                    if flags[i] & SYN:
                        total[SYN_AT] = seq[i]
                        end += 1
                    if flags[i] & FIN:
                        total[FIN_AT] = end
                        end += 1
                    if payload[i] > 0 and base < 0:
                        base = seq[i]
                    if end > seq[i]:
                        top = max(top, end)
                    if base >= 0 and edge > base:
                        waiting = False
                    if waiting and payload[i] > 0:
                        total[INITIAL_BYTES] += payload[i]
                        total[INITIAL_PACKETS] += 1
                    if edge < 0:
                        edge = seq[i]
                    outstanding = max(0, top - edge) if top >= 0 else 0
                    if flags[i] & SYN == 0:
                        total[SUM] += outstanding
                        total[COUNT] += 1
                elif flags[i] & ACK:
                    edge = max(edge, ack[i])
                    outstanding = max(0, top - edge) if top >= 0 else 0
                total[MOST] = max(total[MOST], outstanding)
                if outstanding > 0:
                    total[LEAST] = outstanding if total[LEAST] == 0 else min(total[LEAST], outstanding)
