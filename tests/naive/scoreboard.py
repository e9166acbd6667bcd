"""The scoreboard of a sender, slow and obvious: the twin of `replay_board`, `replay_sack`, `replay_loss` and `alert`.

A list of the outstanding segments; after every ACK all of them are looked at again. SACK as RFC 2018 and 6675 have it,
RACK with its reordering window as RFC 8985 and Linux's `tcp_recovery.c`, without SACK the duplicate ACKs of RFC 6582 as
`tcp_input.c` counts them. Sequence numbers count segments.

No timestamps, no D-SACK, no timeout and no probe of the tail: there is no undo. The twin of timeouts is `sender.py`, a
whole TCP that runs by its own clock; probes and what is taken back have scenes in `tests/kernels/test_scoreboard.py`,
whose ends RFC 8985, 2883 and 3708 prescribe.
"""

from __future__ import annotations

from dataclasses import dataclass, field

OPEN, DISORDER, RECOVERY = 0, 1, 3
DUPLICATES, MOST = 3, 300


@dataclass
class Segment:
    """One segment that is outstanding."""

    number: int
    sent: int
    sacked: bool = False
    lost: bool = False
    again: bool = False  # a retransmission is under way
    ever: bool = False


@dataclass
class Board:
    """What the sender knows of its segments."""

    sack: bool
    least: int  # smallest RTT
    segments: list[Segment] = field(default_factory=list)
    una: int = 0
    nxt: int = 0
    state: int = OPEN
    high: int = 0
    duplicates: int = 0
    reordering: int = DUPLICATES
    reordered: bool = False
    rack: tuple[int, int] = (0, 0)  # when the last sent of those delivered left, and its end
    rack_rtt: int = 0
    news: bool = False  # RACK has not looked at it yet
    delivered: int = 0
    lost: int = 0

    def sacked_out(self) -> int:
        """Segments that left the network beyond the first hole."""
        return sum(s.sacked for s in self.segments) if self.sack else self.duplicates

    def pipe(self) -> int:
        """Segments in flight (RFC 6675)."""
        lost = sum(s.lost for s in self.segments)
        return len(self.segments) - self.sacked_out() - lost + sum(s.again for s in self.segments)

    def send(self, now: int) -> Segment:
        """Send the first segment that is held for lost, or else a new one."""
        for segment in self.segments:
            if segment.lost and not segment.again:
                segment.again = segment.ever = True
                segment.sent = now
                return segment
        self.segments.append(Segment(self.nxt, now))
        self.nxt += 1
        return self.segments[-1]

    def top(self) -> int:
        """End of the highest segment that is SACKed."""
        return max((s.number + 1 for s in self.segments if s.sacked), default=self.una)

    def note_late(self, number: int, top: int) -> None:
        """Segment `number` came after what lies below `top`."""
        if number < top:
            self.reordering = min(max(self.reordering, top - number), MOST)
            self.reordered = True

    def note_delivered(self, segment: Segment, now: int) -> None:
        """Let RACK know (RFC 8985, step 2)."""
        rtt = now - segment.sent
        if segment.again and rtt < self.least:
            return
        self.news, self.rack_rtt = True, rtt
        self.rack = max(self.rack, (segment.sent, segment.number + 1))

    def window(self) -> int:
        """By how much a segment may be late (RFC 8985, step 4)."""
        sure = self.state == RECOVERY or self.sacked_out() >= self.reordering
        return 0 if sure and not self.reordered else self.least // 4

    def overdue(self) -> list[tuple[int, Segment]]:
        """Segments sent before the last that was delivered, each with the time at which it is lost."""
        open_ones = [s for s in self.segments if not s.sacked and (s.again or not s.lost)]
        late = self.rack_rtt + self.window()
        return [(s.sent + late, s) for s in open_ones if (s.sent, s.number + 1) < self.rack]

    def mark(self, segment: Segment) -> None:
        """Hold a segment, or its retransmission, for lost."""
        segment.lost, segment.again = True, False
        self.lost += 1

    def detect(self, now: int, advanced: bool) -> None:
        """Find what is lost, now that an ACK or a timer gives reason to look."""
        if not self.segments:
            return
        if self.sack:
            if self.news:
                self.news = False
                for segment in [s for at, s in self.overdue() if at <= now]:
                    self.mark(segment)
            return
        enough = self.state < RECOVERY and self.duplicates >= self.reordering
        if (enough or (self.state == RECOVERY and advanced)) and not self.segments[0].lost:
            self.mark(self.segments[0])

    def settle(self) -> None:
        """Recovery, where anything is lost; else open, or in disorder."""
        if any(s.lost for s in self.segments):
            if self.state != RECOVERY:
                self.state, self.high = RECOVERY, self.nxt
            return
        dubious = self.sacked_out() or any(s.again for s in self.segments[:1]) or any(s.ever for s in self.segments[:1])
        state = DISORDER if dubious or any(s.again for s in self.segments) else OPEN
        if self.state != state:
            self.state, self.high = state, self.nxt

    def limit(self, more: int = 0) -> None:
        """Without SACK: duplicates cannot stand for more segments than there are beside the hole."""
        holes = min(max(sum(s.lost for s in self.segments), 1), len(self.segments))
        if self.duplicates + holes > len(self.segments):
            self.duplicates = len(self.segments) - holes
            self.reordering = min(len(self.segments) + more, MOST)
            self.reordered = True

    def on_timer(self, now: int) -> None:
        """RACK's timer: what is overdue is lost by now."""
        for segment in [s for at, s in self.overdue() if at <= now]:
            self.mark(segment)
        self.settle()

    def on_ack(self, now: int, ack: int, blocks: list[tuple[int, int]]) -> int:
        """Take an ACK; returns the RTT of the last segment that it newly says to be delivered, -1 for none."""
        before, count = self.top() if self.sack else self.una, self.delivered
        had, advanced, rtt = bool(self.segments), ack > self.una, -1
        self.una = max(ack, self.una)
        fresh = [s for s in self.segments if not s.sacked and any(a <= s.number < b for a, b in blocks)]
        fresh = [s for s in fresh if s.number >= ack]
        late = []
        for segment in fresh:
            self.note_delivered(segment, now)
            if not segment.ever:
                rtt = now - segment.sent
                if segment.number + 1 < self.top():
                    late.append(segment.number)
            segment.sacked, segment.lost, segment.again = True, False, False
        self.delivered += len(fresh)
        if late:
            self.note_late(min(late), self.top())
        gone = [s for s in self.segments if s.number < ack]
        self.segments = [s for s in self.segments if s.number >= ack]
        clean = [s for s in gone if not s.ever and not s.sacked]
        if clean and not any(s.ever for s in gone) and not [s for s in fresh if not s.ever]:
            rtt = now - clean[-1].sent
        for segment in gone:
            if self.sack and not segment.sacked:
                self.delivered += 1
                self.note_delivered(segment, now)
        if rtt >= 0:
            self.least = min(self.least, rtt)
        if gone and not self.sack:
            self.delivered += max(len(gone) - self.duplicates, 1)
            self.duplicates = max(0, self.duplicates - (len(gone) - 1))
            self.limit(len(gone))
        elif gone and clean and clean[0].number < before:
            self.note_late(clean[0].number, self.top())
        if had and (self.state != OPEN or not advanced or fresh):
            self.alert(now, advanced)
        assert self.delivered >= count
        return rtt

    def alert(self, now: int, advanced: bool) -> None:
        """Something is out of order (`tcp_fastretrans_alert`)."""
        if not self.segments:
            self.duplicates = 0
        if self.state == RECOVERY and self.una >= self.high:
            if not self.sack:
                self.duplicates = 0
                if self.una == self.high:  # held until something above is acknowledged
                    return
            self.state = OPEN
        if self.state == RECOVERY:
            if not self.sack and not advanced:
                self.repeat()
            self.detect(now, advanced)
            return
        if not self.sack:
            if advanced:
                self.duplicates = 0
            else:
                self.repeat()
        self.detect(now, advanced)
        self.settle()

    def repeat(self) -> None:
        """Without SACK: a duplicate ACK stands for a segment that left the network."""
        before = self.duplicates
        self.duplicates += 1
        self.limit()
        self.delivered += max(0, self.duplicates - before)
