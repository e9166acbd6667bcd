"""Where bytes come from: a path, ``-`` (standard input), a glob, a folder or an object-store URL.

Compression is looked through by magic number, never by suffix, multi-member files included. A stream that ends early
gives what could be decompressed and says so in `Stream.damage`; nothing is read into memory as a whole.
"""

from __future__ import annotations

import bz2
import contextlib
import fnmatch
import glob
import gzip
import io
import lzma
import re
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast
from urllib.parse import quote, urlsplit, urlunsplit

from tracetool.errors import InputError, UsageError
from tracetool.hashed import Hashed
from tracetool.stores import filesystem, without_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

HEAD_BYTES = 65536  # what a parser may look at to recognise its format
LINE_BYTES = 1 << 20  # a longer line is no log line: it is cut and reported
READ_BYTES = 1 << 20
REQUEST_BYTES = 8 << 20  # of an object store
_BUFFER_BYTES = 1 << 17
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
#: Compressions of Python's own library, which gives what one piece of the input decompresses to.
_PIECEWISE = frozenset({"gzip", "bzip2", "xz"})
#: pyarrow's give all that is asked for, or an error: of a stream that was cut no more than this is lost.
_AT_ONCE = 1 << 12
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
    folder
        What a relative path starts from; nothing: the current folder.
    listed_bytes
        Size, where a listing told it.
    """

    name: str
    folder: str = field(default="", compare=False)
    listed_bytes: int | None = field(default=None, compare=False)

    def anchored(self) -> Source:
        """The same source, found from any current folder."""
        return self if self.folder or "://" in self.name else Source(self.name, str(Path.cwd()))

    @property
    def label(self) -> str:
        """Name without secrets, to be shown and kept."""
        return without_secret(self.name)

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
        if self.listed_bytes is not None:
            return self.listed_bytes
        if "://" in self.name:
            try:
                system, at = filesystem(self.name)
                info = system.get_file_info(at)
            except (OSError, ValueError):
                return None
            return int(info.size) if info.is_file else None
        path = Path(self.folder, self.name)
        try:
            return path.stat().st_size if path.is_file() else None
        except OSError:  # whoever opens it will say what is wrong
            return None

    def open(self) -> Stream:
        """Open for reading, looking through compression.

        Raises
        ------
        InputError
            If it does not exist or cannot be read.
        """
        with _said_of(self.name), contextlib.ExitStack() as cleanup:
            raw = _open_raw(self.name, self.folder)
            cleanup.callback(raw.close)
            stream = Stream(self.label, raw)  # which reads its first bytes
            cleanup.pop_all()
            return stream


@contextlib.contextmanager
def _said_of(name: str) -> Iterator[None]:
    """Turn the operating system's refusals into one clear line."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{without_secret(name)}: {error.strerror or error}") from None


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
        self._hashed = Hashed(raw)
        stored = io.BufferedReader(self._hashed, _BUFFER_BYTES)  # longer reads are not copied
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
            if self.compression in _PIECEWISE:  # a read of more would lose, with the error, what came before it
                return cast("io.BufferedIOBase", self._plain).readinto1(view)
            if self.compression is not None:
                view = view[:_AT_ONCE]
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
        return self._hashed.hexdigest(), self._hashed.size_bytes

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


def _open_raw(name: str, folder: str) -> IO[bytes]:
    if name == "-":
        if sys.stdin is None:
            raise InputError("-: standard input is closed")
        return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
    if "://" in name:
        return _open_url(name)
    path = Path(folder, name)
    if path.is_dir():
        raise InputError(f"{name}: is a folder, not a file")
    return path.open("rb", buffering=0)


def _open_url(name: str) -> IO[bytes]:
    try:
        system, path = filesystem(name)
        # Each read of an object store is a request: few large ones are made of the many small ones.
        return cast("IO[bytes]", system.open_input_stream(path, compression=None, buffer_size=REQUEST_BYTES))
    except (OSError, ValueError) as error:
        raise InputError(f"{without_secret(name)}: {' '.join(str(error).split())}") from None


def expand(inputs: str | Path | Source | Iterable[str | Path | Source]) -> list[Source]:
    """Sources named by paths, ``-``, globs, folders or URLs of all these.

    A folder stands for all files below. Hidden ones are left out, and datasets: they are made of what lies beside them.

    Raises
    ------
    UsageError
        If nothing is named.
    InputError
        If a glob or a folder holds no file.
    """
    items = [inputs] if isinstance(inputs, (str, Path, Source)) else list(inputs)
    if not items:
        raise UsageError("no input given: name a capture or log file, a folder, a glob or - for standard input")
    found: dict[Source, None] = {}
    for item in items:
        with _said_of(str(item)):
            some = dict.fromkeys([item] if isinstance(item, Source) else _expand_one(str(item)))
        if not some:
            raise InputError(f"{without_secret(str(item))}: no file there")
        found |= some
    return list(found)


def _expand_one(item: str) -> Iterator[Source]:
    if "://" in item:
        yield from _expand_url(item)
        return
    path = Path(item)
    if item == "-" or path.is_file():
        yield Source(item)
    elif path.is_dir():
        found = sorted(path.rglob("*"))
        datasets = {file.parent for file in found if file.name == "dataset.json" and _is_manifest(file)} - {path}
        for below in found:
            hidden = any(part.startswith(".") for part in below.relative_to(path).parts)
            if below.is_file() and not hidden and datasets.isdisjoint(below.parents):
                yield Source(str(below))
    elif glob.has_magic(item):
        yield from (Source(match) for match in sorted(glob.glob(item, recursive=True)) if Path(match).is_file())  # noqa: PTH207 - Path.glob takes no absolute pattern
    else:
        yield Source(item)


def _is_manifest(file: Path) -> bool:
    """Whether a file says that its folder is a dataset of ours; the manifest's first line names the tool."""
    try:
        with file.open("rb") as content:
            return b'"tool": "tracetool"' in content.read(64)
    except OSError:
        return False


def _expand_url(url: str) -> Iterator[Source]:
    """Objects below a prefix that ends with ``/``, or that fit a pattern (``*``, ``[...]``); else the object itself."""
    from pyarrow import fs

    parts = urlsplit(url)
    if not parts.path.endswith("/") and not re.search(r"[*[]", parts.path):
        yield Source(url)
        return
    prefix = re.split(r"[*[]", parts.path)[0].rpartition("/")[0]
    try:
        system, root = filesystem(urlunsplit(parts._replace(path=prefix)))
        files = system.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    except (OSError, ValueError) as error:
        raise InputError(f"{without_secret(url)}: {' '.join(str(error).split())}") from None
    for info in sorted((info for info in files if info.is_file), key=lambda info: str(info.path)):
        below = info.path[len(root) :].lstrip("/")
        path = f"{prefix}/{below}"
        if not any(part.startswith(".") for part in below.split("/")) and (
            parts.path.endswith("/") or fnmatch.fnmatchcase(path, parts.path)
        ):
            yield Source(urlunsplit(parts._replace(path=quote(path))), listed_bytes=int(info.size))


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
