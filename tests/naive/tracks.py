"""Slow and obvious twins of the kernels that track what happened to each flow's data.

Segments are dicts in a list; nothing is bounded, cached or searched cleverly. The rules are the kernels', said once
more, so that a slip in the bookkeeping of either shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

from tracetool.kernels import track as kernel
from tracetool.kernels import track_reasons

#: The constants of both.
k = SimpleNamespace(**{**vars(track_reasons), **vars(kernel)})
FIN, SYN, RST, ACK = 1, 2, 4, 16
MS = 1_000_000
FIELDS = ("kind", "trigger", "evidence", "again", "again_segments", "missing_at", "missing", "rtt", "rtt_seq",
          "rtt_full", "rtt_ticks")  # fmt: skip


def later(a, b):
    """Whether a 32-bit timestamp is after another."""
    return 0 < (a - b) % 2**32 < 2**31


@dataclass
class Out:
    """What is found, by packet; keys as in the kernel."""

    kind: dict = field(default_factory=dict)
    trigger: dict = field(default_factory=dict)
    evidence: dict = field(default_factory=dict)
    again: dict = field(default_factory=dict)
    again_segments: dict = field(default_factory=dict)
    missing_at: dict = field(default_factory=dict)
    missing: dict = field(default_factory=dict)
    rtt: dict = field(default_factory=dict)
    rtt_seq: dict = field(default_factory=dict)
    rtt_full: dict = field(default_factory=dict)
    rtt_ticks: dict = field(default_factory=dict)

    def miss(self, packet, own, at, size):
        key = (packet, 0 if own else 1)
        if not self.missing.get(key):
            self.missing_at[key] = at
        self.missing[key] = self.missing.get(key, 0) + size


class Sender:
    """One direction of a flow. ``packets`` are objects with the names that `kernels.track.track` gives its arrays."""

    def __init__(self, packets, side, behind, sack_ok):
        self.p, self.side, self.behind, self.sack_ok = packets, side, behind, sack_ok
        self.out = Out()
        self.segments = []  # dicts: start, end, sent, again, count, sacked, packet
        self.una = self.nxt = -1
        self.probe_end, self.peer_window, self.largest = 0, -1, 1
        self.srtt = self.rttvar = self.min_rtt = self.timer = self.duplicates = 0
        self.backoff, self.sacked_to, self.recovery_to, self.loss_to, self.probed = 1, -1, -1, -1, False
        self.late = None
        self.ids, self.ids_up, self.last_id = 0, 0, -1
        self.ticks, self.resent, self.echoes, self.echo_end = [], [], [], 0
        self.total = dict.fromkeys(range(k.TOTALS), 0)

    def run(self):
        for i, p in enumerate(self.p):
            if not p.copy:
                (self.sends if p.way == self.side else self.hears)(i, p)
        self.total[k.MIN_RTT] = self.min_rtt
        return self

    # -- the sender's own packets

    def sends(self, i, p):
        if p.ip_id > 0:
            if self.last_id >= 0:
                self.ids += 1
                self.ids_up += 0 < (p.ip_id - self.last_id) % 65536 <= 256
            self.last_id = p.ip_id
        if p.tsval >= 0 and (not self.ticks or later(p.tsval, self.last_tick)):
            self.ticks.append((p.tsval, p.time))
            self.last_tick = p.tsval
        marks = bool(p.flags & SYN) + bool(p.flags & FIN)
        start, end = p.seq, p.seq + p.payload + marks
        if p.flags & RST:
            return
        if self.nxt < 0 and (end > start or self.una < 0):
            self.una = self.nxt = start
        if p.payload <= 1 and not marks:
            idle = self.una >= self.nxt
            if self.peer_window == 0 and ((p.payload == 1 and start == self.nxt) or (start == self.nxt - 1 and idle)):
                self.out.kind[i] = k.WINDOW_PROBE
                self.probe_end = max(self.probe_end, end)
                return
            if start == self.nxt - 1 and idle and self.nxt > 1:
                self.out.kind[i] = k.KEEP_ALIVE
                return
        if end == start or abs(start - self.nxt) > 2**30:
            return
        if p.segments > 0:
            self.largest = max(self.largest, -(-p.payload // p.segments))
        if start > self.nxt:
            self.add(self.nxt, start, p.time, 0, i)
        self.out.kind[i] = k.NEW
        seen = self.repeats(i, p, start, end) if start < self.nxt else 0
        self.total[k.UNIQUE] += p.payload - min(seen, p.payload)
        if end > self.nxt:
            if self.una >= self.nxt:
                self.timer = p.time
            self.add(self.nxt, end, p.time, 1, i)

    def add(self, start, end, time, count, packet):
        self.segments.append(
            {"start": start, "end": end, "sent": time, "again": time, "count": count, "sacked": False, "packet": packet}
        )
        self.nxt = end

    def cut(self, seq):
        """Make sure that a segment begins at a number."""
        for at, segment in enumerate(self.segments):
            if segment["start"] < seq < segment["end"]:
                self.segments.insert(at + 1, {**segment, "start": seq})
                segment["end"] = seq
                return

    def repeats(self, i, p, start, end):
        below = min(end, self.nxt)
        floor = self.segments[0]["start"] if self.segments else self.nxt
        seen = min(below, floor) - start if start < floor else 0
        self.cut(max(start, floor))
        self.cut(below)
        at_head = start <= floor
        holes, sacked, first, hole = 0, False, True, None
        for s in [s for s in self.segments if s["end"] > max(start, floor) and s["start"] < below]:
            size = s["end"] - s["start"]
            if s["count"] <= 0:
                holes += size
                hole = (s["sent"], s["packet"])
                sacked |= s["count"] < 0
                if s["count"] == 0:
                    s["sent"] = p.time
                s["count"] = 1 if s["count"] == 0 else 2
            else:
                seen += size
                if first:
                    self.gap(p.time - s["again"])
                    first = False
                s["count"] += 1
                self.total[k.MOST_RETRANSMISSIONS] = max(self.total[k.MOST_RETRANSMISSIONS], s["count"] - 1)
                sacked |= s["sacked"]
            s["again"], s["packet"] = p.time, i
        late, reason = False, k.NO_EVIDENCE
        if holes and not seen:
            late, reason = self.is_late(p, *hole)
            if late:
                self.out.kind[i], self.out.evidence[i] = k.OUT_OF_ORDER, reason
        elif not holes and self.late and self.late[0] <= start and end <= self.late[1] and p.time - self.late[2] <= MS:
            key = (self.late[3], 1)
            self.out.kind[i], self.out.evidence[i] = k.OUT_OF_ORDER, k.FILLS_HOLE_TIME
            self.out.missing[key] -= min(self.out.missing[key], end - start)
            return 0
        if late:
            return seen
        old = holes + seen
        self.out.again[i] = min(old, p.payload)
        whole = max(p.segments, 1)
        self.out.again_segments[i] = whole if old >= end - start else max(1, -(-whole * old // (end - start)))
        self.out.kind[i] = k.RETRANSMISSION
        self.out.trigger[i], self.out.evidence[i] = self.why(p, below, at_head)
        if self.out.trigger[i] == k.FAST and self.una >= self.recovery_to:
            self.recovery_to = self.nxt
        if reason and self.out.trigger[i] == k.UNKNOWN:
            self.out.evidence[i] = reason
        if at_head:
            self.timer = p.time
        if sacked:
            self.out.kind[i], self.out.evidence[i] = k.SPURIOUS, k.WAS_SACKED
        elif seen == end - start and start < floor and below <= floor:
            self.out.kind[i], self.out.evidence[i] = k.SPURIOUS, k.WAS_ACKED
        self.resent.append({"start": start, "end": below, "packet": i, "time": p.time})
        return seen

    def gap(self, gap):
        t = self.total
        t[k.GAP_MIN] = gap if t[k.GAPS] == 0 else min(t[k.GAP_MIN], gap)
        t[k.GAP_MAX] = max(t[k.GAP_MAX], gap)
        t[k.GAP_SUM] += gap
        t[k.GAP_SQUARES] += (gap // 1000) ** 2
        t[k.GAPS] += 1

    def is_late(self, p, since, packet):
        other = self.p[packet]
        own = other.way == self.side
        step = (p.ip_id - other.ip_id) % 65536 if p.ip_id > 0 and other.ip_id > 0 else 0
        tick = (p.tsval - other.tsval) % 2**32 if p.tsval >= 0 and other.tsval >= 0 else 0
        if step and own and 4 * self.ids_up >= 3 * self.ids:
            return step >= 0x8000, k.FILLS_HOLE_IP_ID
        if tick and own:
            return tick >= 2**31, k.FILLS_HOLE_TSVAL
        round_trip = self.min_rtt + self.behind
        return p.time - since < (max(round_trip, MS) if round_trip > 0 else 3 * MS), k.FILLS_HOLE_TIME

    def why(self, p, below, at_head):
        quiet = p.time - self.timer - self.behind
        rtt = self.srtt + self.behind
        rto = 1000 * MS if self.srtt == 0 else (rtt + max(4 * self.rttvar, 200 * MS)) * self.backoff
        expired = at_head and 10 * quiet >= 9 * rto
        if p.flags & SYN:
            self.total[k.TIMEOUTS] += 1
            return k.RTO, k.BY_HANDSHAKE
        if not expired:
            if self.una < self.loss_to:
                return k.RTO, k.AFTER_TIMEOUT
            if self.sacked_to > below:
                return k.FAST, k.BY_SACK
            if self.una < self.recovery_to:
                return k.FAST, k.IN_RECOVERY
            if self.duplicates:
                return k.FAST, k.BY_DUPLICATE_ACKS
        calm = self.una >= self.recovery_to and (not at_head or self.sacked_to <= self.una)
        if below >= self.nxt and self.sack_ok and not self.probed and calm:
            self.probed, self.timer = True, p.time
            return k.TLP, k.BY_PROBE_TIME
        if at_head and (expired or quiet >= rtt + 4 * self.rttvar):
            self.total[k.TIMEOUTS] += 1
            self.backoff = min(2 * self.backoff, 64)
            self.loss_to, self.recovery_to, self.duplicates = self.nxt, -1, 0
            return k.RTO, k.BY_SILENCE
        return k.UNKNOWN, k.NO_REASON

    # -- the peer's packets

    def hears(self, i, p):
        same_window = True
        if p.window >= 0:
            same_window, self.peer_window = self.peer_window == p.window, p.window
        if not p.flags & ACK or p.flags & RST:
            return
        if self.nxt < 0:
            self.una = self.nxt = p.ack
            return
        if p.ack - self.nxt > 2**30 or self.una - p.ack > 2**30:
            return
        if p.tsecr > 0 and p.ack > self.una:
            self.echo(i, p)
        if p.ack > self.nxt:
            if p.ack > self.probe_end:
                self.out.missing_at[i, 1], self.out.missing[i, 1] = self.nxt, p.ack - self.nxt
                self.late = (self.nxt, p.ack, p.time, i)
            self.nxt = p.ack
        blocks = [tuple(p.sack[at : at + 2]) for at in range(0, len(p.sack) - 1, 2)]
        if blocks:
            (left, right), second = blocks[0], blocks[1] if len(blocks) > 1 else None
            if left < right and (right <= p.ack or (second and left >= second[0] and right <= second[1])):
                blocks = blocks[1:]
                self.had_twice(left, right)
        if p.ack > self.una:
            self.advance(i, p)
        elif p.ack == self.una and p.payload == 0 and same_window and not p.flags & (SYN | FIN):
            if self.una < self.nxt:
                self.duplicates += 1
            if self.echoes and p.time < self.echo_end:
                self.unneeded(self.echoes.pop(0)["packet"], k.BY_ECHO)
        for left, right in blocks:
            self.sack(i, p, max(left, self.una), right)
        self.sacked_to = max([self.sacked_to, *(right for _, right in blocks[:3])])

    def echo(self, i, p):
        while self.ticks and later(p.tsecr, self.ticks[0][0]):
            self.ticks.pop(0)
        if self.ticks and self.ticks[0][0] == p.tsecr:
            gap = p.time - self.ticks.pop(0)[1]
            if 0 <= gap < 600_000 * MS:
                self.out.rtt_ticks[i] = gap

    def unneeded(self, packet, reason):
        if self.out.kind.get(packet) != k.RETRANSMISSION:
            return False
        self.out.kind[packet], self.out.evidence[packet] = k.SPURIOUS, reason
        return True

    def had_twice(self, left, right):
        for one in reversed(self.resent[-512:]):
            if one["start"] < right and one["end"] > left and self.unneeded(one["packet"], k.BY_DSACK):
                return

    def advance(self, i, p):
        acked = [s for s in self.segments if s["start"] < p.ack]
        lowest = None
        for at, s in enumerate(acked):
            if s["count"] == 0 and not s["sacked"]:
                self.out.miss(
                    s["packet"], self.p[s["packet"]].way == self.side, s["start"], min(p.ack, s["end"]) - s["start"]
                )
            elif s["count"] > 1 and at == 0:
                lowest = s
                mine = self.p[s["packet"]].tsval
                if p.tsecr > 0 and mine >= 0 and (p.tsecr - mine) % 2**32 >= 2**31:
                    self.unneeded(s["packet"], k.BY_EIFEL)
        latest = max((s["again"] for s in acked), default=-1)
        if acked:
            self.time_it(i, p, acked, latest)
        if not self.sack_ok and p.ack == self.nxt and lowest:
            self.echo_end = p.time + 2 * (self.srtt + self.behind)
            recent = self.resent[-512:]
            while recent and (recent[0]["start"] <= lowest["start"] or recent[0]["time"] < lowest["again"]):
                recent.pop(0)
            self.echoes = recent
        if acked and acked[-1]["end"] > p.ack:
            acked.pop()["start"] = p.ack
        self.segments = self.segments[len(acked) :]
        self.una, self.timer, self.duplicates, self.backoff, self.probed = p.ack, p.time, 0, 1, False
        self.recovery_to = -1 if self.una >= self.recovery_to else self.recovery_to
        self.loss_to = -1 if self.una >= self.loss_to else self.loss_to

    def time_it(self, i, p, acked, latest):
        last = acked[-1]
        sample, timed = p.time - last["again"], min(p.ack, last["end"])
        self.total[k.CUM_ACKED] += len(acked) - 1
        if latest > last["again"]:
            self.total[k.POST_LOSS] += 1
        elif last["count"] != 1:
            first = self.total[k.AMBIGUOUS] == 0
            self.total[k.LAST_MIN] = sample if first else min(self.total[k.LAST_MIN], sample)
            self.total[k.LAST_MAX] = max(self.total[k.LAST_MAX], sample)
            self.total[k.LAST_SUM] += sample
            self.total[k.LAST_SQUARES] += (sample // 1000) ** 2
            self.total[k.AMBIGUOUS] += 1
        elif not last["sacked"] and 0 <= sample < 600_000 * MS:
            full = timed - last["start"] >= self.largest
            self.out.rtt[i], self.out.rtt_seq[i], self.out.rtt_full[i] = sample, timed, int(full)
            self.total[k.SAMPLES] += 1
            self.total[k.FULL_SAMPLES] += full
            self.min_rtt = sample if self.min_rtt == 0 else min(self.min_rtt, sample)
            if self.srtt == 0:
                self.srtt, self.rttvar = sample, sample // 2
            else:
                self.rttvar += (abs(sample - self.srtt) - self.rttvar) // 4
                self.srtt += (sample - self.srtt) // 8

    def sack(self, i, p, left, right):
        if right <= left or right - self.nxt > 2**30:
            return
        if right > self.nxt:
            self.add(self.nxt, right, p.time, 0, i)
        self.cut(left)
        self.cut(right)
        for s in self.segments:
            if left <= s["start"] and s["end"] <= right and not s["sacked"]:
                s["sacked"] = True
                if s["count"] == 0:
                    s["count"] = -1
                    self.out.miss(s["packet"], self.p[s["packet"]].way == self.side, s["start"], s["end"] - s["start"])
