"""pcap: a 24-byte header, then frames, in either byte order, with microseconds or nanoseconds.

See draft-ietf-opsawg-pcap. The variants that libpcap reads too: Alexey Kuznetzov's modified format (24-byte record
headers) and the one of Navtel.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tracetool import tables
from tracetool.kernels import pcap_frames
from tracetool.kernels.records import FRAME
from tracetool.packets import link_types
from tracetool.packets.decoder import Decoder

if TYPE_CHECKING:
    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers import Pieces
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Stream

NAME = "pcap"
DESCRIPTION = "pcap (tcpdump, Wireshark)"

_MICRO, _NANO, _MODIFIED, _NAVTEL = 0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34, 0xA12B3C4D
_HEADER = 24
_BLOCK = 1 << 20
_FRAMES = 1 << 14
MAX_CAPTURED = 262_144  # libpcap's MAXIMUM_SNAPLEN
_LARGEST = 1 << 24  # a record that a file with a larger snaplen may have


class Header(NamedTuple):
    """What a file's header says."""

    big_endian: bool
    tick_ns: int
    record_header: int
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
        if magic in (_MICRO, _NANO, _MODIFIED, _NAVTEL) and major == 2 and minor <= 4:
            tick = 1 if magic == _NANO else 1000
            return Header(order == ">", tick, 24 if magic == _MODIFIED else 16, snaplen, link & 0xFFFF)
    return None


def sniff(head: bytes) -> bool:
    """Whether an input starts with a pcap header."""
    return read_header(head) is not None


def parse(stream: Stream, log: DiagnosticLog, options: ParseOptions) -> Pieces:  # noqa: ARG001 - the protocol's signature
    """Read frames to the end of the input."""
    header = read_header(stream.head())
    assert header is not None
    decoder = Decoder(log.input)
    limit = max(MAX_CAPTURED, min(header.snaplen, _LARGEST))
    buffer = np.empty(_BLOCK + limit + header.record_header, np.uint8)
    frames = np.empty(_FRAMES, FRAME)
    at, used, base = _HEADER, 0, 0  # base: offset of the buffer's first byte in the input
    while True:
        count = stream.readinto(memoryview(buffer)[used : used + _BLOCK])
        used += count
        status = pcap_frames.FULL
        while status == pcap_frames.FULL and used > at:
            found, at, status = pcap_frames.walk(
                buffer, at, used, header.big_endian, header.record_header, header.tick_ns, limit, header.link, frames
            )
            for table in decoder.feed(buffer, frames, found):
                yield "packets", table
        if status == pcap_frames.BAD:
            log.add("bad_length", "impossible record length", severity="error", offset_bytes=base + at)
            break
        if count == 0:
            if used > at:
                log.add("cut_record", "the input ends inside a record", severity="error", offset_bytes=base + at)
            break
        if used > at:
            buffer[: used - at] = buffer[at:used].copy()
        base, used, at = base + min(at, used), max(used - at, 0), max(at - used, 0)
    yield from decoder.finish(log)
    yield "inputs", tables.from_rows(
        "inputs",
        [
            {
                "input": log.input,
                "format": NAME,
                "records": int(decoder.state["frames"]),
                "first_time": int(decoder.state["first_time"]) if decoder.state["frames"] else None,
                "last_time": int(decoder.state["last_time"]) if decoder.state["frames"] else None,
                "link_types": [link_types.name(header.link)],
                "snaplen_bytes": header.snaplen,
                "time_resolution_ns": header.tick_ns,
                "damaged": False,
            }
        ],
    )
