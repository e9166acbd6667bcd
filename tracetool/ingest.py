"""Captures and logs into a dataset: names for inputs, work for whoever does it, and a manifest in their order."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from tracetool import parsers, sources
from tracetool.dataset import Dataset
from tracetool.errors import InputError, UsageError
from tracetool.executors import Serial, spread
from tracetool.parsers.options import ParseOptions
from tracetool.reading import Ingested, Progress, Task, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Executor
    from pathlib import Path

    from tracetool.sources import Source
    from tracetool.writer import Held, Written

__all__ = ["Ingested", "Progress", "ingest", "ingest_each"]

DEFAULTS = ParseOptions()


def ingest(
    inputs: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    options: ParseOptions = DEFAULTS,
    join: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Read captures and logs into a dataset.

    Inputs whose content the dataset holds already are skipped. An input that cannot be read does not stop the others.

    Parameters
    ----------
    inputs
        Paths, globs, folders, object-store URLs, or ``-`` for standard input.
    out
        Folder of the dataset, or a URL in an object store; made if absent.
    options
        What the inputs do not say themselves.
    join
        The inputs are parts of one capture (see `tracetool.joining`) and become one input of the dataset, named after
        the part that begins first.
    executor
        Reads the inputs; workers must find inputs and dataset under the same names. None: this process, one by one.
        The dataset is the same.
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
    done = list(ingest_each(inputs, out, options=options, join=join, executor=executor, progress=progress))
    for result in done:
        if result.error is not None:
            raise result.error
    return Dataset.open(out)


def ingest_each(
    inputs: str | Path | Source | Iterable[str | Path | Source],
    out: str | Path,
    *,
    options: ParseOptions = DEFAULTS,
    join: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Iterator[Ingested]:
    """Read inputs and tell what became of each, as soon as it is in the dataset; see `ingest`.

    Where none of them can be read, no dataset is made.
    """
    found = sources.expand(inputs)
    if join and len(found) > 1 and any(source.name == "-" for source in found):
        raise UsageError("standard input cannot be joined with others: name files")
    if executor is None and not Dataset.is_dataset(out) and (failed := _all_failed(found, options)):
        yield from failed
        return
    admission = _Admission(Dataset.create(out), options)
    if executor is None:
        executor = Serial()
    else:
        found = [source.anchored() for source in found]
        admission.dataset = admission.dataset.anchored()
    whole: list[tuple[Source, ...]] = [(source,) for source in found]
    if join and len(found) > 1:
        from tracetool.joining import ordered

        try:
            whole = [ordered(found)]
        except InputError as error:
            yield Ingested(found[0].label, None, "failed", error=error)
            return
    # Nobody but this process has its standard input.
    yield from admission.results(Serial(), [parts for parts in whole if parts[0].name == "-"], progress)
    yield from admission.results(executor, [parts for parts in whole if parts[0].name != "-"], progress)


def _all_failed(found: list[Source], options: ParseOptions) -> list[Ingested]:
    """What became of inputs of which none can be read; empty where one may be."""
    failed = []
    for source in found:
        if (error := _refusal(source, options)) is None:
            return []
        failed.append(Ingested(source.label, None, "failed", error=error))
    return failed


def _refusal(source: Source, options: ParseOptions) -> InputError | None:
    """Why an input cannot be read; None where it may be, and of standard input and pipes, which open only once."""
    there = os.path.exists(os.path.join(source.folder, source.name))  # noqa: PTH110, PTH118 - raises nothing
    if source.name == "-" or (there and source.size_bytes is None):
        return None
    try:
        with source.open() as stream:
            parsers.detect(stream.head(), source.label, table=bool(options.columns))
    except InputError as error:
        return error
    return None


@dataclass
class _Admission:
    """Gives inputs their names, and takes what was read of them into the manifest.

    Names and order do not depend on who is done first: a name is not used again for another input of the same call,
    and of inputs with the same content the first one counts, so that one waits for those before it of its size.
    """

    dataset: Dataset
    options: ParseOptions
    _held: dict[str, Held] = field(default_factory=dict)
    _order: dict[str, int] = field(default_factory=dict)  # by name
    _same_size: dict[int, deque[str]] = field(default_factory=dict)  # names that are not settled yet
    _sizes: dict[str, int | None] = field(default_factory=dict)
    _read: dict[str, tuple[Ingested, Written | None]] = field(default_factory=dict)  # and not settled yet
    _index: tuple[Any, dict[int, dict[str, str]]] = (None, {})

    def results(
        self, executor: Executor, found: list[tuple[Source, ...]], progress: Progress | None
    ) -> Iterator[Ingested]:
        """Read sources, and tell what became of each."""
        work = partial(read, progress=progress) if isinstance(executor, Serial) else read
        sizes = [] if progress is None or work is not read else [_size(parts) or 0 for parts in found]
        done = 0
        try:
            for group in spread(executor, work, map(self._task, found)):
                settled = list(self._settled(group))
                if progress is not None and sizes:
                    done += sum(self._sizes[task.name] or 0 for task, _ in group)
                    progress(f"{len(found):,} inputs", done, sum(sizes))
                yield from settled
        finally:
            self.dataset.give_up(self._held.values())
            self._held.clear()

    def _task(self, parts: tuple[Source, ...]) -> Task:
        held = self.dataset.hold(_names(parts[0]), self._order)
        size = _size(parts)
        self._held[held.name] = held
        self._order[held.name] = len(self._order)
        self._sizes[held.name] = size
        if size is not None:
            self._same_size.setdefault(size, deque()).append(held.name)
        return Task(parts, self.dataset, held.name, self.options, self._known(size))

    def _known(self, size: int | None) -> dict[str, str]:
        """Inputs of the dataset that have a size, by content hash."""
        entries = self.dataset.entries
        if self._index[0] is not entries:
            by_size: dict[int, dict[str, str]] = {}
            for name, entry in entries.items():
                by_size.setdefault(entry.get("size_bytes"), {})[entry.get("sha256")] = name
            self._index = (entries, by_size)
        return {} if size is None else self._index[1].get(size, {})

    def _settled(self, group: list[tuple[Task, tuple[Ingested, Written | None]]]) -> Iterator[Ingested]:
        """Take what was read into the manifest, as far as it need not wait."""
        self._read |= {task.name: result for task, result in group}
        ready: list[tuple[str, Ingested, Written | None]] = []
        for name in sorted(self._read, key=self._order.__getitem__):
            size = self._sizes[name]
            if size is not None:
                if self._same_size[size][0] != name:
                    continue
                self._same_size[size].popleft()
            ready.append((name, *self._read.pop(name)))
        twins = self._commit([written for _, _, written in ready if written is not None])
        entries = self.dataset.entries
        for name, result, written in ready:
            there = twins.get(name, result.input if result.status == "present" else None)
            if written is not None and there is not None:
                written.discard(self.dataset.store)
            self._held.pop(name).close()
            if there is None:
                yield result
            else:
                entry = entries.get(there, {})
                facts = {"format": entry.get("format"), "damaged": bool(entry.get("damaged"))}
                yield Ingested(result.source, there, "present", **facts)

    def _commit(self, written: list[Written]) -> dict[str, str]:
        """List what is new in the manifest; return the names of those that are not, and under which they are there."""
        twins: dict[str, str] = {}

        def change(content: dict[str, Any]) -> None:
            there = {(e.get("sha256"), e.get("size_bytes")): name for name, e in content["inputs"].items()}
            for each in written:
                known = there.setdefault((each.facts["sha256"], each.facts["size_bytes"]), each.name)
                if known == each.name:
                    each.list_in(content)
                else:
                    twins[each.name] = known
            ordered = sorted(content["inputs"].items(), key=lambda item: self._order.get(item[0], -1))
            content["inputs"] = dict(ordered)

        if written:
            self.dataset.update(change)
        return twins


def _size(parts: tuple[Source, ...]) -> int | None:
    sizes = [source.size_bytes for source in parts]
    return None if None in sizes else sum(size or 0 for size in sizes)


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
