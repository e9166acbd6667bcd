"""Episodes in the life of a sender: its slow starts with why they ended, and its recoveries from loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tracetool.kernels import episodes as kernels
from tracetool.kernels import replay_columns as rc
from tracetool.kernels import replay_window as rw
from tracetool.kernels import window_columns as wc
from tracetool.reconstruct.batch import DIRECTIONS
from tracetool.reconstruct.samples import dictionary

if TYPE_CHECKING:
    import numpy.typing as npt

    from tracetool.reconstruct.sender import Inferred

    Ints = npt.NDArray[np.int64]

#: An exit below this part of the bandwidth-delay product is too early, one above the other fills a queue as deep as
#: the path is long before anything else does.
TOO_EARLY, OVERSHOOT = 0.75, 2.0


def slow_starts(found: Inferred) -> list[list[dict[str, Any]]]:
    """Rows of `slow_starts` (without input, flow and direction) of each sender, from the replayed window.

    Parameters
    ----------
    found : Inferred
        What the inference says of some senders.

    Returns
    -------
    list of list of dict
        Times in nanoseconds.
    """
    replayed, choices = found.replayed, found.choices
    spans = np.empty((len(replayed.events), kernels.SPAN_WIDTH), np.int64)
    count = kernels.slow_start_spans(replayed.events, replayed.at, choices.window, choices.table, choices.choice, spans)
    rows: list[list[dict[str, Any]]] = [[] for _ in found.cc]
    for sender, first, last, rounds, delivered, elapsed in spans[:count].tolist():
        mine = slice(replayed.at[sender], replayed.at[sender + 1])
        past = _Past(replayed.events[mine], choices.window[mine], choices.best(sender).algorithm == wc.BBR)
        numbered = len(rows[sender]), choices.cause_confidence(sender)
        rows[sender].append(_slow_start(past, first, last, rounds, delivered / elapsed if elapsed else None, *numbered))
    return rows


class _Past(NamedTuple):
    """Events of one sender, the window under the hypothesis taken, and whether that is BBR."""

    events: Ints
    window: Ints
    bbr: bool


def _slow_start(
    past: _Past, first: int, last: int, rounds: int, rate: float | None, number: int, confidence: float
) -> dict[str, Any]:
    """One episode: `first` is its first event, `last` the one that ended it (the number of events: none did).

    `rate` is what the path took afterwards, in segments a nanosecond: the most of it, before it made the sender reduce.
    (Just after an exit that comes too early it takes what the window gives it, which tells nothing of the path.)
    """
    events, window, _ = past
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
    cause, evidence = _exit(past, end) if ended else ("none", "slow start was never left")
    min_rtt = int(events[end, rc.MIN_RTT_AFTER])
    cwnd = int(window[end, rw.OUT_CWND])
    bdp = rate * min_rtt if ended and rate and min_rtt > 0 else None
    ratio = cwnd / bdp if bdp else None
    if ended and bdp is None:
        evidence += "; what the path takes did not show after it"
    verdict = "no_exit" if not ended else None
    if ratio is not None:
        verdict = "too_early" if ratio < TOO_EARLY else "overshoot" if ratio > OVERSHOOT else "reasonable"
    threshold = int(window[end, rw.OUT_SSTHRESH_AFTER])
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
        "rounds": rounds,
        "min_rtt_ns": min_rtt if min_rtt > 0 else None,  # below 0 where the clock was set back
        "rtt_exit_ns": (rtt if rtt > 0 else int(events[end, rc.SRTT_AFTER]) or None) if ended else None,
        "bdp_segments": bdp,
        "exit_to_bdp": ratio,
        "verdict": verdict,
        "confidence": None if cause == "none" else confidence,
        "evidence": evidence,
    }


def _exit(past: _Past, end: int) -> tuple[str | None, str]:
    """Why an episode ended at event `end`, and the evidence in words."""
    events, window, bbr = past
    ops = int(events[end, rc.OPS])
    found = int(window[end, rw.OUT_FOUND])
    row = window[end]
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
        slower, before = row[rw.OUT_ROUND_RTT] / 1e6, row[rw.OUT_DELAY_MIN] / 1e6
        why = f"five rounds of conservative slow start after one with no RTT under {slower:.1f} ms"
        return "hystart_delay", f"HyStart++: {why}; shortest of the round before {before:.1f} ms"
    if ops & rc.OP_RTO:
        return "rto", "a retransmission timeout"
    if ops & rc.OP_CWR:
        return "ecn", "an ECN echo"
    if ops & (rc.OP_RECOVERY | rc.OP_TLP_LOSS):
        return "loss", f"recovery began with {events[end, rc.NEWLY_LOST]} segments held for lost"
    if bbr:
        return None, "the delivery rate grew no more for three rounds"
    if row[rw.OUT_REDUCED]:
        return "app_limited", "the window was not used and decayed"
    return None, "the window reached ssthresh"


def recoveries(found: Inferred, flows: Ints, ways: Ints) -> pa.Table:
    """Every reduction of the window of some senders: rows of `recoveries` without the column `input`.

    Parameters
    ----------
    found : Inferred
        What the inference says of them.
    flows, ways
        Flow number of each, and the direction of its data (0 for a2b).

    Returns
    -------
    pyarrow.Table
        Words are dictionaries.

    Examples
    --------
    >>> recoveries(infer(batch, copy, asked, known), flows, ways)["kind"].value_counts()  # doctest: +SKIP
    """
    events, window = found.replayed.events, found.choices.window
    reduced = np.empty((len(events), kernels.REDUCTION_WIDTH), np.int64)
    count = kernels.reductions(events, found.replayed.at, reduced)
    sender, begin, end, lost, undone = reduced[:count].T
    op, prior = events[begin, rc.OPS], window[begin, rw.OUT_PRIOR]
    rto, cwr = op & rc.OP_RTO != 0, op & rc.OP_CWR != 0
    counts = ~rto | (op & rc.OP_RTO_REDUCE != 0)  # one timeout a window reduces, the next do not
    before = np.where(counts & (prior != 0), prior, window[begin, rw.OUT_CWND])
    after = window[begin, rw.OUT_SSTHRESH_AFTER]
    unknown = after >= wc.INFINITE
    time = pa.timestamp("ns", "UTC")
    return pa.table(
        {
            "flow": pa.array(flows.astype(np.int32)[sender]),
            "direction": dictionary(ways[sender], DIRECTIONS),
            "start": pa.array(events[begin, rc.TIME]).view(time),
            "end": pa.array(events[np.maximum(end, 0), rc.TIME], mask=end < 0).view(time),
            "kind": dictionary(np.where(rto, 0, np.where(cwr, 1, 2)), ("rto", "cwr", "fast")),
            "cwnd_before_segments": pa.array(before),
            "ssthresh_after_segments": pa.array(after, mask=unknown),
            "beta": pa.array(after / np.maximum(before, 1), mask=~counts | unknown | (before == 0)),
            "lost_segments": pa.array(np.ascontiguousarray(lost)),
            "undone": pa.array(undone != 0),
        }
    )
