"""Checksums of a few frames: whether the capture was taken before the network card filled them in.

Where a host leaves the TCP checksum to its card, the field holds only the sum over the pseudo header (Linux'
``CHECKSUM_PARTIAL``) as the frame is captured. A sample tells it; frames that are not whole, and those with tunnels,
are left out.
"""

from __future__ import annotations

import struct
from typing import Literal

Verdict = Literal["good", "partial", "bad"]
_IPV4, _IPV6 = 0x0800, 0x86DD
_VLANS = frozenset({0x8100, 0x88A8})


def folded(data: bytes) -> int:
    """One's complement sum of 16-bit words (RFC 1071), before it is complemented.

    Examples
    --------
    >>> hex(folded(bytes.fromhex("0001f203f4f5f6f7")))
    '0xddf2'
    """
    data += b"\0" * (len(data) & 1)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def tcp_checksum(frame: bytes, link: int) -> Verdict | None:
    """Judge the TCP checksum of a frame.

    Parameters
    ----------
    frame
        The captured bytes.
    link
        libpcap's link type; Ethernet, Linux cooked (both) and raw IP are looked into.

    Returns
    -------
    str or None
        ``good``; ``partial``: the pseudo header's sum only; ``bad``; None where it cannot be told.
    """
    at, kind = _network(frame, link)
    if kind == _IPV4 and len(frame) >= at + 20 and frame[at] == 0x45 and frame[at + 9] == 6:
        length = int.from_bytes(frame[at + 2 : at + 4])
        if int.from_bytes(frame[at + 6 : at + 8]) & 0x3FFF:  # a fragment
            return None
        ends, start, size = frame[at + 12 : at + 20], at + 20, length - 20
    elif kind == _IPV6 and len(frame) >= at + 40 and frame[at + 6] == 6:
        ends, start, size = frame[at + 8 : at + 40], at + 40, int.from_bytes(frame[at + 4 : at + 6])
    else:
        return None
    segment = frame[start : start + size]
    if size < 20 or len(segment) < size:
        return None
    pseudo = folded(ends + struct.pack("!II", size, 6))
    if folded(pseudo.to_bytes(2) + segment) == 0xFFFF:
        return "good"
    return "partial" if int.from_bytes(segment[16:18]) == pseudo else "bad"


def _network(frame: bytes, link: int) -> tuple[int, int]:
    """Where the network header is, and its EtherType; 0 for anything else."""
    if link in (12, 14, 101) and frame:
        return 0, {4: _IPV4, 6: _IPV6}.get(frame[0] >> 4, 0)
    at = {1: 12, 113: 14, 276: 0}.get(link)
    if at is None:
        return 0, 0
    kind = int.from_bytes(frame[at : at + 2])
    at = 20 if link == 276 else at + 2
    if kind in _VLANS:
        kind = int.from_bytes(frame[at + 2 : at + 4])
        at += 4
    return at, kind
