"""Link layers below Ethernet types and IP: cooked, loop back, PPP, 802.11, and the rare ones."""

from __future__ import annotations

from typing import Any

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.layer_names import (
    AT_CHDLC,
    AT_ETHER,
    AT_FDDI,
    AT_IP,
    AT_IP4,
    AT_IP6,
    AT_LLC,
    AT_LOOP,
    AT_NFLOG,
    AT_PPI,
    AT_PPP,
    AT_PPP_HDLC,
    AT_PPPOE,
    AT_RADIOTAP,
    AT_RING,
    AT_SLL,
    AT_SLL2,
    AT_TYPE,
    AT_WIFI,
    CUT,
    FOUND,
    MALFORMED,
    OTHER,
    UNKNOWN_LINK,
)
from tracetool.kernels.loads import be16, be32, le16, le32, u8


@bare_kernel
def start_kind(link: int) -> int:
    """Say what a frame of a link type starts with; -1: unknown."""
    if link == 1:
        return AT_ETHER
    if link in (12, 14, 101):
        return AT_IP
    if link == 113:
        return AT_SLL
    if link == 276:
        return AT_SLL2
    if link in (0, 108):
        return AT_LOOP
    if link == 228:
        return AT_IP4
    if link == 229:
        return AT_IP6
    if link in (9, 50, 204):
        return AT_PPP_HDLC
    if link == 51:
        return AT_PPPOE
    if link == 104:
        return AT_CHDLC
    if link == 105:
        return AT_WIFI
    if link == 127:
        return AT_RADIOTAP
    if link == 192:
        return AT_PPI
    if link == 239:
        return AT_NFLOG
    if link == 10:
        return AT_FDDI
    if link == 6:
        return AT_RING
    if link == 100:
        return AT_LLC
    return -1


@bare_kernel
def link_layer(buffer: Any, kind: int, at: int, end: int, wire: int, link: int) -> tuple[int, int, int, int, int]:
    """Look through one layer; the arguments and the result are those of the loop in `tracetool.kernels.layers`.

    Returns
    -------
    tuple
        What stands next, where, where the frame ends on the wire, the EtherType if that comes next, and FOUND or why
        there is nothing to find.
    """
    proto = 0
    if kind == AT_LLC:
        if at + 8 > end:
            return kind, at, wire, proto, CUT if at + 3 > end else OTHER
        if be16(buffer, at) == 0xAAAA and u8(buffer, at + 2) == 3:
            proto = be16(buffer, at + 6)
            at += 8
            kind = AT_TYPE
        elif be16(buffer, at) == 0x0606 and u8(buffer, at + 2) == 3:
            at += 3
            kind = AT_IP4
        else:
            return kind, at, wire, proto, OTHER
    elif kind == AT_PPP_HDLC:
        if at + 4 > end:
            return kind, at, wire, proto, CUT
        if be16(buffer, at) == 0xFF03:
            at += 2
        elif u8(buffer, at) in (0x0F, 0x8F):  # Cisco HDLC
            return AT_CHDLC, at, wire, proto, FOUND
        elif link == 204:  # a direction byte stands first
            at += 1
            if be16(buffer, at) == 0xFF03:
                at += 2
        kind = AT_PPP
    elif kind == AT_CHDLC:
        if at + 4 > end:
            return kind, at, wire, proto, CUT
        proto = be16(buffer, at + 2)
        at += 4
        kind = AT_TYPE
    elif kind == AT_SLL:
        if at + 16 > end:
            return kind, at, wire, proto, CUT
        proto = be16(buffer, at + 14)
        at += 16
        kind = AT_TYPE
        if proto == 4:
            kind = AT_LLC
    elif kind == AT_SLL2:
        if at + 20 > end:
            return kind, at, wire, proto, CUT
        proto = be16(buffer, at)
        at += 20
        kind = AT_TYPE
        if proto == 4:
            kind = AT_LLC
    elif kind == AT_LOOP:
        if at + 4 > end:
            return kind, at, wire, proto, CUT
        family = be32(buffer, at)
        if family > 0xFFFF:
            family = le32(buffer, at)
        at += 4
        if family == 2:
            kind = AT_IP4
        elif family in (10, 24, 28, 30):
            kind = AT_IP6
        elif family >= 1536:
            proto = family
            kind = AT_TYPE
        else:
            return kind, at, wire, proto, OTHER
    elif kind == AT_RADIOTAP:
        if at + 8 > end:
            return kind, at, wire, proto, CUT
        size = le16(buffer, at + 2)
        if size < 8:
            return kind, at, wire, proto, MALFORMED
        present = le32(buffer, at + 4)
        field = at + 8
        if present & 0x80000000:
            for _word in range(16):
                if field + 4 > end or not le32(buffer, field) & 0x80000000:
                    break
                field += 4
            field += 4
        if present & 1:
            field = at + ((field - at + 7) & ~7) + 8
        if present & 2 and field < min(end, at + size) and u8(buffer, field) & 0x10:
            wire -= 4  # the frame check sequence is there
        at += size
        kind = AT_WIFI
    elif kind == AT_WIFI:
        if at + 24 > end:
            return kind, at, wire, proto, CUT
        control = le16(buffer, at)
        if control & 0x0C != 0x08 or control & 0x40 or control & 0x4000:  # no data, or none to read
            return kind, at, wire, proto, OTHER
        size = 24
        if control & 0x300 == 0x300:
            size = 30
        if control & 0x80:  # quality of service
            if at + size + 2 > end:
                return kind, at, wire, proto, CUT
            if u8(buffer, at + size) & 0x80:  # an aggregate
                return kind, at, wire, proto, OTHER
            size += 2
            if control & 0x8000:
                size += 4
        at += size
        kind = AT_LLC
    elif kind == AT_PPI:
        if at + 8 > end:
            return kind, at, wire, proto, CUT
        size = le16(buffer, at + 2)
        inner = start_kind(le32(buffer, at + 4))
        if size < 8 or inner < 0 or inner == AT_PPI:
            return kind, at, wire, proto, MALFORMED if size < 8 else UNKNOWN_LINK
        at += size
        kind = inner
    elif kind == AT_NFLOG:
        if at + 4 > end:
            return kind, at, wire, proto, CUT
        family = u8(buffer, at)
        at += 4
        inside = False
        for _attribute in range(64):
            if at + 4 > end:
                break
            size = le16(buffer, at)
            if size < 4:
                break
            if le16(buffer, at + 2) == 9:  # the packet
                wire = min(wire, at + size)
                at += 4
                inside = True
                break
            at += (size + 3) & ~3
        if not inside:
            return kind, at, wire, 0, OTHER
        kind = AT_IP4 if family == 2 else AT_IP6
    elif kind == AT_FDDI:
        at += 13
        kind = AT_LLC
    elif kind == AT_RING:
        if at + 14 > end:
            return kind, at, wire, proto, CUT
        size = 14
        if u8(buffer, at + 8) & 0x80:  # source routing
            if at + 16 > end:
                return kind, at, wire, proto, CUT
            size += u8(buffer, at + 14) & 31
        at += size
        kind = AT_LLC
    else:
        return kind, at, wire, proto, OTHER
    return kind, at, wire, proto, FOUND
