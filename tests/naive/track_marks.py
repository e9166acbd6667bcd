"""Slow and obvious twins of the smaller tracking kernels: copies, vantage, acknowledgements, outstanding data."""

from __future__ import annotations

from collections import Counter

from tracetool.kernels import track_acks as a
from tracetool.kernels import track_window as w

FIN, SYN, RST, ACK = 1, 2, 4, 16
STEP = 600_000_000_000


def copies(packets):
    """Indices of frames that repeat one of the last millisecond."""

    def told(p):
        return p.ip_id > 0 and 16 * still[p.way] <= len(packets)

    still, last = Counter(), {}
    for p in packets:
        before = last.get(p.way)
        still[p.way] += bool(before and before.ip_id == p.ip_id and (before.seq, before.ack) != (p.seq, p.ack))
        last[p.way] = p
    sure = [i for i, p in enumerate(packets) if told(p) or p.payload > 0 or p.flags & SYN]
    weak = [i for i in range(len(packets)) if i not in set(sure)]
    found, made = set(), Counter()

    def key(p):
        return (p.way, p.seq, p.ack, p.payload, p.flags, p.raw, p.tsval, p.tsecr, p.ip_id, tuple(p.sack))

    def look(among, most):
        originals = []
        for i in among:
            for j in reversed(originals):
                if packets[i].time - packets[j].time > 1_000_000:
                    continue
                if key(packets[i]) == key(packets[j]) and made[j] < most:
                    found.add(i)
                    made[j] += 1
                    break
            else:
                originals.append(i)

    look(sure, len(packets))
    if found and 3 * len(found) >= len(sure):
        rest = len(sure) - len(found)
        look(weak, max(1, int(len(found) / rest + 0.5)) if rest else 1)
    return found


def echoes_of(packets, side):
    """Times from packets of a side to their echoes, each with whether data answers a SYN-ACK; that of the handshake."""
    gaps, hand = [], -1
    stamps, newest, syns, syn = [], None, 0, None
    for p in packets:
        if p.copy or p.flags & RST:
            continue
        if p.way == side:
            if p.flags & SYN:
                syn, syns = p.time, syns + 1
            if p.tsval >= 0 and (not stamps or 0 < (p.tsval - newest) % 2**32 < 2**31):
                stamps.append((p.tsval, p.time))
                newest = p.tsval
        elif p.flags & ACK:
            gap, by_data = -1, False
            if syn is not None and syns == 1:
                gap, by_data = p.time - syn, p.payload > 0 and not p.flags & SYN
                hand = gap if 0 <= gap < STEP and not by_data else hand
            syn = None
            if p.tsecr > 0:
                while stamps and 0 < (p.tsecr - stamps[0][0]) % 2**32 < 2**31:
                    stamps.pop(0)
                if stamps and stamps[0][0] == p.tsecr:
                    gap, by_data = p.time - stamps.pop(0)[1], False
            if 0 <= gap < STEP:
                gaps.append((gap, by_data))
    return gaps, hand


def echoes(packets):
    """Of both sides: the shortest time from a packet to its echo, and that of the handshake.

    Data that answers a SYN-ACK may have waited: where nothing else was answered, it counts only at one of the ends.
    """
    found = [echoes_of(packets, side) for side in (0, 1)]
    best = [min((gap for gap, _ in gaps), default=-1) for gaps, _ in found]
    for side, (gaps, _) in enumerate(found):
        other = best[1 - side]
        at_an_end = other < 200_000 or best[side] / (best[side] + other) <= 1 / 8
        if gaps and all(by_data for _, by_data in gaps) and not at_an_end:
            best[side] = -1
    return [(best[side], found[side][1]) for side in (0, 1)]


def acks(packets, side):
    """Marks of one side's packets: ``{index: (marks, duplicates)}``."""
    found = {}
    mine = [p for p in packets if not p.copy]
    for at, p in enumerate(mine):
        if p.way != side:
            continue
        before = [q for q in mine[:at] if q.way == side]
        other = [q for q in mine[:at] if q.way != side]
        ends = p.flags & (FIN | SYN | RST)
        marks = count = 0
        if p.raw == 0 and not ends:
            marks |= a.ZERO_WINDOW
        known = [q for q in other if q.flags & ACK and q.window >= 0]
        if not ends and p.payload and known and end(p) == known[-1].ack + known[-1].window:
            marks |= a.WINDOW_FULL
        acked = [q for q in before if q.flags & ACK]
        if acked and repeats(p, before, acked) and not ends:
            probe = probing(mine[:at], side)
            if p.raw != before[-1].raw:
                marks |= a.WINDOW_UPDATE if p.raw else 0
            elif p.raw == 0:
                marks |= a.WINDOW_PROBE_ACK if probe == a.WINDOW_PROBE_ACK else 0
            elif probe == a.KEEP_ALIVE_ACK:
                marks |= a.KEEP_ALIVE_ACK
            else:
                marks |= a.DUPLICATE
                count = 1 + max(
                    (found[q][1] for q in found if q in [packets.index(x) for x in since(acked, p)]), default=0
                )
                marks |= a.THIRD if count == 3 else 0
        found[packets.index(p)] = (marks, count)
    return found


def since(acked, p):
    """The ACKs of the same number right before."""
    run = []
    for q in reversed(acked):
        if q.ack != p.ack:
            break
        run.append(q)
    return run


def repeats(p, before, acked):
    return bool(p.flags & ACK) and p.payload == 0 and p.ack == acked[-1].ack and p.seq == max(end(q) for q in before)


def end(p):
    return p.seq + p.payload + bool(p.flags & SYN) + bool(p.flags & FIN)


def probing(earlier, side):
    """Whether the peer's last packet asked for an ACK of its own."""
    kind, top = 0, -1
    for at, q in enumerate(earlier):
        if q.way == side:
            continue
        kind = 0
        raw = [r.raw for r in earlier[:at] if r.way == side]
        if not q.flags & (FIN | SYN | RST) and q.payload <= 1:
            if q.payload == 1 and q.seq == top and raw and raw[-1] == 0:
                kind = a.WINDOW_PROBE_ACK
            elif q.seq == top - 1:
                kind = a.KEEP_ALIVE_ACK
        if kind != a.WINDOW_PROBE_ACK:
            top = max(top, end(q))
    return kind


def outstanding(packets, side):
    """Totals of `kernels.track_window.measure_window`."""
    total = dict.fromkeys(range(w.FIELDS), 0)
    total[w.SYN_AT] = total[w.FIN_AT] = -1
    mine = [p for p in packets if not p.copy and not p.flags & RST]
    levels = []
    for at, p in enumerate(mine):
        own = [q for q in mine[: at + 1] if q.way == side]
        heard = [q.ack for q in mine[: at + 1] if q.way != side and q.flags & ACK]
        sent = [end(q) for q in own if end(q) > q.seq]
        first = [q.seq for q in own][:1]
        early = [q.ack for q in mine[: mine.index(own[0])] if q.way != side and q.flags & ACK] if own else heard
        edge = max([*heard, *([] if early else first)], default=-1)
        level = max(0, max(sent) - edge) if sent else 0
        levels.append(level)
        total[w.MOST] = max(total[w.MOST], level)
        if level:
            total[w.LEAST] = level if total[w.LEAST] == 0 else min(level, total[w.LEAST])
        if p.way != side:
            continue
        if not p.flags & SYN:
            total[w.SUM] += level
            total[w.COUNT] += 1
        base = next((q.seq for q in own if q.payload), None)
        if p.payload and not any(edge > base for edge in [q for q in heard if base is not None]):
            total[w.INITIAL_BYTES] += p.payload
            total[w.INITIAL_PACKETS] += 1
        if p.flags & SYN:
            total[w.SYN_AT] = p.seq
        if p.flags & FIN:
            total[w.FIN_AT] = p.seq + p.payload + bool(p.flags & SYN)
    times = [packets[0].time, *(p.time for p in mine)]
    total[w.BYTE_TIME] = sum(
        level * (now - before) for level, before, now in zip([0, *levels], times, times[1:], strict=False)
    )
    return total
