"""TCP options: RFC 9293 (MSS), 7323 (scale, timestamps), 2018 (SACK), 7413 (fast open), 8684 (MPTCP)."""

from __future__ import annotations

from typing import Any

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.loads import be16, be32, u8

MAX_EDGES = 8  # four SACK blocks fill the option space


@bare_kernel
def read_options(buffer: Any, at: int, end: int, options: Any, edges: Any) -> None:
    """Read the options in ``buffer[at:end]``, which lies inside the buffer and is at most 40 bytes long.

    Parameters
    ----------
    buffer : uint8 array
        The captured bytes.
    at, end
        Where the options are.
    options : OPTIONS record
        Overwritten; -1 where there is no such option, ``cut`` where a length points outside.
    edges : int64 array of MAX_EDGES
        SACK edges as on the wire.
    """
    options.mss = -1
    options.shift = -1
    options.sack_permitted = 0
    options.timestamps = 0
    options.edges = 0
    options.mptcp = 0
    options.fast_open = 0
    options.cut = 0
    options.long_shift = 0
    if end - at == 12 and be32(buffer, at) == 0x0101080A:  # time stamps alone, as most segments have them
        options.timestamps = 1
        options.tsval = be32(buffer, at + 4)
        options.tsecr = be32(buffer, at + 8)
        return
    while at < end:
        kind = u8(buffer, at)
        if kind == 1:
            at += 1
            continue
        if kind == 0:
            return
        if at + 2 > end:
            options.cut = 1
            return
        length = u8(buffer, at + 1)
        if length < 2 or at + length > end:
            options.cut = 1
            return
        if kind == 8 and length == 10:
            options.timestamps = 1
            options.tsval = be32(buffer, at + 2)
            options.tsecr = be32(buffer, at + 6)
        elif kind == 5 and (length - 2) % 8 == 0:
            count = min((length - 2) // 4, MAX_EDGES)
            for k in range(count):
                edges[k] = be32(buffer, at + 2 + 4 * k)
            options.edges = count
        elif kind == 2 and length == 4:
            options.mss = be16(buffer, at + 2)
        elif kind == 3 and length == 3:
            options.shift = min(u8(buffer, at + 2), 14)  # RFC 7323, 2.3
            options.long_shift = u8(buffer, at + 2) > 14
        elif kind == 4 and length == 2:
            options.sack_permitted = 1
        elif kind == 30:
            options.mptcp = 1
        elif kind == 34 or (kind in (253, 254) and length >= 4 and be16(buffer, at + 2) == 0xF989):
            options.fast_open = 1
        at += length
