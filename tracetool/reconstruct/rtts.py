"""Round-trip time samples of a batch of flows, as rows of `rtts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tracetool.kernels import rtt_rows as kernels
from tracetool.reconstruct.batch import DIRECTIONS
from tracetool.reconstruct.samples import dictionary, unless_negative

if TYPE_CHECKING:
    from tracetool.reconstruct.batch import Batch
    from tracetool.reconstruct.tracking import Tracked

#: By the numbers of `kernels.rtt_rows`.
METHODS = ("ack", "handshake", "timestamp")


def rtts(batch: Batch, tracked: Tracked) -> pa.Table:
    """Samples by acknowledgement (Karn's rule, RFC 6298), of the handshake, and by timestamps (RFC 7323).

    Parameters
    ----------
    batch
        Packets of whole flows.
    tracked
        What the kernels found in them.

    Returns
    -------
    pyarrow.Table
        Columns of `rtts` without `input`, sorted by flow, direction, time and method. `rtt_ns` is the time from the
        capture to the receiver and back. A timestamp is timed from the first packet that bears it to the first ACK that
        echoes it.

    Examples
    --------
    >>> rtts(batch, tracked)["method"].unique().to_list()  # doctest: +SKIP
    ['ack', 'handshake', 'timestamp']
    """
    packet, key = np.empty(2 * len(batch), np.int64), np.empty(2 * len(batch), np.int64)
    rows = kernels.rtt_rows(
        batch.bounds, batch.way, batch.time, batch.flags, tracked.rtt, tracked.rtt_seq, tracked.rtt_ticks, packet, key
    )
    flow, words = np.empty(rows, np.int32), np.empty((kernels.WORDS, rows), np.int8)
    numbers = np.empty((kernels.NUMBERS, rows), np.int64)
    kernels.rtt_columns(
        packet[:rows], key[:rows], batch.flows, batch.flow, batch.way, batch.time, tracked.rtt, tracked.rtt_seq,
        tracked.rtt_ticks, flow, words, numbers,
    )  # fmt: skip
    return pa.table(
        {
            "flow": pa.array(flow),
            "direction": dictionary(words[kernels.R_WAY], DIRECTIONS),
            "time": pa.array(numbers[kernels.R_TIME]).view(pa.timestamp("ns", "UTC")),
            "rtt_ns": pa.array(numbers[kernels.R_RTT]),
            "method": dictionary(words[kernels.R_METHOD], METHODS),
            "seq": unless_negative(numbers[kernels.R_SEQ]),
        }
    )
