"""What the packets of a sender without SACK tell of what was before them: the twin of `kernels.replay_begin`.

Nothing is kept from packet to packet: each question looks at the whole list again. What was acknowledged by then? Did
the ACK before move on? What left upon it?
"""

from __future__ import annotations

from dataclasses import dataclass

FIN, SYN, RST, ACK = 1, 2, 4, 16
TIMEOUT = 200_000_000  # ns; no retransmission timer of Linux is shorter
DUPLICATES, MOST_REORDERING, MOST_SEGMENTS = 3, 300, 1 << 14


@dataclass(frozen=True)
class Packet:
    """A packet as its sender saw it."""

    time: int
    out: bool
    seq: int
    ack: int
    payload: int
    flags: int

    @property
    def end(self):
        """What follows upon it."""
        return self.seq + self.payload + bool(self.flags & FIN)

    @property
    def acks(self):
        """Whether it acknowledges something."""
        return not self.out and bool(self.flags & ACK)


@dataclass(frozen=True)
class Begin:
    """In bytes, but for the segments in flight and the duplicate ACKs; None is unknown."""

    una: int | None = None
    nxt: int | None = None
    high: int | None = None
    flight: int | None = None
    reordering: int | None = None


def acknowledged(packets):
    """The largest number that any of these acknowledges; None without any."""
    return max((p.ack for p in packets if p.acks), default=None)


def last_ack(packets):
    """Place of the last ACK among these; None without any."""
    return max((k for k, p in enumerate(packets) if p.acks), default=None)


def is_duplicate(packets, k):
    """Whether packet `k` says again what was acknowledged before it, and carries no data."""
    return packets[k].acks and packets[k].payload == 0 and packets[k].ack == acknowledged(packets[:k])


def reordering(packets):
    """Duplicate ACKs that the sender waited for when first such made it send its head."""
    for i, p in enumerate(packets):
        if not p.out or p.payload == 0 or p.seq != acknowledged(packets[:i]):
            continue
        acks = [k for k in range(i) if packets[k].acks]
        waited = 0
        while waited < len(acks) and is_duplicate(packets, acks[-1 - waited]):
            waited += 1
        if waited:
            fast = waited >= DUPLICATES and p.time - packets[acks[-1]].time < TIMEOUT
            return min(waited, MOST_REORDERING) if fast else None
    return None


def beginning(packets):
    """What was acknowledged as the capture began: the first ACK says, or the head that is sent before it."""
    first = next((p for p in packets if p.acks or (p.out and p.end > p.seq)), None)
    ack = next((p.ack for p in packets if p.acks and not p.flags & RST), None)
    if ack is None:
        return None
    return ack if first.acks else min(first.seq, ack)


@dataclass(frozen=True)
class Send:
    """Data that leaves, and what was acknowledged by then; whether the last ACK moved on, and that not long ago."""

    una: int
    seq: int
    end: int
    prompt: bool


def sends(packets):
    """All data at or beyond what was acknowledged, until somebody resets the connection."""
    una = beginning(packets)
    reset = next((i for i, p in enumerate(packets) if p.flags & RST), len(packets))
    for i, p in enumerate(packets[:reset]):
        last = last_ack(packets[:i])
        heard = acknowledged(packets[: last or 0])
        moved = (
            heard is None or packets[last].ack > heard
        )  # the first ACK, and one before the capture, may have done so
        quiet = p.time - packets[last or 0].time
        by_now = max(una, acknowledged(packets[:i]) or 0)
        if p.out and p.end > p.seq >= by_now:
            yield Send(by_now, p.seq, p.end, moved and quiet < TIMEOUT)


def outstanding(packets):
    """The first byte beyond what was sent before the capture, if that begins within a recovery."""
    made = list(sends(packets))
    place, new = next(((k, s) for k, s in enumerate(made) if s.seq > s.una), (0, None))
    if new is None:
        return None  # one segment at a time
    before = made[:place]
    if before and new.seq == max(s.end for s in before):
        return None  # it adjoins the head: that was all there was
    heads = before or [s for s in made[place:] if s.seq == s.una and s.end <= new.seq][:1]
    return new.seq if heads and all(s.prompt for s in heads) else None


def moves(packets, una):
    """Each number to which ACKs moved on, with the data that leaves until the next one, and the repetitions before."""
    found, repeated = [(una, [])], 0
    for p in packets:
        if p.acks and p.ack > found[-1][0]:
            found.append((p.ack, []))
            repeated = 0
        elif p.acks and p.ack == found[-1][0]:
            repeated += 1
        elif p.out and p.payload > 0:
            found[-1][1].append((p, repeated))
    return found


def is_mended(head, data):
    """Whether what leaves first after an ACK moved on to a head is that, and not because enough others followed."""
    first, repeated = data[0]
    return first.seq == head and repeated < DUPLICATES


def ending(packets, una, nxt, mss):
    """Where the recovery ends, and the most in flight in the round trip after it, segments."""
    steps, flight = moves(packets, una), 0
    left = [k for k, (head, data) in enumerate(steps) if k and data and not is_mended(head, data)]
    high = min(steps[left[0]][0] - 1, nxt) if left else nxt
    if left:
        tops = [
            max([nxt, *(p.seq + p.payload for _, data in steps[: k + 1] for p, _ in data)]) for k in range(len(steps))
        ]
        over = [k for k in range(left[0], len(steps)) if steps[k][0] > high]
        following = [k for k in over if k > left[0]]
        goal = tops[following[0] - 1] if following else 0
        for k in over:
            if k in following and steps[k][0] > goal:
                break  # a round trip has passed
            top = tops[k - 1]
            for p, repeated in steps[k][1]:
                top = max(top, p.seq + p.payload)
                flight = max(flight, 0 if repeated else top - steps[k][0])
    return high, max(flight // mss, 1) if flight else (nxt - una) // mss


def begin(packets, mss):
    """All that is known of what was before the packets."""
    if any(p.flags & SYN for p in packets):
        return Begin()
    waited = reordering(packets)
    una = beginning(packets)
    nxt = None if una is None else outstanding(packets)
    if nxt is None or nxt - una > MOST_SEGMENTS * mss:
        return Begin(reordering=waited)
    return Begin(una, nxt, *ending(packets, una, nxt, mss), waited)
