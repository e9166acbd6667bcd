"""Where senders were in slow start, and where they reduced their windows, by what was replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels._jit import kernel
from tracetool.kernels.replay_columns import (
    CWR_STATE,
    DELIVERED_BEFORE,
    DISORDER,
    NEWLY_LOST,
    OP_CWR,
    OP_RECOVERY,
    OP_RTO,
    OP_TLP_LOSS,
    OP_UNDO,
    OP_UNDO_LATE,
    OPS,
    RECOVERY,
    RS_APP_LIMITED,
    RS_DELIVERED,
    SRTT_AFTER,
    STATE_AFTER,
    TIME,
)
from tracetool.kernels.replay_window import OUT_CWND_AFTER, OUT_MODE, OUT_SSTHRESH_AFTER
from tracetool.kernels.rounds import count_rounds
from tracetool.kernels.window_choice import BEST
from tracetool.kernels.window_columns import BBR, CC, STARTUP

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


#: Columns of a span of slow start, and of a reduction.
SENDER, FIRST, LAST, ROUNDS, DELIVERED, ELAPSED, SPAN_WIDTH = range(7)
BEGIN, END, LOST, UNDONE, REDUCTION_WIDTH = range(1, 6)
MAX_ROUNDS = 1000
#: The delivery rate after an exit is taken over at least this many round trips.
RATE_ROUNDS = 4
REDUCE = OP_RECOVERY | OP_CWR | OP_RTO | OP_TLP_LOSS


@bare_kernel
def event_at(events: Ints, time: int) -> int:
    """The first event that is not before a time."""
    low, high = 0, events.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if events[middle, TIME] < time:
            low = middle + 1
        else:
            high = middle
    return low


@bare_kernel
def fastest_stretch(events: Ints, first: int, last: int, span: int) -> tuple[int, int]:
    """What was delivered, and in how long, where that was fastest over at least a span of time.

    A stretch counts if the sender had enough to send for most of it: else it delivers what the application gives, not
    what the path takes. (The kernel marks such rate samples for BBR, ``tcp_rate_check_app_limited``.)
    """
    delivered, elapsed, best = 0, 0, 0.0
    rated, limited, low = 0, 0, first
    for r in range(first + 1, last + 1):
        if events[r - 1, RS_DELIVERED] > 0:
            rated += 1
            limited += events[r - 1, RS_APP_LIMITED] != 0
        while low + 1 < r and events[r, TIME] - events[low + 1, TIME] >= span:
            if events[low, RS_DELIVERED] > 0:
                rated -= 1
                limited -= events[low, RS_APP_LIMITED] != 0
            low += 1
        took = events[r, TIME] - events[low, TIME]
        much = events[r, DELIVERED_BEFORE] - events[low, DELIVERED_BEFORE]
        if took >= span and 2 * limited <= rated and much / took > best:
            delivered, elapsed, best = much, took, much / took
    return delivered, elapsed


@kernel
def slow_start_spans(events: Ints, at: Ints, window: Ints, table: Ints, choice: Ints, spans: Ints) -> int:
    """List the spans of slow start; one that only a reduction interrupted that was undone at once is one.

    Parameters
    ----------
    events, at, window, table, choice
        As `tracetool.kernels.window_choice.choose_all` takes and makes them.
    spans : int64, shape (n, SPAN_WIDTH)
        Out: the sender; its event after which it is in slow start, and the one after which it is no more: their number
        where there is none; the round trips between; the segments delivered, and in how many nanoseconds, where that
        was fastest afterwards, for some round trips at least, up to the next reduction or slow start: 0 where that is
        not known.

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
                spans[count, SENDER], spans[count, FIRST] = d, r - begin
                count += 1
            if slow != inside:
                spans[count - 1, LAST] = r - begin
            inside = slow
        if inside:
            spans[count - 1, LAST] = end - begin
        for k in range(before, count):
            last = min(spans[k, LAST], end - begin - 1)
            e = events[begin + last]
            spans[k, ROUNDS] = count_rounds(events[begin:end], spans[k, FIRST], last, MAX_ROUNDS)
            span = max(RATE_ROUNDS * e[SRTT_AFTER], 1)
            stop = begin + spans[k + 1, FIRST] if k + 1 < count else end - 1
            until = min(begin + max(event_at(events[begin:end], e[TIME] + span), last + 1), stop)
            while until < stop and events[until, OPS] & REDUCE == 0:
                until += 1
            spans[k, DELIVERED], spans[k, ELAPSED] = fastest_stretch(events, begin + last, until, span)
    return count


@bare_kernel
def sum_lost(events: Ints, begin: int, end: int) -> int:
    """Segments that some events held for lost."""
    lost = 0
    for r in range(begin, end):
        lost += events[r, NEWLY_LOST]
    return lost


@kernel
def reductions(events: Ints, at: Ints, found: Ints) -> int:
    """List the reductions of windows; returns their number.

    Parameters
    ----------
    events, at
        As `tracetool.kernels.window_choice.choose_all` takes them.
    found : int64, shape (n, REDUCTION_WIDTH)
        Out: the sender; the event (of all) with which one begins; the one with which the sender is open or in disorder
        again, or another begins, -1 where neither is seen; segments held for lost meanwhile; whether it was undone.
    """
    count = 0
    for d in range(len(at) - 1):
        before, end = count, at[d + 1]
        quiet = -1  # the last one
        for r in range(at[d], end):
            if events[r, OPS] & (OP_RECOVERY | OP_CWR | OP_RTO | OP_TLP_LOSS):
                found[count, SENDER], found[count, BEGIN] = d, r
                count += 1
            if events[r, STATE_AFTER] <= DISORDER:
                quiet = r
        following = end
        tail = 0  # lost from the next reduction on
        for k in range(count - 1, before - 1, -1):
            begin = found[k, BEGIN]
            ended = quiet >= begin
            lost = undone = 0
            stop = -1
            for r in range(begin, following):
                if stop < 0 or r <= stop:
                    lost += events[r, NEWLY_LOST]
                if stop < 0 and ended and events[r, STATE_AFTER] <= DISORDER:
                    stop = r
                undone |= events[r, OPS] & (OP_UNDO | OP_UNDO_LATE)
            if ended and stop < 0:  # the next one begins before it is over
                stop = following
                lost += events[stop, NEWLY_LOST]
            if following < end:  # an undo can come a moment after the state is left, with the next DSACK
                undone |= events[following, OPS] & (OP_UNDO | OP_UNDO_LATE)
            if not ended:
                lost += tail
            tail += sum_lost(events, begin, following)
            found[k, END], found[k, LOST], found[k, UNDONE] = stop, lost, undone != 0
            following = begin
    return count
