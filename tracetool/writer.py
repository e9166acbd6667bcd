"""Writes the tables of one input: in whatever process or machine the work is done, without a word to the manifest."""

from __future__ import annotations

import contextlib
import errno
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Self

from tracetool._version import __version__
from tracetool.errors import TracetoolError
from tracetool.parquet import TableFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from tracetool.stores import Store

#: Rows in a row group.
ROW_GROUP = 1 << 16


class DatasetWriteError(TracetoolError, OSError):
    """A dataset that cannot be written: a full disk, a read-only folder."""


@contextlib.contextmanager
def writing(place: object) -> Iterator[None]:
    """Turn the operating system's refusals while writing into one clear line."""
    try:
        yield
    except TracetoolError:
        raise
    except OSError as error:
        reason = {errno.ENOSPC: "no space left on the disk", errno.EROFS: "the file system is read-only"}.get(
            error.errno or 0, error.strerror or str(error)
        )
        raise DatasetWriteError(f"{place}: cannot be written: {reason}") from error


@dataclass
class Held:
    """The name of an input that no other process works on until this is closed."""

    name: str
    lock: IO[Any]

    def close(self) -> None:
        """Let others have it."""
        self.lock.close()


@dataclass(frozen=True, slots=True)
class Written:
    """What was written of one input and stage, whole and in its place, but not listed in the manifest yet.

    Attributes
    ----------
    name, stage
        Of the input, and of the work on it.
    files, rows
        By table.
    facts
        About the input, for the manifest.
    """

    name: str
    stage: str
    files: dict[str, str]
    rows: dict[str, int]
    facts: dict[str, Any]

    def list_in(self, content: dict[str, Any]) -> None:
        """Enter it into a manifest."""
        entry = content["inputs"].setdefault(self.name, {"stages": {}})
        entry.update(self.facts)
        if self.stage == "ingest":  # what was inferred from an earlier version of the input is void
            entry["stages"] = {}
        entry["stages"][self.stage] = {"version": __version__, "files": self.files, "rows": self.rows}

    def discard(self, store: Store) -> None:
        """Remove its files, which no manifest lists."""
        for table, file in self.files.items():
            store.remove(f"{table}/{file}")


@dataclass
class InputWriter:
    """Writes the tables of one input and stage; they appear together when `commit` is called, or not at all.

    Use as a context manager: leaving it without `commit` or `finish` removes what was written.
    """

    store: Store
    name: str
    stage: str
    held: Held | None = None  # None: whoever started this work holds the name, and commits
    list_in_manifest: Callable[[Iterable[Written]], None] | None = None
    _files: dict[str, TableFile] = field(default_factory=dict)
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _scratch: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            with contextlib.suppress(Exception):  # what went wrong was raised by `finish`, or is wanted no more
                file.close()
        self._open.close()
        if self.held is not None:
            self.held.close()

    def _file(self, table: str) -> str:
        return (
            f"{self.name}.parquet"
            if self.stage == "ingest" or table != "diagnostics"
            else f"{self.name}~{self.stage}.parquet"
        )

    def write(self, table: str, rows: pa.Table) -> None:
        """Append rows to a table: checked now, written by a thread while the next ones are made.

        Raises
        ------
        SchemaError
            If the rows do not fit the table.
        DatasetWriteError
            If the disk refuses (perhaps a piece before this one).
        """
        with writing(self.store):
            file = self._files.get(table)
            if file is None:
                if self._scratch is None:
                    self._scratch = self._open.enter_context(self.store.scratch(self.name))
                file = self._files[table] = TableFile(table, self._scratch / table, ROW_GROUP)
            file.write(rows)

    @property
    def rows(self) -> dict[str, int]:
        """Rows by table, so far."""
        return {table: file.rows for table, file in sorted(self._files.items())}

    def finish(self, **facts: Any) -> Written:
        """Put everything written in its place; `tracetool.dataset.Dataset.commit` makes it visible.

        Parameters
        ----------
        facts
            About the input, for the manifest.
        """
        with writing(self.store):
            for file in self._files.values():
                file.end()
            for file in self._files.values():
                file.close()
            for table, file in self._files.items():
                self.store.put(file.path, f"{table}/{self._file(table)}")
        files = {table: self._file(table) for table in sorted(self._files)}
        return Written(self.name, self.stage, files, self.rows, facts)

    def commit(self, **facts: Any) -> None:
        """Make everything written visible, with facts about the input for the manifest."""
        assert self.list_in_manifest is not None
        self.list_in_manifest([self.finish(**facts)])
