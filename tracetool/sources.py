"""Where bytes come from: a path, ``-`` (standard input), a glob, a folder or an object-store URL.

Compression is looked through by magic number, never by suffix, multi-member files included. A stream that ends early
gives what could be decompressed and says so in `Stream.damage`; nothing is read into memory as a whole.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import hashlib
import io
import lzma
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast
from urllib.parse import urlsplit

from tracetool.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

HEAD_BYTES = 65536  # what a parser may look at to recognise its format
LINE_BYTES = 1 << 20  # a longer line is no log line: it is cut and reported
READ_BYTES = 1 << 20
#: Suffixes that say nothing about what was recorded; they are left out of an input's short name.
SUFFIXES = frozenset(
    {".gz", ".xz", ".zst", ".bz2", ".lz4", ".pcap", ".pcapng", ".cap", ".dmp", ".dump", ".txt", ".log"}
)
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"\x04\x22\x4d\x18": "lz4",
    b"BZh": "bzip2",
}
_DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError)


class Line(NamedTuple):
    """One line of a text input."""

    number: int  # 1-based
    offset_bytes: int  # of its first byte, in the decompressed input
    text: str  # without its line end; undecodable bytes replaced
    whole: bool  # False: cut at LINE_BYTES, or the last line has no line end


@dataclass(frozen=True, slots=True)
class Source:
    """One input that can be opened.

    Attributes
    ----------
    name
        As the user gave it: a path, ``-`` or a URL.
    """

    name: str

    @property
    def stem(self) -> str:
        """Short name: the file name without suffixes that only tell the format.

        Examples
        --------
        >>> Source("runs/sender.pcap.gz").stem
        'sender'
        """
        if self.name == "-":
            return "stdin"
        path = Path(urlsplit(self.name).path if "://" in self.name else self.name)
        while path.suffix.lower() in SUFFIXES and path.stem:
            path = path.with_suffix("")
        return path.name

    @property
    def size_bytes(self) -> int | None:
        """Size as stored; None where it cannot be known beforehand."""
        path = Path(self.name)
        return path.stat().st_size if path.is_file() else None

    def open(self) -> Stream:
        """Open for reading, looking through compression.

        Raises
        ------
        InputError
            If it does not exist or cannot be read.
        """
        return Stream(self.name, _open_raw(self.name))


class _Hashed(io.RawIOBase):
    """Raw bytes as stored, hashed and counted while they are read."""

    def __init__(self, raw: IO[bytes]) -> None:
        self.raw = raw
        self.sha256 = hashlib.sha256()
        self.size_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = cast("io.RawIOBase", self.raw).readinto(buffer) or 0
        self.sha256.update(memoryview(buffer)[:count])
        self.size_bytes += count
        return count

    def close(self) -> None:
        if not self.closed:
            self.raw.close()
        super().close()


class Stream(io.RawIOBase):
    """Decompressed bytes of a source.

    Attributes
    ----------
    name
        As the user gave it.
    compression
        gzip, zstd, xz, lz4, bzip2 or None.
    damage
        What is wrong with the compressed container, or None; set when it is met.
    """

    def __init__(self, name: str, raw: IO[bytes]) -> None:
        self.name = name
        self.damage: str | None = None
        self.position = 0
        self._hashed = _Hashed(raw)
        stored = io.BufferedReader(self._hashed, READ_BYTES)
        magic = stored.peek(8)[:8]
        self.compression = next((kind for key, kind in _MAGIC.items() if magic.startswith(key)), None)
        self._stored = stored
        self._plain = _decompressed(stored, self.compression)
        self._head = b""

    @property
    def stored_bytes(self) -> int:
        """Bytes read so far, as stored: what progress is measured in."""
        return self._hashed.size_bytes

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def head(self) -> bytes:
        """The first `HEAD_BYTES` bytes, without moving the position."""
        while self.position == 0 and len(self._head) < HEAD_BYTES:
            piece = self._read_plain(HEAD_BYTES - len(self._head))
            if not piece:
                break
            self._head += piece
        return self._head

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as one read gives bytes; 0 at the end."""
        view = memoryview(buffer).cast("B")
        if self._head:
            count = min(len(view), len(self._head))
            view[:count] = self._head[:count]
            self._head = self._head[count:]
        else:
            count = self._readinto_plain(view)
        self.position += count
        return count

    def _readinto_plain(self, view: memoryview) -> int:
        if self.damage is not None:
            return 0
        try:
            return cast("io.RawIOBase", self._plain).readinto(view) or 0
        except _DAMAGE as error:
            self.damage = _container_damage(self.compression, error)
            return 0

    def _read_plain(self, size: int) -> bytes:
        buffer = bytearray(size)
        return bytes(memoryview(buffer)[: self._readinto_plain(memoryview(buffer))])

    def digest(self) -> tuple[str, int]:
        """SHA-256 (hexadecimal) and size of the input as stored; reads what is left of it, as far as that goes."""
        try:
            while self._stored.read1(READ_BYTES):
                pass
        except OSError as error:
            self.damage = self.damage or _container_damage(None, error)
        return self._hashed.sha256.hexdigest(), self._hashed.size_bytes

    def close(self) -> None:
        """Close the stream and what it reads from."""
        if not self.closed:
            self._plain.close()
            self._stored.close()
        super().close()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _container_damage(compression: str | None, error: Exception) -> str:
    kind = compression or "input"
    if isinstance(error, EOFError) or "runcated" in str(error):
        return f"{kind} stream ends early"
    return f"{kind} stream is damaged: {' '.join(str(error).split())}"


def _decompressed(stored: io.BufferedReader[Any], compression: str | None) -> BinaryIO:
    if compression == "gzip":
        return cast("BinaryIO", gzip.GzipFile(fileobj=stored))
    if compression == "bzip2":
        return cast("BinaryIO", bz2.BZ2File(stored))
    if compression == "xz":
        return cast("BinaryIO", lzma.LZMAFile(stored))
    if compression is not None:
        import pyarrow as pa

        return cast("BinaryIO", pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), compression))
    return stored


def _open_raw(name: str) -> IO[bytes]:
    if name == "-":
        return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
    if "://" in name:
        return _open_url(name)
    path = Path(name)
    if path.is_dir():
        raise InputError(f"{name}: is a folder, not a file")
    try:
        return path.open("rb", buffering=0)
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}") from None


def _open_url(name: str) -> IO[bytes]:
    from pyarrow import fs

    try:
        filesystem, path = fs.FileSystem.from_uri(name)
        return cast("IO[bytes]", filesystem.open_input_stream(path, compression=None))
    except (OSError, ValueError) as error:
        raise InputError(f"{name}: {' '.join(str(error).split())}") from None


def expand(inputs: str | Path | Iterable[str | Path]) -> list[Source]:
    """Sources named by paths, ``-``, globs, folders (all files below, hidden ones left out) or URLs.

    Raises
    ------
    UsageError
        If nothing is named.
    InputError
        If a glob or a folder holds no file.
    """
    items = [inputs] if isinstance(inputs, (str, Path)) else list(inputs)
    if not items:
        raise UsageError("no input given: name a capture or log file, a folder, a glob or - for standard input")
    sources: list[Source] = []
    for item in map(str, items):
        found = list(_expand_one(item))
        if not found:
            raise InputError(f"{item}: no file there")
        sources.extend(source for source in found if source not in sources)
    return sources


def _expand_one(item: str) -> Iterator[Source]:
    path = Path(item)
    if item == "-" or "://" in item or path.is_file():
        yield Source(item)
    elif path.is_dir():
        for below in sorted(path.rglob("*")):
            if below.is_file() and not any(part.startswith(".") for part in below.relative_to(path).parts):
                yield Source(str(below))
    elif glob.has_magic(item):
        yield from (Source(match) for match in sorted(glob.glob(item, recursive=True)) if Path(match).is_file())  # noqa: PTH207 - Path.glob takes no absolute pattern
    else:
        yield Source(item)


def lines(stream: IO[bytes] | Stream) -> Iterator[Line]:
    """Lines of a text input, each with its number and byte offset; at most `LINE_BYTES` of one are kept.

    Line ends are LF or CR LF. Undecodable bytes become U+FFFD.
    """
    reader = io.BufferedReader(cast("io.RawIOBase", stream), READ_BYTES)
    try:
        yield from _lines(reader)
    finally:
        reader.detach()  # the stream stays open: it has more to tell, and is not ours


def _lines(reader: io.BufferedReader[Any]) -> Iterator[Line]:
    number, offset = 0, 0
    while raw := reader.readline(LINE_BYTES):
        number += 1
        start, whole = offset, raw.endswith(b"\n")
        offset += len(raw)
        while not whole and (rest := reader.readline(LINE_BYTES)):  # the tail of an overlong line
            offset += len(rest)
            if rest.endswith(b"\n"):
                break
        yield Line(number, start, raw.rstrip(b"\r\n").decode("utf-8", "replace"), whole)
