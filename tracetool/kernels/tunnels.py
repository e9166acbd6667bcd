"""Tunnels: what is known by UDP's ports (VXLAN, GENEVE, GTP, Teredo), and GRE."""

from __future__ import annotations

from typing import Any

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.layer_list import identify, list_ends, list_layer
from tracetool.kernels.layer_names import (
    AT_ETHER,
    AT_IP,
    AT_IP6,
    AT_TYPE,
    CUT,
    FOUND,
    GENEVE,
    GRE,
    GTP,
    TEREDO,
    VXLAN,
)
from tracetool.kernels.loads import be16, be32, u8


@bare_kernel
def udp_tunnel(buffer: Any, at: int, end: int, low: int, high: int) -> int:
    """Say which tunnel's header UDP's payload begins with, going by its ports and first bytes; 0: none.

    Parameters
    ----------
    low, high
        Port of the source, and of the destination.
    """
    if high == 4789 or high == 8472 or low == 4789:
        if at + 8 <= end and u8(buffer, at) & 0xF8 == 0x08:
            return VXLAN
    elif high == 6081:
        if at + 8 <= end and u8(buffer, at) >> 6 == 0 and be16(buffer, at + 2) in (0x6558, 0x0800, 0x86DD):
            return GENEVE
    elif high == 2152 or low == 2152:
        if at + 8 <= end and u8(buffer, at) >> 4 == 3 and u8(buffer, at + 1) == 255:
            return GTP
    elif high == 3544 or low == 3544:
        return TEREDO
    return 0


@bare_kernel
def enter_tunnel(buffer: Any, at: int, end: int, tunnel: int) -> tuple[int, int, int, int, int]:
    """Step over the header of a tunnel in UDP.

    Returns
    -------
    tuple
        What comes next, where, its EtherType if that tells it, the number of the network, and FOUND or CUT.
    """
    if tunnel == VXLAN:
        return AT_ETHER, at + 8, 0, be32(buffer, at + 4) >> 8, FOUND
    if tunnel == GENEVE:
        value = be32(buffer, at + 4) >> 8
        return AT_TYPE, at + 8 + (u8(buffer, at) & 63) * 4, be16(buffer, at + 2), value, FOUND
    if tunnel == GTP:
        flags = u8(buffer, at)
        value = be32(buffer, at + 4)
        at += 8
        if flags & 7:  # sequence, N-PDU and extension header
            if at + 4 > end:
                return AT_IP, at, 0, value, CUT
            extension = u8(buffer, at + 3)
            at += 4
            if not flags & 4:
                extension = 0
            for _extension in range(8):
                if extension == 0 or at + 4 > end:
                    break
                size = u8(buffer, at) * 4
                if size == 0 or at + size > end:
                    break
                extension = u8(buffer, at + size - 1)
                at += size
        return AT_IP, at, 0, value, FOUND
    # Teredo (RFC 4380): authentication and origin indications may stand before the IPv6 header.
    if at + 4 <= end and be16(buffer, at) == 1:
        at += 13 + u8(buffer, at + 2) + u8(buffer, at + 3)
    if at + 2 <= end and be16(buffer, at) == 0:
        at += 8
    return AT_IP6, at, 0, 0, FOUND


@bare_kernel
def enter_gre(buffer: Any, at: int, end: int, head: Any, layers: Any) -> tuple[int, int, int, int]:
    """Step over a GRE header (RFC 2784, 2890; version 1: RFC 2637), and list it.

    Returns
    -------
    tuple
        What comes next, where, its EtherType, and FOUND or CUT.
    """
    if at + 4 > end:
        return AT_TYPE, at, 0, CUT
    flags = be16(buffer, at)
    proto = be16(buffer, at + 2)
    version = flags & 7
    size = 4
    key = 0
    if flags & 0xC000:
        size += 4
    if flags & 0x2000:
        if at + size + 4 > end:
            return AT_TYPE, at, 0, CUT
        key = be32(buffer, at + size)
        size += 4
    if flags & 0x1000:
        size += 4
    if version == 1 and flags & 0x80:
        size += 4
    list_layer(head, layers, GRE, key)
    if version == 0:
        identify(head, GRE, key)
    list_ends(head, layers)
    at += size
    if proto == 0x88BE:  # ERSPAN: with a sequence number there is a header of 8 bytes before the frame
        return AT_ETHER, at + 8 if flags & 0x1000 else at, proto, FOUND
    if proto == 0x22EB:
        return AT_ETHER, at + 12, proto, FOUND
    return AT_TYPE, at, proto, FOUND
