"""HyStart++ (RFC 9406), slow and obvious: the twin of `hystart_plus_update` and `hystart_plus_growth`.

Every round keeps all its samples; windows are counted in quarters of a segment. Times are in any unit, of which `ms`
make a millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SAMPLES, CSS_ROUNDS, CSS_DIVISOR, MOST_PER_ACK = 8, 5, 4, 8


@dataclass
class HyStartPlus:
    """Slow start, conservative slow start (`css` counts its rounds from 1), and out of both (`over`)."""

    ms: int
    paced: bool = False
    window_end: int = 0
    rounds: list[list[int]] = field(default_factory=lambda: [[]])
    css: int = 0
    baseline: int = 0
    over: bool = False
    quarters: int = 0
    spurious: int = 0

    def growth(self, acked: int) -> int:
        """Whole segments by which an ACK of so many lets the window grow."""
        counted = acked if self.paced else min(acked, MOST_PER_ACK)
        if not self.css:
            return counted
        self.quarters += counted
        whole, self.quarters = divmod(self.quarters, CSS_DIVISOR)
        return whole

    def sample(self, rtt: int, una: int, nxt: int) -> bool:
        """Take an ACK's RTT; returns whether slow start is over with it (then ssthresh is the window)."""
        if una > self.window_end:
            self.window_end = nxt
            self.rounds.append([])
            if self.css:
                self.css += 1
                if self.css > CSS_ROUNDS:
                    self.over = True
                    return True
        this = self.rounds[-1]
        this.append(rtt)
        if len(this) < SAMPLES:
            return False
        if self.css:
            if min(this) < self.baseline:
                self.css = 0
                self.spurious += 1
            return False
        last = self.rounds[-2] if len(self.rounds) > 1 else []
        if last and min(this) >= min(last) + max(4 * self.ms, min(min(last) // 8, 16 * self.ms)):
            self.css, self.baseline = 1, min(this)
        return False
