"""Episodes in the life of a sender: its slow starts with why they ended, and its recoveries from loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracetool.kernels import replay_columns as rc
from tracetool.kernels import replay_window as rw
from tracetool.kernels import window_columns as wc
from tracetool.kernels.rounds import count_rounds

if TYPE_CHECKING:
    import numpy.typing as npt

    from tracetool.reconstruct.hypotheses import Fit

    Ints = npt.NDArray[np.int64]

#: An exit below this part of the bandwidth-delay product is too early, one above the other fills a queue as deep as
#: the path is long before anything else does.
TOO_EARLY, OVERSHOOT = 0.75, 2.0
#: The delivery rate after an exit is taken over this many round trips.
RATE_ROUNDS = 4
MAX_ROUNDS = 1000


def slow_starts(events: Ints, fit: Fit, *, confidence: float) -> list[dict[str, Any]]:
    """Rows of `slow_starts` (without input, flow and direction) from the replayed window.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Events of the flow.
    fit : Fit
        The hypothesis taken, with its window.
    confidence : float
        How sure the causes are, 0 to 1.

    Returns
    -------
    list of dict
        Times in nanoseconds.
    """
    if not len(events):
        return []
    window = fit.window
    if fit.hypothesis.algorithm == wc.BBR:
        slow = window[:, rw.OUT_MODE] == wc.STARTUP
        slow = np.append(slow[1:], slow[-1])
    else:
        state = events[:, rc.STATE_AFTER]
        slow = window[:, rw.OUT_CWND_AFTER] < window[:, rw.OUT_SSTHRESH_AFTER]
        slow &= (state != rc.CWR_STATE) & (state != rc.RECOVERY)
    edges = np.flatnonzero(np.diff(slow.astype(np.int8), prepend=0, append=0))
    spans = _joined(list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)), events)
    return [_slow_start(events, fit, first, last, number, confidence) for number, (first, last) in enumerate(spans)]


def _joined(spans: list[tuple[int, int]], events: Ints) -> list[tuple[int, int]]:
    """Spans of slow start, those in one that only a reduction interrupted that was undone at once."""
    joined: list[tuple[int, int]] = []
    for first, last in spans:
        if joined and events[first, rc.OPS] & (rc.OP_UNDO | rc.OP_UNDO_LATE):
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined


def _slow_start(events: Ints, fit: Fit, first: int, last: int, number: int, confidence: float) -> dict[str, Any]:
    """One episode: `first` is its first event, `last` the one that ended it (the number of events: none did)."""
    ended = last < len(events)
    end = last if ended else len(events) - 1
    start_ops = events[first, rc.OPS]
    kind = (
        "start"
        if number == 0
        else "rto"
        if start_ops & rc.OP_RTO or events[first, rc.STATE_AFTER] == rc.LOSS
        else "idle"
    )
    cause, evidence = _exit(events, fit, end) if ended else ("none", "slow start was never left")
    min_rtt = int(events[end, rc.MIN_RTT_AFTER])
    cwnd = int(fit.window[end, rw.OUT_CWND])
    bdp = _bdp(events, end, min_rtt) if ended else None
    ratio = cwnd / bdp if bdp else None
    verdict = "no_exit" if not ended else None
    if ratio is not None:
        verdict = "too_early" if ratio < TOO_EARLY else "overshoot" if ratio > OVERSHOOT else "reasonable"
    threshold = int(fit.window[end, rw.OUT_SSTHRESH_AFTER])
    rtt = int(events[end, rc.CA_RTT])
    return {
        "episode": number,
        "kind": kind,
        "start": int(events[first, rc.TIME]),
        # as in every sample: the first ACK that finds the sender out of slow start
        "end": int(events[min(end + 1, len(events) - 1), rc.TIME]) if ended else None,
        "exit_cause": cause,
        "cwnd_exit_segments": cwnd if ended else None,
        "ssthresh_segments": threshold if ended and threshold < wc.INFINITE else None,
        "rounds": count_rounds(events, first, end, MAX_ROUNDS),
        "min_rtt_ns": min_rtt or None,
        "rtt_exit_ns": (rtt if rtt > 0 else int(events[end, rc.SRTT_AFTER]) or None) if ended else None,
        "bdp_segments": bdp,
        "exit_to_bdp": ratio,
        "verdict": verdict,
        "confidence": None if cause == "none" else confidence,
        "evidence": evidence,
    }


def _exit(events: Ints, fit: Fit, end: int) -> tuple[str | None, str]:
    """Why an episode ended at event `end`, and the evidence in words."""
    ops = int(events[end, rc.OPS])
    found = int(fit.window[end, rw.OUT_FOUND])
    row = fit.window[end]
    if found == wc.TRAIN:
        span, least = row[rw.OUT_ROUND_TIME] / 1e6, row[rw.OUT_DELAY_MIN] / 1e6
        return (
            "hystart_train",
            f"ACKs followed each other by at most 2 ms for {span:.1f} ms of the round; shortest RTT {least:.1f} ms",
        )
    if found == wc.DELAY:
        fastest, least = row[rw.OUT_ROUND_RTT] / 1e6, row[rw.OUT_DELAY_MIN] / 1e6
        return "hystart_delay", f"no RTT of the round under {fastest:.1f} ms; shortest before {least:.1f} ms"
    if found == wc.PLUS_PLUS:
        return "hystart_delay", "HyStart++: five rounds of conservative slow start after one that got slower"
    if ops & rc.OP_RTO:
        return "rto", "a retransmission timeout"
    if ops & rc.OP_CWR:
        return "ecn", "an ECN echo"
    if ops & (rc.OP_RECOVERY | rc.OP_TLP_LOSS):
        return "loss", f"recovery began with {events[end, rc.NEWLY_LOST]} segments held for lost"
    if fit.hypothesis.algorithm == wc.BBR:
        return None, "the delivery rate grew no more for three rounds"
    if row[rw.OUT_REDUCED]:
        return "app_limited", "the window was not used and decayed"
    return None, "the window reached ssthresh"


def _bdp(events: Ints, end: int, min_rtt: int) -> float | None:
    """Bandwidth-delay product, segments: delivery rate over the next round trips by the smallest RTT."""
    srtt = int(events[end, rc.SRTT_AFTER])
    if min_rtt <= 0 or srtt <= 0:
        return None
    until = int(np.searchsorted(events[:, rc.TIME], events[end, rc.TIME] + RATE_ROUNDS * srtt))
    until = min(until, len(events) - 1)
    elapsed = int(events[until, rc.TIME] - events[end, rc.TIME])
    delivered = int(events[until, rc.DELIVERED_BEFORE] - events[end, rc.DELIVERED_BEFORE])
    if elapsed < srtt or delivered <= 0:
        return None
    return delivered / elapsed * min_rtt


def recoveries(events: Ints, window: Ints) -> list[dict[str, Any]]:
    """Rows of `recoveries` (without input, flow and direction): every reduction of the window.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Events of the flow.
    window : int64, shape (n, OUT_WIDTH)
        The window under the hypothesis taken.

    Returns
    -------
    list of dict
        Times in nanoseconds.
    """
    ops = events[:, rc.OPS]
    begins = np.flatnonzero(ops & (rc.OP_RECOVERY | rc.OP_CWR | rc.OP_RTO | rc.OP_TLP_LOSS))
    quiet = np.flatnonzero(events[:, rc.STATE_AFTER] <= rc.DISORDER) if len(events) else np.zeros(0, np.int64)
    lost = np.concatenate([[0], np.cumsum(events[:, rc.NEWLY_LOST])])
    undos = np.concatenate([[0], np.cumsum((ops & (rc.OP_UNDO | rc.OP_UNDO_LATE)) != 0)])
    rows = []
    for number, begin in enumerate(begins.tolist()):
        at = int(np.searchsorted(quiet, begin))
        following = int(begins[number + 1]) if number + 1 < len(begins) else len(events)
        end = int(quiet[at]) if at < len(quiet) else None
        if end is not None and end > following:
            end = following
        # an undo can come a moment after the state is left, with the next DSACK
        late = following if end is None else min(following, len(events) - 1)
        op = int(ops[begin])
        reduced = not op & rc.OP_RTO or bool(op & rc.OP_RTO_REDUCE)  # one timeout a window reduces, the next do not
        before = int(window[begin, rw.OUT_PRIOR if reduced and window[begin, rw.OUT_PRIOR] else rw.OUT_CWND])
        after = int(window[begin, rw.OUT_SSTHRESH_AFTER])
        rows.append(
            {
                "start": int(events[begin, rc.TIME]),
                "end": int(events[end, rc.TIME]) if end is not None and end < len(events) else None,
                "kind": "rto" if op & rc.OP_RTO else "cwr" if op & rc.OP_CWR else "fast",
                "cwnd_before_segments": before,
                "ssthresh_after_segments": after if after < wc.INFINITE else None,
                "beta": after / before if reduced and after < wc.INFINITE and before else None,
                "lost_segments": int(lost[(end if end is not None else len(events) - 1) + 1] - lost[begin]),
                "undone": bool(undos[min(late + 1, len(events))] - undos[begin] > 0),
            }
        )
    return rows
