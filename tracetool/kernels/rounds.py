"""Round trips of a sender, counted by what it had sent at the start of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.replay_columns import NXT_BEFORE, UNA_BEFORE

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


@bare_kernel
def count_rounds(events: Ints, first: int, end: int, most: int) -> int:
    """Round trips from one event to another: each ends when what was sent at its start is acknowledged.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Rows from `replay`.
    first, end : int
        First and last event.
    most : int
        Count no further.
    """
    rounds = 1
    una = events[first, UNA_BEFORE]
    following = events[first, NXT_BEFORE]
    for r in range(first + 1, end + 1):
        una = max(una, events[r, UNA_BEFORE])
        if una >= following:
            if rounds >= most:
                break
            rounds += 1
            following = events[r, NXT_BEFORE]
    return rounds
