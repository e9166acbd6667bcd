"""What lies beyond the simulated sender: a bottleneck and a receiver. Times are integer microseconds."""

from __future__ import annotations

from dataclasses import dataclass, field

#: How long an ACK is held back for a segment to come, us.
HOLD = 5_000


@dataclass
class Path:
    """A bottleneck with a tail-drop queue in segments, half the delay before it and half on the way back."""

    rate: float  # segments per second
    delay: int  # round trip without queue, us
    queue: int
    drop: frozenset[int] = frozenset()  # numbers of transmissions that are lost on the way
    detour: tuple[int, int, int] = (0, 0, 0)  # from when to when the way is longer, and by how much; nothing overtakes
    sent: int = 0
    free: float = 0.0
    last: int = 0

    def send(self, now: int) -> int | None:
        """Arrival at the receiver, or None for a drop."""
        self.sent += 1
        if self.sent in self.drop or (self.free - now) * self.rate / 1e6 > self.queue:
            return None
        self.free = max(self.free, float(now)) + 1e6 / self.rate
        longer = self.detour[2] if self.detour[0] <= now < self.detour[1] else 0
        self.last = max(self.last, int(self.free) + self.delay // 2 + longer)
        return self.last


@dataclass
class Receiver:
    """Acknowledges every second segment (or every so many), and at once what is out of order."""

    every: int = 2
    following: int = 0
    beyond: set[int] = field(default_factory=set)
    unacked: int = 0

    def take(self, number: int) -> list[tuple[int, int]] | None:
        """SACK blocks of the ACK to send, the latest first; None: no ACK yet."""
        if number > self.following:
            self.beyond.add(number)
        elif number == self.following:
            filled = bool(self.beyond)
            self.following += 1
            while self.following in self.beyond:
                self.beyond.discard(self.following)
                self.following += 1
            self.unacked += 1
            if self.unacked < self.every and not filled:
                return None
        self.unacked = 0
        blocks: list[tuple[int, int]] = []
        for n in sorted(self.beyond):
            if blocks and blocks[-1][1] == n:
                blocks[-1] = (blocks[-1][0], n + 1)
            else:
                blocks.append((n, n + 1))
        return sorted(blocks, key=lambda b: not b[0] <= number < b[1])[:3]

    def holds(self, following: int) -> bool:
        """Whether the ACK of what is below a number is still held back; it is no more then."""
        held = self.unacked > 0 and self.following == following
        self.unacked = 0 if held else self.unacked
        return held
