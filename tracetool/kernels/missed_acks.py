"""ACKs that reached a sender, but not its capture: where they must have come, by what they made the sender do.

Three things tell. The sender's own segments echo the timestamp of the last ACK it got (RFC 7323): one that no captured
ACK bears belongs to a missed one. What it sends beyond the receiver's window, a missed ACK has allowed. And Linux and
others number the packets of a connection one by one (the IPv4 identification): a leap counts what is missing, and where
the sender began to send after a pause, one of them has come. Without timestamps and such numbers, one is held to be
missing where the next ACK acknowledges twice as much as the last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels._jit import kernel
from tracetool.kernels.clocks import after
from tracetool.kernels.window_judge import AT_ONCE_NS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

FIN, SYN, RST, ACK, ECE, CWR = 1, 2, 4, 16, 64, 128
#: Columns of what is found: the packet before which the ACK came, the one that it is like, its time, its number, and by
#: how much its first SACK block is shorter; and whether it echoes a mark (ECN).
PLACE, LIKE, AT, ACKED, TRIM, ECHO, ACK_WIDTH = 0, 1, 2, 3, 4, 5, 6
#: Identifications count a connection's packets where so many eighths of its packets follow upon the one before.
MOSTLY_EIGHTHS = 7
#: A larger leap between two packets is no count of missed ones.
MOST_MISSED = 16
#: Sends that came after a pause of this part of the time between two ACKs were let go by one between.
PAUSE_PART = 4
NEVER = 1 << 62


@bare_kernel
def leap(ip_id: Ints, segments: npt.NDArray[np.int32], before: int, now: int) -> int:
    """Packets whose identifications lie between those of two packets of one direction; -1 unknown."""
    if ip_id[before] < 0 or ip_id[now] < 0:
        return -1
    return (ip_id[now] - ip_id[before] - max(segments[before], 1)) & 0xFFFF


@bare_kernel
def counts_packets(outbound: Flags, ip_id: Ints, segments: npt.NDArray[np.int32], way: bool) -> bool:
    """Whether the identifications of one direction count its packets."""
    last, pairs, follow = -1, 0, 0
    for i in range(len(outbound)):
        if outbound[i] == way:
            if last >= 0:
                pairs += 1
                follow += leap(ip_id, segments, last, i) == 0
            last = i
    return pairs > 0 and 8 * follow >= MOSTLY_EIGHTHS * pairs


@bare_kernel
def lacks_data(outbound: Flags, seq: Ints, payload: Ints, flags: npt.NDArray[np.uint16]) -> bool:
    """Whether new data of the sender is missing: it is sent in the order of its numbers, whatever the network does."""
    nxt, begun = 0, False
    for i in range(len(outbound)):
        if outbound[i] and payload[i] > 0 and not flags[i] & (SYN | RST):
            if begun and seq[i] > nxt:
                return True
            nxt = max(nxt, seq[i] + payload[i]) if begun else seq[i] + payload[i]
            begun = True
    return False


@bare_kernel
def sacked_more(edges: Ints, offsets: Ints, before: int, now: int) -> int:
    """Bytes by which the first SACK block of an ACK goes beyond the blocks of an earlier one."""
    left, right = edges[offsets[now]], edges[offsets[now] + 1]
    for b in range(offsets[before], offsets[before + 1] - 1, 2):
        if edges[b] <= left <= edges[b + 1]:
            left = edges[b + 1]
    return max(right - left, 0)


@bare_kernel
def duplicate(ack: Ints, payload: Ints, before: int, a: int, b: int) -> bool:
    """Whether `a` is a duplicate of the ACK before it, or `b` one of `a`."""
    return (ack[b] == ack[a] and payload[b] == 0) or (before >= 0 and ack[before] == ack[a] and payload[a] == 0)


@bare_kernel
def in_order(found: Ints, first: int, rows: int) -> None:
    """Sort the last rows by their places, and times: there are few."""
    for r in range(first + 1, rows):
        q = r
        while q > first and (
            found[q - 1, PLACE] > found[q, PLACE]
            or (found[q - 1, PLACE] == found[q, PLACE] and found[q - 1, AT] > found[q, AT])
        ):
            place, at = found[q, PLACE], found[q, AT]
            found[q, PLACE], found[q, AT] = found[q - 1, PLACE], found[q - 1, AT]
            found[q - 1, PLACE], found[q - 1, AT] = place, at
            q -= 1


@bare_kernel
def nearest(whole: int, part: int, of: int, step: int) -> int:
    """A part of something, to the nearest step."""
    return int(whole / step * (part / of) + 0.5) * step


@kernel
def find_missed_acks(
    time: Ints, outbound: Flags, seq: Ints, ack: Ints, payload: Ints, segments: npt.NDArray[np.int32],
    flags: npt.NDArray[np.uint16], window: Ints, tsval: Ints, tsecr: Ints, ip_id: Ints, edges: Ints, offsets: Ints,
    mss: int, sack: bool, found: Ints,
) -> int:  # fmt: skip
    """Find the ACKs that a capture made at the sender lacks; returns their number, `found.shape[0]` at most.

    Between two captured ACKs the missed ones are held to have acknowledged (or SACKed) equal parts of what the latter
    has beyond the former. Where they tell nothing that it does not tell, they are left out.

    Parameters
    ----------
    time, outbound, seq, ack, payload, segments, flags, window, tsval, tsecr, ip_id, edges, offsets
        The packets of a flow, as captured at the sender.
    mss : int
        Payload of a full segment, bytes.
    sack : bool
        Whether SACK is in use.
    found : int64, shape (n, ACK_WIDTH)
        Out: in the order of their places.
    """
    lacking = lacks_data(outbound, seq, payload, flags)
    counted = lacking and counts_packets(outbound, ip_id, segments, False)
    rows = 0
    last, before_last = -1, -1
    usual = 0  # bytes that the ACK before acknowledged
    allowed = 0  # the receiver's window reaches to here
    for k in range(len(outbound)):
        if outbound[k] or flags[k] & (SYN | RST) or not flags[k] & ACK:
            continue
        if last >= 0 and ack[k] < ack[last]:  # an old one, overtaken on its way
            continue
        a, b = last, k
        if a < 0 or b - a > 1 << 16:
            before_last, last = last, k
            continue
        many = leap(ip_id, segments, a, b) if counted else -1
        if many > MOST_MISSED:
            many = 0
        first = rows
        clock = tsval[a]
        more = ack[b] - ack[a]
        if window[a] >= 0:
            allowed = max(allowed, ack[a] + window[a])
        edge = allowed if lacking and window[a] >= 0 else NEVER
        if many != 0:  # what the sender echoes, and what the last ACK did not allow it to send
            for j in range(a + 1, b):
                if not outbound[j]:
                    continue
                echoes = clock >= 0 and tsecr[j] >= 0 and after(tsecr[j], clock) > 0
                if (echoes or seq[j] + payload[j] > edge) and rows < found.shape[0]:
                    clock = tsecr[j]
                    edge = NEVER
                    if many < 0 and clock == tsval[b] and time[b] - time[j] < AT_ONCE_NS:
                        break  # the order of the capture, not of the sender
                    found[rows, PLACE] = j
                    found[rows, AT] = time[j]
                    rows += 1
                    if rows - first == many:
                        break
        if many < 0 and lacking and clock < 0 and usual > 0 and more >= 2 * usual:
            many = 1
        while rows - first < many and rows < found.shape[0]:  # where the sender began to send after a pause
            widest, place = 0, -1
            for j in range(a + 1, b):
                if not outbound[j]:
                    continue
                pause = time[j] - time[j - 1]
                known = False
                for r in range(first, rows):
                    known = known or found[r, PLACE] == j
                if pause > widest and not known:
                    widest, place = pause, j
            if place < 0 or PAUSE_PART * widest < time[b] - time[a]:
                break
            found[rows, PLACE] = place
            found[rows, AT] = time[place]
            rows += 1
        quiet = max(many - (rows - first), 0)  # they let nothing go, and came evenly, for all that can be told
        for q in range(min(quiet, found.shape[0] - rows)):
            at = time[a] + (time[b] - time[a]) * (q + 1) // (quiet + 1)
            place = a + 1
            while place < b and time[place] <= at:
                place += 1
            found[rows, PLACE] = place
            found[rows, AT] = min(max(at, time[place - 1]), time[place])
            rows += 1
        if rows > first:
            in_order(found, first, rows)
            rows = fill_numbers(
                outbound, seq, ack, payload, flags, window, edges, offsets, mss, sack, found, first, rows, a, b,
                before_last,
            )  # fmt: skip
        if more > 0:
            usual = more
        before_last, last = last, k
    return rows


@bare_kernel
def fill_numbers(
    outbound: Flags, seq: Ints, ack: Ints, payload: Ints, flags: npt.NDArray[np.uint16], window: Ints, edges: Ints,
    offsets: Ints, mss: int, sack: bool, found: Ints, first: int, rows: int, a: int, b: int, before: int,
) -> int:  # fmt: skip
    """Say what the missed ACKs between two captured ones, `a` and `b`, acknowledged; returns the rows that are left.

    Each acknowledged that part of it which it let go of what all let go, and no less than the receiver's window needs.
    """
    more = ack[b] - ack[a]
    a_blocks, b_blocks = offsets[a + 1] > offsets[a] + 1, offsets[b + 1] > offsets[b] + 1
    duplicates = not sack and duplicate(ack, payload, before, a, b)
    total = rows - first + 1  # a byte for each: equal parts where they let nothing go
    after = b + 1
    while after < len(outbound) and outbound[after]:
        total += payload[after]
        after += 1
    for j in range(found[first, PLACE], b):
        total += payload[j] if outbound[j] else 0
    kept, part, sent, last = first, 0, 0, ack[a]
    for r in range(first, rows):
        part += 1
        for j in range(found[r, PLACE], found[r + 1, PLACE] if r + 1 < rows else b):
            if outbound[j]:
                part += payload[j]
                sent = max(sent, seq[j] + payload[j])
        number, trim, like = ack[a], 0, b
        if duplicates:
            like = a
        elif more == 0 and b_blocks:
            extra = sacked_more(edges, offsets, a, b)
            trim = extra - nearest(extra, part, total, mss)
            if trim <= 0 or trim >= extra:
                continue
        elif more > 0 and not a_blocks and not b_blocks:
            number = ack[a] + nearest(more, part, total, mss)
            if window[a] >= 0:
                number = max(number, sent - window[a])
            number = min(max(number, last + mss), ack[b] - mss)
            head = seq[found[r, PLACE]]
            if not sack and outbound[found[r, PLACE]] and payload[found[r, PLACE]] > 0 and ack[a] < head < ack[b]:
                number = head  # without SACK old data that is sent again begins where the last ACK ended
            if number <= last:
                continue
        else:
            continue
        # an echo matters where it begins a reduction, and that the next data says
        echoes = outbound[found[r, PLACE]] and flags[found[r, PLACE]] & CWR
        found[kept, ECHO] = 1 if flags[like] & ECE and echoes else 0
        found[kept, PLACE] = found[r, PLACE]
        found[kept, AT] = found[r, AT]
        found[kept, LIKE] = like
        found[kept, ACKED] = number
        last = number
        found[kept, TRIM] = trim
        kept += 1
    return kept
