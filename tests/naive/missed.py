"""Twin of `tracetool.kernels.missed_acks` and `missed_data`, with lists: what a capture at the sender lacks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

FIN, SYN, RST, ACK, ECE, CWR = 1, 2, 4, 16, 64, 128
MOST_MISSED, MOST_SEGMENTS, MOST_PER_PACKET, LOOK_AHEAD = 16, 1 << 14, 16, 1 << 11
AT_ONCE_NS = 1_000_000
PAUSE_PART = 4
FAR_APART = 1 << 16


@dataclass
class Packet:
    time: int
    out: bool
    seq: int
    ack: int
    payload: int
    segments: int
    flags: int
    window: int
    tsval: int
    tsecr: int
    ip_id: int
    sack: list[int]

    @property
    def end(self):
        return self.seq + self.payload

    @property
    def is_ack(self):
        return not self.out and bool(self.flags & ACK)


def read(packets):
    """Packets of a `FlowPackets`, one by one."""
    columns = [
        getattr(packets, name).tolist()
        for name in (
            "time_ns", "outbound", "seq", "ack", "payload", "segments", "flags", "window", "tsval", "tsecr", "ip_id",
        )
    ]  # fmt: skip
    edges, starts = packets.sack_edges.tolist(), packets.sack_offsets.tolist()
    blocks = [edges[a:b] for a, b in pairwise(starts)]
    return [Packet(*row) for row in zip(*columns, blocks, strict=True)]


def newer(stamp, than):
    return 0 < (stamp - than) % (1 << 32) < 1 << 31


def leap(before, now):
    if before.ip_id < 0 or now.ip_id < 0:
        return -1
    return (now.ip_id - before.ip_id - max(before.segments, 1)) % (1 << 16)


def counts(packets, out):
    way = [p for p in packets if p.out == out]
    leaps = [leap(a, b) for a, b in pairwise(way)]
    return bool(leaps) and 8 * leaps.count(0) >= 7 * len(leaps)


def lacks_data(packets):
    data = [p for p in packets if p.out and p.payload and not p.flags & (SYN | RST)]
    top = data[0].end if data else 0
    for p in data[1:]:
        if p.seq > top:
            return True
        top = max(top, p.end)
    return False


def nearest(whole, part, of, step):
    return int(whole / step * (part / of) + 0.5) * step


def missed_acks(packets, mss, sack):
    """Rows of (place, like, time, number, trim, echo)."""
    lacking = lacks_data(packets)
    counted = lacking and counts(packets, out=False)
    acks = []
    for k, p in enumerate(packets):
        if p.is_ack and not p.flags & (SYN | RST) and (not acks or p.ack >= packets[acks[-1]].ack):
            acks.append(k)  # else an old one, overtaken on its way
    found, usual, allowed = [], 0, 0
    for n in range(1, len(acks)):
        a, b = acks[n - 1], acks[n]
        one, other = packets[a], packets[b]
        if b - a > FAR_APART:
            continue
        between = [j for j in range(a + 1, b) if packets[j].out]
        many = leap(one, other) if counted else -1
        many = 0 if many > MOST_MISSED else many
        if one.window >= 0:
            allowed = max(allowed, one.ack + one.window)
        edge = allowed if lacking and one.window >= 0 else None
        places = []
        clock = one.tsval
        for j in between if many else ():
            p = packets[j]
            if (clock >= 0 and p.tsecr >= 0 and newer(p.tsecr, clock)) or (edge is not None and p.end > edge):
                clock, edge = p.tsecr, None
                if many < 0 and clock == other.tsval and other.time - p.time < AT_ONCE_NS:
                    break
                places.append((j, p.time))
                if len(places) == many:
                    break
        more = other.ack - one.ack
        if many < 0 and lacking and clock < 0 and usual > 0 and more >= 2 * usual:
            many = 1
        while len(places) < many:
            taken = {j for j, _ in places}
            pauses = [(packets[j].time - packets[j - 1].time, -j) for j in between if j not in taken]
            pause, place = max(pauses, default=(0, 0))
            if pause <= 0 or PAUSE_PART * pause < other.time - one.time:
                break
            places.append((-place, packets[-place].time))
        quiet = max(many - len(places), 0)
        for q in range(quiet):
            at = one.time + (other.time - one.time) * (q + 1) // (quiet + 1)
            place = next((j for j in range(a + 1, b) if packets[j].time > at), b)
            places.append((place, min(max(at, packets[place - 1].time), packets[place].time)))
        if places:
            places.sort()
            previous = packets[acks[n - 2]] if n > 1 else None
            found += numbered(packets, places, a, b, previous, mss, sack)
        if more > 0:
            usual = more
    return found


def numbered(packets, places, a, b, previous, mss, sack):
    """What the ACKs at these places acknowledged, as far as they tell more than `a` and less than `b`."""
    one, other = packets[a], packets[b]
    more = other.ack - one.ack
    again = (more == 0 and other.payload == 0) or (
        previous is not None and previous.ack == one.ack and one.payload == 0
    )
    following = []
    for p in packets[b + 1 :]:
        if not p.out:
            break
        following.append(p.payload)
    starts = [j for j, _ in places]
    groups = [[p for p in packets[i:k] if p.out] for i, k in zip(starts, [*starts[1:], b], strict=True)]
    weights = [1 + sum(p.payload for p in group) for group in groups]
    total = 1 + sum(weights) + sum(following)
    rows, part, sent, last = [], 0, 0, one.ack
    for (place, at), weight, group in zip(places, weights, groups, strict=True):
        part += weight
        sent = max([sent, *(p.end for p in group)])
        number, trim, like = one.ack, 0, b
        if not sack and again:
            like = a
        elif more == 0 and len(other.sack) > 1:
            left, right = other.sack[:2]
            for low, high in zip(one.sack[::2], one.sack[1::2], strict=False):
                if low <= left <= high:
                    left = high
            extra = max(right - left, 0)
            trim = extra - nearest(extra, part, total, mss)
            if not 0 < trim < extra:
                continue
        elif more > 0 and len(one.sack) < 2 and len(other.sack) < 2:
            number = one.ack + nearest(more, part, total, mss)
            if one.window >= 0:
                number = max(number, sent - one.window)
            number = min(max(number, last + mss), other.ack - mss)
            first = packets[place]
            if not sack and first.out and first.payload > 0 and one.ack < first.seq < other.ack:
                number = first.seq
            if number <= last:
                continue
        else:
            continue
        first = packets[place]
        echoes = first.out and first.flags & CWR
        rows.append([place, like, at, number, trim, int(bool(packets[like].flags & ECE and echoes))])
        last = number
    return rows


def place_of(packets, after, before, at):
    """The first place behind `after` with a later time than `at`; at most `before`."""
    return next((j for j in range(after + 1, before) if packets[j].time > at), before)


def stamp_of(packets, now, seq):
    """Timestamp of the segment at `seq`, as the ACK says that follows upon one of all before it."""
    known = -1
    for k in range(now - 1, max(now - LOOK_AHEAD, -1), -1):
        if packets[k].is_ack:
            known = packets[k].ack
            break
    for p in packets[now + 1 : now + LOOK_AHEAD]:
        if p.is_ack:
            if p.ack > seq:
                return p.tsecr if known == seq else -1
            known = p.ack
    return -1


def let_go(packets, before, now, mss):
    acks = [k for k in range(before + 1, now) if packets[k].is_ack]
    middle = (packets[before].time + packets[now].time) // 2
    if not acks:
        return now, middle
    if packets[now].time - packets[acks[-1]].time > AT_ONCE_NS:
        return place_of(packets, before, now, middle), middle
    if len(acks) > 1:
        return acks[0] + 1, packets[acks[0]].time
    inbound = [k for k in range(before) if not packets[k].out][-2:]
    if len(inbound) < 2:
        return now, packets[now].time
    previous, behind = inbound
    earlier = sum(p.payload for p in packets[behind + 1 : before + 1])
    later = 0
    for p in packets[now:]:
        if not p.out:
            break
        later += p.payload
    lacks_before = max(packets[behind].ack - packets[previous].ack, mss) - earlier
    lacks_after = max(packets[acks[0]].ack - packets[behind].ack, mss) - later
    return (before + 1, packets[before].time) if lacks_before > lacks_after else (now, packets[now].time)


def placed(packets, before, now, seq, mss, tick):
    one, other = packets[before], packets[now]
    if one.tsval >= 0 and other.tsval != one.tsval:
        stamp = stamp_of(packets, now, seq)
        if stamp == other.tsval:
            return now, other.time
        if stamp == one.tsval:
            return before + 1, one.time
        if stamp >= 0 and newer(stamp, one.tsval) and newer(other.tsval, stamp):
            at = min(one.time + (stamp - one.tsval) % (1 << 32) * tick, other.time)
            return place_of(packets, before, now, at), at
    return let_go(packets, before, now, mss)


def missed_data(packets, mss, tick, top=-1):
    """Rows of (place, like, time, number, length, again); what lies before `top` was sent before the capture."""
    counted = counts(packets, out=True)
    behind = None  # place and time of what was last found behind the last captured packet
    found, last, missed, since, earlier = [], -1, 0, 0, None
    for i, p in enumerate(packets):
        if len(found) + 2 > len(packets):
            break
        if p.flags & (SYN | RST):
            continue
        most = MOST_SEGMENTS + MOST_PER_PACKET * i
        if not p.out:
            beyond = p.ack - top if p.flags & ACK else 0
            count = -(-beyond // mss)
            if last >= 0 and beyond > 0 and count <= MOST_SEGMENTS and missed + count <= most:
                at = packets[last].time
                if p.tsecr >= 0 and packets[last].tsval >= 0:
                    ticks = (p.tsecr - packets[last].tsval) % (1 << 32)
                    at = min(at + (ticks * tick if ticks < 1 << 31 else 0), p.time)
                if behind is not None and behind[0] > last:
                    at = max(at, behind[1])
                behind = (max(place_of(packets, last, i, at), behind[0] if behind else 0), at)
                found.append([behind[0], last, at, top, beyond, 0])
                top = p.ack
                since, missed = since + count, missed + count
            continue
        size = p.payload + (1 if p.flags & FIN else 0)
        if size == 0:
            last, since = (i, 0) if last >= 0 else (last, since)
            continue
        if last >= 0:
            hole = max(p.seq - top, 0)
            count = -(-hole // mss)
            if count > MOST_SEGMENTS or missed + count > most:
                hole = count = 0
            missed += count
            leapt = leap(packets[last], p) - since if counted else 0
            if hole and earlier is not None and leapt < count:
                earlier[3:] = [top, hole, 0]
                count = 0
            elif hole:
                place, at = placed(packets, last, i, top, mss, tick)
                found.append([place, i if place == i else last, at, top, hole, 0])
            if 0 < leapt - count <= MOST_MISSED:
                row = [last + 1, last, packets[last].time, top, 0, leapt - count]
                earlier = earlier or row
                found.append(row)
            if p.seq + size > top:
                earlier = None
        last, since = i, 0
        top = max(top, p.seq + size)
    return found
