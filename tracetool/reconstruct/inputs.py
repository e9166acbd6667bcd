"""The inputs of a dataset, each a unit of work for whoever does it; the manifest is written by who started it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tracetool._version import __version__
from tracetool.dataset import Dataset
from tracetool.executors import Serial, cores, spread
from tracetool.writer import InputWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor
    from pathlib import Path

    from tracetool.ingest import Progress
    from tracetool.writer import Held, Written

STAGE = "reconstruct"


@dataclass(frozen=True, slots=True)
class Task:
    """One input of a dataset.

    Attributes
    ----------
    dataset, name
        Which; whoever made this task holds the name.
    flow
        Only this flow; None: all.
    share
        How many such tasks share a machine, at most: each uses its part of the cores.
    """

    dataset: Dataset
    name: str
    flow: int | None
    share: int


def pending(dataset: Dataset, *, flow: int | None = None, force: bool = False) -> dict[str, int]:
    """Return the inputs that are to be reconstructed, and how many packets each has.

    Examples
    --------
    >>> pending(Dataset.open("runs/today"))  # doctest: +SKIP
    {'sender': 120734}
    """
    return {
        name: entry["stages"]["ingest"]["rows"].get("packets", 0)
        for name, entry in dataset.manifest()["inputs"].items()
        if force or not _done(entry, flow)
    }


def _done(entry: dict[str, Any], flow: int | None) -> bool:
    done = entry["stages"].get(STAGE, {})
    return done.get("version") == __version__ and entry.get("only_flow") in {None, flow}


def reconstruct(
    dataset: Dataset | str | Path,
    *,
    flow: int | None = None,
    force: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """See `tracetool.reconstruct.reconstruct`."""
    opened = dataset if isinstance(dataset, Dataset) else Dataset.open(dataset)
    todo = pending(opened, flow=flow, force=force)
    if not todo:
        return opened
    with opened.damage_told():
        if executor is None:
            _all(Task(opened, "", flow, 1), todo, force, Serial(), partial(work, progress=progress), None)
        else:
            _all(Task(opened.anchored(), "", flow, len(todo)), todo, force, executor, work, progress)
    return opened


def _all(
    pattern: Task,
    todo: dict[str, int],
    force: bool,  # noqa: FBT001
    executor: Executor,
    each: Callable[[Task], Written],
    progress: Progress | None,
) -> None:
    dataset = pattern.dataset
    held: dict[str, Held] = {}
    done = 0

    def tasks() -> Iterator[Task]:
        for name in todo:
            mine = dataset.hold_input(name)
            if not force and _done(dataset.entries[name], pattern.flow):  # by another process, which held it meanwhile
                mine.close()
            else:
                held[name] = mine
                yield replace(pattern, name=name)

    try:
        for group in spread(executor, each, tasks()):
            dataset.commit([written for _, written in group])
            for task, _ in group:
                held.pop(task.name).close()
                done += todo[task.name]
            if progress is not None:
                progress(f"{len(todo):,} inputs", done, sum(todo.values()))
    finally:
        dataset.give_up(held.values())


def work(task: Task, progress: Progress | None = None) -> Written:
    """Infer what is to be known of an input; whoever made the task commits it."""
    from tracetool.reconstruct.driver import infer

    facts = {} if task.flow is None and "only_flow" not in task.dataset.entries[task.name] else {"only_flow": task.flow}
    threads = max(1, cores() // task.share)
    with InputWriter(task.dataset.store, task.name, STAGE) as writer:
        infer(task.dataset, task.name, task.flow, writer, threads, progress)
        return writer.finish(**facts)
