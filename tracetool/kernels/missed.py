"""A capture made at the sender that lacks frames, with what it lacks put back where it must have been.

A sniffer that does not keep up misses frames that the network did not lose. The replay would take the sends that a
missed ACK let go for a larger window, and data that was never captured for data that was never sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels import missed_acks as ma
from tracetool.kernels import missed_data as md
from tracetool.kernels._jit import kernel
from tracetool.kernels.packet_records import (
    ACK,
    IP_ID,
    PAYLOAD,
    REPLAYED,
    SEGMENTS,
    SEQ,
    TIME,
    TSECR,
    TSVAL,
    WINDOW,
)
from tracetool.kernels.replay_columns import MISSED

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]
    Marks = npt.NDArray[np.uint16]
    Packets = tuple[Ints, Flags, Marks, Ints, Ints, Ints]

ACK_FLAG, ECE_FLAG = 16, 64
PLACE, LIKE, AT = ma.PLACE, ma.LIKE, ma.AT


@kernel
def insert(
    mine: Ints, outbound: Flags, marks: Marks, edges_at: Ints, edges: Ints, origin: Ints, n: int, found: Ints, rows: int
) -> Packets:
    """Put copies of some packets before others; `found` says which, where and when, in the order of the places."""
    size = n + rows
    more = np.empty((REPLAYED, size), np.int64)
    way, flags, whence = np.empty(size, np.bool_), np.empty(size, np.uint16), np.empty(size, np.int64)
    edges_begin = np.empty(size + 1, np.int64)
    blocks = np.int64(0)
    for r in range(rows):
        blocks += edges_at[found[r, LIKE] + 1] - edges_at[found[r, LIKE]]
    all_edges = np.empty(edges_at[n] + blocks, np.int64)
    at, r, edge = 0, 0, 0
    for i in range(n + 1):
        while r < rows and (found[r, PLACE] <= i or i == n):
            p = found[r, LIKE]
            for c in range(REPLAYED):
                more[c, at] = mine[c, p]
            more[TIME, at] = found[r, AT]
            way[at], flags[at], whence[at] = outbound[p], MISSED, -1
            edges_begin[at] = edge
            for k in range(edges_at[p], edges_at[p + 1]):
                all_edges[edge] = edges[k]
                edge += 1
            at += 1
            r += 1
        if i < n:
            for c in range(REPLAYED):
                more[c, at] = mine[c, i]
            way[at], flags[at], whence[at] = outbound[i], marks[i], origin[i]
            edges_begin[at] = edge
            for k in range(edges_at[i], edges_at[i + 1]):
                all_edges[edge] = edges[k]
                edge += 1
            at += 1
    edges_begin[size] = edge
    return more, way, flags, edges_begin, all_edges, whence


@kernel
def sorted_by_place(found: Ints, rows: int) -> None:
    """Sort rows that are almost in the order of their places, and times: equal ones stay as they are."""
    for r in range(1, rows):
        q = r
        while q > 0 and (
            found[q - 1, PLACE] > found[q, PLACE]
            or (found[q - 1, PLACE] == found[q, PLACE] and found[q - 1, AT] > found[q, AT])
        ):
            for c in range(found.shape[1]):
                kept = found[q, c]
                found[q, c] = found[q - 1, c]
                found[q - 1, c] = kept
            q -= 1


@kernel
def put_back(
    mine: Ints, outbound: Flags, marks: Marks, edges_at: Ints, edges: Ints, origin: Ints, n: int, mss: int, tick: int,
    sack: bool, nxt: int,
) -> tuple[Ints, Flags, Marks, Ints, Ints, Ints, int]:  # fmt: skip
    """Put what the capture of a sender lacks back where it must have been.

    No more is put back than was captured. It has the flag `MISSED`; old data that was sent again, nobody saw which, has
    no other.

    Parameters
    ----------
    mine : int64, shape (REPLAYED, room), outbound, marks, edges_at, edges
        Packets as captured at the sender, their flags, and their SACK edges.
    origin
        Where each is from.
    n : int
        Their number.
    mss : int
        Payload of a full segment, bytes.
    tick : int
        Sender's timestamp clock, nanoseconds.
    sack : bool
        Whether SACK is in use.
    nxt : int
        What lies before this number was sent before the capture began; -1 unknown.

    Returns
    -------
    tuple
        The same arrays where nothing is missing, else longer ones, in which what is put back has an `origin` of -1; and
        the number of packets.
    """
    captured = n
    found = np.empty((n, ma.ACK_WIDTH), np.int64)
    rows = ma.find_missed_acks(
        mine[TIME, :n], outbound[:n], mine[SEQ, :n], mine[ACK, :n], mine[PAYLOAD, :n], mine[SEGMENTS, :n], marks[:n],
        mine[WINDOW, :n], mine[TSVAL, :n], mine[TSECR, :n], mine[IP_ID, :n], edges, edges_at[: n + 1], mss, sack, found,
    )  # fmt: skip
    if rows:
        mine, outbound, marks, edges_at, edges, origin = insert(
            mine, outbound, marks, edges_at, edges, origin, n, found, rows
        )
        for r in range(rows):
            i = found[r, PLACE] + r
            mine[ACK, i] = found[r, ma.ACKED]
            mine[PAYLOAD, i] = mine[SEGMENTS, i] = 0
            marks[i] = MISSED | ACK_FLAG | (ECE_FLAG if found[r, ma.ECHO] else 0)
            if found[r, ma.TRIM]:
                edges[edges_at[i] + 1] -= found[r, ma.TRIM]
        n += rows
    lost = np.empty((captured - rows, md.DATA_WIDTH), np.int64)
    rows = md.find_missed_data(
        mine[TIME, :n], outbound[:n], mine[SEQ, :n], mine[ACK, :n], mine[PAYLOAD, :n], mine[SEGMENTS, :n], marks[:n],
        mine[TSVAL, :n], mine[TSECR, :n], mine[IP_ID, :n], mss, tick, nxt, lost,
    )  # fmt: skip
    if rows:
        sorted_by_place(lost, rows)
        mine, outbound, marks, edges_at, edges, origin = insert(
            mine, outbound, marks, edges_at, edges, origin, n, lost, rows
        )
        n += rows
        for r in range(rows):
            i = lost[r, PLACE] + r
            mine[SEQ, i] = lost[r, md.FIRST]
            mine[PAYLOAD, i] = lost[r, md.LENGTH] + mss * lost[r, md.AGAIN]
            mine[SEGMENTS, i] = -(-mine[PAYLOAD, i] // mss)
            if not lost[r, md.AGAIN]:
                marks[i] = MISSED | ACK_FLAG
    return mine, outbound, marks, edges_at, edges, origin, n
