"""From a frame to its innermost TCP or UDP header, through tags and tunnels.

One loop over the layers, each a few lines; every load is inside the captured bytes, and the number of layers is
bounded. Layers that carry the identity of a network around the flow (VLAN, PPPoE session, VXLAN network, the ends of
a tunnel) go into a digest, which is part of the flow's key. It must be the same in both directions: MPLS labels and
GTP's tunnel numbers differ there, so they are listed but not part of it.
"""

from __future__ import annotations

from typing import Any

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.layer_list import copy_head, identify, list_ends, list_layer
from tracetool.kernels.layer_names import (
    AT_ETHER,
    AT_GRE,
    AT_IP,
    AT_IP4,
    AT_IP6,
    AT_LLC,
    AT_MPLS,
    AT_PPP,
    AT_PPPOE,
    AT_PROTO,
    AT_TYPE,
    AT_UDP,
    CUT,
    CUT_TRANSPORT,
    FOUND,
    FRAGMENT,
    GENEVE,
    IPIP,
    MALFORMED,
    MPLS,
    OTHER,
    PPPOE,
    QUOTED,
    TOO_DEEP,
    UNKNOWN_LINK,
    VLAN,
    VXLAN,
)
from tracetool.kernels.link_layers import link_layer, start_kind
from tracetool.kernels.loads import be16, be32, be64, u8
from tracetool.kernels.tunnels import enter_gre, enter_tunnel, udp_tunnel

MAX_LAYERS = 8  # listed by name
MAX_STEPS = 32  # looked through at all


@bare_kernel
def plain_tcp(buffer: Any, at: int, wire: int, head: Any) -> bool:
    """Fill the head for TCP in plain IPv4 in plain Ethernet, as most frames are; else say that it is something else.

    At least 54 bytes are there.
    """
    ip = at + 14
    total = be16(buffer, ip + 2)
    if (
        be32(buffer, at + 12) >> 8 != 0x080045
        or u8(buffer, ip + 9) != 6
        or total < 40
        or ip + total > wire
        or be16(buffer, ip + 6) & 0x3FFF
    ):
        return False
    head.src0, head.src1, head.dst0, head.dst1 = 0, be32(buffer, ip + 12), 0, be32(buffer, ip + 16)
    head.src_port, head.dst_port = be16(buffer, ip + 20), be16(buffer, ip + 22)
    head.protocol, head.version = 6, 4
    head.at, head.end, head.ip_bytes = ip + 20, ip + total, total
    head.tos, head.ip_id, head.ttl = u8(buffer, ip + 1), be16(buffer, ip + 4), u8(buffer, ip + 8)
    head.first_fragment = 0
    return True


@bare_kernel
def locate(buffer: Any, at: int, end: int, wire: int, link: int, heads: Any, layers: Any) -> int:
    """Find the innermost TCP or UDP header of a frame.

    Parameters
    ----------
    buffer : uint8 array
        Holds the frame in ``buffer[at:end]``.
    wire
        Where the frame would end had it been captured whole.
    link
        Its link type.
    heads : HEAD array of 2
        The first one is filled; the second one keeps an outer UDP header in case that it is no tunnel after all.
    layers : LAYER array
        The first ``heads[0].layers`` are filled.

    Returns
    -------
    int
        FOUND, or why there is none.
    """
    head = heads[0]
    outer = heads[1]
    head.encapsulation = 0
    head.layers = 0
    outer.protocol = 0
    if link == 1 and end - at >= 54 and plain_tcp(buffer, at, max(wire, end), head):
        return FOUND
    kind = start_kind(link)
    if kind < 0:
        return UNKNOWN_LINK
    wire = max(wire, end)
    code = TOO_DEEP
    proto = 0
    quoted = False
    for _ in range(MAX_STEPS):
        if kind == AT_ETHER:
            if at + 14 > end:
                code = CUT
                break
            proto = be16(buffer, at + 12)
            at += 14
            kind = AT_TYPE
            if proto <= 1500:
                kind = AT_LLC
        elif kind == AT_IP4:
            if at + 20 > end:
                code = CUT
                break
            first = u8(buffer, at)
            size = (first & 15) * 4
            if first >> 4 != 4 or size < 20:
                code = MALFORMED
                break
            total = be16(buffer, at + 2)
            if total == 0:  # segmentation offload: more than the field can say
                total = wire - at
            if total < size:
                code = MALFORMED
                break
            wire = min(wire, at + total)
            fragment = be16(buffer, at + 6)
            head.version = 4
            head.src0 = 0
            head.dst0 = 0
            head.src1 = be32(buffer, at + 12)
            head.dst1 = be32(buffer, at + 16)
            head.tos = u8(buffer, at + 1)
            head.ip_id = be16(buffer, at + 4)
            head.ttl = u8(buffer, at + 8)
            head.ip_bytes = total
            proto = u8(buffer, at + 9)
            if fragment & 0x1FFF:
                code = FRAGMENT
                break
            head.first_fragment = (fragment >> 13) & 1
            at += size
            kind = AT_PROTO
        elif kind == AT_PROTO:
            if proto == 6:
                head.protocol = 6
                head.at = at
                head.end = wire
                if at + 16 > end:  # up to the window
                    code = CUT_TRANSPORT
                    break
                head.src_port = be16(buffer, at)
                head.dst_port = be16(buffer, at + 2)
                return QUOTED if quoted else FOUND
            if proto == 17:
                if at + 8 > end:
                    code = CUT_TRANSPORT
                    break
                head.protocol = 17
                head.at = at
                head.end = wire
                head.src_port = be16(buffer, at)
                head.dst_port = be16(buffer, at + 2)
                if quoted:
                    return QUOTED
                kind = AT_UDP
            elif (proto == 1 and head.version == 4) or (proto == 58 and head.version == 6):
                # An ICMP error quotes the packet that it is about (RFC 792, 4443).
                if at + 8 > end or quoted:
                    code = OTHER
                    break
                what = u8(buffer, at)
                quotes = what in (3, 4, 5, 11, 12) if proto == 1 else 1 <= what <= 4
                if not quotes:
                    code = OTHER
                    break
                quoted = True
                at += 8
                kind = AT_IP4 if proto == 1 else AT_IP6
            elif proto == 4:
                list_layer(head, layers, IPIP, 4)
                list_ends(head, layers)
                kind = AT_IP4
            elif proto == 41:
                list_layer(head, layers, IPIP, 6)
                list_ends(head, layers)
                kind = AT_IP6
            elif proto == 47:
                kind = AT_GRE
            elif proto == 137:
                kind = AT_MPLS
            elif proto == 51 and head.version == 4:  # authentication header
                if at + 12 > end:
                    code = CUT
                    break
                proto = u8(buffer, at)
                at += (u8(buffer, at + 1) + 2) * 4
            else:
                code = OTHER
                break
        elif kind == AT_TYPE:
            if proto == 0x0800:
                kind = AT_IP4
            elif proto == 0x86DD:
                kind = AT_IP6
            elif proto in (0x8100, 0x88A8, 0x9100, 0x9200, 0x9300):
                if at + 4 > end:
                    code = CUT
                    break
                tag = be16(buffer, at) & 0x0FFF
                list_layer(head, layers, VLAN, tag)
                identify(head, VLAN, tag)
                proto = be16(buffer, at + 2)
                at += 4
                if proto <= 1500:
                    kind = AT_LLC
            elif proto in (0x8847, 0x8848):
                kind = AT_MPLS
            elif proto == 0x8864:
                kind = AT_PPPOE
            elif proto == 0x880B:
                kind = AT_PPP
            elif proto == 0x6558:
                kind = AT_ETHER
            else:
                code = OTHER
                break
        elif kind == AT_IP6:
            if at + 40 > end:
                code = CUT
                break
            word = be32(buffer, at)
            if word >> 28 != 6:
                code = MALFORMED
                break
            payload = be16(buffer, at + 4)
            start = at
            head.version = 6
            head.src0 = be64(buffer, at + 8)
            head.src1 = be64(buffer, at + 16)
            head.dst0 = be64(buffer, at + 24)
            head.dst1 = be64(buffer, at + 32)
            head.tos = (word >> 20) & 255
            head.ip_id = -1
            head.ttl = u8(buffer, at + 7)
            head.first_fragment = 0
            proto = u8(buffer, at + 6)
            at += 40
            if payload == 0:  # a jumbogram, or segmentation offload
                payload = wire - at
            wire = min(wire, at + payload)
            head.ip_bytes = at + payload - start
            code = FOUND
            for _header in range(16):
                if proto not in (0, 43, 44, 51, 60, 135, 139, 140):
                    break
                if at + 8 > end:
                    code = CUT
                    break
                after = u8(buffer, at)
                if proto == 44:
                    if be16(buffer, at + 2) & 0xFFF8:
                        code = FRAGMENT
                        break
                    head.first_fragment = be16(buffer, at + 2) & 1
                    at += 8
                elif proto == 51:
                    at += (u8(buffer, at + 1) + 2) * 4
                else:
                    at += (u8(buffer, at + 1) + 1) * 8
                proto = after
            if code != FOUND:
                break
            code = TOO_DEEP
            kind = AT_PROTO
        elif kind == AT_UDP:
            # A tunnel has a header of its own, and then something that holds TCP or UDP; else it is plain UDP.
            tunnel = udp_tunnel(buffer, at + 8, end, head.src_port, head.dst_port)
            if tunnel == 0:
                return FOUND
            copy_head(head, outer)
            kind, at, proto, value, code = enter_tunnel(buffer, at + 8, end, tunnel)
            if code != FOUND:
                break
            code = TOO_DEEP
            list_layer(head, layers, tunnel, value)
            if tunnel in (VXLAN, GENEVE):
                identify(head, tunnel, value)
            list_ends(head, layers)
        elif kind == AT_MPLS:
            if at + 4 > end:
                code = CUT
                break
            word = be32(buffer, at)
            list_layer(head, layers, MPLS, word >> 12)
            at += 4
            if word & 0x100:  # bottom of the stack: what follows is not said
                if at >= end:
                    code = CUT
                    break
                first = u8(buffer, at) >> 4
                if first == 4:
                    kind = AT_IP4
                elif first == 6:
                    kind = AT_IP6
                else:
                    if first == 0:  # RFC 4385 control word of an Ethernet pseudowire
                        at += 4
                    kind = AT_ETHER
        elif kind == AT_PPPOE:
            if at + 8 > end:
                code = CUT
                break
            session = be16(buffer, at + 2)
            list_layer(head, layers, PPPOE, session)
            identify(head, PPPOE, session)
            if u8(buffer, at + 1) != 0:
                code = OTHER
                break
            wire = min(wire, at + 6 + be16(buffer, at + 4))
            at += 6
            kind = AT_PPP
        elif kind == AT_PPP:
            if at + 2 > end:
                code = CUT
                break
            if be16(buffer, at) == 0xFF03 and at + 4 <= end:
                at += 2
            number = u8(buffer, at)
            at += 1
            if number & 1 == 0:  # two bytes, unless compressed
                number = (number << 8) | u8(buffer, at)
                at += 1
            if number == 0x21:
                kind = AT_IP4
            elif number == 0x57:
                kind = AT_IP6
            elif number in (0x281, 0x283):
                kind = AT_MPLS
            else:
                code = OTHER
                break
        elif kind == AT_IP:
            if at >= end:
                code = CUT
                break
            first = u8(buffer, at) >> 4
            kind = AT_IP4
            if first == 6:
                kind = AT_IP6
            elif first != 4:
                code = MALFORMED
                break
        elif kind == AT_GRE:
            kind, at, proto, code = enter_gre(buffer, at, end, head, layers)
            if code != FOUND:
                break
            code = TOO_DEEP
        else:
            kind, at, wire, proto, code = link_layer(buffer, kind, at, end, wire, link)
            if code != FOUND:
                break
            code = TOO_DEEP
    if quoted:
        code = OTHER
    if outer.protocol == 17:  # what looked like a tunnel holds nothing that we know: it is UDP
        copy_head(outer, head)
        outer.protocol = 0
        return FOUND
    return code
