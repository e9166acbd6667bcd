"""Layout of the records that kernels read and write.

One record per packet, not one array per column: a kernel then touches one cache line or two per packet, and the
columns are gathered afterwards, by a thread of their own. -1 stands for unknown inside; it becomes null in the tables.
"""

from __future__ import annotations

import numpy as np

#: A frame in the buffer, as the file's framing gives it.
FRAME = np.dtype(
    [
        ("offset", "i8"),  # of its first byte, in the buffer
        ("time", "i8"),  # ns since the epoch
        ("captured", "i8"),
        ("original", "i8"),
        ("link", "i4"),  # libpcap's link type
        ("interface", "i4"),  # -1: not told
    ]
)

#: What stands in the headers of the innermost TCP or UDP packet of a frame.
HEAD = np.dtype(
    [
        ("src0", "i8"), ("src1", "i8"), ("dst0", "i8"), ("dst1", "i8"),  # IPv4: in src1 and dst1
        ("src_port", "i8"), ("dst_port", "i8"),
        ("protocol", "i8"),  # IP's number: 6 or 17
        ("version", "i8"),  # IP's: 4 or 6
        ("at", "i8"),  # offset of the transport header in the buffer
        ("end", "i8"),  # offset of the IP packet's end as on the wire; may lie behind the captured bytes
        ("ip_bytes", "i8"), ("ip_id", "i8"), ("ttl", "i8"), ("tos", "i8"),
        ("first_fragment", "i8"),  # whether more fragments follow
        ("encapsulation", "i8"),  # digest of the layers around it; 0: none
        ("layers", "i8"),  # how many of them are listed
    ]
)  # fmt: skip

#: One layer around a flow: a tag or a tunnel. The ends of a tunnel are in the order of their addresses.
LAYER = np.dtype(
    [
        ("kind", "i8"),
        ("value", "i8"),
        ("version", "i8"),
        ("low0", "i8"),
        ("low1", "i8"),
        ("high0", "i8"),
        ("high1", "i8"),
    ]
)

#: What TCP's options say.
OPTIONS = np.dtype(
    [
        ("mss", "i8"), ("shift", "i8"), ("sack_permitted", "i8"), ("timestamps", "i8"),
        ("tsval", "i8"), ("tsecr", "i8"),
        ("edges", "i8"), ("mptcp", "i8"), ("fast_open", "i8"), ("cut", "i8"),
        ("long_shift", "i8"),  # a window scale above 14
    ]
)  # fmt: skip

#: One TCP or UDP packet: a row of `packets`. `has` tells which of the nullable ones are known.
PACKET = np.dtype(
    [
        ("frame", "i8"), ("time", "i8"), ("seq", "i8"), ("ack", "i8"),
        ("flow", "i4"), ("sack", "i4"),  # of its first SACK edge in the pool
        ("payload", "u4"), ("ip_bytes", "u4"), ("frame_bytes", "u4"), ("captured_bytes", "u4"), ("segments", "i4"),
        ("window", "u4"), ("tsval", "u4"), ("tsecr", "u4"), ("interface", "i4"),
        ("flags", "u2"), ("window_raw", "u2"), ("ip_id", "u2"),
        ("ttl", "u1"), ("tos", "u1"), ("edges", "u1"), ("direction", "u1"), ("has", "u1"), ("protocol", "u1"),
    ]
)  # fmt: skip
HAS_TCP, HAS_ACK, HAS_WINDOW, HAS_TIMESTAMPS, HAS_IP_ID, HAS_SACK, HAS_INTERFACE = 1, 2, 4, 8, 16, 32, 64

#: What a flow is known by. Conversations (Wireshark's streams) have the same key, with no encapsulation.
_KEY = [
    ("a0", "i8"), ("a1", "i8"), ("b0", "i8"), ("b1", "i8"), ("encapsulation", "i8"),
    ("port_a", "u2"), ("port_b", "u2"), ("protocol", "u1"), ("version", "u1"),
]  # fmt: skip
FLOW = np.dtype(
    [
        *_KEY,
        ("marks", "u2"),
        ("stream", "i4"), ("layers_at", "i4"), ("layers", "i4"),
        ("start", "i8"), ("end", "i8"),  # times
        ("syn_time", "i8"), ("handshake_rtt", "i8"),
    ],
    align=True,
)  # fmt: skip
#: Marks of a flow.
SYN, SYN_ACK, HANDSHAKE, SYN_AGAIN, RST, MPTCP, FAST_OPEN, ECN_ASKED, ECN_GRANTED, TIMESTAMPS, SACKS = (
    1 << bit for bit in range(11)
)

#: One direction of a flow: row 2 * flow + direction.
SIDE = np.dtype(
    [
        ("packets", "i8"), ("payload", "i8"),
        ("edge", "i8"),  # highest sequence number known, relative
        ("base", "i8"),  # initial sequence number as on the wire
        ("mss", "i4"), ("jumbo", "u4"),
        ("shift", "i2"),  # window scale sent; -1: none
        ("scale", "i2"),  # window scale in force; -1: unknown
        ("marks", "u2"),
    ],
    align=True,
)  # fmt: skip
#: Marks of a side.
BASE, SIDE_SYN, FIN, SACK_PERMITTED, SYN_TIMESTAMPS, OFFLOADED = (1 << bit for bit in range(6))

CONVERSATION = np.dtype([*_KEY, ("marks", "u2"), ("stream", "i4"), ("base_a", "i8"), ("base_b", "i8")], align=True)
#: Marks of a conversation: whose initial sequence number is known.
BASE_A, BASE_B = 1, 2

#: How often something odd was met, and where first.
NOTE = np.dtype([("count", "i8"), ("frame", "i8"), ("time", "i8")])

#: Counters that the decoder carries from block to block.
STATE = np.dtype(
    [
        ("frames", "i8"), ("packets", "i8"), ("edges", "i8"), ("flows", "i8"),
        ("conversations", "i8"), ("layers", "i8"),
        ("tcp_streams", "i8"), ("udp_streams", "i8"), ("seed", "i8"), ("first_time", "i8"), ("last_time", "i8"),
        ("started", "i8"),
    ]
)  # fmt: skip

#: An interface of a pcapng section.
INTERFACE = np.dtype([("link", "i8"), ("snaplen", "i8"), ("mode", "i8"), ("factor", "i8"), ("offset_ns", "i8")])
