"""Damage, by a seeded generator: bytes, lengths, and whole records, blocks or lines."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable, Sequence

#: How many damaged inputs of each parser, and the seed that makes them.
MUTATIONS = int(os.environ.get("TRACETOOL_MUTATIONS", "10000"))
SEED = int(os.environ.get("TRACETOOL_SEED", "1"))
EXTREMES = (0, 1, 2, 3, 4, 7, 8, 15, 16, 27, 28, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x40000, 0x40001,
            0x1000000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)  # fmt: skip
MAX_BYTES = 65536  # mutants do not grow without end
_NUMBERS = (b"0", b"-1", b"00", b"1e999", b"nan", b"2147483647", b"4294967296", b"9223372036854775807",
            b"9223372036854775808", b"-9223372036854775809", b"9" * 400, b"0x", b"0x" + b"f" * 18, b"")  # fmt: skip
_WORDS = (b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\x1b[31m", b"\r", b"\n", b"\t", b" " * 300, b"=" * 50, b":",
          b"(" * 200, b"[", b"%s", "\u0663\u00b2".encode(), b"::", b"/", b"," * 100)  # fmt: skip

Mutation = Callable[[bytearray, random.Random, Sequence[bytes]], bytearray]


def _place(data: bytearray, rng: random.Random) -> int:
    return rng.randrange(len(data)) if data else 0


def flip(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> bytearray:
    for _ in range(rng.randint(1, 8)):
        if data:
            data[_place(data, rng)] ^= 1 << rng.randrange(8)
    return data


def overwrite(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> bytearray:
    for _ in range(rng.randint(1, 4)):
        if data:
            data[_place(data, rng)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return data


def truncate(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> bytearray:
    return data[: _place(data, rng) + 1]


def duplicate(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> bytearray:
    at, end = sorted((_place(data, rng), _place(data, rng)))
    return data[:end] + data[at:end] * rng.randint(1, 3) + data[end:]


def remove(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> bytearray:
    at = _place(data, rng)
    return data[:at] + data[at + rng.randint(1, 64) :]


def insert(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> bytearray:
    at = _place(data, rng)
    return (
        data[:at]
        + rng.choice((bytes(rng.randint(1, 200)), b"\xff" * rng.randint(1, 40), rng.randbytes(16)))
        + data[at:]
    )


def extreme(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> bytearray:
    """A 16-, 32- or 64-bit number somewhere (as lengths are) becomes one at a limit."""
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(("<H", ">H", "<I", ">I", "<I", ">I", "<Q", ">Q"))
        size = struct.calcsize(kind)
        if len(data) >= size:
            at = rng.randrange(0, len(data) - size + 1)
            at -= at % rng.choice((1, 2, 4))
            value = rng.choice((*EXTREMES, len(data), len(data) - at, rng.randrange(1 << 16)))
            struct.pack_into(kind, data, at, value % (1 << (8 * size)))
    return data


def splice(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> bytearray:
    other = rng.choice(pool)
    return data[: _place(data, rng)] + other[rng.randrange(len(other)) :]


def pcap_records(data: bytes) -> list[bytes]:
    """Header and records of a pcap file, as far as they can be told."""
    order = "<" if data[:1] in (b"\xd4", b"\x4d", b"\x34") else ">"
    pieces, at = [data[:24]], 24
    while at + 16 <= len(data):
        end = at + 16 + struct.unpack_from(f"{order}I", data, at + 8)[0]
        pieces.append(data[at:end])
        at = end
    return pieces


def pcapng_blocks(data: bytes) -> list[bytes]:
    """Blocks of a pcapng file, as far as they can be told."""
    pieces, at, order = [], 0, "<"
    while at + 12 <= len(data):
        if data[at : at + 4] == b"\n\r\r\n":
            order = "<" if data[at + 8 : at + 9] == b"\x4d" else ">"
        length = max(struct.unpack_from(f"{order}I", data, at + 4)[0], 12)
        pieces.append(data[at : at + length])
        at += length
    return pieces


def text_lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


_PIECES = {"pcap": pcap_records, "pcapng": pcapng_blocks}


def shuffle(cut: Callable[[bytes], list[bytes]]) -> Mutation:
    """Whole records, blocks or lines are repeated, left out, moved, or taken from another file."""

    def change(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> bytearray:
        pieces = cut(bytes(data)) or [b""]
        first, rest = pieces[:1], pieces[1:] or [b""]
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(rest))
            match rng.randrange(4):
                case 0:
                    rest.insert(at, rng.choice(rest))
                case 1 if len(rest) > 1:
                    del rest[at]
                case 2:
                    rng.shuffle(rest)
                case _:
                    rest.insert(at, rng.choice(cut(rng.choice(pool)) or [b""]))
        return bytearray(b"".join([*first, *rest]))

    return change


def retell(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> bytearray:
    """A number or a word of a text becomes another one."""
    words = bytes(data).split(b" ")
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(words))
        key, sign, value = words[at].partition(rng.choice((b"=", b":")))
        match rng.randrange(4):
            case 0:
                words[at] = key + sign + rng.choice(_NUMBERS)
            case 1:
                words[at] = rng.choice(_WORDS) + value
            case 2:
                words[at] = key + rng.choice(_WORDS) + value
            case _:
                words[at] = rng.choice(words)
    return bytearray(b" ".join(words))


_BYTES: tuple[Mutation, ...] = (flip, overwrite, truncate, duplicate, remove, insert, extreme, splice)


def mutations(name: str) -> tuple[Mutation, ...]:
    """Ways to damage a format."""
    if name in _PIECES:
        return (*_BYTES, extreme, extreme, shuffle(_PIECES[name]), shuffle(_PIECES[name]))
    return (*_BYTES, shuffle(text_lines), retell, retell, retell)


def mutants(name: str, pool: Sequence[bytes], count: int, seed: int):
    """Yield damaged copies of the seeds, always the same ones for the same arguments."""
    rng = random.Random(f"{name} {seed}")
    ways = mutations(name)
    for _ in range(count):
        data = bytearray(rng.choice(pool))
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            data = rng.choice(ways)(data, rng, pool)
        yield bytes(data[:MAX_BYTES])
