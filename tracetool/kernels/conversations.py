"""Wireshark's stream numbers: conversations known by addresses and ports alone, whatever is around them.

The rules are those observed with tshark 4.0 (``tests/cross``): a stream ends where a SYN comes from the same side with
another initial sequence number; a SYN-ACK sets its side's number anew; a segment quoted in an ICMP error belongs to a
stream, too, and may open one, but tells no numbers.
"""

from __future__ import annotations

from typing import Any

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.flow_table import find
from tracetool.kernels.records import BASE_A, BASE_B

_SYN, _ACK = 2, 16


@bare_kernel
def is_reuse(flags: int, seq: int, known: bool, base: int) -> bool:
    """Whether a segment opens another connection between the same ends."""
    return (flags & (_SYN | _ACK)) == _SYN and known and seq != base


@bare_kernel
def converse(head: Any, flags: int, seq: int, ack: int, quoted: bool, rows: Any, slots: Any, state: Any) -> int:
    """Return the stream of a packet; a new one if it starts one. There is room for one more row."""
    slot, row, direction = find(rows, slots, head, 0, state.seed)
    tcp = head.protocol == 6
    fresh = row < 0
    if not fresh and tcp:
        it = rows[row]
        mine = BASE_B if direction else BASE_A
        base = it.base_b if direction else it.base_a
        if is_reuse(flags, seq, it.marks & mine != 0, base):
            it.marks = 0
            it.stream = state.tcp_streams
            state.tcp_streams += 1
    if fresh:
        row = state.conversations
        state.conversations += 1
        slots[slot] = row
        it = rows[row]
        it.a0, it.a1, it.b0, it.b1 = head.src0, head.src1, head.dst0, head.dst1
        it.port_a, it.port_b = head.src_port, head.dst_port
        it.protocol, it.version = head.protocol, head.version
        it.encapsulation = 0
        it.marks = 0
        if tcp:
            it.stream = state.tcp_streams
            state.tcp_streams += 1
        else:
            it.stream = state.udp_streams
            state.udp_streams += 1
    it = rows[row]
    if tcp and not quoted:
        mine, theirs = (BASE_B, BASE_A) if direction else (BASE_A, BASE_B)
        if not it.marks & mine or flags & (_SYN | _ACK) == (_SYN | _ACK):  # a SYN-ACK sets the number anew
            first = seq if flags & _SYN else (seq - 1) & 0xFFFFFFFF
            if direction:
                it.base_b = first
            else:
                it.base_a = first
            it.marks |= mine
        if flags & _ACK and not it.marks & theirs:
            if direction:
                it.base_a = (ack - 1) & 0xFFFFFFFF
            else:
                it.base_b = (ack - 1) & 0xFFFFFFFF
            it.marks |= theirs
    return it.stream
