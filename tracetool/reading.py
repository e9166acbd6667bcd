"""One input: source -> parser -> tables, checked, and put in their place. The unit of work that ingest hands out."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tracetool import parsers, tables
from tracetool.diagnostics import DiagnosticLog, note_flows
from tracetool.errors import InputError, TracetoolError
from tracetool.writer import InputWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracetool.dataset import Dataset
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Source, Stream
    from tracetool.writer import Written

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
    source
        The input.
    dataset
        Where its tables go.
    name
        Its short name there, which whoever made this task holds.
    options
        What the input does not say itself.
    known
        Inputs of the dataset that have the same size: their names, by content hash.
    """

    source: Source
    dataset: Dataset
    name: str
    options: ParseOptions
    known: Mapping[str, str] = field(default_factory=dict)


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
    source = task.source
    try:
        if task.known and source.name != "-":
            with source.open() as stream:
                name = task.known.get(stream.digest()[0])
            if name is not None:
                return Ingested(source.label, name, "present"), None
        with source.open() as stream, InputWriter(task.dataset.store, task.name, "ingest") as writer:
            return _read(task, stream, writer, progress)
    except InputError as error:
        return Ingested(source.label, None, "failed", error=error), None


def _read(task: Task, stream: Stream, writer: InputWriter, progress: Progress | None) -> tuple[Ingested, Written]:
    source = task.source
    parser = parsers.detect(stream.head(), source.label, table=bool(task.options.columns))
    log = DiagnosticLog(writer.name)
    summary = tables.empty("inputs")
    for table, rows in parser.parse(stream, log, task.options):
        if table == "inputs":
            summary = rows
        else:
            writer.write(table, rows)
        if table == "flows" and writer.rows.get("packets"):
            note_flows(rows, log)
        if progress is not None:
            progress(source.label, stream.stored_bytes, source.size_bytes)
    if stream.damage is not None:
        log.add("damaged_compression", stream.damage, severity="error", offset_bytes=stream.position)
    damaged = summary.schema.get_field_index("damaged")
    writer.write("inputs", summary.set_column(damaged, "damaged", [[log.damaged] * summary.num_rows]))
    sha256, size = stream.digest()
    writer.write("diagnostics", log.table())
    written = writer.finish(
        source=source.label, format=parser.NAME, size_bytes=size, sha256=sha256, damaged=log.damaged
    )
    _log.info("%s: %s, %s", source.label, parser.NAME, writer.rows)
    return (
        Ingested(source.label, writer.name, "added", parser.NAME, written.rows, tuple(log.rows), damaged=log.damaged),
        written,
    )
