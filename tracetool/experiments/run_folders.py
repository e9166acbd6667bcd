"""Which files make a test run: one Flent file, or a folder of captures and logs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracetool import parsers, sources
from tracetool.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class RunFiles:
    """A run: its name, which is its path as given, and its files."""

    name: str
    files: tuple[str, ...]


def runs_in(paths: Iterable[str | Path]) -> list[RunFiles]:
    """Runs below the paths given.

    A file is a run. A folder with several Flent files is a run for each of them, to which belong the other files whose
    names begin with the Flent file's (without its endings). A folder of folders is what those are. Any other folder is
    one run, with all in it whose format is known.

    Raises
    ------
    InputError
        If a path is not there, or a folder is empty.
    """
    found: list[RunFiles] = []
    for path in map(Path, paths):
        runs = list(_below(path)) if path.is_dir() else [RunFiles(str(path), (str(path),))]
        if not runs:
            raise InputError(f"{path}: no file there")
        found += [run for run in runs if run not in found]
    return found


def _below(folder: Path) -> Iterable[RunFiles]:
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    kinds = {entry: _format(entry) for entry in entries if entry.is_file()}
    files = [file for file, kind in kinds.items() if kind is not None]
    flent = [file for file in files if kinds[file] == "flent"]
    if len(flent) > 1:
        stems = sorted((sources.Source(str(file)).stem.removesuffix(".flent"), file) for file in flent)
        others: dict[Path, list[str]] = {file: [] for file in flent}
        for file in files:
            owners = [(len(stem), owner) for stem, owner in stems if file not in others and file.name.startswith(stem)]
            if owners:
                others[max(owners)[1]].append(str(file))
        for file in flent:
            yield RunFiles(str(file), (str(file), *others[file]))
    elif files:
        yield RunFiles(str(folder), tuple(map(str, files)))
    for entry in entries:
        if entry.is_dir():
            yield from _below(entry)


def _format(file: Path) -> str | None:
    """Name of a file's format; None for what lies beside a run: notes, pictures, scripts."""
    try:
        with sources.Source(str(file)).open() as stream:
            return parsers.detect(stream.head(), str(file)).NAME
    except InputError:
        return None


def label(by: str) -> str:
    """What a parameter is called: as the user says (``name=pattern``), or the pattern without its group.

    Examples
    --------
    >>> label("rtt=cake_rtt_([0-9]+)ms"), label("cake_rtt_([0-9]+)ms"), label("TITLE")
    ('rtt', 'cake_rtt_ms', 'TITLE')
    """
    name, equals, _ = by.partition("=")
    if equals and "(" not in name:
        return name
    return re.sub(r"\(.*\)", "", by).strip("_-/. ") or by


def parameter(run: RunFiles, by: str, facts: Mapping[str, str]) -> str | None:
    """Value of a parameter for a run: a field of its metadata, or what a pattern's group finds in its path.

    Parameters
    ----------
    run
        The run.
    by
        A pattern with one group, or the name of a field.
    facts
        The run's metadata.

    Raises
    ------
    UsageError
        If the pattern is none, or has no group.

    Examples
    --------
    >>> parameter(RunFiles("runs/cake_rtt_200ms_rrulbe", ()), r"cake_rtt_([0-9]+)ms", {})
    '200'
    """
    name, equals, rest = by.partition("=")
    if equals and "(" not in name:
        by = rest
    if "(" not in by:
        return facts.get(by)
    try:
        pattern = re.compile(by)
    except re.error as error:
        raise UsageError(f"--by {by}: no pattern: {error}") from None
    if pattern.groups < 1:
        raise UsageError(f"--by {by}: has no group: put what varies in parentheses")
    found = pattern.search(run.name)
    return found.group(1) if found else None
