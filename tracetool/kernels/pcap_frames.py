"""Framing of pcap: a 16-byte (or 24-byte) header before each frame.

See draft-ietf-opsawg-pcap, and libpcap's ``sf-pcap.c`` for the variants.
"""

from __future__ import annotations

from typing import Any

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.loads import be32, le32
from tracetool.kernels.prefetch import prefetch

MORE, FULL, BAD, FOUND = (
    0,
    1,
    2,
    3,
)  # needs more bytes; needs more room for frames; a length that cannot be; resynchronised
NORMAL, MAYBE_SWAPPED, SWAPPED = 0, 1, 2  # order of the two lengths: files before version 2.4
RUN = 3  # records in a row that make a place plausible
AHEAD = 1024  # bytes to ask for in advance: each header says where the next one is, too late to read it at once
PLAUSIBLE_BYTES = 262_144  # libpcap's MAXIMUM_SNAPLEN
_DAY = 86_400


@bare_kernel
def load32(buffer: Any, at: int, big_endian: bool) -> int:
    """Load 32 bits in the file's byte order."""
    return be32(buffer, at) if big_endian else le32(buffer, at)


@bare_kernel
def walk(
    buffer: Any, at: int, used: int, big_endian: bool, header: int, lengths: int, tick: int, limit: int, link: int,
    frames: Any,
) -> tuple[int, int, int]:  # fmt: skip
    """List the frames in ``buffer[at:used]``.

    Parameters
    ----------
    buffer : uint8 array
        Bytes of the file.
    at, used
        Where to start, and how many bytes of the buffer are filled.
    big_endian
        The file's byte order.
    header
        Bytes of a record's header.
    lengths
        Order of the two lengths.
    tick
        Nanoseconds of one unit of the sub-second field.
    limit
        A captured length above it cannot be.
    link
        Link type of all frames.
    frames : FRAME array
        Filled from the start.

    Returns
    -------
    tuple
        Number of frames, offset of the first byte not consumed, and MORE, FULL or BAD.
    """
    count = 0
    room = len(frames)
    while used - at >= header:
        captured, original = load32(buffer, at + 8, big_endian), load32(buffer, at + 12, big_endian)
        if lengths == SWAPPED or (lengths == MAYBE_SWAPPED and captured > original):
            captured, original = original, captured
        if captured > limit:
            return count, at, BAD
        if used - at < header + captured:
            return count, at, MORE
        if count == room:
            return count, at, FULL
        frame = frames[count]
        frame.offset = at + header
        frame.time = load32(buffer, at, big_endian) * 1_000_000_000 + load32(buffer, at + 4, big_endian) * tick
        frame.captured = captured
        frame.original = original
        frame.link = link
        frame.interface = -1
        count += 1
        at += header + captured
        prefetch(buffer, at + AHEAD)
    return count, at, MORE


@bare_kernel
def resynchronise(
    buffer: Any, at: int, used: int, final: bool, big_endian: bool, header: int, lengths: int, tick: int, seconds: int
) -> tuple[int, int]:
    """Find the next place where records follow one another.

    A place is plausible where `RUN` records in a row have possible lengths and times within a day of the last good
    one; at the end of the file fewer will do, if they end where the file ends.

    Parameters
    ----------
    seconds
        Time of the last good record; -1: none.
    final
        Whether the file ends at ``used``.

    Returns
    -------
    tuple
        The place, and FOUND or MORE (what is before the place need not be looked at again).
    """
    while used - at >= header:
        place = at
        run = 0
        near = seconds
        good = True
        while run < RUN:
            if used - place < header:
                if not final:
                    return at, MORE
                good = run > 0 and (place == used or run > 1)
                break
            captured, original = load32(buffer, place + 8, big_endian), load32(buffer, place + 12, big_endian)
            if lengths == SWAPPED or (lengths == MAYBE_SWAPPED and captured > original):
                captured, original = original, captured
            time = load32(buffer, place, big_endian)
            if (
                captured > PLAUSIBLE_BYTES
                or captured == 0
                or captured > original
                or original > 4 * PLAUSIBLE_BYTES
                or load32(buffer, place + 4, big_endian) * tick >= 1_000_000_000
                or (near >= 0 and abs(time - near) > _DAY)
            ):
                good = False
                break
            near = time
            place += header + captured
            if place > used:
                if not final:
                    return at, MORE
                good = run > 1
                break
            run += 1
        if good:
            return at, FOUND
        at += 1
    return at, MORE
