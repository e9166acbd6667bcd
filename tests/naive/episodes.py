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


def rate_after(events, spans, number):
    """Segments and nanoseconds of the fastest stretch after a span, of those that end with each event."""
    end = min(spans[number][1], len(events) - 1)
    stop = spans[number + 1][0] if number + 1 < len(spans) else len(events) - 1
    least = 4 * events[end, rc.SRTT_AFTER]
    later = [r for r in range(end + 1, stop) if events[r, rc.TIME] >= events[end, rc.TIME] + max(least, 1)]
    reduced = [r for r in later if events[r, rc.OPS] & REDUCE]
    best, found = 0.0, (0, 0)
    for r in range(end + 1, min([*reduced[:1], stop]) + 1):
        begins = [b for b in range(end, r) if events[r, rc.TIME] - events[b, rc.TIME] >= max(least, 1)]
        if begins:
            samples = [e for e in events[begins[-1] : r].tolist() if e[rc.RS_DELIVERED] > 0]
            short = sum(e[rc.RS_APP_LIMITED] != 0 for e in samples)
            much, took = (events[r] - events[begins[-1]])[[rc.DELIVERED_BEFORE, rc.TIME]].tolist()
            if 2 * short <= len(samples) and much / took > best:
                best, found = much / took, (much, took)
    return found


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
