"""Slow starts and recoveries as a kernel log shows them, from the sender's own samples.

A log of every ACK (tcp_probe) shows when ssthresh was set and the state of congestion control; a log of polls (ss)
shows it as closely as it was polled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from tracetool import tables
from tracetool.reconstruct.episodes import OVERSHOOT, TOO_EARLY

if TYPE_CHECKING:
    import numpy.typing as npt

    from tracetool.dataset import Dataset

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

#: CUBIC's HyStart leaves by an ACK train that is half as long as the least round trip; a little less, because only the
#: smoothed round trip is logged, which is longer.
TRAIN_SHARE = 0.45
#: A window that falls to less than this share of itself was reduced; growth never takes back so much.
FALL = 0.95
LOSS_WINDOW = 1  # RFC 5681: one segment after a timeout
LARGEST_STEP = 1 << 16  # bytes that one ACK acknowledges, or one call sends, as far as they tell the size of a segment
#: The rate of delivery after an exit is taken over at least this many round trips: ``snd_una`` stands still in each
#: recovery, and leaps at its end.
RATE_ROUNDS = 8
#: Of more samples than these only every second one, or fewer, is looked at: a log may have any number of exits.
RATE_SAMPLES = 1 << 13
BITS, SECOND = 8, 1_000_000_000
STATES = {"recovery": "fast", "loss": "rto", "cwr": "cwr"}


def from_samples(dataset: Dataset, name: str) -> dict[str, pl.DataFrame]:
    """Tables `slow_starts` and `recoveries` of one log.

    Parameters
    ----------
    dataset
        Where its `samples` are.
    name
        The input.

    Returns
    -------
    dict
        Frames by table name, without the column `input`; empty without samples of a window.

    Examples
    --------
    >>> from_samples(dataset, "tcp_probe")["slow_starts"]["exit_cause"].to_list()  # doctest: +SKIP
    ['hystart_train']
    """
    samples = dataset.read("samples", [name]).filter(pl.col("cwnd_segments").is_not_null())
    starts: list[dict[str, Any]] = []
    recoveries: list[dict[str, Any]] = []
    for (flow, direction, _), rows in samples.group_by("flow", "direction", "origin", maintain_order=True):
        key = {"flow": flow, "direction": direction}
        sender = _Sender(rows.sort("time", maintain_order=True))
        spans = sender.recoveries()
        recoveries += [{**key, **row} for row in spans]
        starts += [{**key, "episode": n, **row} for n, row in enumerate(sender.slow_starts(spans))]
    return {"slow_starts": _frame("slow_starts", starts), "recoveries": _frame("recoveries", recoveries)}


def _frame(table: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    frame = pl.from_arrow(tables.from_rows(table, [{"input": "", **row} for row in rows]))
    assert isinstance(frame, pl.DataFrame)
    return frame.drop("input")


class _Reductions(NamedTuple):
    """Recoveries in the order of time: when they begin, by when all up to each are over that end, and what they are."""

    starts: Ints
    over: Ints
    kinds: list[str]


def _reductions(recoveries: list[dict[str, Any]]) -> _Reductions:
    ends = np.array([row["end"] or 0 for row in recoveries], np.int64)
    starts = np.array([row["start"] for row in recoveries], np.int64)
    return _Reductions(starts, np.maximum.accumulate(ends), [row["kind"] for row in recoveries])


class _Sender:
    """The samples of one sender as arrays; NaN is unknown."""

    def __init__(self, rows: pl.DataFrame) -> None:
        def floats(column: str) -> Floats:
            return rows[column].cast(pl.Float64).fill_null(float("nan")).to_numpy()

        self.time = rows["time"].to_physical().to_numpy().astype(np.int64)
        self.cwnd = floats("cwnd_segments")
        self.ssthresh = floats("ssthresh_segments")
        self.srtt = floats("srtt_ns")
        self.least_rtt = np.fmin.accumulate(np.fmin(self.srtt, floats("min_rtt_ns")))
        self.una, self.nxt, self.mss = floats("snd_una"), floats("snd_nxt"), floats("mss_bytes")
        self.state = rows["ca_state"].to_list()
        self.told = rows["ca_state"].null_count() < rows.height
        self.sequenced = bool(np.isfinite(self.una).all() and np.isfinite(self.nxt).all())
        self.segment = self._segment()
        self.set_at = np.flatnonzero(np.isfinite(self.ssthresh))
        self.reached_at = np.flatnonzero(self.cwnd >= self.ssthresh)

    def recoveries(self) -> list[dict[str, Any]]:
        """By the state where the log has it, else by a window that fell."""
        return self._by_state() if self.told else self._by_fall()

    def _by_state(self) -> list[dict[str, Any]]:
        found = []
        kinds = [STATES.get(state or "") for state in self.state]
        changes = [i for i in range(len(kinds)) if i == 0 or kinds[i] != kinds[i - 1]]
        for first, after in zip(changes, [*changes[1:], len(kinds)], strict=True):
            if kinds[first] is not None:
                found.append(self._recovery(first, after, str(kinds[first])))
        return found

    def _by_fall(self) -> list[dict[str, Any]]:
        begun: list[int] = []
        for fall in (np.flatnonzero(self.cwnd[1:] < FALL * self.cwnd[:-1]) + 1).tolist():
            # within a round trip it is the same reduction, still under way
            if not (
                begun and np.isfinite(self.srtt[fall]) and self.time[fall] - self.time[begun[-1]] < self.srtt[fall]
            ):
                begun.append(fall)
        return [self._fall(first, after) for first, after in zip(begun, [*begun[1:], len(self.cwnd)], strict=False)]

    def _fall(self, first: int, following: int) -> dict[str, Any]:
        """A recovery from where the window fell to where it is at the threshold again, or falls again."""
        again = np.flatnonzero(self.cwnd[first:following] >= self.ssthresh[first])
        after = first + int(again[0]) if len(again) else following
        return self._recovery(first, after, "rto" if self.cwnd[first] <= LOSS_WINDOW else "fast")

    def _recovery(self, first: int, after: int, kind: str) -> dict[str, Any]:
        before = self.cwnd[max(first - 1, 0)]
        inside = self.ssthresh[first : max(after, first + 1)]
        ssthresh = inside[np.isfinite(inside)][-1] if np.isfinite(inside).any() else float("nan")
        ended = after < len(self.cwnd)
        return {
            "start": int(self.time[first]),
            "end": int(self.time[after]) if ended else None,
            "kind": kind,
            "cwnd_before_segments": _whole(before),
            "ssthresh_after_segments": _whole(ssthresh),
            "beta": _number(ssthresh / before) if before > 0 else None,
            "undone": bool(self.cwnd[after] >= before) if ended and np.isfinite(before) else None,
        }

    def slow_starts(self, recoveries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Begin at the first sample and after each timeout; end when ssthresh is set, or reached, or by a timeout."""
        if not len(self.time):
            return []
        unset = ~np.isfinite(self.ssthresh)
        episodes = []
        if unset[0] or self.cwnd[0] < self.ssthresh[0]:
            episodes.append((0, "start"))
        starts = [row["start"] for row in recoveries if row["kind"] == "rto"]
        episodes += [(int(np.searchsorted(self.time, start)), "rto") for start in starts]
        reductions = _reductions(recoveries)
        following = [*(first for first, _ in episodes[1:]), None]
        return [self._slow_start(*episode, end, reductions) for episode, end in zip(episodes, following, strict=False)]

    def _slow_start(self, first: int, kind: str, timeout: int | None, reductions: _Reductions) -> dict[str, Any]:
        unset = kind == "start" and not np.isfinite(self.ssthresh[first])
        over = self.set_at if unset else self.reached_at
        following = int(np.searchsorted(over, first, "right"))
        at = int(over[following]) if following < len(over) else None
        cause, evidence = self._cause(first, at, kind, reductions)
        if timeout is not None and (at is None or at > timeout):
            at, cause, evidence = timeout, "rto", "another timeout"
        last = at if at is not None else len(self.time) - 1
        bdp = self._bdp(last, reductions) if at is not None else None
        cwnd = self.cwnd[max(last - 1, first)] if cause in {"loss", "rto", "ecn"} else self.cwnd[last]
        ratio = cwnd / bdp if bdp and np.isfinite(cwnd) else None
        return {
            "start": int(self.time[first]),
            "end": int(self.time[at]) if at is not None else None,
            "exit_cause": cause,
            "cwnd_exit_segments": _whole(cwnd) if at is not None else None,
            "ssthresh_segments": _whole(self.ssthresh[last]),
            "rounds": len(begins) if (begins := self._rounds_begin(first, last)) else None,
            "min_rtt_ns": _whole(self.least_rtt[last]),
            "rtt_exit_ns": _whole(self.srtt[last]) if at is not None else None,
            "bdp_segments": bdp,
            "exit_to_bdp": ratio,
            "verdict": _verdict(ratio, left=at is not None),
            "confidence": {"hystart_train": 0.8, "hystart_delay": 0.8, None: None}.get(cause, 1.0),
            "kind": kind,
            "evidence": evidence,
        }

    def _cause(self, first: int, at: int | None, kind: str, reductions: _Reductions) -> tuple[str | None, str]:
        if at is None:
            return "none", "ssthresh was not set" if kind == "start" else "cwnd stayed below ssthresh"
        if self.ssthresh[at] < FALL * np.fmax(self.cwnd[at - 1], self.cwnd[at]):
            slack = int(self.srtt[at]) if np.isfinite(self.srtt[at]) else 0
            # samples stand before an ACK is processed, states after: they may be told a little apart
            near = int(np.searchsorted(reductions.starts, self.time[at] + slack, "right")) - 1
            what = reductions.kinds[near] if near >= 0 and reductions.starts[near] > self.time[first] else "fast"
            return {"fast": "loss", "rto": "rto", "cwr": "ecn"}[what], f"ssthresh was set below cwnd, recovery: {what}"
        if kind == "rto":
            return None, "cwnd reached ssthresh"
        least = self.least_rtt[at]
        if not np.isfinite(least):
            return None, "ssthresh was set without a reduction; no RTT in the log"
        began = self._rounds_begin(first, at)
        if began is None:
            return None, "ssthresh was set without a reduction; no sequence numbers in the log"
        train = (self.time[at] - self.time[began[-1]]) / 1e6
        share = TRAIN_SHARE * least / 1e6
        # the delay test looks at the first ACKs of a round, the train test needs half a round trip of them
        cause = "hystart_train" if train >= share else "hystart_delay"
        grown = (self.srtt[at] - least) / 1e6
        return (
            cause,
            f"ssthresh was set without a reduction, {train:.1f} ms into a round, srtt {grown:.1f} ms above the least",
        )

    def _segment(self) -> float:
        """Bytes of a full segment: as logged, else what the commoner steps of the sequence numbers are multiples of."""
        known = self.mss[np.isfinite(self.mss)]
        if len(known):
            return float(np.median(known))
        steps = np.concatenate([np.diff(edge[np.isfinite(edge)]) for edge in (self.una, self.nxt)])
        steps = steps[(steps > 0) & (steps < LARGEST_STEP)].astype(np.int64)
        values, counts = np.unique(steps, return_counts=True)
        common = values[counts * 50 >= counts.sum()]
        return float(np.gcd.reduce(common)) if len(common) else float("nan")

    def _bdp(self, last: int, reductions: _Reductions) -> float | None:
        """Highest rate of delivery over some round trips between the exit and the next reduction, by the least RTT.

        (Just after an exit that comes too early the path takes what the window gives it, which tells nothing of it.)
        A recovery that the exit began is passed over: at its end ``snd_una`` leaps over all that came meanwhile.
        """
        if not (np.isfinite(self.srtt[last]) and np.isfinite(self.segment) and self.segment > 0):
            return None
        begun = int(np.searchsorted(reductions.starts, self.time[last] + int(self.srtt[last]), "right"))
        over = max(self.time[last], reductions.over[begun - 1]) if begun else self.time[last]
        first = int(np.searchsorted(self.time, over))
        span = int(RATE_ROUNDS * self.srtt[last])
        following = reductions.starts[begun] if begun < len(reductions.starts) else self.time[-1]
        until = int(np.searchsorted(self.time, max(following, self.time[first] + span))) + 1
        step = 1 + (until - first) // RATE_SAMPLES
        time, una = self.time[first:until:step], self.una[first:until:step]
        begins = np.searchsorted(time, time - span, "right") - 1
        took = time - time[begins]
        whole = (begins >= 0) & (took > 0)
        rates = (una - una[begins])[whole] / took[whole]
        highest = float(rates[np.isfinite(rates)].max(initial=0.0))
        return _number(highest * self.least_rtt[last] / self.segment) if highest else None

    def _rounds_begin(self, first: int, last: int) -> list[int] | None:
        """Samples with which round trips begin: each ends when what was sent at its begin is acknowledged."""
        if not self.sequenced:
            return None
        begins = [first]
        while (
            following := begins[-1] + max(1, int(np.searchsorted(self.una[begins[-1] :], self.nxt[begins[-1]])))
        ) <= last:
            begins.append(following)
        return begins


def _verdict(ratio: float | None, *, left: bool) -> str | None:
    if not left:
        return "no_exit"
    if ratio is None:
        return None
    return "too_early" if ratio < TOO_EARLY else "overshoot" if ratio > OVERSHOOT else "reasonable"


def _whole(value: float) -> int | None:
    return round(float(value)) if np.isfinite(value) else None


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
