"""Framing of pcap: a 16-byte (or 24-byte) header before each frame.

See draft-ietf-opsawg-pcap, and libpcap's ``sf-pcap.c`` for the variants.
"""

from __future__ import annotations

from typing import Any

from tracetool.kernels._jit import kernel
from tracetool.kernels.loads import be32, le32

MORE, FULL, BAD = 0, 1, 2  # needs more bytes; needs more room for frames; a length that cannot be


@kernel
def walk(
    buffer: Any, at: int, used: int, swapped: bool, header: int, tick: int, limit: int, link: int, frames: Any  # noqa: FBT001
) -> tuple[int, int, int]:
    """List the frames in ``buffer[at:used]``.

    Parameters
    ----------
    buffer : uint8 array
        Bytes of the file.
    at, used
        Where to start, and how many bytes of the buffer are filled.
    swapped
        Whether the file is big-endian.
    header
        Bytes of a record's header.
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
        if swapped:
            seconds, fraction, captured, original = be32(buffer, at), be32(buffer, at + 4), be32(buffer, at + 8), be32(buffer, at + 12)
        else:
            seconds, fraction, captured, original = le32(buffer, at), le32(buffer, at + 4), le32(buffer, at + 8), le32(buffer, at + 12)
        if captured > limit:
            return count, at, BAD
        if used - at < header + captured:
            return count, at, MORE
        if count == room:
            return count, at, FULL
        frame = frames[count]
        frame.offset = at + header
        frame.time = seconds * 1_000_000_000 + fraction * tick
        frame.captured = captured
        frame.original = original
        frame.link = link
        frame.interface = 0
        count += 1
        at += header + captured
    return count, at, MORE
