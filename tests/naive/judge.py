"""Twin of `tracetool.kernels.window_judge`: keeps the sends of a round trip in a list, judged when it is over."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

INFINITE = 0x7FFFFFFF
MS = 1_000_000
CAP = 16  # no single miss counts for more


@dataclass
class Event:
    """What a sender did after one event; times in ns, everything else in segments but `room` (bytes)."""

    time: int
    una: int
    nxt: int
    pipe: int
    pipe_sent: int
    new: int
    again: int
    first: int
    last: int
    room: int
    srtt: int
    out: int
    open: bool  # else in Recovery
    advanced: bool


@dataclass
class Judge:
    """A hypothesis (`cc`, its detectors, whether it paces) and how well it has fit so far."""

    cc: str
    detectors: frozenset[str] = frozenset()
    paced: bool = False
    mss: int = 1448
    tolerance: int = 0
    blur: int = 0
    held: bool = False
    late: bool = False  # the capture begins in mid-connection
    cwnd: int = 10
    ssthresh: int = INFINITE
    shown: bool = False
    rate: int = 0  # bytes per second, of BBR
    conservative: bool = False  # HyStart++
    train: int = 0  # ns from the first ACK of the round to the last of the train
    least: int = 0  # smallest RTT
    reduced: bool = False
    fired: str | None = None
    surprise: bool = False
    super_frames: bool = False
    runaways: int = 0
    groups: int = 0
    rounds: int = 0
    judged: int = 0
    stuck: int = 0
    bursts: int = 0
    spread: int = 0
    surplus: int = 0
    deficit: int = 0
    unused: int = 0
    end: int = 0
    began: int = 0  # when the round did
    unseen: int = 0  # reductions that nobody saw
    long_rounds: int = 0  # judged, of recoveries in which no ACK of new data came for so long
    this: list[Event] = field(default_factory=list)
    slacks: list[int] = field(default_factory=list)
    extra: list[int] = field(default_factory=list)
    drained: bool = False
    streak: list[int] = field(default_factory=list)

    def blocked(self, event):
        """The receiver's window may have no room for one more."""
        return event.room >= 0 and event.room < self.mss * (1 + self.blur)

    def slack(self, event):
        """What stays unused of the window."""
        return max(self.cwnd - event.pipe_sent - self.tolerance, 0)

    def left(self):
        """Slow start ended here, and nobody saw why."""
        self.surprise |= not self.reduced and self.ssthresh >= INFINITE
        self.ssthresh = max(self.cwnd, 2)
        if self.detectors and self.fired is None:
            if "++" in self.detectors:
                self.fired = "++" if self.conservative else ""
            else:
                self.fired = "train" if "train" in self.detectors and self.train > self.least // 4 else "delay"

    def end_round(self, event):
        """The least slack of a round trip in which nothing but the window held the sender back counts."""
        if self.this:
            self.rounds += 1
            at_once = [e for e in self.this if e.first - e.time <= MS]
            waits = self.drained or (not self.paced and len(at_once) < len(self.this) / 2)
            if not waits and not self.held:
                least = min(self.slacks)
                self.judged += 1
                self.shown |= not any(self.blocked(e) for e in self.this)
                if least and self.cc != "bbr":
                    self.unused += 1024 * least // max(self.cwnd, 1)
                    if not self.late:
                        self.deficit += min(least, CAP)
                    if event.open:
                        self.stuck += 1
                        much, slow_start = least > Fraction(self.cwnd, 8), self.cwnd < self.ssthresh
                        self.cwnd = max(self.cwnd - least, 1)
                        if much and slow_start:
                            self.left()
                        elif much and self.reduced:  # once more, and nobody saw it
                            self.unseen += self.ssthresh > max(self.cwnd, 2)
                            self.ssthresh = min(self.ssthresh, max(self.cwnd, 2))
        self.end, self.began, self.drained = event.nxt, event.time, False
        self.this, self.slacks, self.extra = [], [], []

    def after(self, event):
        """Take in what was sent after an event."""
        if event.una >= self.end:
            self.end_round(event)
        sent = event.new + event.again
        if not sent:
            most = max((e.pipe_sent for e in self.this), default=0)
            self.drained |= event.open and event.pipe < Fraction(2, 3) * most
            return
        self.groups += 1
        self.this.append(event)
        self.slacks.append(0 if self.blocked(event) else self.slack(event))
        self.watch(event)
        took = event.last - event.first
        if event.new > 2:
            self.bursts += 1
            self.spread += took > Fraction((event.new - 2) * event.srtt, 4 * max(self.cwnd, 1))
        if self.cc == "bbr":
            self.super_frames |= took == 0 and sent > 4 and self.tolerance == 0
            largest = min(min(self.rate >> 10, 65536 - 1 - 320) // self.mss, 127) if self.super_frames else 0
            paced = self.rate * (took // 1000) // (1_000_000 * self.mss)
            burst = sent - 2 * max(largest, 2) - 2 * self.tolerance - paced
            if burst > 0 and event.out > 10:
                self.deficit += min(burst, CAP)
        if not event.open and not event.advanced and event.new and event.time > self.began + 2 * event.srtt:
            before = self.judged
            self.end_round(event)
            self.long_rounds += self.judged - before

    def watch(self, event):
        """Slow start is over where 32 groups in a row, each sent at once, left an eighth of the window unused."""
        at_once = event.first - event.time <= MS and not self.paced and not self.blocked(event)
        if not at_once or not event.open or self.held or self.late or self.cc == "bbr" or self.cwnd >= self.ssthresh:
            self.streak = []
            return
        self.streak.append(self.slack(event))
        if len(self.streak) == 32:
            streak, self.streak = self.streak, []
            if min(streak) > Fraction(self.cwnd, 8) and not self.drained:
                self.runaways += 1
                self.deficit += min(streak[-1], CAP)
                self.cwnd = event.pipe_sent
                self.left()

    def beyond(self, surplus):
        """So much was sent beyond the window: of BBR it is the most of a round trip that counts."""
        surplus = min(surplus, CAP)
        if self.cc == "bbr":
            self.surplus += max(surplus - max(self.extra, default=0), 0)
            self.extra.append(surplus)
        else:
            self.surplus += surplus
