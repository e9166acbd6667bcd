"""What happened to single packets of a batch of flows, as rows of `events`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tracetool.kernels import track, track_acks
from tracetool.reconstruct.batch import DIRECTIONS
from tracetool.reconstruct.samples import dictionary, unless_negative

if TYPE_CHECKING:
    import numpy.typing as npt

    from tracetool.reconstruct.batch import Batch
    from tracetool.reconstruct.tracking import Tracked

    Ints = npt.NDArray[np.int64]

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
KINDS = {
    track.RETRANSMISSION: "retransmission",
    track.SPURIOUS: "spurious_retransmission",
    track.OUT_OF_ORDER: "out_of_order",
    track.KEEP_ALIVE: "keep_alive",
    track.WINDOW_PROBE: "window_probe",
}
MARKS = {
    track_acks.DUPLICATE: "duplicate_ack",
    track_acks.ZERO_WINDOW: "zero_window",
    track_acks.WINDOW_UPDATE: "window_update",
    track_acks.WINDOW_FULL: "window_full",
    track_acks.KEEP_ALIVE_ACK: "keep_alive_ack",
    track_acks.WINDOW_PROBE_ACK: "window_probe_ack",
}


_BEFORE, _AFTER = "before what follows it", "after what follows it"
#: Evidence of what was late, then of all else, then of what is missing: the words of the column.
_LATE = len(EVIDENCE)
_WORDS = (
    *((text or "").replace("{}", _AFTER) for text in EVIDENCE),
    *((text or "").replace("{}", _BEFORE) for text in EVIDENCE),
    "acknowledged, but not in the capture",
)
_MISSING = len(_WORDS) - 1
_KINDS = sorted({*KINDS.values(), *MARKS.values(), "tail_loss_probe", "duplicate_frame", "not_captured"})
#: Columns of the numbers; -1 is unknown where that can be.
_AT, _WAY, _KIND, _TRIGGER, _SEQ, _BYTES, _SEGMENTS, _EVIDENCE = range(8)


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
    rows = np.concatenate(
        [
            *(_sent(batch, tracked, code, kind) for code, kind in KINDS.items()),
            *(_rows(batch, np.flatnonzero(tracked.marks & mark), kind) for mark, kind in MARKS.items()),
            _rows(batch, np.flatnonzero(tracked.copy), "duplicate_frame", bytes_=batch.payload),
            *_not_captured(batch, tracked),
        ],
        axis=1,
    )
    at = rows[_AT]
    order = np.lexsort((rows[_KIND], batch.frame[at], batch.time[at], rows[_WAY], batch.flow[at]))
    rows, at = rows.take(order, axis=1), at[order]
    known = (rows[_EVIDENCE] != 0) & (rows[_EVIDENCE] != _LATE)
    return pa.table(
        {
            "flow": pa.array(batch.flows[batch.flow[at]].astype(np.int32)),
            "direction": dictionary(rows[_WAY].astype(np.int8), DIRECTIONS),
            "time": pa.array(batch.time[at]).view(pa.timestamp("ns", "UTC")),
            "frame": pa.array(batch.frame[at]),
            "kind": dictionary(rows[_KIND].astype(np.int8), _KINDS),
            "trigger": dictionary(rows[_TRIGGER].astype(np.int8) - 1, TRIGGERS[1:]),
            "seq": pa.array(rows[_SEQ]),
            "bytes": unless_negative(rows[_BYTES], may=True),
            "segments": unless_negative(rows[_SEGMENTS].astype(np.int32), may=True),
            "evidence": dictionary(np.where(known, rows[_EVIDENCE], -1).astype(np.int8), _WORDS),
            "origin": dictionary(np.zeros(len(at), np.int8), ("inferred",)),
        }
    )


def _sent(batch: Batch, tracked: Tracked, code: int, kind: str) -> Ints:
    at = np.flatnonzero(tracked.kind == code)
    again = code in {track.RETRANSMISSION, track.SPURIOUS}
    rows = _rows(
        batch,
        at,
        kind,
        bytes_=tracked.again if again else batch.payload,
        segments=tracked.again_segments if again else batch.segments,
    )
    rows[_TRIGGER] = tracked.trigger[at]
    rows[_EVIDENCE] = tracked.evidence[at] + (_LATE if code == track.OUT_OF_ORDER else 0)
    if code == track.RETRANSMISSION:
        rows[_KIND, rows[_TRIGGER] == TRIGGERS.index("tlp")] = _KINDS.index("tail_loss_probe")
    return rows


def _not_captured(batch: Batch, tracked: Tracked) -> list[Ints]:
    """Data that was acknowledged but is not in the capture; its direction is the data's, whichever packet shows it.

    Of a direction that was not captured at all, nothing is listed packet by packet.
    """
    seen = np.zeros((len(batch.flows), 2), bool)
    seen[batch.flow, batch.way] = True
    parts = []
    for column in range(2):
        at = np.flatnonzero(tracked.missing[:, column] > 0)
        ways = batch.way[at] if column == 0 else 1 - batch.way[at]
        shown = seen[batch.flow[at], ways]
        at, ways = at[shown], ways[shown]
        rows = _rows(batch, at, "not_captured", bytes_=tracked.missing[:, column])
        rows[_WAY], rows[_SEQ], rows[_EVIDENCE] = ways, tracked.missing_at[at, column], _MISSING
        parts.append(rows)
    return parts


def _rows(batch: Batch, at: Ints, kind: str, *, bytes_: Ints | None = None, segments: Ints | None = None) -> Ints:
    """Rows of one kind; an acknowledgement (no bytes given) is named by the number it acknowledges."""
    rows = np.zeros((8, len(at)), np.int64)
    rows[_AT] = at
    rows[_WAY] = batch.way[at]
    rows[_KIND] = _KINDS.index(kind)
    rows[_SEQ] = (batch.ack if bytes_ is None else batch.seq)[at]
    rows[_BYTES] = -1 if bytes_ is None else bytes_[at]
    rows[_SEGMENTS] = -1 if segments is None else segments[at]
    return rows
