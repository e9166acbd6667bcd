"""A dataset: a folder of Parquet tables, ``DATASET/<table>/<input>.parquet``, and its manifest ``dataset.json``.

What the manifest lists is there, and whole; anything else in the folder is left over from a run that was killed, and
is not read. Files appear by rename, the manifest last, so that a reader never sees half an input. Several processes
may write into one dataset: an input's name is reserved by a file lock, which the kernel frees if the process dies.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from tracetool import tables
from tracetool._version import __version__
from tracetool.errors import DatasetError, TracetoolError
from tracetool.parquet import TableFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import polars as pl
    import pyarrow as pa

MANIFEST = "dataset.json"
SCHEMA_VERSION = 1
#: Rows in a row group of `packets`; a group holds a slice of time, sorted by flow, so that one flow is cheap to find.
ROW_GROUP = 262_144
NAME_CHARS = 100


class DatasetWriteError(TracetoolError, OSError):
    """A dataset that cannot be written: a full disk, a read-only folder."""


def safe_name(text: str) -> str:
    """A file stem made fit for a file name on any system: no separators, no leading dot, not too long.

    Examples
    --------
    >>> safe_name("../../etc/pass wd")
    'etc-pass-wd'
    """
    name = re.sub(r"[^A-Za-z0-9._+=@-]+", "-", text).strip("-.")
    return re.sub(r"\.{2,}", ".", name).strip("-.")[:NAME_CHARS] or "input"


@dataclass(frozen=True)
class Dataset:
    """A folder of tables.

    Parameters
    ----------
    path
        The folder.

    Examples
    --------
    >>> Dataset.open("runs/today").scan("flows").collect()  # doctest: +SKIP
    """

    path: Path

    @classmethod
    def open(cls, path: str | Path) -> Dataset:
        """Open a dataset that exists.

        Raises
        ------
        DatasetError
            If there is none, or a later version of tracetool wrote it.
        """
        dataset = cls(Path(path))
        dataset.manifest()
        return dataset

    @classmethod
    def is_dataset(cls, path: str | Path) -> bool:
        """Whether a path is a dataset's folder."""
        return (Path(path) / MANIFEST).is_file()

    @classmethod
    def create(cls, path: str | Path) -> Dataset:
        """Open a dataset, or make an empty one; an existing folder must be empty or a dataset.

        Raises
        ------
        DatasetError
            If the folder holds something else.
        DatasetWriteError
            If it cannot be written.
        """
        dataset = cls(Path(path))
        with writing(dataset.path):
            dataset.path.mkdir(parents=True, exist_ok=True)
            if not cls.is_dataset(path):
                # What another run is just making, or left when it was killed while making it.
                ours = {".lock", ".inputs", MANIFEST, f".{MANIFEST}.tmp"}
                if any(entry.name not in ours for entry in dataset.path.iterdir()) and not cls.is_dataset(path):
                    raise DatasetError(f"{path}: is no dataset, and not empty: name a new folder for the dataset")
                with dataset.locked():
                    if not cls.is_dataset(path):
                        dataset._replace_manifest({"inputs": {}, "commands": []})
        dataset.manifest()
        return dataset

    # -- reading

    def manifest(self) -> dict[str, Any]:
        """What ``dataset.json`` says: versions, inputs, commands."""
        try:
            loaded: dict[str, Any] = json.loads((self.path / MANIFEST).read_text(encoding="utf-8"))
            version = int(loaded["schema_version"])
            loaded["inputs"].items()
        except FileNotFoundError:
            raise DatasetError(f"{self.path}: no dataset there (no {MANIFEST})") from None
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            raise DatasetError(f"{self.path / MANIFEST}: cannot be read: {' '.join(str(error).split())}") from None
        if version > SCHEMA_VERSION:
            raise DatasetError(f"{self.path}: schema version {version} is newer than this tracetool ({SCHEMA_VERSION})")
        return loaded

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs it holds, in the order in which they were added."""
        return list(self.manifest()["inputs"])

    def files(self, table: str, inputs: Iterable[str] | None = None) -> list[Path]:
        """Parquet files of a table, of all inputs or of some."""
        tables.definition(table)
        entries = self.manifest()["inputs"]
        chosen = entries if inputs is None else [name for name in inputs if name in entries]
        found = (
            self.path / table / file
            for name in chosen
            for stage in entries[name]["stages"].values()
            if (file := stage["files"].get(table))
        )
        return list(dict.fromkeys(found))  # a later stage may have replaced a file: `flows`, with the vantage

    def scan(self, table: str, inputs: Iterable[str] | None = None) -> pl.LazyFrame:
        """A table as a lazy Polars frame; without rows where no input has any."""
        import polars as pl

        files = self.files(table, inputs)
        if not files:
            return pl.DataFrame(tables.empty(table)).lazy()
        return pl.scan_parquet(files, missing_columns="insert", extra_columns="ignore", glob=False)

    def read(self, table: str, inputs: Iterable[str] | None = None) -> pl.DataFrame:
        """A table as a Polars frame, in memory."""
        return self.scan(table, inputs).collect()

    def _repr_html_(self) -> str:
        """Show the tables and their rows in a notebook."""
        rows = "".join(
            f"<tr><td>{t}</td><td>{self.scan(t).select(_length()).collect().item()}</td></tr>" for t in tables.names()
        )
        return f"<table><tr><th>table</th><th>rows</th></tr>{rows}</table>"

    # -- writing

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the dataset's lock: one process at a time changes the manifest."""
        with writing(self.path), (self.path / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _replace_manifest(self, content: dict[str, Any]) -> None:
        content = {"tool": "tracetool", "version": __version__, "schema_version": SCHEMA_VERSION, **content}
        part = self.path / f".{MANIFEST}.tmp"
        with part.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, ensure_ascii=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path / MANIFEST)

    def update(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Change the manifest under the lock."""
        with self.locked():
            content = self.manifest()
            change(content)
            self._replace_manifest(content)

    def note_command(self, command: str) -> None:
        """Add a command to the list of those that made this dataset; a repeated one is not added again."""

        def change(content: dict[str, Any]) -> None:
            if not content["commands"] or content["commands"][-1] != command:
                content["commands"].append(command)

        self.update(change)

    def reserve(self, candidates: Iterable[str]) -> InputWriter:
        """Reserve the first free one of several names for a new input.

        A name is free if no input has it and no other process holds it.
        """
        with self.locked():
            taken = set(self.inputs)
            (self.path / ".inputs").mkdir(exist_ok=True)
            for name in map(safe_name, candidates):
                if name not in taken and (lock := _hold(self.path / ".inputs" / f"{name}.lock")):
                    return InputWriter(self, name, "ingest", lock)
        raise DatasetError(f"{self.path}: no free name for another input")

    def writer(self, name: str, stage: str) -> InputWriter:
        """Writer for a later stage of an input that is there already."""
        with writing(self.path):
            (self.path / ".inputs").mkdir(exist_ok=True)
            return InputWriter(self, name, stage, _wait(self.path / ".inputs" / f"{name}.lock"))


def _length() -> Any:
    import polars as pl

    return pl.len()


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals while writing into one clear line."""
    try:
        yield
    except TracetoolError:
        raise
    except OSError as error:
        reason = {errno.ENOSPC: "no space left on the disk", errno.EROFS: "the file system is read-only"}.get(
            error.errno or 0, error.strerror or str(error)
        )
        raise DatasetWriteError(f"{path}: cannot be written: {reason}") from error


def _wait(path: Path) -> IO[str]:
    lock = path.open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _hold(path: Path) -> IO[str] | None:
    lock = path.open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


@dataclass
class InputWriter:
    """Writes the tables of one input and stage; they appear together when `commit` is called, or not at all.

    Use as a context manager: leaving it without `commit` removes what was written.
    """

    dataset: Dataset
    name: str
    stage: str
    lock: IO[str]
    _files: dict[str, TableFile] = field(default_factory=dict)
    _written: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._written:
            for table, file in self._files.items():
                with contextlib.suppress(OSError):
                    file.close()
                self._part(table).unlink(missing_ok=True)
        self.lock.close()

    def _file(self, table: str) -> str:
        return (
            f"{self.name}.parquet"
            if self.stage == "ingest" or table != "diagnostics"
            else f"{self.name}~{self.stage}.parquet"
        )

    def _part(self, table: str) -> Path:
        return self.dataset.path / table / f".{self._file(table)}.tmp"

    def write(self, table: str, rows: pa.Table) -> None:
        """Append rows to a table: checked now, written by a thread while the next ones are made.

        Raises
        ------
        SchemaError
            If the rows do not fit the table.
        DatasetWriteError
            If the disk refuses (perhaps a piece before this one).
        """
        with writing(self.dataset.path):
            file = self._files.get(table)
            if file is None:
                part = self._part(table)
                part.parent.mkdir(exist_ok=True)
                file = self._files[table] = TableFile(table, part, ROW_GROUP)
            file.write(rows)

    @property
    def rows(self) -> dict[str, int]:
        """Rows by table, so far."""
        return {table: file.rows for table, file in sorted(self._files.items())}

    def commit(self, **facts: Any) -> None:
        """Make everything written visible, with facts about the input for the manifest."""
        with writing(self.dataset.path):
            for table, file in self._files.items():
                file.close()
                with self._part(table).open("rb") as part:
                    os.fsync(part.fileno())
            for table in self._files:
                self._part(table).replace(self.dataset.path / table / self._file(table))
        files = {table: self._file(table) for table in sorted(self._files)}
        self._written = True

        def change(content: dict[str, Any]) -> None:
            entry = content["inputs"].setdefault(self.name, {"stages": {}})
            entry.update(facts)
            if self.stage == "ingest":  # what was inferred from an earlier version of the input is void
                entry["stages"] = {}
            entry["stages"][self.stage] = {
                "version": __version__,
                "files": files,
                "rows": dict(sorted(self.rows.items())),
            }

        self.dataset.update(change)
