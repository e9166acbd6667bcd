"""Files made by hand: pcap in all its variants, pcapng with every block type."""

from __future__ import annotations

import struct
from collections.abc import Iterable

START = 1_700_000_000


def pcap_header(
    order: str = "<", *, magic: int = 0xA1B2C3D4, version=(2, 4), snaplen: int = 262_144, link: int = 1
) -> bytes:
    return struct.pack(f"{order}IHHIIII", magic, *version, 0, 0, snaplen, link)


def record(frame: bytes, number: int = 0, order: str = "<", *, original: int | None = None, extra: int = 0) -> bytes:
    length = len(frame) if original is None else original
    head = struct.pack(f"{order}IIII", START + number // 1000, number % 1000 * 1000, len(frame), length)
    return head + b"\0" * extra + frame


def pcap(frames: Iterable[bytes], order: str = "<", *, extra: int = 0, **header) -> bytes:
    records = b"".join(record(frame, k, order, extra=extra) for k, frame in enumerate(frames))
    return pcap_header(order, **header) + records


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += b"\0" * (-len(body) % 4)
    return struct.pack(f"{order}II", kind, 12 + len(body)) + body + struct.pack(f"{order}I", 12 + len(body))


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(f"{order}HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def section(order: str = "<") -> bytes:
    return block(
        0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1) + option(4, b"made by hand", order), order
    )


def interface(link: int = 1, order: str = "<", *, snaplen: int = 0, resolution: int = 9, offset: int = 0) -> bytes:
    options = option(9, bytes([resolution]), order) + option(14, struct.pack(f"{order}q", offset), order)
    options += option(2, b"eth0", order) + option(0, b"", order)
    return block(1, struct.pack(f"{order}HHI", link, 0, snaplen) + options, order)


def enhanced(frame: bytes, number: int = 0, order: str = "<", *, place: int = 0, time: int | None = None) -> bytes:
    stamp = START * 10**9 + number * 10**6 if time is None else time
    head = struct.pack(f"{order}IIIII", place, stamp >> 32, stamp & 0xFFFFFFFF, len(frame), len(frame))
    padded = frame + b"\0" * (-len(frame) % 4)
    return block(6, head + padded + option(4, struct.pack(f"{order}Q", 3), order) + option(0, b"", order), order)


def simple(frame: bytes, order: str = "<") -> bytes:
    return block(3, struct.pack(f"{order}I", len(frame)) + frame, order)


def old_packet(frame: bytes, order: str = "<") -> bytes:
    stamp = START * 10**9
    head = struct.pack(f"{order}HHIIII", 0, 2, stamp >> 32, stamp & 0xFFFFFFFF, len(frame), len(frame))
    return block(2, head + frame, order)


def statistics(order: str = "<", *, drops: int = 7) -> bytes:
    options = option(5, struct.pack(f"{order}Q", drops), order) + option(7, struct.pack(f"{order}Q", drops), order)
    return block(5, struct.pack(f"{order}III", 0, 0, 0) + options, order)


def others(order: str = "<") -> list[bytes]:
    """Blocks without packets: names, journal, secrets, custom ones, and one that nobody knows."""
    return [
        block(4, b"\1\0\x0c\0\xc0\0\2\1host\0\0\0\0\0\0\0\0"[: 4 + 12], order),
        block(9, b"__REALTIME_TIMESTAMP=1\n", order),
        block(10, struct.pack(f"{order}II", 0x544C534B, 4) + b"keys", order),
        block(0x0BAD, struct.pack(f"{order}I", 32473) + b"custom", order),
        block(0x40000BAD, struct.pack(f"{order}I", 32473), order),
        block(0x7FFF0001, b"nobody knows this", order),
    ]


def pcapng(frames: list[bytes], order: str = "<", *, link: int = 1) -> bytes:
    """A section with every kind of block."""
    packets = [enhanced(frame, k, order) for k, frame in enumerate(frames)]
    rest = [simple(frames[0], order), old_packet(frames[0], order), *others(order), statistics(order)]
    return b"".join([section(order), interface(link, order), *packets, *rest])
