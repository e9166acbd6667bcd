"""A sample of checksums tells offload from damage."""

from __future__ import annotations

import struct

import pytest

from tests.fuzz.frames import FRAMES, connection
from tracetool.packets.checksums import folded, tcp_checksum

FRAME = connection(1)[3]


@pytest.mark.parametrize("what", ["ethernet", "ethernet ipv6", "vlan", "raw ip", "raw ipv6", "cooked", "cooked 2"])
def test_right_checksums_are_good(what):
    link, frame = FRAMES[what]
    assert tcp_checksum(frame, link) == "good"


@pytest.mark.parametrize("at", [40, 53, 60, 80])
def test_any_other_byte_makes_it_bad(at):
    assert tcp_checksum(FRAME[:at] + bytes([FRAME[at] ^ 0x10]) + FRAME[at + 1 :], 1) == "bad"


def test_the_pseudo_headers_sum_alone_is_partial():
    size = len(FRAME) - 34
    pseudo = folded(FRAME[26:34] + struct.pack("!II", size, 6))
    assert tcp_checksum(FRAME[:50] + pseudo.to_bytes(2) + FRAME[52:], 1) == "partial"


def test_what_cannot_be_told_is_none():
    for cut in range(len(FRAME)):
        assert tcp_checksum(FRAME[:cut], 1) is None
    for what in ("udp", "arp", "fragment", "vxlan", "unknown link", "offloaded, no length"):
        link, frame = FRAMES[what]
        assert tcp_checksum(frame, link) is None
