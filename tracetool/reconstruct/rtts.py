"""Round-trip time samples of a batch of flows, as rows of `rtts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tracetool.reconstruct.batch import DIRECTIONS

if TYPE_CHECKING:
    from tracetool.reconstruct.batch import Batch
    from tracetool.reconstruct.tracking import Tracked

SYN = 2
METHODS = ("handshake", "ack", "timestamp")


def rtts(batch: Batch, tracked: Tracked) -> pl.DataFrame:
    """Samples by acknowledgement (Karn's rule, RFC 6298), of the handshake, and by timestamps (RFC 7323).

    Parameters
    ----------
    batch
        Packets of whole flows.
    tracked
        What the kernels found in them.

    Returns
    -------
    polars.DataFrame
        Columns of `rtts` without `input`, sorted by flow, direction and time. `rtt_ns` is the time from the capture to
        the receiver and back. A timestamp is timed from the first packet that bears it to the first ACK that echoes it.

    Examples
    --------
    >>> rtts(batch, tracked)["method"].unique().to_list()  # doctest: +SKIP
    ['handshake', 'ack', 'timestamp']
    """
    opened = np.zeros((len(batch.flows), 2), bool)
    synced = batch.flags & SYN != 0
    opened[batch.flow[synced], batch.way[synced]] = True
    acked, echoed = np.flatnonzero(tracked.rtt >= 0), np.flatnonzero(tracked.rtt_ticks >= 0)
    at = np.concatenate([acked, echoed])
    data_way = 1 - batch.way[at]
    seq = np.concatenate([tracked.rtt_seq[acked], np.full(len(echoed), -1)])
    method = np.where(opened[batch.flow[at], data_way] & (seq == 1), 0, np.where(seq >= 0, 1, 2))
    return (
        pl.DataFrame(
            {
                "flow": batch.flows[batch.flow[at]].astype(np.int32),
                "direction": pl.Series(DIRECTIONS).gather(data_way),
                "time": batch.time[at],
                "rtt_ns": np.concatenate([tracked.rtt[acked], tracked.rtt_ticks[echoed]]),
                "method": pl.Series(METHODS).gather(method),
                "seq": seq,
            }
        )
        .sort("flow", "direction", "time", "method")
        .with_columns(
            pl.col("time").cast(pl.Datetime("ns", "UTC")),
            seq=pl.when(pl.col("seq") >= 0).then("seq"),
        )
    )
