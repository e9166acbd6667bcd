"""Where senders were in slow start, by the windows that were replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._jit import kernel
from tracetool.kernels.replay_columns import CWR_STATE, OP_UNDO, OP_UNDO_LATE, OPS, RECOVERY, STATE_AFTER
from tracetool.kernels.replay_window import OUT_CWND_AFTER, OUT_MODE, OUT_SSTHRESH_AFTER
from tracetool.kernels.window_choice import BEST
from tracetool.kernels.window_columns import BBR, CC, STARTUP

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


@kernel
def slow_start_spans(events: Ints, at: Ints, window: Ints, table: Ints, choice: Ints, spans: Ints) -> int:
    """List the spans of slow start; one that only a reduction interrupted that was undone at once is one.

    Parameters
    ----------
    events, at, window, table, choice
        As `tracetool.kernels.window_choice.choose_all` takes and makes them.
    spans : int64, shape (n, 3)
        Out: the sender; its event after which it is in slow start, and the one after which it is no more: their number
        where there is none.

    Returns
    -------
    int
        The number of spans.
    """
    count = 0
    for d in range(len(at) - 1):
        begin, end = at[d], at[d + 1]
        before = count
        inside = False
        for r in range(begin, end):
            if table[choice[d, BEST], CC] == BBR:
                slow = window[min(r + 1, end - 1), OUT_MODE] == STARTUP
            else:
                state = events[r, STATE_AFTER]
                slow = window[r, OUT_CWND_AFTER] < window[r, OUT_SSTHRESH_AFTER]
                slow = slow and state != CWR_STATE and state != RECOVERY
            if slow and not inside and (count == before or events[r, OPS] & (OP_UNDO | OP_UNDO_LATE) == 0):
                spans[count, 0] = d
                spans[count, 1] = r - begin
                count += 1
            if slow != inside:
                spans[count - 1, 2] = r - begin
            inside = slow
        if inside:
            spans[count - 1, 2] = end - begin
    return count
