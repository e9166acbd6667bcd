"""Which flow a packet belongs to: open addressing over rows that carry their own key.

Both directions of a flow have one key: the hash is a sum over the two ends. It is salted, so that nobody can make
packets that all fall into one place.
"""

from __future__ import annotations

from typing import Any

from tracetool.kernels._bare import bare_kernel

MIX_A, MIX_B = 0x2545F4914F6CDD1D, 0x369DEA0F31A53F85  # odd multipliers of published xorshift and LCG generators


@bare_kernel
def mix(value: int) -> int:
    """Spread a word's bits."""
    value = value * MIX_A
    value ^= (value >> 32) & 0xFFFFFFFF
    value = value * MIX_B
    return value ^ ((value >> 29) & 0x7FFFFFFFF)


@bare_kernel
def hash_ends(src0: int, src1: int, src_port: int, dst0: int, dst1: int, dst_port: int, rest: int) -> int:
    """Return the same number for a packet and for its answer, 0 or more."""
    spread = (MIX_B + 2 * rest) | 1
    here = mix(src1 + src0 * spread + (src_port << 48) + rest)
    there = mix(dst1 + dst0 * spread + (dst_port << 48) + rest)
    return mix(here + there) & 0x7FFFFFFFFFFFFFFF


@bare_kernel
def find(rows: Any, slots: Any, head: Any, encapsulation: int, seed: int) -> tuple[int, int, int]:
    """Look up the row of a packet.

    Returns
    -------
    tuple
        The slot, the row (-1: none; the slot is where it goes) and the direction: 0 from a to b.
    """
    mask = len(slots) - 1
    src0, src1, dst0, dst1 = head.src0, head.src1, head.dst0, head.dst1
    src_port, dst_port, protocol = head.src_port, head.dst_port, head.protocol
    slot = hash_ends(src0, src1, src_port, dst0, dst1, dst_port, seed + encapsulation + protocol) & mask
    while True:
        row = slots[slot]
        if row < 0:
            return slot, -1, 0
        it = rows[row]
        if it.protocol == protocol and it.version == head.version and it.encapsulation == encapsulation:
            if (
                it.a1 == src1
                and it.b1 == dst1
                and it.port_a == src_port
                and it.port_b == dst_port
                and it.a0 == src0
                and it.b0 == dst0
            ):
                return slot, row, 0
            if (
                it.b1 == src1
                and it.a1 == dst1
                and it.port_b == src_port
                and it.port_a == dst_port
                and it.b0 == src0
                and it.a0 == dst0
            ):
                return slot, row, 1
        slot = (slot + 1) & mask


@bare_kernel
def rehash(rows: Any, count: int, old: Any, slots: Any, seed: int) -> None:
    """Fill a larger table (all -1) with the rows that the old one refers to."""
    mask = len(slots) - 1
    for place in range(len(old)):
        row = old[place]
        if row < 0 or row >= count:
            continue
        it = rows[row]
        slot = hash_ends(it.a0, it.a1, it.port_a, it.b0, it.b1, it.port_b, seed + it.encapsulation + it.protocol) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = row
