"""Framing of pcapng: typed blocks, of which those with packets are read here and the others handed back.

See draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

from typing import Any

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.loads import be16, be32, be64, le16, le32, le64

MORE, FULL, BAD, FOUND, SPECIAL = range(5)
SECTION, INTERFACE, OLD_PACKET, SIMPLE, NAMES, STATISTICS, ENHANCED = 0x0A0D0D0A, 1, 2, 3, 4, 5, 6
JOURNAL, CUSTOM, CUSTOM_NOT_COPIED = 9, 0x0BAD, 0x40000BAD
LIMIT = 1 << 24  # a longer block is taken for damage
PLAUSIBLE_BYTES = 1 << 20  # the longest block that is believed in while searching
MULTIPLY, DIVIDE, BINARY = 0, 1, 2  # how time stamps become nanoseconds
RUN = 3  # blocks in a row that make a place plausible
_DROP_COUNT = 4  # option of enhanced packet blocks
NO_INTERFACE, NO_TIME, BAD_PACKET, BAD_TIME = range(4)  # what was odd
NOTES = 4
LAST = (1 << 63) - 1  # nanoseconds: in the year 2262


@bare_kernel
def load16(buffer: Any, at: int, big_endian: bool) -> int:
    """Load 16 bits in the section's byte order."""
    return be16(buffer, at) if big_endian else le16(buffer, at)


@bare_kernel
def load32(buffer: Any, at: int, big_endian: bool) -> int:
    """Load 32 bits in the section's byte order."""
    return be32(buffer, at) if big_endian else le32(buffer, at)


@bare_kernel
def nanoseconds(stamp: int, mode: int, factor: int) -> int:
    """Convert a time stamp.

    Parameters
    ----------
    stamp
        In units of the interface.
    mode, factor
        MULTIPLY or DIVIDE by the factor, or BINARY: units of 2 to the power of -factor seconds.

    Returns
    -------
    int
        -1 where it is after `LAST`.
    """
    if mode == MULTIPLY:
        return stamp * factor if 0 <= stamp <= LAST // factor else -1
    if mode == DIVIDE:  # an unsigned number, by an even one
        return ((stamp >> 1) & LAST) // (factor >> 1)
    if factor >= 63:
        return 0
    part = stamp & ((1 << factor) - 1)
    whole = stamp >> factor
    if factor:
        whole &= LAST >> (factor - 1)
    bits = factor
    if bits > 33:  # so that the product stays below 2^63
        part >>= bits - 33
        bits = 33
    if whole < 0 or whole >= LAST // 1_000_000_000:
        return -1
    return whole * 1_000_000_000 + ((part * 1_000_000_000) >> bits)


@bare_kernel
def drop_count(buffer: Any, at: int, end: int, big_endian: bool) -> int:
    """Packets dropped before this one, by the options of an enhanced packet block."""
    while at + 4 <= end:
        code, length = load16(buffer, at, big_endian), load16(buffer, at + 2, big_endian)
        if code == 0 or at + 4 + length > end:
            return 0
        if code == _DROP_COUNT and length == 8:
            value = be64(buffer, at + 4) if big_endian else le64(buffer, at + 4)
            return value if value >= 0 else 0
        at += 4 + ((length + 3) & ~3)
    return 0


@bare_kernel
def walk(
    buffer: Any, at: int, used: int, big_endian: bool, interfaces: Any, count: int, last_time: int, frames: Any,
    notes: Any, drops: Any,
) -> tuple[int, int, int, int]:  # fmt: skip
    """List the frames in ``buffer[at:used]``, up to a block that is not for this loop.

    Parameters
    ----------
    interfaces : INTERFACE array
        Those of the section; the first ``count`` are known.
    last_time
        Time of the frame before, for blocks that have none.
    frames : FRAME array
        Filled from the start.
    notes : int64 array of NOTES
        Counts oddities.
    drops : int64 array of 1
        Sums drop counts.

    Returns
    -------
    tuple
        Number of frames, offset of the first byte not consumed, why it stopped (MORE, FULL, BAD; SPECIAL: a whole
        block that describes the section or an interface), and the last time.
    """
    listed = 0
    room = len(frames)
    while used - at >= 12:
        kind, length = load32(buffer, at, big_endian), load32(buffer, at + 4, big_endian)
        if kind == SECTION:
            return listed, at, SPECIAL, last_time
        if length < 12 or length & 3 or length > LIMIT:
            return listed, at, BAD, last_time
        if used - at < length:
            return listed, at, MORE, last_time
        if load32(buffer, at + length - 4, big_endian) != length:
            return listed, at, BAD, last_time
        if listed == room:
            return listed, at, FULL, last_time
        number = -1
        body = at + 8
        end = at + length - 4
        captured, original, offset, stamped = 0, 0, 0, True
        high, low = 0, 0
        if kind == ENHANCED or kind == OLD_PACKET:
            if length >= 32:
                number = load32(buffer, body, big_endian)
                if kind == OLD_PACKET:
                    number = load16(buffer, body, big_endian)
                    lost = load16(buffer, body + 2, big_endian)
                    if lost != 0xFFFF:
                        drops[0] += lost
                high, low = load32(buffer, body + 4, big_endian), load32(buffer, body + 8, big_endian)
                captured, original = load32(buffer, body + 12, big_endian), load32(buffer, body + 16, big_endian)
                offset = body + 20
            else:
                notes[BAD_PACKET] += 1
        elif kind == SIMPLE:
            if length >= 16:
                number = 0
                original = load32(buffer, body, big_endian)
                offset = body + 4
                captured = min(original, end - offset)
                if count > 0 and interfaces[0].snaplen > 0:
                    captured = min(captured, interfaces[0].snaplen)
                stamped = False
            else:
                notes[BAD_PACKET] += 1
        elif kind == INTERFACE or kind == STATISTICS:
            return listed, at, SPECIAL, last_time
        elif kind == JOURNAL or kind == CUSTOM or kind == CUSTOM_NOT_COPIED:  # Wireshark gives it a frame number
            frame = frames[listed]
            frame.offset, frame.captured, frame.original = body, 0, 0
            frame.time = last_time
            frame.link = -1
            frame.interface = -1
            listed += 1
        if number >= 0:
            if number >= count:
                notes[NO_INTERFACE] += 1
            elif captured > end - offset:
                notes[BAD_PACKET] += 1
            else:
                interface = interfaces[number]
                if stamped:
                    time = nanoseconds((high << 32) | low, interface.mode, interface.factor)
                    if time < 0 or time > LAST - max(interface.offset_ns, 0) or time + interface.offset_ns < 0:
                        notes[BAD_TIME] += 1
                    else:
                        last_time = time + interface.offset_ns
                else:
                    notes[NO_TIME] += 1
                frame = frames[listed]
                frame.offset = offset
                frame.time = last_time
                frame.captured = captured
                frame.original = original
                frame.link = interface.link
                frame.interface = number
                listed += 1
                options = offset + ((captured + 3) & ~3)
                if kind == ENHANCED and options + 4 <= end:
                    drops[0] += drop_count(buffer, options, end, big_endian)
        at += length
    return listed, at, MORE, last_time


@bare_kernel
def known(kind: int) -> bool:
    """Whether a block type is one that writers use."""
    return INTERFACE <= kind <= ENHANCED or 9 <= kind <= 10 or kind == CUSTOM or kind == CUSTOM_NOT_COPIED


@bare_kernel
def resynchronise(buffer: Any, at: int, used: int, final: bool, big_endian: bool) -> tuple[int, int]:
    """Find the next place where blocks of known kinds follow one another, each with its length at both ends.

    A section header that says its byte order is believed at once.

    Returns
    -------
    tuple
        The place, and FOUND or MORE (what is before the place need not be looked at again).
    """
    while used - at >= 12:
        kind = load32(buffer, at, big_endian)
        order = be32(buffer, at + 8)
        if kind == SECTION and (order == 0x1A2B3C4D or order == 0x4D3C2B1A):
            return at, FOUND
        if not known(kind):
            at += 1
            continue
        place = at
        good = True
        run = 0
        while run < RUN:
            if used - place < 12:
                if not final:
                    return at, MORE
                good = place == used or run > 1
                break
            kind, length = load32(buffer, place, big_endian), load32(buffer, place + 4, big_endian)
            if kind == SECTION and run:
                break
            if not known(kind) or length < 12 or length & 3 or length > PLAUSIBLE_BYTES:
                good = False
                break
            if used - place < length:
                if not final:
                    return at, MORE
                good = run > 1
                break
            if load32(buffer, place + length - 4, big_endian) != length:
                good = False
                break
            place += length
            run += 1
        if good:
            return at, FOUND
        at += 1
    return at, MORE
