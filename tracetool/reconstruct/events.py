"""What happened to single packets of a batch of flows, as rows of `events`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tracetool.kernels import event_rows as kernels
from tracetool.reconstruct.batch import DIRECTIONS
from tracetool.reconstruct.samples import dictionary, unless_negative

if TYPE_CHECKING:
    from tracetool.reconstruct.batch import Batch
    from tracetool.reconstruct.tracking import Tracked

#: There are seldom more events than one for so many packets; else they are listed twice.
USUALLY = 4
#: By the constants of `kernels.track`.
TRIGGERS = (None, "fast", "rto", "tlp", "unknown")
EVIDENCE = (
    None,
    "the handshake was not answered",
    "later data was SACKed",
    "duplicate ACKs",
    "in recovery: sent before, and not acknowledged",
    "nothing acknowledged for a retransmission timeout",
    "after a timeout: from the lowest on",
    "the end of what was sent, again after two round trips of silence, with nothing lost before it",
    "fills a gap; by its IP identification sent {}",
    "fills a gap; by its timestamp sent {}",
    "fills a gap {}",
    "the receiver had it twice (DSACK, RFC 2883)",
    "the ACK echoes the first copy's timestamp (Eifel, RFC 3522)",
    "the receiver answered this copy with an ACK of its own that tells nothing new",
    "it was SACKed before",
    "it was acknowledged before",
    "nothing seen that asks for it",
)
#: By the numbers of `kernels.event_rows`.
KINDS = (
    "duplicate_ack", "duplicate_frame", "keep_alive", "keep_alive_ack", "not_captured", "out_of_order",
    "retransmission", "spurious_retransmission", "tail_loss_probe", "window_full", "window_probe", "window_probe_ack",
    "window_update", "zero_window",
)  # fmt: skip
_BEFORE, _AFTER = "before what follows it", "after what follows it"
#: Evidence of what was late, then of all else, then of what is missing: the words of the column.
_WORDS = (
    *((text or "").replace("{}", _AFTER) for text in EVIDENCE),
    *((text or "").replace("{}", _BEFORE) for text in EVIDENCE),
    "acknowledged, but not in the capture",
)


def events(batch: Batch, tracked: Tracked) -> pa.Table:
    """Retransmissions and their trigger, reordering, data not captured, duplicate and probing packets.

    Parameters
    ----------
    batch
        Packets of whole flows.
    tracked
        What the kernels found in them.

    Returns
    -------
    pyarrow.Table
        Columns of `events` without `input`, sorted by flow, direction, time, frame and kind; words are dictionaries. A
        packet has one row for each thing it is; a retransmission that was not needed is a `spurious_retransmission`,
        else one by which the sender probed for a lost tail is a `tail_loss_probe`.

    Examples
    --------
    >>> events(batch, tracked)["kind"].value_counts()  # doctest: +SKIP
    """
    given = (
        batch.bounds, batch.way, batch.time, batch.seq, batch.ack, batch.payload, batch.segments,
        tracked.copy.view(np.uint8), tracked.kind, tracked.trigger, tracked.evidence, tracked.again,
        tracked.again_segments, tracked.missing_at, tracked.missing, tracked.marks,
    )  # fmt: skip
    rows = np.empty((len(batch) // USUALLY + 64, kernels.ROW_WIDTH), np.int64)
    room = kernels.event_rows(*given, rows)
    if room > len(rows):
        rows = np.empty((room, kernels.ROW_WIDTH), np.int64)
        kernels.event_rows(*given, rows)
    columns = rows[:room].T.copy()
    at, evidence = columns[kernels.PACKET], columns[kernels.EVIDENCE]
    known = (evidence != 0) & (evidence != kernels.LATE)
    return pa.table(
        {
            "flow": pa.array(batch.flows.astype(np.int32)[batch.flow[at]]),
            "direction": dictionary(columns[kernels.WAY], DIRECTIONS),
            "time": pa.array(batch.time[at]).view(pa.timestamp("ns", "UTC")),
            "frame": pa.array(batch.frame[at]),
            "kind": dictionary(columns[kernels.KIND], KINDS),
            "trigger": dictionary(columns[kernels.TRIGGER] - 1, TRIGGERS[1:]),
            "seq": pa.array(columns[kernels.SEQ]),
            "bytes": unless_negative(columns[kernels.BYTES]),
            "segments": unless_negative(columns[kernels.SEGMENTS].astype(np.int32)),
            "evidence": dictionary(np.where(known, evidence, -1), _WORDS),
            "origin": dictionary(np.zeros(room, np.int8), ("inferred",)),
        }
    )
