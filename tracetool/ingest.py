"""Source -> parser -> tables: every input is read once, checked, and appears in the dataset when it is whole."""

from __future__ import annotations

import contextlib
import fcntl
import logging
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Protocol

from tracetool import parsers, sources, tables
from tracetool.dataset import Dataset, writing
from tracetool.diagnostics import DiagnosticLog, note_flows
from tracetool.errors import InputError, TracetoolError
from tracetool.parsers.options import ParseOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracetool.dataset import InputWriter
    from tracetool.sources import Source, Stream

_log = logging.getLogger(__name__)
DEFAULTS = ParseOptions()


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


def ingest(
    inputs: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    options: ParseOptions = DEFAULTS,
    progress: Progress | None = None,
) -> Dataset:
    """Read captures and logs into a dataset.

    Inputs whose content the dataset holds already are skipped. An input that cannot be read does not stop the others.

    Parameters
    ----------
    inputs
        Paths, globs, folders, object-store URLs, or ``-`` for standard input.
    out
        Folder of the dataset; made if absent.
    options
        What the inputs do not say themselves.
    progress
        Told how far the reading is.

    Returns
    -------
    Dataset
        The dataset, with the new inputs.

    Raises
    ------
    InputError
        If an input cannot be opened or its format is unknown (after the others were read).
    DatasetWriteError
        If the dataset cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(ingest("sample_traces/reno-sawtooth.pcap.gz", folder).inputs)
    ['reno-sawtooth']
    """
    done = list(ingest_each(inputs, out, options=options, progress=progress))
    for result in done:
        if result.error is not None:
            raise result.error
    return Dataset.open(out)


def ingest_each(
    inputs: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    options: ParseOptions = DEFAULTS,
    progress: Progress | None = None,
) -> Iterator[Ingested]:
    """Read inputs one after the other and tell what became of each; see `ingest`."""
    found = sources.expand(inputs)
    dataset = Dataset.create(out)
    for source in found:
        try:
            yield _ingest_one(source, dataset, options, progress)
        except InputError as error:
            yield Ingested(source.name, None, "failed", error=error)


def _ingest_one(source: Source, dataset: Dataset, options: ParseOptions, progress: Progress | None) -> Ingested:
    with source.open() as stream:
        parser = parsers.detect(stream.head(), source.name, table=bool(options.columns))
        with dataset.reserve(_names(source)) as writer:
            log = DiagnosticLog(writer.name)
            summary = tables.empty("inputs")
            for table, rows in parser.parse(stream, log, options):
                if table == "inputs":
                    summary = rows
                else:
                    writer.write(table, rows)
                if table == "flows" and writer.rows.get("packets"):
                    note_flows(rows, log)
                if progress is not None:
                    progress(source.name, stream.stored_bytes, source.size_bytes)
            if stream.damage is not None:
                log.add("damaged_compression", stream.damage, severity="error", offset_bytes=stream.position)
            damaged = summary.schema.get_field_index("damaged")
            writer.write("inputs", summary.set_column(damaged, "damaged", [[log.damaged] * summary.num_rows]))
            return _finish(source, stream, writer, log, parser.NAME)


def _finish(source: Source, stream: Stream, writer: InputWriter, log: DiagnosticLog, format_name: str) -> Ingested:
    sha256, size = stream.digest()
    with _one_at_a_time(writer.dataset):  # else two runs could add the same content at once
        for name, entry in writer.dataset.manifest()["inputs"].items():
            if entry.get("sha256") == sha256 and entry.get("size_bytes") == size:
                return Ingested(source.name, name, "present", entry.get("format"), damaged=bool(entry.get("damaged")))
        writer.write("diagnostics", log.table())
        writer.commit(source=source.name, format=format_name, size_bytes=size, sha256=sha256, damaged=log.damaged)
    _log.info("%s: %s, %s", source.name, format_name, writer.rows)
    return Ingested(
        source.name, writer.name, "added", format_name, dict(writer.rows), tuple(log.rows), damaged=log.damaged
    )


@contextlib.contextmanager
def _one_at_a_time(dataset: Dataset) -> Iterator[None]:
    with writing(dataset.path):
        lock = (dataset.path / ".inputs" / ".commit.lock").open("w")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _names(source: Source) -> Iterator[str]:
    """Candidates for an input's short name: the stem, then with its folders before it, then numbered."""
    yield source.stem
    name = source.stem
    for part in reversed(PurePath(source.name).parts[:-1][-3:]):
        if part not in {"/", ".", ".."}:
            name = f"{part}-{name}"
            yield name
    for number in range(2, 1_000_000):
        yield f"{source.stem}-{number}"
