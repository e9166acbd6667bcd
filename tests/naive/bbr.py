"""Two estimates of BBR, slow and obvious: the twins of `kernels.windowed_max` and `kernels.bbr_policer`.

The windowed maximum picks its three samples by rule; the model of a policer keeps every ACK of its interval.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction


@dataclass
class WindowedMax:
    """The best, second and third best sample, each later than the one before, none older than the window."""

    window: int
    best: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)] * 3)  # time, value

    def take(self, time: int, value: int) -> int:
        new = (time, value)
        first, second, third = self.best
        if value >= first[1] or time - third[0] > self.window:  # a new best, or nothing left in the window
            self.best = [new, new, new]
            return value
        if value >= second[1]:
            second = third = new
        elif value >= third[1]:
            third = new
        age = time - first[0]
        if age > self.window:  # the best has passed
            first, second, third = second, third, new
            if time - first[0] > self.window:
                first, second, third = second, third, new
        elif second[0] == first[0] and age > self.window // 4:  # a quarter has passed without a second choice
            second = third = new
        elif third[0] == second[0] and age > self.window // 2:  # half has passed without a third
            third = new
        self.best = [first, second, third]
        return first[1]


@dataclass
class Policer:
    """Linux's `bbr_lt_bw_sampling`: rates in whole segments per 2^24 us, times in ms."""

    mss: int
    rate: int | None = None
    used: bool = False
    acks: list[tuple[int, int, int, bool]] | None = None  # since the interval began: time, delivered, lost, new round
    rounds_used: int = 0

    def ack(self, time: int, delivered: int, lost: int, *, new_round: bool, limited: bool, probing: bool) -> bool:
        """Take an ACK; whether PROBE_BW begins anew, because the rate was used for long enough."""
        if self.used:
            self.rounds_used += new_round and probing
            if new_round and probing and self.rounds_used >= 48:
                self.rate, self.used, self.acks = None, False, None
                return True
            return False
        if self.acks is None:
            if not lost:
                return False
            self.acks = []  # what this ACK brought is from before the interval
            delivered = loss = 0
        else:
            loss = lost
        self.acks.append((time, delivered, loss, new_round))
        if limited or sum(ack[3] for ack in self.acks) > 16:
            self.rate, self.acks = None, None
            return False
        if sum(ack[3] for ack in self.acks) < 4 or not lost:
            return False
        came, gone = sum(ack[1] for ack in self.acks), sum(ack[2] for ack in self.acks)
        took = time - self.acks[0][0]
        if came == 0 or Fraction(gone, came) < Fraction(50, 256) or took < 1:
            return False
        rate = came * 2**24 // (took * 1000)
        if self.rate:
            apart = abs(rate - self.rate)
            if apart <= Fraction(self.rate, 8) or apart * self.mss * 990_000 // 2**24 <= 500:
                self.rate, self.used, self.rounds_used = (rate + self.rate) // 2, True, 0
                return False
        self.rate = rate
        self.acks = [(time, 0, 0, False)]
        return False
