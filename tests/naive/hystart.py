"""HyStart and the proportional rate reduction, slow and obvious: the twins of `kernels.hystart` and of `prr`.

Rounds keep all their samples, and every test is done anew over all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

MS = 1_000_000


@dataclass
class HyStart:
    """Linux from 6.14 on, both detectors; times in ns, windows in segments."""

    paced: bool
    mss: int
    late_rounds: bool = False  # Linux 5.6 to 6.13: no round begins below 16 segments
    round_start: int = 0
    train_end: int = 0
    round_end: int = 0
    samples: list[int] = field(default_factory=list)
    smallest: int = 0

    def begin(self, now: int, nxt: int) -> None:
        self.round_start = self.train_end = now
        self.round_end = nxt
        self.samples = []

    def own_delay(self, cwnd: int, ssthresh: int, srtt: int, out: int) -> int:
        """Time that four of the largest super-frames take at the pacing rate, a millisecond at most."""
        if srtt <= 0:
            return MS
        percent = 200 if 2 * cwnd < ssthresh else 120
        rate = self.mss * max(cwnd, out) * percent // 100 * 10**6 // max(1, srtt // 1000)
        return min(MS, 4 * 65536 * 10**9 // max(1, rate))

    def acked(self, now: int, rtt: int, una: int, nxt: int, cwnd: int, ssthresh: int, srtt: int, out: int) -> str:
        """Names of the detectors that fire."""
        self.smallest = min(self.smallest or rtt, rtt)
        if una > self.round_end and (cwnd >= 16 or not self.late_rounds):
            self.begin(now, nxt)
        if cwnd < 16:
            return ""
        fired = ""
        if now - self.train_end <= 2 * MS:
            self.train_end = now
            threshold = self.smallest + self.own_delay(cwnd, ssthresh, srtt, out)
            if now - self.round_start > (threshold if self.paced else threshold // 2):
                fired += "train "
                ssthresh = cwnd
        self.samples.append(rtt)
        if len(self.samples) > 8 and min(self.samples) > self.smallest + min(max(self.smallest // 8, 4 * MS), 16 * MS):
            fired += "delay"
        return fired.strip()


@dataclass
class Reduction:
    """RFC 6937 with the slow-start reduction bound as Linux 5.16 and later have it."""

    prior: int
    ssthresh: int
    delivered: int = 0
    sent: int = 0

    def acked(self, delivered: int, lost: int, advanced: bool, pipe: int) -> int:
        """The window after an ACK that delivered something."""
        self.delivered += delivered
        if pipe > self.ssthresh:
            room = ceil(Fraction(self.ssthresh * self.delivered, self.prior)) - self.sent
        else:
            room = max(self.delivered - self.sent, delivered)
            room += 1 if advanced and not lost else 0
            room = min(self.ssthresh - pipe, room)
        return pipe + max(room, 0 if self.sent else 1)
