"""Sequence numbers without wrap: 64 bits, relative to the initial one, as Wireshark shows them."""

from __future__ import annotations

from tracetool.kernels._bare import bare_kernel


@bare_kernel
def unwrap(value: int, base: int, near: int) -> int:
    """Return the number with these low 32 bits that lies nearest to another one (RFC 9293, 3.4).

    Parameters
    ----------
    value
        As on the wire, 32 bits.
    base
        The initial one as on the wire.
    near
        A relative number known to be less than 2^31 away.
    """
    distance = (value - base - near) & 0xFFFFFFFF
    return near + ((distance ^ 0x80000000) - 0x80000000)


@bare_kernel
def segments_of(payload: int, limit: int) -> int:
    """Segments on the wire that a frame's payload stands for, at so many bytes of payload each."""
    if payload <= limit:
        return min(payload, 1)
    return (payload + limit - 1) // limit
