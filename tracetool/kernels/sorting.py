"""A sort of positions by several columns, for what is far out of order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels._jit import kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


@kernel
def sort_positions(first: Ints, second: Ints, third: Ints, order: Ints) -> None:
    """Sort positions by three columns, the first before all: a merge sort, which leaves equal ones as they are.

    Parameters
    ----------
    first, second, third
        Columns.
    order
        Out: positions in them.
    """
    count = len(order)
    other = np.empty(count, np.int64)
    for i in range(count):
        order[i] = i
    width = 1
    while width < count:
        for begin in range(0, count, 2 * width):
            middle, end = min(begin + width, count), min(begin + 2 * width, count)
            a, b = begin, middle
            for at in range(begin, end):
                later = a >= middle
                if not later and b < end:
                    p, q = order[a], order[b]
                    later = first[p] > first[q] or (
                        first[p] == first[q]
                        and (second[p] > second[q] or (second[p] == second[q] and third[p] > third[q]))
                    )
                if later:
                    other[at] = order[b]
                    b += 1
                else:
                    other[at] = order[a]
                    a += 1
        for i in range(count):
            order[i] = other[i]
        width *= 2
