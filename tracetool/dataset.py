"""A dataset: Parquet tables, ``DATASET/<table>/<input>.parquet``, and their manifest ``dataset.json``.

What the manifest lists is there, and whole; anything else is left over from a run that was killed, and is not read.
Files appear whole, the manifest last, so that a reader never sees half an input. Whoever works on an input (perhaps
in another process, on another machine) writes its files; whoever started it holds its name by a lock, and takes what
was written into the manifest. Several processes may so write into one dataset, if it is a folder.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tracetool import tables
from tracetool._version import __version__
from tracetool.errors import DatasetError
from tracetool.stores import store, without_secret
from tracetool.writer import DatasetWriteError, Held, InputWriter, Written, writing

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    import polars as pl

    from tracetool.stores import Store

__all__ = ["Dataset", "DatasetWriteError", "InputWriter", "safe_name", "writing"]

MANIFEST = "dataset.json"
SCHEMA_VERSION = 1
NAME_CHARS = 100
#: Where the errors of whoever reads tables come from, and those of Python that they are turned into.
_READERS = frozenset({"polars", "pyarrow"})
_READER_ERRORS = (OSError, FileNotFoundError, IsADirectoryError, KeyError)


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
    """Tables below one place.

    Parameters
    ----------
    path
        A folder, or the URL of a prefix in an object store.

    Examples
    --------
    >>> Dataset.open("runs/today").scan("flows").collect()  # doctest: +SKIP
    """

    path: Path | str

    @classmethod
    def at(cls, path: str | Path) -> Dataset:
        """Dataset at a path or URL, whether it is there or not."""
        return cls(path if isinstance(path, str) and "://" in path else Path(path))

    @classmethod
    def open(cls, path: str | Path) -> Dataset:
        """Open a dataset that exists.

        Raises
        ------
        DatasetError
            If there is none, or a later version of tracetool wrote it.
        """
        dataset = cls.at(path)
        dataset.manifest()
        return dataset

    @classmethod
    def is_dataset(cls, path: str | Path) -> bool:
        """Whether a path or URL is a dataset."""
        try:
            return store(path).version(MANIFEST) is not None
        except OSError:  # whoever opens it will say what is wrong
            return False

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
        dataset = cls.at(path)
        with writing(dataset.store):
            dataset.store.make()
            if not cls.is_dataset(path):
                if not dataset.store.empty() and not cls.is_dataset(path):
                    raise DatasetError(f"{dataset}: is no dataset, and not empty: name a new folder for the dataset")
                with dataset.locked():
                    if not cls.is_dataset(path):
                        dataset._replace_manifest({"inputs": {}, "commands": []})  # noqa: SLF001 - its own
        dataset.manifest()
        return dataset

    @property
    def store(self) -> Store:
        """Where its files are."""
        return store(self.path)

    def anchored(self) -> Dataset:
        """The same dataset, found from any current folder."""
        return Dataset(self.path.absolute() if isinstance(self.path, Path) else self.path)

    def __str__(self) -> str:
        return str(self.store)

    # -- reading

    def manifest(self) -> dict[str, Any]:
        """What ``dataset.json`` says: versions, inputs, commands."""
        try:
            loaded: dict[str, Any] = json.loads(self.store.read(MANIFEST))
            version = int(loaded["schema_version"])
            loaded["inputs"].items()
        except FileNotFoundError:
            raise DatasetError(f"{self}: no dataset there (no {MANIFEST})") from None
        except NotADirectoryError:
            raise DatasetError(f"{self}: a file, no dataset: `tracetool ingest` makes one of it") from None
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            where = without_secret(str(self.store.place(MANIFEST)))
            raise DatasetError(f"{where}: cannot be read: {' '.join(str(error).split())}") from None
        if version > SCHEMA_VERSION:
            raise DatasetError(f"{self}: schema version {version} is newer than this tracetool ({SCHEMA_VERSION})")
        return loaded

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs it holds, in the order in which they were added."""
        return list(self.manifest()["inputs"])

    @property
    def entries(self) -> Mapping[str, Any]:
        """What the manifest says of each input; read again only when it has changed."""
        return _entries(self, self.store.version(MANIFEST))

    def files(self, table: str, inputs: Iterable[str] | None = None) -> list[Path | str]:
        """Parquet files of a table, of all inputs or of some: paths, or URLs in an object store."""
        return [self.store.place(file) for file in self._files(table, inputs)]

    def _files(self, table: str, inputs: Iterable[str] | None = None) -> list[str]:
        tables.definition(table)
        entries = self.manifest()["inputs"]
        chosen = entries if inputs is None else [name for name in inputs if name in entries]
        found = (
            f"{table}/{file}"
            for name in chosen
            for stage in entries[name]["stages"].values()
            if (file := stage["files"].get(table))
        )
        return list(dict.fromkeys(found))  # a later stage may have replaced a file: `flows`, with the vantage

    def opened(self, table: str, inputs: Iterable[str] | None = None) -> Iterator[Any]:
        """Files of a table as `pyarrow.parquet` can read them, one after the other."""
        yield from (self.store.open(file) for file in self._files(table, inputs))

    def scan(self, table: str, inputs: Iterable[str] | None = None) -> pl.LazyFrame:
        """A table as a lazy Polars frame; without rows where no input has any.

        A column that a table has gained since its file was written is null there.
        """
        import polars as pl

        files = self._files(table, inputs)
        nothing = pl.DataFrame(tables.empty(table))
        if not files:
            return nothing.lazy()
        if isinstance(self.path, str):
            return _scan_store(self.path, table, files)
        paths = [self.path / file for file in files]
        return pl.scan_parquet(
            paths, schema=nothing.schema, missing_columns="insert", extra_columns="ignore", glob=False
        )

    def read(self, table: str, inputs: Iterable[str] | None = None) -> pl.DataFrame:
        """A table as a Polars frame, in memory."""
        return self.scan(table, inputs).collect()

    @contextlib.contextmanager
    def damage_told(self) -> Iterator[None]:
        """Say which file is damaged where Polars or pyarrow fail: tables are looked through only then.

        Raises
        ------
        DatasetError
            If that was it; what else was raised is left as it is.
        """
        try:
            yield
        except Exception as error:
            if type(error).__module__.split(".")[0] in _READERS or type(error) in _READER_ERRORS:
                for table in tables.names():
                    for file in self._files(table):
                        if (reason := _damage(table, self.store, file)) is not None:
                            where = without_secret(str(self.store.place(file)))
                            again = "ingest what it was made of into a new dataset"
                            raise DatasetError(f"{where}: cannot be read: {reason}: {again}") from error
            raise

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
        with writing(self.store):
            lock = self.store.lock("", wait=True)
            assert lock is not None
            with lock:
                yield

    def _replace_manifest(self, content: dict[str, Any]) -> None:
        content = {"tool": "tracetool", "version": __version__, "schema_version": SCHEMA_VERSION, **content}
        self.store.replace(MANIFEST, _manifest_text(content).encode())

    def update(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Change the manifest under the lock."""
        with self.locked():
            content = self.manifest()
            change(content)
            self._replace_manifest(content)

    def note_command(self, command: str) -> None:
        """Add a command to the list of those that made this dataset; a repeated one is not added again."""
        shown = re.sub(r"(\w://)[^/@\s]+@", r"\1", command)  # passwords in URLs are nobody's business

        def change(content: dict[str, Any]) -> None:
            if not content["commands"] or content["commands"][-1] != shown:
                content["commands"].append(shown)

        self.update(change)

    def hold(self, candidates: Iterable[str], used: Container[str] = ()) -> Held:
        """Hold the first free one of several names for a new input.

        A name is free if no input has it and no other process holds it.

        Parameters
        ----------
        candidates
            Names, the best one first.
        used
            Further names that are not free.
        """
        with self.locked():
            taken = self.entries
            for name in map(safe_name, candidates):
                if name not in taken and name not in used and (lock := self.store.lock(name, wait=False)):
                    self.store.sweep(name)
                    return Held(name, lock)
        raise DatasetError(f"{self}: no free name for another input")

    def hold_input(self, name: str) -> Held:
        """Hold an input that is there already; waits for another process that does."""
        with writing(self.store):
            lock = self.store.lock(name, wait=True)
            assert lock is not None
            self.store.sweep(name)
            return Held(name, lock)

    def give_up(self, held: Iterable[Held]) -> None:
        """Remove what there is of inputs whose work was cut off, and let others have their names."""
        for each in held:
            self.store.sweep(each.name)
            each.close()

    def reserve(self, candidates: Iterable[str]) -> InputWriter:
        """Writer for a new input under the first free one of several names; see `hold`."""
        held = self.hold(candidates)
        return InputWriter(self.store, held.name, "ingest", held, self.commit)

    def writer(self, name: str, stage: str) -> InputWriter:
        """Writer for a later stage of an input that is there already."""
        return InputWriter(self.store, name, stage, self.hold_input(name), self.commit)

    def commit(self, written: Iterable[Written]) -> None:
        """Make visible what was written of inputs whose names are held."""

        def change(content: dict[str, Any]) -> None:
            for each in written:
                each.list_in(content)

        self.update(change)


@lru_cache(maxsize=4)
def _entries(dataset: Dataset, _version: object) -> Mapping[str, Any]:
    entries: dict[str, Any] = dataset.manifest()["inputs"]
    return MappingProxyType(entries)


def _damage(table: str, place: Store, file: str) -> str | None:
    """Why a file of a table cannot be read; None if it can."""
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(place.open(file)) as content:
            for _ in content.iter_batches():
                pass
            there = pl.DataFrame(content.schema_arrow.empty_table()).schema
    except (OSError, pa.ArrowException) as error:
        return " ".join(str(error).split())
    for name, wanted in pl.DataFrame(tables.empty(table)).schema.items():
        if name in there and there[name] != wanted:
            return f"its column {name} is {there[name]}, not {wanted}"
        if name not in there and not tables.schema(table).field(name).nullable:
            return f"it has no column {name}"
    return None


def _scan_store(url: str, table: str, files: list[str]) -> pl.LazyFrame:
    import polars as pl
    import pyarrow.dataset as ds

    from tracetool.stores import filesystem

    system, path = filesystem(url)
    paths = [f"{path.rstrip('/')}/{file}" for file in files]
    found = ds.dataset(paths, schema=tables.schema(table), format="parquet", filesystem=system)
    return pl.scan_pyarrow_dataset(found)


def _manifest_text(content: dict[str, Any]) -> str:
    """Manifest as JSON with a line for each input and command: there may be thousands.

    Examples
    --------
    >>> print(_manifest_text({"tool": "tracetool", "inputs": {"a": {"stages": {}}}, "commands": []}))
    {
    "tool": "tracetool",
    "inputs": {
     "a": {"stages": {}}
    },
    "commands": []
    }
    <BLANKLINE>
    """
    text = partial(json.dumps, ensure_ascii=False)
    inputs = [f" {text(name)}: {text(entry)}" for name, entry in content["inputs"].items()]
    commands = [f" {text(command)}" for command in content["commands"]]
    shown = {name: text(value) for name, value in content.items()}
    shown["inputs"] = _block("{", inputs, "}")
    shown["commands"] = _block("[", commands, "]")
    return _block("{", [f'"{name}": {value}' for name, value in shown.items()], "}") + "\n"


def _block(start: str, lines: list[str], end: str) -> str:
    return "\n".join([start, ",\n".join(lines), end]) if lines else start + end


def _length() -> Any:
    import polars as pl

    return pl.len()
