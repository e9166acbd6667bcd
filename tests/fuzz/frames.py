"""Frames made by hand: every link layer, tag and tunnel that is looked through, around one TCP segment."""

from __future__ import annotations

import struct
from ipaddress import ip_address

A, B = "192.0.2.1", "198.51.100.2"
A6, B6 = "2001:db8::1", "2001:db8::2"
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

MSS = b"\x02\x04\x05\xb4"
SACK_PERMITTED = b"\x04\x02"
SCALE = b"\x03\x03\x07\x01"
TIMES = b"\x01\x01\x08\x0a" + struct.pack("!II", 1000, 2000)


def sack(*edges: int) -> bytes:
    return b"\x01\x01\x05" + bytes([2 + 4 * len(edges)]) + struct.pack(f"!{len(edges)}I", *edges)


def tcp(
    seq: int = 1,
    ack: int = 1,
    flags: int = ACK,
    payload: bytes = b"",
    options: bytes = b"",
    *,
    ports=(40000, 443),
    words=0,
) -> bytes:
    options += b"\0" * (-len(options) % 4)
    size = words or 5 + len(options) // 4
    head = struct.pack("!HHIIBBHHH", *ports, seq, ack, (size & 15) << 4 | flags >> 8, flags & 255, 501, 0, 0)
    return head + options + payload


def udp(payload: bytes = b"payload", ports=(40000, 443), length: int | None = None) -> bytes:
    return struct.pack("!HHHH", *ports, 8 + len(payload) if length is None else length, 0) + payload


def _with_checksum(segment: bytes, ends: bytes) -> bytes:
    data = ends + struct.pack("!II", len(segment), 6) + segment + b"\0" * (len(segment) & 1)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data)) % 0xFFFF
    return segment[:16] + struct.pack("!H", 0xFFFF - total) + segment[18:]


def ip4(body: bytes, proto: int = 6, *, ends=(A, B), fragment: int = 0, total: int | None = None) -> bytes:
    length = 20 + len(body) if total is None else total
    source, target = (ip_address(end).packed for end in ends)
    if proto == 6:
        body = _with_checksum(body, source + target)
    return struct.pack("!BBHHHBBH", 0x45, 0, length, 7, fragment, 64, proto, 0) + source + target + body


def ip6(body: bytes, proto: int = 6, *, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    ends = ip_address(A6).packed + ip_address(B6).packed
    if proto == 6:
        body = _with_checksum(body, ends)
    return struct.pack("!IHBB", 0x60000000, size, proto, 64) + ends + body


def ether(body: bytes, proto: int = 0x0800) -> bytes:
    return b"\2\0\0\0\0\2" + b"\2\0\0\0\0\1" + struct.pack("!H", proto) + body


def vlan(body: bytes, tag: int = 5, proto: int = 0x0800) -> bytes:
    return struct.pack("!HH", tag, proto) + body


def mpls(body: bytes, label: int = 16, *, bottom: bool = True) -> bytes:
    return struct.pack("!I", label << 12 | (0x100 if bottom else 0) | 64) + body


def gre(body: bytes, proto: int = 0x0800, flags: int = 0x2000) -> bytes:
    words = sum(bool(flags & bit) for bit in (0xC000, 0x2000, 0x1000))
    return struct.pack("!HH", flags, proto) + b"\0\0\0\7" * words + body


def vxlan(frame: bytes) -> bytes:
    return udp(b"\x08\0\0\0" + b"\0\0\x2a\0" + frame, (50000, 4789))


def geneve(frame: bytes) -> bytes:
    return udp(struct.pack("!BBHI", 1, 0, 0x6558, 42 << 8) + b"\0\0\0\0" + frame, (50000, 6081))


def gtp(packet: bytes) -> bytes:
    return udp(struct.pack("!BBHI", 0x34, 255, len(packet) + 8, 9) + b"\0\0\0\x85" + b"\1\0\0\0" + packet, (2152, 2152))


def teredo(packet: bytes) -> bytes:
    return udp(b"\0\1\0\0" + b"\0" * 9 + b"\0\0" + b"\0" * 6 + packet, (50000, 3544))


DATA = tcp(1001, 501, ACK | PSH, b"d" * 40, TIMES)
PACKET = ip4(DATA)
PACKET6 = ip6(DATA)
FRAME = ether(PACKET)
_HOPS = struct.pack("!BB6x", 43, 0) + struct.pack("!BBBBI", 6, 0, 0, 0, 0)
_RADIOTAP = struct.pack("<BBHIQB", 0, 0, 17, 3, 1, 0x10)
_WIFI = struct.pack("<HH", 0x0188, 0) + b"\2" * 18 + b"\0\0" + b"\0\0"
_SNAP = b"\xaa\xaa\x03\0\0\0\x08\0"
_NFLOG = struct.pack("<BBHHH", 2, 0, 0, 8, 10) + b"\0" * 4

#: (libpcap link type, frame) of everything that `tracetool.kernels.layers` knows.
FRAMES: dict[str, tuple[int, bytes]] = {
    "ethernet": (1, FRAME),
    "ethernet ipv6": (1, ether(PACKET6, 0x86DD)),
    "ipv6 extension headers": (1, ether(ip6(_HOPS + DATA, 0), 0x86DD)),
    "ipv6 fragment": (1, ether(ip6(struct.pack("!BBHI", 6, 0, 1, 9) + DATA, 44), 0x86DD)),
    "authentication header": (1, ether(ip4(struct.pack("!BB", 6, 4) + b"\0" * 22 + DATA, 51))),
    "udp": (1, ether(ip4(udp(), 17))),
    "arp": (1, ether(b"\0\1\x08\0" + b"\0" * 24, 0x0806)),
    "llc": (1, ether(_SNAP + PACKET, 8 + len(PACKET))),
    "vlan": (1, ether(vlan(PACKET), 0x8100)),
    "vlan in vlan": (1, ether(vlan(vlan(PACKET), 7, 0x8100), 0x88A8)),
    "mpls": (1, ether(mpls(mpls(PACKET), bottom=False), 0x8847)),
    "mpls pseudowire": (1, ether(mpls(b"\0" * 4 + FRAME), 0x8847)),
    "pppoe": (1, ether(struct.pack("!BBHH", 0x11, 0, 3, len(PACKET) + 2) + b"\0\x21" + PACKET, 0x8864)),
    "gre": (1, ether(ip4(gre(PACKET), 47))),
    "gre all flags": (1, ether(ip4(gre(PACKET, flags=0xF000), 47))),
    "gre pptp": (1, ether(ip4(gre(b"\xff\x03\0\x21" + PACKET, 0x880B, 0x3001), 47))),
    "erspan": (1, ether(ip4(gre(b"\0" * 8 + FRAME, 0x88BE, 0x1000), 47))),
    "erspan 3": (1, ether(ip4(gre(b"\0" * 12 + FRAME, 0x22EB, 0x1000), 47))),
    "ip in ip": (1, ether(ip4(PACKET, 4))),
    "6in4": (1, ether(ip4(PACKET6, 41))),
    "vxlan": (1, ether(ip4(vxlan(FRAME), 17))),
    "geneve": (1, ether(ip4(geneve(FRAME), 17))),
    "gtp": (1, ether(ip4(gtp(PACKET), 17))),
    "teredo": (1, ether(ip4(teredo(PACKET6), 17))),
    "tunnels in tunnels": (1, ether(ip4(vxlan(ether(ip4(gre(ip4(gtp(PACKET), 17)), 47))), 17))),
    "fragment": (1, ether(ip4(DATA, fragment=0x2000))),
    "later fragment": (1, ether(ip4(DATA, fragment=0x0010))),
    "offloaded, no length": (1, ether(ip4(DATA, total=0))),
    "sack": (1, ether(ip4(tcp(1, 501, ACK, b"", TIMES + sack(1501, 2001, 2501, 3001, 3501, 4001))))),
    "all options": (
        1,
        ether(ip4(tcp(0, 0, SYN, b"", MSS + SACK_PERMITTED + SCALE + TIMES + b"\x1e\x0c" + b"\0" * 10))),
    ),
    "fast open": (1, ether(ip4(tcp(0, 0, SYN, b"x", MSS + b"\x22\x06abcd")))),
    "raw ip": (101, PACKET),
    "raw ipv6": (12, PACKET6),
    "ipv4 only": (228, PACKET),
    "ipv6 only": (229, PACKET6),
    "loopback": (0, struct.pack("<I", 2) + PACKET),
    "loopback big endian": (108, struct.pack(">I", 24) + PACKET6),
    "cooked": (113, struct.pack("!HHH8sH", 0, 1, 6, b"\2" * 8, 0x0800) + PACKET),
    "cooked 2": (276, struct.pack("!HHIHBB8s", 0x0800, 0, 1, 1, 0, 6, b"\2" * 8) + PACKET),
    "ppp": (9, b"\xff\x03\0\x21" + PACKET),
    "ppp compressed": (50, b"\x21" + PACKET),
    "ppp with direction": (204, b"\x01\xff\x03\0\x57" + PACKET6),
    "pppoe link": (51, struct.pack("!BBHH", 0x11, 0, 3, len(PACKET) + 2) + b"\0\x21" + PACKET),
    "cisco hdlc": (104, b"\x0f\0\x08\0" + PACKET),
    "fddi": (10, b"\x50" + b"\2" * 12 + _SNAP + PACKET),
    "token ring": (6, b"\x10\x40" + b"\2" * 6 + b"\x82" + b"\2" * 5 + b"\x02\0" + _SNAP + PACKET),
    "atm": (100, _SNAP + PACKET),
    "wifi": (105, _WIFI + _SNAP + PACKET),
    "radiotap": (127, _RADIOTAP + _WIFI + _SNAP + PACKET + b"\0" * 4),
    "per packet information": (192, struct.pack("<BBHI", 0, 0, 8, 1) + FRAME),
    "nflog": (239, _NFLOG + struct.pack("<HH", 4 + len(PACKET), 9) + PACKET),
    "unknown link": (9999, FRAME),
}


def connection(data: int = 6, size: int = 100) -> list[bytes]:
    """A whole TCP connection: handshake, data with a retransmission and SACK, both FINs."""
    out, back = {"ports": (40000, 443)}, {"ports": (443, 40000)}
    there, here = (A, B), (B, A)
    options = MSS + SACK_PERMITTED + TIMES[2:] + SCALE
    frames = [
        ip4(tcp(1000, 0, SYN, b"", options, **out), ends=there),
        ip4(tcp(5000, 1001, SYN | ACK, b"", options, **back), ends=here),
        ip4(tcp(1001, 5001, ACK, b"", TIMES, **out), ends=there),
    ]
    for k in range(data):
        seq = 1001 + k * size
        frames.append(ip4(tcp(seq, 5001, ACK | PSH, b"d" * size, TIMES, **out), ends=there))
        frames.append(ip4(tcp(5001, 1001, ACK, b"", TIMES + sack(seq, seq + size), **back), ends=here))
    frames.append(ip4(tcp(1001, 5001, ACK | PSH, b"d" * size, TIMES, **out), ends=there))
    end = 1001 + data * size
    frames.append(ip4(tcp(end, 5001, FIN | ACK, b"", TIMES, **out), ends=there))
    frames.append(ip4(tcp(5001, end + 1, FIN | ACK, b"", TIMES, **back), ends=here))
    return [ether(frame) for frame in frames]
