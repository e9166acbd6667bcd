"""Twins of `tracetool.kernels.episodes`: spans of slow start and reductions of one sender, by lists of its events."""

from __future__ import annotations

from tracetool.kernels import replay_columns as rc
from tracetool.kernels import replay_window as rw

REDUCE = rc.OP_RECOVERY | rc.OP_CWR | rc.OP_RTO | rc.OP_TLP_LOSS
UNDO = rc.OP_UNDO | rc.OP_UNDO_LATE


def slow_starts(events, window, *, bbr):
    """First event of each span, and the one that ends it."""
    slow = []
    for r, (e, w) in enumerate(zip(events.tolist(), window.tolist(), strict=True)):
        if bbr:
            slow.append(window[min(r + 1, len(events) - 1), rw.OUT_MODE] == 0)
        else:
            held = e[rc.STATE_AFTER] in {rc.CWR_STATE, rc.RECOVERY}
            slow.append(w[rw.OUT_CWND_AFTER] < w[rw.OUT_SSTHRESH_AFTER] and not held)
    spans = []
    for r, now in enumerate(slow):
        if now and (r == 0 or not slow[r - 1]):
            end = next((k for k in range(r, len(slow)) if not slow[k]), len(slow))
            if spans and events[r, rc.OPS] & UNDO:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((r, end))
    return spans


def reductions(events):
    """Beginning, end (-1: not seen), segments lost, and whether it was undone, of each reduction."""
    begins = [r for r in range(len(events)) if events[r, rc.OPS] & REDUCE]
    rows = []
    for begin, following in zip(begins, [*begins, len(events)][1:], strict=True):
        quiet = [r for r in range(begin, len(events)) if events[r, rc.STATE_AFTER] <= rc.DISORDER]
        end = min(quiet[0], following) if quiet else -1
        lost = events[begin : end + 1 if quiet else len(events), rc.NEWLY_LOST].sum()
        undone = any(op & UNDO for op in events[begin : following + 1, rc.OPS].tolist())
        rows.append((begin, end, int(lost), undone))
    return rows
