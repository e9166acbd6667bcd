"""CUBIC's growth and reductions in plain Python with whole numbers: the slow, obvious twin of `kernels.cubic`.

Written from RFC 9438 and what `tcp_cubic.c` computes: a curve around the last maximum in units of 1/1024 second, Reno's
line beside it, at least 5 % a round trip before any loss.
"""

from __future__ import annotations

from dataclasses import dataclass

BETA = 717  # of 1024
JIFFY_NS, SAME_NS = 4_000_000, 31_250_000


def whole_root(number: int) -> int:
    """Largest whole number whose cube is at most `number`, by bisection."""
    low, high = 0, 1
    while high**3 <= number:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= number else (low, middle)
    return low


@dataclass
class Cubic:
    cwnd: int
    delay_min: int = 0  # ns
    last_max: int = 0
    epoch: int = 0
    origin: int = 0
    k: int = 0
    acks: int = 0
    line: int = 0
    need: int = 0
    looked_at: int = 0
    looked_cwnd: int = 0

    def reduce(self) -> int:
        """The threshold after a loss."""
        self.last_max = self.cwnd * (1024 + BETA) // 2048 if self.cwnd < self.last_max else self.cwnd
        self.epoch = 0
        return max(2, self.cwnd * BETA // 1024)

    def acked(self, count: int, now: int) -> int:
        """How many segments have to be acknowledged for one more, after `count` were."""
        self.acks += count
        if self.looked_cwnd == self.cwnd and now - self.looked_at <= SAME_NS:
            return self.need
        if not self.epoch or now - self.looked_at >= JIFFY_NS:
            self.look(count, now)
        window_and_more = self.cwnd * 15 // 8  # acknowledged segments for a step of Reno's line
        while window_and_more > 0 and self.acks > window_and_more:
            self.acks -= window_and_more
            self.line += 1
        if self.line > self.cwnd:
            self.need = min(self.need, self.cwnd // (self.line - self.cwnd))
        self.need = max(2, self.need)
        return self.need

    def look(self, count: int, now: int) -> None:
        """Where the curve is one smallest round trip from now."""
        self.looked_at, self.looked_cwnd = now, self.cwnd
        if not self.epoch:
            self.epoch, self.acks, self.line = now, count, self.cwnd
            self.origin = max(self.last_max, self.cwnd)
            self.k = whole_root((self.origin - self.cwnd) * ((1 << 40) // 410))
        time = (now - self.epoch + self.delay_min) * 1024 // 10**9
        away = abs(time - self.k)
        rise = 410 * away**3 >> 40
        target = self.origin + (rise if time >= self.k else -rise)
        self.need = self.cwnd // (target - self.cwnd) if target > self.cwnd else 100 * self.cwnd
        if self.last_max == 0:
            self.need = min(self.need, 20)
