"""The list of segments a sender has outstanding, as `kernels.track` keeps it: rows of an integer array, by sequence.

Rows ``head`` to ``tail`` are in use; they follow one another without a gap: what was not seen is a row that was sent
zero times. The list is bounded: of a flow whose ACKs were never captured, the oldest segments are let go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._jit import kernel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Rows = npt.NDArray[np.int64]

#: Columns: first byte, byte after the last, time first and last sent, times sent (0: a hole), whether SACKed, and the
#: packet that sent it last (of a hole: the packet that showed it).
START, END, SENT, AGAIN, COUNT, SACKED, PACKET, FIELDS = range(8)
#: Segments outstanding that are kept: 95 MB of full-sized ones.
CAPACITY = 1 << 16
#: Rows that may be needed for one packet: two cuts for each of four SACK blocks, two for its data, holes and the data.
SPARE = 16
#: A cut moves all rows above it; a list that would have to move more (nobody but an attacker's does) stays uncut.
LONGEST_MOVE = 1 << 13


@kernel
def find(rows: Rows, head: int, tail: int, seq: int) -> int:
    """Index of the first segment that ends above a sequence number."""
    low, high = head, tail
    while low < high:
        middle = (low + high) >> 1
        if rows[middle, END] > seq:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def cut(rows: Rows, tail: int, index: int, seq: int) -> int:
    """Cut a segment in two at a sequence number inside it; returns the new tail."""
    if tail - index > LONGEST_MOVE or not rows[index, START] < seq < rows[index, END]:
        return tail
    for row in range(tail, index, -1):
        for column in range(FIELDS):
            rows[row, column] = rows[row - 1, column]
    rows[index, END] = seq
    rows[index + 1, START] = seq
    return tail + 1


@kernel
def append(rows: Rows, tail: int, start: int, end: int, time: int, count: int, packet: int) -> int:
    """Add a segment at the end; returns the new tail."""
    rows[tail, START] = start
    rows[tail, END] = end
    rows[tail, SENT] = time
    rows[tail, AGAIN] = time
    rows[tail, COUNT] = count
    rows[tail, SACKED] = 0
    rows[tail, PACKET] = packet
    return tail + 1


@kernel
def make_room(rows: Rows, head: int, tail: int) -> tuple[int, int]:
    """Move the list to the front where its end is near; a full one loses its oldest quarter."""
    if tail + SPARE <= len(rows):
        return head, tail
    if tail - head > len(rows) - len(rows) // 4:
        head += len(rows) // 4
    for row in range(head, tail):
        for column in range(FIELDS):
            rows[row - head, column] = rows[row, column]
    return 0, tail - head
