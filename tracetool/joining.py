"""Rotated captures of one interface (``tcpdump -C`` and ``-G``, ring buffers), read as the one capture that they were.

Parts may be given in any order: that of their first packets counts. Frames are numbered through and flows go on from
part to part, so that the tables are those of the merged file. Parts are told apart in diagnostics and in the manifest.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from tracetool import parsers
from tracetool.diagnostics import DiagnosticLog
from tracetool.errors import FormatError
from tracetool.packets.capture import Capture

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from tracetool.parsers import CaptureParser, Pieces
    from tracetool.sources import Source, Stream

SECOND_NS = 1_000_000_000
#: The shortest header of a capture file, pcap's: a part that is shorter was ended while it was begun.
HEADER_BYTES = 24


class _FirstFrame(Exception):  # noqa: N818 - no error: what was looked for
    """Carries the time of the first frame."""


class _Probe(Capture):
    """A capture of which only the time of the first frame is wanted."""

    def decode(self, buffer: NDArray[np.uint8], count: int) -> Iterator[tuple[str, pa.Table]]:  # noqa: ARG002
        if count:
            raise _FirstFrame(int(self.frames["time"][0]))
        return iter(())


def _parser(stream: Stream) -> CaptureParser:
    parser = parsers.detect(stream.head(), stream.name)
    if not hasattr(parser, "read"):
        raise FormatError(f"{stream.name}: is no capture ({parser.DESCRIPTION}): only parts of a capture can be joined")
    return cast("CaptureParser", parser)


def first_time(source: Source) -> int | None:
    """Time of the first frame of a capture in nanoseconds since the epoch; None if it has none.

    Raises
    ------
    InputError
        If it cannot be read, or is no capture.
    """
    return _start(source)[1]


def _start(source: Source) -> tuple[bool, int | None]:
    """Whether a part has a header, and the time of its first frame."""
    with source.open() as stream:
        if len(stream.head()) < HEADER_BYTES:
            return False, None
        parser = _parser(stream)
        try:
            for _ in parser.read(stream, _Probe(parser.NAME, DiagnosticLog(""))):
                pass
        except _FirstFrame as found:
            return True, int(found.args[0])
    return True, None


def ordered(sources: Sequence[Source]) -> tuple[Source, ...]:
    """Parts of a capture in the order of their first frames; then those without frames, then those without a header.

    Raises
    ------
    InputError
        If one cannot be read, or is no capture.
    """

    def place(source: Source) -> tuple[bool, bool, int, str]:
        header, time = _start(source)
        return not header, time is None, time or 0, source.name

    return tuple(sorted(sources, key=place))


@dataclass
class Joined:
    """Reads the parts of a capture, one after the other.

    Parameters
    ----------
    sources
        The parts, in order.
    log
        Takes the diagnostics.

    Attributes
    ----------
    parts
        Of each part that was read: ``source``, ``size_bytes``, ``sha256``.
    stored_bytes
        Bytes read so far, as stored.
    format
        Name of the parts' format; of the first one, where there are several.
    """

    sources: Sequence[Source]
    log: DiagnosticLog
    parts: list[dict[str, Any]] = field(default_factory=list)
    stored_bytes: int = 0
    format: str = ""
    _with_frames: dict[tuple[int, str], str] = field(default_factory=dict)  # by size and hash: names

    def pieces(self) -> Pieces:
        """Pieces of tables, as from any parser."""
        capture: Capture | None = None
        for source in self.sources:
            self.log.part = source.label
            before = self.stored_bytes
            if self._repeats(source):
                continue
            with source.open() as stream:
                count = capture.count if capture else 0
                if len(stream.head()) >= HEADER_BYTES or capture is None:
                    parser = _parser(stream)
                    if capture is None:
                        self.format = parser.NAME
                        capture = Capture(parser.NAME, self.log)
                    last = capture.last_time
                    for piece in parser.read(stream, capture):
                        self.stored_bytes = before + stream.stored_bytes
                        yield piece
                    self._look(capture, source, last, count)
                else:
                    self._note_begun(len(stream.head()))
                if stream.damage is not None:
                    self.log.add("damaged_compression", stream.damage, severity="error", offset_bytes=stream.position)
                self._enter(source, *stream.digest(), frames=capture.count - count)
        self.log.part = ""
        assert capture is not None
        yield from capture.finish()

    def _enter(self, source: Source, sha256: str, size: int, *, frames: int) -> None:
        self.stored_bytes = sum(part["size_bytes"] for part in self.parts) + size
        self.parts.append({"source": source.label, "size_bytes": size, "sha256": sha256})
        if frames:  # headers without frames are all alike
            self._with_frames[size, sha256] = source.label

    def _repeats(self, source: Source) -> bool:
        """Whether a part was read already, under another name; only one of the same size is looked at."""
        if source.size_bytes not in {size for size, _ in self._with_frames}:
            return False
        with source.open() as stream:
            sha256, size = stream.digest()
        same = self._with_frames.get((size, sha256))
        if same is None:
            return False
        self.log.add("repeated_part", f"left out: its content is that of {same}")
        self._enter(source, sha256, size, frames=0)
        return True

    def _note_begun(self, size: int) -> None:
        """Note a part that was ended before its header was written."""
        if size:
            message = f"the input ends inside its header: {size} bytes are no capture"
            self.log.add("cut_record", message, severity="error", offset_bytes=0)
        else:
            self.log.add("empty_part", "is empty: a capture that ended as it was begun", severity="info")

    def _look(self, capture: Capture, source: Source, last: int | None, count: int) -> None:
        """Note a part that does not begin where the one before it ended."""
        begins = first_time(source) if last is not None and capture.count > count else None
        if last is not None and begins is not None and begins < last - SECOND_NS:
            self.log.add(
                "parts_overlap",
                f"begins {(last - begins) / 1e9:.3f} s before the parts before it end: were these one capture?",
                frame=count + 1,
                time=begins,
            )

    @property
    def digest(self) -> tuple[str, int]:
        """What tells that the parts are the same, in the same order: a hash of their hashes, and their size."""
        return content_hash([part["sha256"] for part in self.parts]), sum(part["size_bytes"] for part in self.parts)


def content_hash(hashes: Sequence[str]) -> str:
    """Hash of the hashes of parts."""
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()
