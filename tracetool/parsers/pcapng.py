"""pcapng: sections of typed blocks, in either byte order, with several interfaces.

See draft-ietf-opsawg-pcapng. Read are enhanced, simple and old packet blocks, interfaces with their link type, snap
length, time resolution and offset, and the drop counters of packets and interfaces. Other blocks are skipped.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tracetool.kernels import pcapng_frames as framing
from tracetool.kernels.records import INTERFACE
from tracetool.packets.blocks import Blocks
from tracetool.packets.capture import Capture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tracetool.diagnostics import DiagnosticLog, Severity
    from tracetool.parsers import Pieces
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Stream

NAME = "pcapng"
DESCRIPTION = "pcapng (Wireshark)"

_ORDERS = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
_IF_TSRESOL, _IF_TSOFFSET, _ISB_IFDROP, _ISB_OSDROP = 9, 14, 5, 7
_NOTES: dict[int, tuple[str, Severity, str]] = {
    framing.NO_INTERFACE: ("unknown_interface", "error", "packets of an interface that is not described; left out"),
    framing.NO_TIME: ("no_timestamp", "warning", "packets without a time of their own: given that of the one before"),
    framing.BAD_TIME: (
        "time_out_of_range",
        "warning",
        "packets with a time before 1970 or after 2262: given that of the one before",
    ),
    framing.BAD_PACKET: ("bad_packet_block", "error", "packet blocks shorter than what they should hold; left out"),
}


@dataclass
class Section:
    """One section: its byte order and its interfaces.

    Attributes
    ----------
    order
        ``<`` or ``>``, as `struct` has it.
    interfaces : INTERFACE array
        The first ``count`` are described.
    drops
        Drop counters by interface; each later one replaces the one before.
    """

    order: str = "<"
    interfaces: NDArray[Any] = field(default_factory=lambda: np.zeros(16, INTERFACE))
    count: int = 0
    drops: dict[int, int] = field(default_factory=dict)

    @property
    def big_endian(self) -> bool:
        """Byte order of all numbers."""
        return self.order == ">"

    def describe(self, body: bytes) -> tuple[int, int, int]:
        """Add an interface; return its link type, snap length and resolution in nanoseconds."""
        link, _, snaplen = struct.unpack_from(f"{self.order}HHI", body)
        mode, factor, resolution, offset = framing.MULTIPLY, 1000, 1000, 0
        for code, value in _options(body[8:], self.order):
            if code == _IF_TSRESOL and len(value) == 1:
                mode, factor, resolution = _resolution(value[0])
            elif code == _IF_TSOFFSET and len(value) == 8:
                (offset,) = struct.unpack(f"{self.order}q", value)
        if self.count == len(self.interfaces):
            self.interfaces = np.concatenate([self.interfaces, np.zeros_like(self.interfaces)])
        offset_ns = min(max(offset * 1_000_000_000, -(1 << 62)), 1 << 62)
        self.interfaces[self.count] = (link, snaplen, mode, factor, offset_ns)
        self.count += 1
        return link, snaplen, resolution

    def count_drops(self, body: bytes) -> None:
        """Take the drop counters of an interface's statistics."""
        (interface,) = struct.unpack_from(f"{self.order}I", body)
        counters = [
            struct.unpack(f"{self.order}Q", value)[0]
            for code, value in _options(body[12:], self.order)
            if code in (_ISB_IFDROP, _ISB_OSDROP) and len(value) == 8
        ]
        if counters and interface < self.count:
            self.drops[interface] = sum(counters)


def _options(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        code, length = struct.unpack_from(f"{order}HH", data, at)
        if code == 0 or at + 4 + length > len(data):
            return
        yield code, data[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4


def _resolution(value: int) -> tuple[int, int, int]:
    """How an ``if_tsresol`` becomes nanoseconds, and how many one unit has (at least 1)."""
    power = value & 0x7F
    if value & 0x80:
        return framing.BINARY, power, max(1, 1_000_000_000 >> power)
    if power <= 9:
        factor = 10 ** (9 - power)
        return framing.MULTIPLY, factor, factor
    return framing.DIVIDE, 10 ** min(power - 9, 18), 1


def sniff(head: bytes) -> bool:
    """Whether an input starts with a section header."""
    return head[:4] == b"\n\r\r\n" and head[8:12] in _ORDERS


def parse(stream: Stream, log: DiagnosticLog, options: ParseOptions) -> Pieces:  # noqa: ARG001 - every parser's signature
    """Read a capture."""
    capture = Capture(NAME, log)
    yield from read(stream, capture)
    yield from capture.finish()


def read(stream: Stream, capture: Capture) -> Pieces:
    """Read all blocks; where a length cannot be, go on at the next place that makes sense."""
    log = capture.log
    section = Section()
    dropped: list[int] = []
    notes, lost = np.zeros(framing.NOTES, np.int64), np.zeros(1, np.int64)
    with Blocks(stream, framing.LIMIT + 4096) as blocks:
        blocks.advance()
        last_time = 0
        while True:
            found, blocks.at, status, last_time = framing.walk(
                blocks.buffer, blocks.at, blocks.used, section.big_endian, section.interfaces, section.count,
                last_time, capture.frames, notes, lost,
            )  # fmt: skip
            yield from capture.decode(blocks.buffer, found)
            if status == framing.SPECIAL:
                status, section = _special(blocks, section, capture, dropped)
            if status == framing.BAD:
                _resynchronise(blocks, section, log, capture.count)
            elif status == framing.MORE:
                if blocks.final:
                    break
                blocks.advance()
        if blocks.used > blocks.at:
            log.add(
                "cut_record",
                f"the input ends inside a block: its last {blocks.used - blocks.at} bytes are no whole one",
                severity="error",
                frame=capture.count + 1,
                offset_bytes=blocks.offset,
            )
    _report(capture, [*dropped, *section.drops.values()], notes, int(lost[0]), log)


def _special(blocks: Blocks, section: Section, capture: Capture, dropped: list[int]) -> tuple[int, Section]:
    """Read a block that is not a packet; return FULL where there is more to walk, and the section that holds now."""
    head = blocks.buffer[blocks.at : blocks.at + 12].tobytes()
    is_section = head[:4] == b"\n\r\r\n"
    order = _ORDERS.get(head[8:12]) if is_section else section.order
    if order is None:
        return framing.BAD, section
    kind, length = struct.unpack_from(f"{order}II", head)
    if length < (28 if is_section else 20) or length & 3 or length > framing.LIMIT:
        return framing.BAD, section
    if blocks.used - blocks.at < length:
        return framing.MORE, section
    block = blocks.buffer[blocks.at : blocks.at + length].tobytes()
    if block[4:8] != block[-4:]:
        return framing.BAD, section
    if is_section:
        dropped += section.drops.values()
        section = Section(order)
    elif kind == framing.INTERFACE:
        capture.declare(*section.describe(block[8:-4]))
    elif length >= 24:
        section.count_drops(block[8:-4])
    blocks.at += length
    return framing.FULL, section


def _resynchronise(blocks: Blocks, section: Section, log: DiagnosticLog, frames: int) -> None:
    """Skip to the next place where blocks follow one another, or to the end."""
    start = blocks.offset
    outcome = blocks.resynchronise(
        lambda: framing.resynchronise(blocks.buffer, blocks.at, blocks.used, blocks.final, section.big_endian),
        framing.FOUND,
        "block",
    )
    log.add(
        "bad_length",
        f"a block with an impossible length, or with two different ones: {outcome}",
        severity="error",
        frame=frames + 1,
        offset_bytes=start,
    )


def _report(capture: Capture, dropped: list[int], notes: NDArray[np.int64], lost: int, log: DiagnosticLog) -> None:
    for code, (name, severity, text) in _NOTES.items():
        if count := int(notes[code]):
            log.add(name, f"{count} {text}", severity=severity, count=count)
    if dropped or lost:
        # Statistics are totals, the counters of packets are differences: both may tell of the same packets.
        capture.drops = min((capture.drops or 0) + max(sum(dropped), lost), (1 << 63) - 1)
