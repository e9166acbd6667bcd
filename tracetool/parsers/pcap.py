"""pcap: a 24-byte header, then frames, in either byte order, with microseconds or nanoseconds.

See draft-ietf-opsawg-pcap. What libpcap reads is read here: files before version 2.4, whose two lengths are swapped,
and Alexey Kuznetzov's modified format, whose record headers have 24 bytes. (libpcap knows the magic number of Navtel's
format, but reads no such file.)
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from tracetool.kernels import pcap_frames
from tracetool.packets.blocks import Blocks
from tracetool.packets.capture import Capture

if TYPE_CHECKING:
    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers import Pieces
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Stream

NAME = "pcap"
DESCRIPTION = "pcap (tcpdump, Wireshark)"

_MICRO, _NANO, _MODIFIED = 0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34
_HEADER = 24
MAX_CAPTURED = 262_144  # libpcap's MAXIMUM_SNAPLEN
_LARGEST = 1 << 24  # what a file that declares a larger snaplen may hold


class Header(NamedTuple):
    """What a file's header says.

    Attributes
    ----------
    big_endian
        Byte order.
    tick_ns
        Nanoseconds of one unit of the sub-second field.
    record_header
        Bytes before each frame.
    lengths
        Order of the two lengths in a record's header, as `tracetool.kernels.pcap_frames` names them.
    snaplen, link
        As declared.
    """

    big_endian: bool
    tick_ns: int
    record_header: int
    lengths: int
    snaplen: int
    link: int


def read_header(head: bytes) -> Header | None:
    """Read a file's header; None if it is none.

    Examples
    --------
    >>> read_header(bytes.fromhex("d4c3b2a1 0200 0400 00000000 00000000 60000000 01000000")).snaplen
    96
    """
    if len(head) < _HEADER:
        return None
    for order in "<>":
        magic, major, minor, _, _, snaplen, link = struct.unpack(f"{order}IHHIIII", head[:_HEADER])
        if magic not in (_MICRO, _NANO, _MODIFIED) or major not in (2, 543):
            continue
        lengths = pcap_frames.NORMAL
        if major == 543 or minor < 3:
            lengths = pcap_frames.SWAPPED
        elif minor == 3:
            lengths = pcap_frames.MAYBE_SWAPPED
        record = 24 if magic == _MODIFIED else 16
        return Header(order == ">", 1 if magic == _NANO else 1000, record, lengths, snaplen, link & 0xFFFF)
    return None


def sniff(head: bytes) -> bool:
    """Whether an input starts with a pcap header."""
    return read_header(head) is not None


def parse(stream: Stream, log: DiagnosticLog, options: ParseOptions) -> Pieces:  # noqa: ARG001 - every parser's signature
    """Read a capture."""
    capture = Capture(NAME, log)
    yield from read(stream, capture)
    yield from capture.finish()


def read(stream: Stream, capture: Capture) -> Pieces:
    """Read all frames; where a length cannot be, go on at the next place that makes sense."""
    log = capture.log
    header = read_header(stream.head())
    assert header is not None
    capture.declare(header.link, header.snaplen, header.tick_ns)
    limit = max(MAX_CAPTURED, min(header.snaplen, _LARGEST))
    reserve = max(limit, (pcap_frames.RUN + 1) * pcap_frames.PLAUSIBLE_BYTES) + 4096
    with Blocks(stream, reserve) as blocks:
        blocks.advance()
        blocks.skip(_HEADER)
        seconds = -1
        while True:
            found, blocks.at, status = pcap_frames.walk(
                blocks.buffer, blocks.at, blocks.used, header.big_endian, header.record_header, header.lengths,
                header.tick_ns, limit, header.link, capture.frames,
            )  # fmt: skip
            if found:
                seconds = int(capture.frames["time"][found - 1]) // 1_000_000_000
            yield from capture.decode(blocks.buffer, found)
            if status == pcap_frames.BAD:
                _resynchronise(blocks, header, seconds, log, capture.count)
            elif status == pcap_frames.MORE:
                if blocks.final:
                    break
                blocks.advance()
        if blocks.used > blocks.at:
            log.add(
                "cut_record",
                f"the input ends inside a record: its last {blocks.used - blocks.at} bytes are no whole frame",
                severity="error",
                frame=capture.count + 1,
                offset_bytes=blocks.offset,
            )


def _resynchronise(blocks: Blocks, header: Header, seconds: int, log: DiagnosticLog, frames: int) -> None:
    """Skip to the next place where records follow one another, or to the end."""
    start = blocks.offset
    length = pcap_frames.load32(blocks.buffer, blocks.at + 8, header.big_endian)
    outcome = blocks.resynchronise(
        lambda: pcap_frames.resynchronise(
            blocks.buffer, blocks.at, blocks.used, blocks.final, header.big_endian, header.record_header,
            header.lengths, header.tick_ns, seconds,
        ),
        pcap_frames.FOUND,
        "frame",
    )  # fmt: skip
    log.add(
        "bad_length",
        f"a record with an impossible length ({length} bytes): {outcome}",
        severity="error",
        frame=frames + 1,
        offset_bytes=start,
    )
