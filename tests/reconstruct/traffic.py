"""Made-up traffic of one flow: packets lost, reordered and sent again, seen by a capture that misses some."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import numpy as np

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
MS = 1_000_000


@dataclass
class Packet:
    """One packet, in the names that the tracking kernels give their arrays."""

    time: int
    way: int
    seq: int = 0
    ack: int = -1
    payload: int = 0
    segments: int = 0
    flags: int = ACK
    window: int = 65536
    tsval: int = -1
    tsecr: int = -1
    ip_id: int = -1
    sack: list[int] = field(default_factory=list)
    copy: bool = False

    @property
    def raw(self):
        return self.window


def arrays(packets, **more):
    """Columns of packets, as the kernels take them."""

    def column(name, kind=np.int64):
        return np.array([getattr(p, name) for p in packets], kind)

    made = {
        name: column(name)
        for name in ("time", "seq", "ack", "payload", "segments", "flags", "window", "tsval", "tsecr", "ip_id")
    }
    counts = [len(p.sack) for p in packets]
    return {
        **made,
        "way": column("way", np.uint8),
        "copy": column("copy", np.uint8),
        "sack_at": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        "sacks": np.array([edge for p in packets for edge in p.sack], np.int64),
        **more,
    }


def simulate(
    seed, *, count=120, sack=True, stamps=True, ids=True, reorder=0.05, loss=0.05, missed=0.03, super_frames=True
):
    """Packets of one flow in order of capture. Not how TCP would do it: what a kernel must live through."""
    rnd = random.Random(seed)
    mss, rtt = 20, 20 * MS
    events, now, ident = [], 10**18, rnd.randrange(1, 60000)
    got, sent, nxt, una = set(), [], 1, 1

    def stamp(time):
        return (time // MS) % 2**32 if stamps else -1

    def put(packet, at):
        if rnd.random() >= missed:
            events.append((at, len(events), packet))

    put(Packet(now, 0, 0, -1, 0, 0, SYN, 65536, stamp(now), 0, ident), now)
    put(Packet(now + rtt, 1, 0, 1, 0, 0, SYN | ACK, 65536, stamp(now), stamp(now), 0), now + rtt)
    put(Packet(now + rtt, 0, 1, 1, 0, 0, ACK, 65536, stamp(now + rtt), stamp(now), ident + 1), now + rtt + 1000)
    now, ident = now + rtt + 2000, ident + 2
    window, rcv = 65536, 1
    for _ in range(count):
        choice = rnd.random()
        if choice < 0.25 and sent:
            start, size = rnd.choice(sent[-12:])
            if rnd.random() < 0.3 and size > mss:
                start, size = start + mss, mss
            now += rnd.choice([2 * MS, 30 * MS, 300 * MS])
        elif choice < 0.3:
            start, size = (nxt - 1, rnd.randrange(2)) if rnd.random() < 0.5 else (nxt, 1)
        else:
            size = mss * (rnd.randrange(1, 4) if super_frames else 1) - (rnd.random() < 0.1) * 7
            start, nxt = nxt, nxt + size
            sent.append((start, size))
        now += rnd.randrange(1000, 3 * MS)
        ident += 1
        packet = Packet(
            now,
            0,
            start,
            1,
            size,
            -(-size // mss),
            ACK | PSH,
            65536,
            stamp(now),
            stamp(now - rtt),
            ident % 65536 if ids else -1,
        )
        delay = rnd.choice([3 * MS, 30 * MS]) if rnd.random() < reorder else 0
        put(packet, now + delay)
        if rnd.random() < loss:
            continue
        new = [byte for byte in range(start, start + size) if byte not in got]
        got.update(range(start, start + size))
        before = rcv
        while rcv in got:
            rcv += 1
        if rcv == before or rnd.random() < 0.7:
            back = now + rtt + delay
            window = rnd.choice([0, 65536, 65536, 65536, 131072])
            blocks = edges(got, rcv, start) if sack else []
            if sack and not new and size:
                blocks = [start, start + size, *blocks][:6]
            ack = Packet(
                back,
                1,
                1,
                rcv,
                0,
                0,
                ACK,
                window,
                stamp(back),
                stamp(now if rcv > before else now - 5 * MS),
                100 + ident,
                blocks,
            )
            put(ack, back)
            una = rcv
    if rnd.random() < 0.5:
        put(Packet(now, 0, nxt, 1, 0, 0, FIN | ACK, 65536, stamp(now), 0, ident + 1), now)
        put(replace(Packet(now, 1, 1, nxt + 1, 0, 0, ACK), tsecr=stamp(now), time=now + rtt), now + rtt)
    assert una <= nxt + 1
    return [replace(p, time=at) for at, _, p in sorted(events, key=lambda event: event[:2])]


def edges(got, rcv, latest):
    """SACK edges of what was received above a number, the block of the latest packet first."""
    above = sorted(byte for byte in got if byte > rcv)
    runs = []
    for byte in above:
        if runs and byte == runs[-1][1]:
            runs[-1][1] += 1
        else:
            runs.append([byte, byte + 1])
    runs.sort(key=lambda run: (not run[0] <= latest < run[1], -run[0]))
    return [edge for run in runs[:3] for edge in run]
