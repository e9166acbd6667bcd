"""What `kernels.track` makes of SACK blocks, and of what they show to be missing in the capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels._jit import kernel
from tracetool.kernels.track_segments import COUNT, END, PACKET, SACKED, START, cut, find

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]


@bare_kernel
def block_of(sacks: Ints, low: int, high: int, edge: int) -> tuple[int, int]:
    """Ends of the block that begins at an edge of a packet; -1 if it has not so many."""
    if high - low >= edge + 2:
        return sacks[low + edge], sacks[low + edge + 1]
    return -1, -1


@bare_kernel
def tells_duplicate(sacks: Ints, low: int, high: int, acked: int) -> bool:
    """Whether the first block of a packet tells what came twice (DSACK, RFC 2883)."""
    if high - low < 2 or sacks[low] >= sacks[low + 1]:
        return False
    inside = high - low >= 4 and sacks[low] >= sacks[low + 2] and sacks[low + 1] <= sacks[low + 3]
    return sacks[low + 1] <= acked or inside


@bare_kernel
def without(left: int, right: int, known_left: int, known_right: int) -> tuple[int, int]:
    """What of a block an earlier one did not say already, as far as it stays one block."""
    if known_left <= left < known_right:
        left = min(known_right, right)
    if known_left < right <= known_right:
        right = max(known_left, left)
    return left, right


@bare_kernel
def note_missing(missing_at: Ints, missing: Ints, packet: int, column: int, start: int, size: int) -> None:
    """Note bytes that were sent and not captured, at the packet that showed it."""
    if missing[packet, column] == 0:
        missing_at[packet, column] = start
    missing[packet, column] += size


@kernel
def mark_sacked(
    rows: Ints, head: int, tail: int, left: int, right: int, way: Bytes, side: int, missing_at: Ints, missing: Ints
) -> int:
    """Mark segments as SACKed; what was never seen is missing. Returns the new tail."""
    index = find(rows, head, tail, left)
    if index < tail and rows[index, START] < left:
        tail = cut(rows, tail, index, left)
        index += 1
    while index < tail and rows[index, START] < right:
        if rows[index, END] > right:
            tail = cut(rows, tail, index, right)
        if not rows[index, SACKED]:
            rows[index, SACKED] = 1
            if rows[index, COUNT] == 0:
                rows[index, COUNT] = -1
                packet, size = rows[index, PACKET], rows[index, END] - rows[index, START]
                note_missing(missing_at, missing, packet, int(way[packet] != side), rows[index, START], size)
        index += 1
    return tail
