"""A slow, obvious Linux sender over one bottleneck: it makes the packets, and says what its state was at every ACK.

The twin of the replay kernels: they work from the packets back to the state, this one from the state to the packets.
Lists and dataclasses, one segment at a time; SACK, loss detection by RACK without reordering, proportional rate
reduction, retransmission timeouts, Reno and CUBIC with HyStart or HyStart++. Times are integer microseconds.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from tests.naive.hystart import HyStart
from tests.naive.hystart_plus import HyStartPlus
from tests.naive.path import HOLD, Path, Receiver

__all__ = ["Path", "Receiver", "packets", "run"]

MSS = 1448
INFINITE = 0x7FFFFFFF
START_US = 1_000_000_000


@dataclass
class Segment:
    number: int  # 0-based; its bytes are 1 + number * MSS to 1 + (number + 1) * MSS
    sent: int
    sacked: bool = False
    lost: bool = False
    retransmitted: bool = False  # a retransmission is outstanding
    ever: bool = False


@dataclass
class Sender:
    """The state of `struct tcp_sock` that matters, and what `tcp_ack` does to it."""

    cc: str = "reno"
    hystart: HyStart | None = None
    plus: HyStartPlus | None = None
    paced: bool = False
    cwnd: int = 10
    ssthresh: int = INFINITE
    count: int = 0
    una: int = 0
    nxt: int = 0
    outstanding: list[Segment] = field(default_factory=list)
    state: str = "open"
    high: int = 0
    prior: int = 0
    prr_delivered: int = 0
    prr_out: int = 0
    srtt: int = 0
    mdev: int = 0
    rttvar: int = 0
    rack: tuple[int, int] = (0, 0)
    rack_rtt: int = 0
    limited: bool = False
    most_out: int = 0
    usage_seq: int = 0
    last_max: int = 0
    epoch: int = 0
    k: float = 0.0
    origin: int = 0
    ack_count: int = 0
    tcp_cwnd: int = 0
    need: int = 0
    least: int = 0
    found: bool = False
    timer: int = 0
    backoff: int = 0

    def pipe(self) -> int:
        gone = sum(s.sacked for s in self.outstanding) + sum(s.lost for s in self.outstanding)
        return len(self.outstanding) - gone + sum(s.retransmitted for s in self.outstanding)

    def rtt_sample(self, rtt: int) -> None:
        if not self.srtt:
            self.srtt, self.mdev = rtt * 8, rtt * 2
            self.rttvar = max(self.mdev, 200_000)
            return
        error = rtt - (self.srtt >> 3)
        self.srtt += error
        deviation = abs(error) - (self.mdev >> 2)
        self.mdev += deviation >> 3 if error < 0 and deviation > 0 else deviation
        self.rttvar = max(self.mdev, 200_000)

    def on_ack(self, now: int, ack: int, blocks: list[tuple[int, int]]) -> None:
        delivered, lost, rtt, ca_rtt = 0, 0, 0, 0
        for segment in self.outstanding:
            inside = any(a <= segment.number < b for a, b in blocks)
            if (segment.number < ack or inside) and not segment.sacked:
                delivered += 1
                if not segment.ever:
                    ca_rtt = now - segment.sent
                    rtt = rtt or ca_rtt
                if (segment.sent, segment.number) > self.rack and not (
                    segment.ever and now - segment.sent < self.least
                ):
                    self.rack, self.rack_rtt = (segment.sent, segment.number), now - segment.sent
                if inside:
                    segment.sacked, segment.lost, segment.retransmitted = True, False, False
        advanced = ack > self.una
        retransmitted = any(s.ever for s in self.outstanding if s.number < ack)
        out = len(self.outstanding)
        self.outstanding = [s for s in self.outstanding if s.number >= ack]
        self.una = max(self.una, ack)
        if ca_rtt and not (retransmitted and advanced):
            self.rtt_sample(rtt)
            self.least = min(self.least or ca_rtt, ca_rtt)
            if self.hystart and not self.found and self.cwnd < self.ssthresh:
                state = self.una, self.nxt, self.cwnd, self.ssthresh, (self.srtt >> 3) * 1000, out
                if self.hystart.acked(now * 1000, ca_rtt * 1000, *state):
                    self.found, self.ssthresh = True, self.cwnd
        if advanced:
            self.timer, self.backoff = now, 0
        if self.state in {"recovery", "loss"} and self.una >= self.high:
            if self.state == "recovery":
                self.cwnd = self.ssthresh
            self.state = "open"
        if delivered and (blocks or self.state != "open"):
            lost = self.detect()
        if self.state == "open" and any(s.lost for s in self.outstanding):
            self.reduce()
            self.state = "recovery"
            self.high = self.nxt
        if self.state == "recovery":
            self.proportional(delivered, lost, advanced)
        elif advanced and (self.limited or (self.cwnd < self.ssthresh and self.cwnd < 2 * self.most_out)):
            self.grow(now, delivered)
        if ca_rtt and self.slow_start_plus() and self.plus.sample(ca_rtt, self.una, self.nxt):  # type: ignore[union-attr]
            self.ssthresh = self.cwnd

    def slow_start_plus(self) -> bool:
        """Whether HyStart++ has a say: in the first slow start alone."""
        return self.plus is not None and not self.plus.over and self.ssthresh == INFINITE

    def detect(self) -> int:
        """Lost is what was sent before the last delivered segment, once three are SACKed or in recovery (RFC 8985)."""
        if self.state != "recovery" and sum(s.sacked for s in self.outstanding) < 3:
            return 0
        lost = 0
        for segment in self.outstanding:
            waiting = segment.lost and not segment.retransmitted
            if segment.sacked or waiting or (segment.sent, segment.number) >= self.rack:
                continue
            segment.lost, segment.retransmitted = True, False
            lost += 1
        return lost

    def reduce(self) -> None:
        self.prior, self.prr_delivered, self.prr_out, self.count = self.cwnd, 0, 0, 0
        if self.cc == "reno":
            self.ssthresh = max(self.cwnd // 2, 2)
            return
        self.epoch = 0
        self.last_max = self.cwnd * (1024 + 717) // 2048 if self.cwnd < self.last_max else self.cwnd
        self.ssthresh = max(self.cwnd * 717 // 1024, 2)

    def proportional(self, delivered: int, lost: int, advanced: bool) -> None:
        if not delivered:
            return
        self.prr_delivered += delivered
        pipe = self.pipe()
        if pipe > self.ssthresh:
            send = -(-self.ssthresh * self.prr_delivered // self.prior) - self.prr_out
        else:
            send = max(self.prr_delivered - self.prr_out, delivered) + (1 if advanced and not lost else 0)
            send = min(self.ssthresh - pipe, send)
        self.cwnd = pipe + max(send, 0 if self.prr_out else 1)

    def grow(self, now: int, acked: int) -> None:
        if self.slow_start_plus():
            self.cwnd += self.plus.growth(acked)  # type: ignore[union-attr]
            return
        if self.cwnd < self.ssthresh:
            before = self.cwnd
            self.cwnd = min(self.cwnd + acked, self.ssthresh)
            acked -= self.cwnd - before
        if not acked:
            return
        need = self.cwnd if self.cc == "reno" else self.cubic(now, acked)
        self.count += acked
        self.cwnd += self.count // need
        self.count %= need

    def cubic(self, now: int, acked: int) -> int:
        self.ack_count += acked
        if not self.epoch:
            self.epoch, self.ack_count, self.tcp_cwnd = now, acked, self.cwnd
            self.origin = max(self.last_max, self.cwnd)
            self.k = ((self.origin - self.cwnd) / 0.4) ** (1 / 3)
        t = (now - self.epoch + self.least) / 1e6
        target = self.origin + 0.4 * (t - self.k) ** 3
        need = self.cwnd / (target - self.cwnd) if target > self.cwnd + 0.01 else 100 * self.cwnd
        if not self.last_max:
            need = min(need, 20)
        while self.ack_count > self.cwnd * 15 // 8:
            self.ack_count -= self.cwnd * 15 // 8
            self.tcp_cwnd += 1
        if self.tcp_cwnd > self.cwnd:
            need = min(need, self.cwnd / (self.tcp_cwnd - self.cwnd))
        return max(int(need), 2)

    def on_timeout(self, now: int) -> None:
        if self.state != "loss":
            self.reduce()
        for segment in self.outstanding:
            if not segment.sacked:
                segment.lost, segment.retransmitted = True, False
        self.cwnd, self.count, self.state, self.high = self.pipe() + 1, 0, "loss", self.nxt
        self.last_max = self.epoch = 0
        if self.hystart:
            self.hystart, self.found = HyStart(self.paced, MSS), False
            self.hystart.begin(now * 1000, self.nxt)
        self.timer, self.backoff = now, self.backoff + 1


def run(
    cc: str,
    path: Path,
    seconds: float,
    *,
    hystart: bool = False,
    plus: HyStartPlus | None = None,
    paced: bool = False,
    every: int = 2,
) -> tuple[dict[str, list[int]], list[tuple[int, int, int, int]]]:
    """Columns of the packets at the sender, and its (time, cwnd, ssthresh, srtt) as each ACK arrives, in us."""
    sender = Sender(cc, hystart=HyStart(paced, MSS) if hystart else None, plus=plus, paced=paced)
    receiver = Receiver(every)
    due = 0  # when a paced sender may send again
    rows: dict[str, list[int]] = {
        name: [] for name in ("time", "out", "seq", "ack", "payload", "flags", "tsval", "tsecr")
    }
    rows["sack"] = []
    truth: list[tuple[int, int, int, int]] = []
    line: list[tuple[int, int, str, int, list[tuple[int, int]], int]] = []
    serial = 0

    heard = 0  # the receiver's last timestamp

    def row(
        time: int, out: bool, seq: int, ack: int, payload: int, flags: int, stamp: int, echo: int, sack: list[int]
    ) -> None:
        values = (START_US + time, out, seq, ack, payload, flags, stamp, echo)
        for name, value in zip(
            ("time", "out", "seq", "ack", "payload", "flags", "tsval", "tsecr"), values, strict=True
        ):
            rows[name].append(int(value))
        rows["sack"].append(sack)  # type: ignore[arg-type]

    def transmit(now: int, segment: Segment) -> None:
        nonlocal serial, due
        segment.sent = now
        due = now + (sender.srtt >> 3) * 100 // (sender.cwnd * (200 if 2 * sender.cwnd < sender.ssthresh else 120))
        row(now, True, 1 + segment.number * MSS, 1, MSS, 16, now // 1000 + 5000, heard, [])
        arrival = path.send(now)
        if arrival is not None:
            serial += 1
            heapq.heappush(line, (arrival, serial, "data", segment.number, [], now // 1000 + 5000))

    def send(now: int) -> None:
        nonlocal serial
        sent = 0
        while sender.pipe() < sender.cwnd:
            if sender.paced and now < due and sender.nxt >= 10:
                if not any(event[2] == "pace" for event in line):
                    serial += 1
                    heapq.heappush(line, (due, serial, "pace", 0, [], 0))
                break
            waiting = [s for s in sender.outstanding if s.lost and not s.retransmitted]
            if waiting:
                segment = waiting[0]
                segment.retransmitted = segment.ever = True
            else:
                segment = Segment(sender.nxt, now)
                sender.outstanding.append(segment)
                sender.nxt += 1
            transmit(now, segment)
            sent += 1
        sender.prr_out += sent if sender.state == "recovery" else 0
        limited, out = sender.pipe() >= sender.cwnd, len(sender.outstanding)
        if sent and (sender.una >= sender.usage_seq or limited or (not sender.limited and out > sender.most_out)):
            sender.limited, sender.most_out, sender.usage_seq = limited, out, sender.nxt

    heard = path.delay // 2000 + 9000
    row(0, True, 0, -1, 0, 2, 5000, 0, [])
    row(path.delay, False, 0, 1, 0, 18, heard, 5000, [])
    sender.rtt_sample(path.delay)
    row(path.delay, True, 1, 1, 0, 16, path.delay // 1000 + 5000, heard, [])
    now = sender.timer = path.delay
    send(now)
    while now < seconds * 1e6 and (line or sender.outstanding):
        deadline = sender.timer + (((sender.srtt >> 3) + sender.rttvar) << sender.backoff)
        if not line or line[0][0] > deadline:
            now = deadline
            sender.on_timeout(now)
            send(now)
            continue
        now, _, what, number, blocks, stamp = heapq.heappop(line)
        if what == "pace":
            send(now)
            continue
        if what in {"data", "held"}:
            found = receiver.take(number) if what == "data" else [] if receiver.holds(number) else None
            serial += 1
            if found is not None:
                heapq.heappush(line, (now + path.delay // 2, serial, "ack", receiver.following, found, stamp))
            elif what == "data":
                heapq.heappush(line, (now + HOLD, serial, "held", receiver.following, [], stamp))
            continue
        heard = (now - path.delay // 2) // 1000 + 9000
        row(now, False, 1, 1 + number * MSS, 0, 16, heard, stamp, [1 + n * MSS for block in blocks for n in block])
        truth.append((START_US + now, sender.cwnd, sender.ssthresh, sender.srtt >> 3))
        sender.on_ack(now, number, blocks)
        send(now)
    return rows, truth


def packets(rows: dict[str, list[int]]) -> dict[str, np.ndarray]:
    """Arrays of `FlowPackets` from the columns of `run`."""
    counts = [len(edges) for edges in rows["sack"]]  # type: ignore[arg-type]
    size = len(counts)

    def ints(name: str) -> np.ndarray:
        return np.array(rows[name], np.int64)

    payload = ints("payload")
    return {
        "time_ns": ints("time") * 1000,
        "outbound": ints("out").astype(bool),
        "seq": ints("seq"),
        "ack": ints("ack"),
        "payload": payload,
        "segments": (payload > 0).astype(np.int32),
        "flags": ints("flags").astype(np.uint16),
        "window": np.full(size, 1 << 24, np.int64),
        "window_raw": np.full(size, 65535, np.int64),
        "tsval": ints("tsval"),
        "tsecr": ints("tsecr"),
        "sack_edges": np.array([edge for edges in rows["sack"] for edge in edges], np.int64),  # type: ignore[attr-defined]
        "sack_offsets": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        "ecn": np.zeros(size, np.uint8),
        "ip_id": np.full(size, -1, np.int64),
        "frame": np.arange(1, size + 1, dtype=np.int64),
    }
