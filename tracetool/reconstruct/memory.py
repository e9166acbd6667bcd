"""Large arrays for what is made of one batch after the other: memory is used again as soon as nobody holds it.

The system fills new memory with zeros before a process sees it, and takes back large arrays that are freed: for arrays
that live as long as one batch that is a tenth of what reconstruction costs.
"""

from __future__ import annotations

import math
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Blocks = list[npt.NDArray[np.uint8]]

#: Of smaller arrays, and larger ones, nothing is kept; nor are more blocks than this, for each thread.
LEAST_BYTES, MOST_BYTES, MOST_BLOCKS = 1 << 18, 1 << 26, 24


class _Kept(threading.local):
    """Blocks of memory of one thread, those longest not used first."""

    def __init__(self) -> None:
        self.blocks: Blocks = []


_kept = _Kept()


def empty(shape: int | tuple[int, ...], kind: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
    """As `numpy.empty`, perhaps in memory that an earlier array of this thread had, which is no more.

    Parameters
    ----------
    shape, kind
        As `numpy.empty` takes them.

    Returns
    -------
    numpy.ndarray
        Whatever was in that memory.

    Examples
    --------
    >>> empty((3, 1 << 16), np.uint8).shape
    (3, 65536)
    """
    dtype = np.dtype(kind)
    size = math.prod(np.atleast_1d(shape).tolist()) * dtype.itemsize
    if not LEAST_BYTES <= size <= MOST_BYTES:
        return np.empty(shape, dtype)
    blocks = _kept.blocks
    fits = [at for at in range(len(blocks)) if len(blocks[at]) >= size and _references(blocks, at) == _NOBODY]
    if fits:
        block = blocks.pop(min(fits, key=lambda at: len(blocks[at])))
    else:
        block = np.empty(1 << (size - 1).bit_length(), np.uint8)
    blocks.append(block)
    del blocks[:-MOST_BLOCKS]  # whoever holds one keeps it
    return block[:size].view(dtype).reshape(shape)


def _references(blocks: Blocks, at: int) -> int:
    """How many there are to a block; an array in its memory is one."""
    return sys.getrefcount(blocks[at])


_NOBODY = _references([np.empty(0, np.uint8)], 0)
