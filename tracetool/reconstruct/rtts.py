"""Round-trip time samples of a batch of flows, as rows of `rtts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tracetool.reconstruct.batch import DIRECTIONS
from tracetool.reconstruct.samples import dictionary, unless_negative

if TYPE_CHECKING:
    from tracetool.reconstruct.batch import Batch
    from tracetool.reconstruct.tracking import Tracked

SYN = 2
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
    opened = np.zeros((len(batch.flows), 2), bool)
    synced = batch.flags & SYN != 0
    opened[batch.flow[synced], batch.way[synced]] = True
    acked, echoed = np.flatnonzero(tracked.rtt >= 0), np.flatnonzero(tracked.rtt_ticks >= 0)
    at = np.concatenate([acked, echoed])
    data_way = 1 - batch.way[at]
    seq = np.concatenate([tracked.rtt_seq[acked], np.full(len(echoed), -1)])
    method = np.where(opened[batch.flow[at], data_way] & (seq == 1), 1, np.where(seq >= 0, 0, 2))
    rtt = np.concatenate([tracked.rtt[acked], tracked.rtt_ticks[echoed]])
    order = np.lexsort((method, batch.time[at], data_way, batch.flow[at]))
    at, seq = at[order], seq[order]
    return pa.table(
        {
            "flow": pa.array(batch.flows[batch.flow[at]].astype(np.int32)),
            "direction": dictionary(data_way[order].astype(np.int8), DIRECTIONS),
            "time": pa.array(batch.time[at]).cast(pa.timestamp("ns", "UTC")),
            "rtt_ns": pa.array(rtt[order]),
            "method": dictionary(method[order].astype(np.int8), METHODS),
            "seq": unless_negative(seq, may=True),
        }
    )
