"""Senders of a batch of flows, replayed from their packets as far as the congestion control does not matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels import replay_columns as rc
from tracetool.kernels import senders as ks
from tracetool.reconstruct.memory import empty

if TYPE_CHECKING:
    import numpy.typing as npt

    from tracetool.reconstruct.batch import Batch

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What the replay found; one entry per sender unless said otherwise.

    Attributes
    ----------
    events
        ``(n, EVENT_WIDTH)``: rows from `tracetool.kernels.replay`, of one sender after the other.
    at
        Where the events of each begin, and their number.
    mss
        Payload of a full segment, bytes.
    begun, stamped, scaled
        Whether the capture holds the sender's SYN; whether packets of the flow bear timestamps; whether the receiver
        advertised a window whose scale is known.
    window_raw
        Of each event: the window field of its packet, -1 unknown.
    again, again_segments
        Of each packet of the batch: why it was sent again (BY_* of `replay_columns`, 0: it was not), and how many of
        its segments were.
    """

    events: Ints
    at: Ints
    mss: Ints
    begun: Flags
    stamped: Flags
    scaled: Flags
    window_raw: Ints
    again: npt.NDArray[np.int8]
    again_segments: npt.NDArray[np.int32]


def replayed(batch: Batch, copy: Flags, asked: Ints) -> Replayed:
    """Replay senders.

    Parameters
    ----------
    batch
        Packets of whole flows.
    copy
        Frames captured twice: they are left out.
    asked
        ``(senders, ASKED_WIDTH)``: which, and what is known of each, see `tracetool.kernels.senders`.

    Examples
    --------
    >>> replayed(batch, tracked.copy, asked).events.shape  # doctest: +SKIP
    (2911, 42)
    """
    flow = asked[:, ks.FLOW]
    room = 2 * int((batch.bounds[flow + 1] - batch.bounds[flow]).sum()) + 2
    events = empty((room, rc.EVENT_WIDTH))  # what is not written to takes no memory
    at = np.zeros(len(asked) + 1, np.int64)
    found = np.zeros((len(asked), ks.FOUND_WIDTH), np.int64)
    raw = empty(room)
    again, again_segments = np.zeros(len(batch), np.int8), np.zeros(len(batch), np.int32)
    ks.replay_senders(
        batch.bounds, batch.columns, batch.way, batch.flags, batch.sack_at, batch.sacks, copy.view(np.uint8), asked,
        events, at, found, raw, again, again_segments,
    )  # fmt: skip
    rows = int(at[-1])
    begun, stamped, scaled = (found[:, column] != 0 for column in (ks.BEGUN, ks.STAMPED, ks.SCALED))
    return Replayed(
        events[:rows], at, found[:, ks.SEGMENT].copy(), begun, stamped, scaled, raw[:rows], again, again_segments
    )
