"""Where a dataset's files are: a folder, or a prefix of an object store. A file appears there whole, or not at all.

In a folder that is done by rename. An object store has no rename, but a put is atomic: files are made in a temporary
folder and then uploaded. A folder has locks, which the kernel frees if a process dies; an object store has none, so
that one process at a time may write a dataset there (its workers may be many).
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit, urlunsplit

from tracetool.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

COPY_BYTES = 8 << 20
_LOCKS, _PARTS = ".inputs", ".parts"
#: What a folder may hold that is just becoming a dataset, or was left by a run that was killed while making one.
OWN = frozenset({".lock", _LOCKS, _PARTS})


class Store(Protocol):
    """Files by their names below a place; ``/`` separates folders."""

    def read(self, file: str) -> bytes:
        """Content of a file; FileNotFoundError if there is none."""

    def version(self, file: str) -> object:
        """What changes when a file is replaced; None if there is none."""

    def replace(self, file: str, content: bytes) -> None:
        """Put a small file in place."""

    def put(self, part: Path, file: str) -> None:
        """Put a file made in a `scratch` folder, and on the disk, in place."""

    def remove(self, file: str) -> None:
        """Remove a file if it is there."""

    def place(self, file: str) -> str | Path:
        """Path or URL of a file."""

    def open(self, file: str) -> Any:
        """What pyarrow can read a file from at any position."""

    def empty(self) -> bool:
        """Whether nothing is there but what a dataset in the making has."""

    def make(self) -> None:
        """Make the place if it is not there."""

    def scratch(self, name: str) -> contextlib.AbstractContextManager[Path]:
        """Lend a folder for the unfinished files of an input, gone when the context is left."""

    def sweep(self, name: str) -> None:
        """Remove what a killed run left of an input; whoever calls holds its lock."""

    def lock(self, name: str, *, wait: bool) -> IO[Any] | None:
        """Lock a name until the file is closed; None where another process has it and ``wait`` is not set."""


def store(place: str | Path) -> Store:
    """Store of a folder or URL.

    Examples
    --------
    >>> store("runs/today").place("dataset.json")
    PosixPath('runs/today/dataset.json')
    """
    return Bucket(place) if isinstance(place, str) and "://" in place else Folder(Path(place))


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of a file system."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def read(self, file: str) -> bytes:
        """See `Store.read`."""
        return (self.path / file).read_bytes()

    def version(self, file: str) -> object:
        """See `Store.version`."""
        try:
            status = (self.path / file).stat()
        except OSError:
            return None
        return (status.st_ino, status.st_mtime_ns, status.st_size)

    def replace(self, file: str, content: bytes) -> None:
        """See `Store.replace`."""
        part = self.path / f".{file}.tmp"
        try:
            with part.open("wb") as made:
                made.write(content)
                made.flush()
                os.fsync(made.fileno())
            part.replace(self.path / file)
        except BaseException:  # interruptions, too
            part.unlink(missing_ok=True)
            raise

    def put(self, part: Path, file: str) -> None:
        """See `Store.put`."""
        target = self.path / file
        target.parent.mkdir(exist_ok=True)
        part.replace(target)

    def remove(self, file: str) -> None:
        """See `Store.remove`."""
        (self.path / file).unlink(missing_ok=True)

    def place(self, file: str) -> Path:
        """See `Store.place`."""
        return self.path / file

    def open(self, file: str) -> Path:
        """See `Store.open`."""
        return self.path / file

    def empty(self) -> bool:
        """See `Store.empty`."""
        return all(entry.name in OWN or entry.name.endswith(".json.tmp") for entry in self.path.iterdir())

    def make(self) -> None:
        """See `Store.make`; what a run that was killed left of a file to be replaced goes."""
        self.path.mkdir(parents=True, exist_ok=True)
        for part in self.path.glob(".*.tmp"):
            with self.lock("", wait=True) or contextlib.nullcontext():  # nobody is writing it
                part.unlink(missing_ok=True)

    @contextlib.contextmanager
    def scratch(self, name: str) -> Iterator[Path]:
        """See `Store.scratch`; a folder of its own for each attempt, so that one that was given up disturbs none."""
        above = self.path / _PARTS / name
        above.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=above))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):
                above.rmdir()

    def sweep(self, name: str) -> None:
        """See `Store.sweep`."""
        shutil.rmtree(self.path / _PARTS / name, ignore_errors=True)

    def lock(self, name: str, *, wait: bool) -> IO[Any] | None:
        """See `Store.lock`."""
        path = self.path / (_LOCKS if name else "") / f"{name}.lock"
        path.parent.mkdir(exist_ok=True)
        file = path.open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.close()
            return None
        return file


def filesystem(url: str) -> tuple[Any, str]:
    """File system of a URL, as pyarrow knows it, and the path there.

    Raises
    ------
    InputError
        If pyarrow does not know such URLs.
    """
    parts = urlsplit(url)
    system, root = _filesystem(urlunsplit(parts._replace(path="/", fragment="")))
    return system, f"{root.rstrip('/')}/{unquote(parts.path).lstrip('/')}"


@cache
def _filesystem(root: str) -> tuple[Any, str]:
    from pyarrow import fs

    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(root)
    except (OSError, ValueError) as error:
        raise InputError(f"{without_secret(root)}: {' '.join(str(error).split())}") from None
    return found


def without_secret(url: str) -> str:
    """URL without a user's name and password.

    Examples
    --------
    >>> without_secret("s3://key:secret@bucket/a.pcap")
    's3://bucket/a.pcap'
    """
    if "://" not in url:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def below(url: str, file: str) -> str:
    """URL of a file below another one; what stands behind ``?`` stays.

    Examples
    --------
    >>> below("s3://bucket/run?region=eu-north-1", "dataset.json")
    's3://bucket/run/dataset.json?region=eu-north-1'
    """
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{file}"))


@dataclass(frozen=True, slots=True)
class Bucket:
    """A prefix of an object store (``s3://``, ``gs://``, ``abfs://``), or whatever else pyarrow reads by URL."""

    url: str

    def __str__(self) -> str:
        return without_secret(self.url)

    def _at(self, file: str) -> tuple[Any, str]:
        system, path = filesystem(self.url)
        return system, f"{path.rstrip('/')}/{file}"

    def read(self, file: str) -> bytes:
        """See `Store.read`."""
        system, path = self._at(file)
        with system.open_input_stream(path, compression=None) as stream:
            content: bytes = stream.read()
        return content

    def version(self, file: str) -> object:
        """See `Store.version`."""
        system, path = self._at(file)
        info = system.get_file_info(path)
        return (info.mtime_ns, info.size) if info.is_file else None

    def replace(self, file: str, content: bytes) -> None:
        """See `Store.replace`."""
        system, path = self._at(file)
        with system.open_output_stream(path, compression=None) as stream:
            stream.write(content)

    def put(self, part: Path, file: str) -> None:
        """See `Store.put`."""
        system, path = self._at(file)
        with part.open("rb") as content, system.open_output_stream(path, compression=None) as stream:
            while piece := content.read(COPY_BYTES):
                stream.write(piece)

    def remove(self, file: str) -> None:
        """See `Store.remove`."""
        system, path = self._at(file)
        with contextlib.suppress(FileNotFoundError):
            system.delete_file(path)

    def place(self, file: str) -> str:
        """See `Store.place`."""
        return below(self.url, file)

    def open(self, file: str) -> Any:
        """See `Store.open`."""
        system, path = self._at(file)
        return system.open_input_file(path)

    def empty(self) -> bool:
        """See `Store.empty`."""
        from pyarrow import fs

        system, path = filesystem(self.url)
        return not system.get_file_info(fs.FileSelector(path, allow_not_found=True))

    def make(self) -> None:
        """See `Store.make`; a prefix needs not be made."""

    @contextlib.contextmanager
    def scratch(self, name: str) -> Iterator[Path]:  # noqa: ARG002 - a folder needs it
        """See `Store.scratch`."""
        with tempfile.TemporaryDirectory(prefix="tracetool-") as folder:
            yield Path(folder)

    def sweep(self, name: str) -> None:
        """See `Store.sweep`; nothing is left behind."""

    def lock(self, name: str, *, wait: bool) -> IO[Any]:  # noqa: ARG002 - there are no locks
        """See `Store.lock`; there is none."""
        return io.StringIO()
