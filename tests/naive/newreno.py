"""A slow, obvious NewReno sender without SACK over one bottleneck: its packets, and its state as each ACK arrives.

The scoreboard is that of `scoreboard.py`; this adds the window of Reno (RFC 5681), the proportional rate reduction that
Linux has, and the path. What is lost is told, or meets a full queue; there is no timeout: a run ends before one.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from tests.naive.path import Path, Receiver
from tests.naive.scoreboard import RECOVERY, Board

MSS, INFINITE, START_US, TIMEOUT_US = 1448, 0x7FFFFFFF, 1_000_000_000, 200_000


@dataclass
class Window:
    """Reno's congestion window, segments."""

    cwnd: int = 10
    ssthresh: int = INFINITE
    count: int = 0
    prior: int = 0
    delivered: int = 0
    out: int = 0

    def reduce(self):
        """Halve it, in the course of the round trip to come."""
        self.prior, self.delivered, self.out, self.count = self.cwnd, 0, 0, 0
        self.ssthresh = max(self.cwnd // 2, 2)

    def proportional(self, board, delivered, lost, advanced):
        """Let as many leave as the reduction allows."""
        if not delivered:
            return
        self.delivered += delivered
        if board.pipe() > self.ssthresh:
            send = -(-self.ssthresh * self.delivered // self.prior) - self.out
        else:
            send = max(self.delivered - self.out, delivered) + (1 if advanced and not lost else 0)
            send = min(self.ssthresh - board.pipe(), send)
        self.cwnd = board.pipe() + max(send, 0 if self.out else 1)

    def grow(self, acked):
        """Slow start, then one segment a round trip."""
        grown = max(min(self.cwnd + acked, self.ssthresh), self.cwnd) if self.cwnd < self.ssthresh else self.cwnd
        self.count += acked - (grown - self.cwnd)
        self.cwnd = grown
        if self.count >= self.cwnd:
            self.count -= self.cwnd
            self.cwnd += 1


@dataclass
class Sender:
    """A scoreboard and a window."""

    board: Board
    window: Window = field(default_factory=Window)

    def on_ack(self, now, number):
        """Take an ACK."""
        board, window = self.board, self.window
        state, una, lost, had = board.state, board.una, board.lost, board.delivered
        board.on_ack(now, number, [])
        delivered, lost, advanced = board.delivered - had, board.lost - lost, board.una > una
        if state == RECOVERY and board.state != RECOVERY:
            window.cwnd = window.ssthresh
        elif state != RECOVERY and board.state == RECOVERY:
            window.reduce()
        if board.state == RECOVERY:
            window.proportional(board, delivered, lost, advanced)
        elif advanced:
            window.grow(delivered)

    def to_send(self):
        """Whether one more may leave."""
        return self.board.pipe() < self.window.cwnd


def run(path: Path, seconds: float):
    """Rows of packets as `sender.packets` takes them, and (time in us, cwnd, ssthresh, state, una) at each ACK."""
    sender, receiver = Sender(Board(sack=False, least=path.delay)), Receiver(every=1)
    rows: dict[str, list] = {
        name: [] for name in ("time", "out", "seq", "ack", "payload", "flags", "tsval", "tsecr", "sack")
    }
    truth: list[tuple[int, int, int, int, int]] = []
    line: list[tuple[int, int, bool, int]] = []

    def row(*values):
        for name, value in zip(rows, (START_US + values[0], *values[1:], -1, -1, []), strict=True):
            rows[name].append(value)

    def send(now):
        while sender.to_send():
            segment = sender.board.send(now)
            sender.window.out += sender.board.state == RECOVERY
            row(now, 1, 1 + segment.number * MSS, 1, MSS, 16)
            arrival = path.send(now)
            if arrival is not None:
                heapq.heappush(line, (arrival, len(rows["time"]), True, segment.number))

    row(0, 1, 0, -1, 0, 2)
    row(path.delay, 0, 0, 1, 0, 18)
    row(path.delay, 1, 1, 1, 0, 16)
    now = heard = path.delay
    send(now)
    while line and now < seconds * 1e6 and now - heard < TIMEOUT_US:
        now, serial, is_data, number = heapq.heappop(line)
        if is_data:
            receiver.take(number)
            heapq.heappush(line, (now + path.delay // 2, serial, False, receiver.following))
            continue
        heard = now
        row(now, 0, 1, 1 + number * MSS, 0, 16)
        board = sender.board
        truth.append((START_US + now, sender.window.cwnd, sender.window.ssthresh, board.state, board.una))
        sender.on_ack(now, number)
        send(now)
    return rows, truth
