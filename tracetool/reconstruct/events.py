"""What happened to single packets of a batch of flows, as rows of `events`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tracetool.kernels import track, track_acks
from tracetool.reconstruct.batch import DIRECTIONS

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


def events(batch: Batch, tracked: Tracked) -> pl.DataFrame:
    """Retransmissions and their trigger, reordering, data not captured, duplicate and probing packets.

    Parameters
    ----------
    batch
        Packets of whole flows.
    tracked
        What the kernels found in them.

    Returns
    -------
    polars.DataFrame
        Columns of `events` without `input`, sorted by flow, direction, time and frame. A packet has one row for each
        thing it is; a retransmission that was not needed is a `spurious_retransmission`, else one by which the sender
        probed for a lost tail is a `tail_loss_probe`.

    Examples
    --------
    >>> events(batch, tracked)["kind"].value_counts()  # doctest: +SKIP
    """
    parts = [
        *(_sent(batch, tracked, code, kind) for code, kind in KINDS.items()),
        *(_rows(batch, np.flatnonzero(tracked.marks & mark), kind) for mark, kind in MARKS.items()),
        _rows(batch, np.flatnonzero(tracked.copy), "duplicate_frame", bytes_=batch.payload),
        _not_captured(batch, tracked),
    ]
    return pl.concat(parts).sort("flow", "direction", "time", "frame", "kind").with_columns(origin=pl.lit("inferred"))


def _sent(batch: Batch, tracked: Tracked, code: int, kind: str) -> pl.DataFrame:
    at = np.flatnonzero(tracked.kind == code)
    again = code in {track.RETRANSMISSION, track.SPURIOUS}
    rows = _rows(
        batch,
        at,
        kind,
        bytes_=tracked.again if again else batch.payload,
        segments=tracked.again_segments if again else batch.segments,
        trigger=tracked.trigger,
        evidence=tracked.evidence,
    )
    when = {track.OUT_OF_ORDER: "before what follows it"}.get(code, "after what follows it")
    rows = rows.with_columns(pl.col("evidence").str.replace("{}", when, literal=True))
    if code == track.RETRANSMISSION:
        rows = rows.with_columns(
            kind=pl.when(pl.col("trigger") == "tlp").then(pl.lit("tail_loss_probe")).otherwise("kind")
        )
    return rows


def _not_captured(batch: Batch, tracked: Tracked) -> pl.DataFrame:
    """Data that was acknowledged but is not in the capture; its direction is the data's, whichever packet shows it.

    Of a direction that was not captured at all, nothing is listed packet by packet.
    """
    seen = np.zeros((len(batch.flows), 2), bool)
    seen[batch.flow, batch.way] = True
    parts = []
    for column, ways in enumerate((batch.way, 1 - batch.way)):
        at = np.flatnonzero((tracked.missing[:, column] > 0) & seen[batch.flow, ways])
        rows = _rows(batch, at, "not_captured", seq=tracked.missing_at[:, column], bytes_=tracked.missing[:, column])
        parts.append(rows.with_columns(direction=pl.Series(DIRECTIONS).gather(ways[at])))
    return pl.concat(parts).with_columns(evidence=pl.lit("acknowledged, but not in the capture"))


def _rows(
    batch: Batch,
    at: Ints,
    kind: str,
    *,
    seq: Ints | None = None,
    bytes_: Ints | None = None,
    segments: Ints | None = None,
    trigger: npt.NDArray[np.uint8] | None = None,
    evidence: npt.NDArray[np.uint8] | None = None,
) -> pl.DataFrame:
    """Rows of one kind; an acknowledgement (no bytes given) is named by the number it acknowledges."""
    number = seq if seq is not None else batch.seq if bytes_ is not None else batch.ack
    size = len(at)
    return pl.DataFrame(
        {
            "flow": batch.flows[batch.flow[at]].astype(np.int32),
            "direction": pl.Series(DIRECTIONS).gather(batch.way[at]),
            "time": pl.Series(batch.time[at]).cast(pl.Datetime("ns", "UTC")),
            "frame": batch.frame[at],
            "kind": pl.Series([kind], dtype=pl.String).new_from_index(0, size),
            "trigger": _words(TRIGGERS, trigger, at),
            "seq": number[at],
            "bytes": bytes_[at] if bytes_ is not None else pl.Series([None], dtype=pl.Int64).new_from_index(0, size),
            "segments": segments[at].astype(np.int32)
            if segments is not None
            else pl.Series([None], dtype=pl.Int32).new_from_index(0, size),
            "evidence": _words(EVIDENCE, evidence, at),
        }
    )


def _words(words: tuple[str | None, ...], codes: npt.NDArray[np.uint8] | None, at: Ints) -> pl.Series:
    if codes is None:
        return pl.Series([None], dtype=pl.String).new_from_index(0, len(at))
    return pl.Series(words, dtype=pl.String).gather(codes[at])
