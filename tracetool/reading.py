"""One input: source -> parser -> tables, checked, and put in their place. The unit of work that ingest hands out."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tracetool import parsers, tables
from tracetool.diagnostics import DiagnosticLog
from tracetool.errors import InputError, TracetoolError
from tracetool.writer import InputWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from tracetool.dataset import Dataset
    from tracetool.parsers import Pieces
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Source
    from tracetool.writer import Written

    Told = Callable[[int, int | None], None]

_log = logging.getLogger(__name__)


class Progress(Protocol):
    """Told how far long work is: bytes of an input, packets reconstructed, runs measured."""

    def __call__(self, what: str, done: int, total: int | None, /) -> None:
        """Take note; ``total`` is None where it is not known."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of one input.

    Attributes
    ----------
    source
        Its name as given.
    input
        Its short name in the dataset; None where it could not be read.
    status
        ``added``, ``present`` (its content was there already) or ``failed``.
    format
        Name of its format.
    rows
        Rows by table.
    diagnostics
        ``(severity, code, message, count, where)`` of each diagnostic.
    damaged
        Whether part of it could not be read.
    error
        Why it failed.
    """

    source: str
    input: str | None
    status: str
    format: str | None = None
    rows: dict[str, int] | None = None
    diagnostics: tuple[dict[str, Any], ...] = ()
    damaged: bool = False
    error: TracetoolError | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """What to read, and where to.

    Attributes
    ----------
    sources
        The input's file; several: the parts of one capture, in order.
    dataset
        Where its tables go.
    name
        Its short name there, which whoever made this task holds.
    options
        What the input does not say itself.
    known
        Inputs of the dataset that have the same size: their names, by content hash.
    """

    sources: tuple[Source, ...]
    dataset: Dataset
    name: str
    options: ParseOptions
    known: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name of what is read, to be shown and kept."""
        more = len(self.sources) - 1
        return f"{self.sources[0].label} and {more} more" if more else self.sources[0].label


def read(task: Task, progress: Progress | None = None) -> tuple[Ingested, Written | None]:
    """Read an input and write its tables.

    Returns
    -------
    tuple
        What became of it, and what was written and is not in the manifest yet.

    Raises
    ------
    DatasetWriteError
        If the dataset cannot be written.
    """
    try:
        if task.known and task.sources[0].name != "-" and (name := task.known.get(_digest(task.sources))):
            return Ingested(task.label, name, "present"), None
        with InputWriter(task.dataset.store, task.name, "ingest") as writer:
            return _read(task, writer, progress)
    except InputError as error:
        return Ingested(task.label, None, "failed", error=error), None


def _digest(sources: tuple[Source, ...]) -> str:
    """What tells one content from others of its size."""
    hashes = []
    for source in sources:
        with source.open() as stream:
            hashes.append(stream.digest()[0])
    if len(hashes) == 1:
        return hashes[0]
    from tracetool.joining import content_hash

    return content_hash(hashes)


def _read(task: Task, writer: InputWriter, progress: Progress | None) -> tuple[Ingested, Written]:
    log = DiagnosticLog(writer.name)
    told = None if progress is None else partial(progress, task.label)
    take = _take_one if len(task.sources) == 1 else _take_joined
    facts = take(task, writer, log, told)
    writer.write("diagnostics", log.table())
    written = writer.finish(source=task.label, **facts, damaged=log.damaged)
    _log.info("%s: %s, %s", task.label, facts["format"], writer.rows)
    return (
        Ingested(task.label, writer.name, "added", facts["format"], written.rows, tuple(log.rows), damaged=log.damaged),
        written,
    )


def _take_one(task: Task, writer: InputWriter, log: DiagnosticLog, told: Told | None) -> dict[str, Any]:
    """Read a file into tables; return what the manifest says of it."""
    (source,) = task.sources
    total = source.size_bytes
    with source.open() as stream:
        parser = parsers.detect(stream.head(), source.label, table=bool(task.options.columns))
        summary = _write(
            parser.parse(stream, log, task.options), writer, lambda: told and told(stream.stored_bytes, total)
        )
        if stream.damage is not None:
            log.add("damaged_compression", stream.damage, severity="error", offset_bytes=stream.position)
        sha256, size = stream.digest()
    _summarise(summary, writer, log)
    return {"format": parser.NAME, "size_bytes": size, "sha256": sha256}


def _take_joined(task: Task, writer: InputWriter, log: DiagnosticLog, told: Told | None) -> dict[str, Any]:
    """Read the parts of a capture into tables; return what the manifest says of them."""
    from tracetool.joining import Joined

    joined = Joined(task.sources, log)
    total = sum(source.size_bytes or 0 for source in task.sources)
    summary = _write(joined.pieces(), writer, lambda: told and told(joined.stored_bytes, total))
    _summarise(summary, writer, log)
    sha256, size = joined.digest
    return {"format": joined.format, "size_bytes": size, "sha256": sha256, "parts": joined.parts}


def _write(pieces: Pieces, writer: InputWriter, tell: Callable[[], object]) -> pa.Table:
    """Write what a parser yields; return its row of `inputs`, which is not complete yet."""
    summary = tables.empty("inputs")
    for table, rows in pieces:
        if table == "inputs":
            summary = rows
        else:
            writer.write(table, rows)
        tell()
    return summary


def _summarise(summary: pa.Table, writer: InputWriter, log: DiagnosticLog) -> None:
    """Write the row of `inputs`, now that it is known whether all could be read."""
    damaged = summary.schema.get_field_index("damaged")
    writer.write("inputs", summary.set_column(damaged, "damaged", [[log.damaged] * summary.num_rows]))
