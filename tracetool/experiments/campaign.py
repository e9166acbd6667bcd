"""All runs of an experiment: measured side by side, and kept for the next call."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tracetool._version import __version__
from tracetool.executors import Serial, spread
from tracetool.experiments.layout import Layout, Run, layout
from tracetool.experiments.run import RunResult, Value, measure_run
from tracetool.experiments.sharing import SharingOptions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor

    from tracetool.experiments.setting import Setting
    from tracetool.ingest import Progress

PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Campaign:
    """An experiment and what was measured: one result per run of the layout, in its order."""

    layout: Layout
    options: SharingOptions
    results: tuple[RunResult, ...]


def measure_experiment(
    path: str | Path,
    *,
    options: SharingOptions | None = None,
    levels: Sequence[str] = (),
    setting: Setting | None = None,
    cache_folder: str | Path | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Campaign:
    """Measure every run of an experiment.

    Parameters
    ----------
    path
        A folder such as ``<delay>/<protocol>/<repetition>/``, or an ``experiment.toml``.
    options
        What the numbers are computed with.
    levels, setting
        As in `tracetool.experiments.layout.layout`.
    cache_folder
        Folder for the results of runs; a run whose files, options and tool are unchanged is not measured again.
    executor
        Measures the runs; workers must find their files under the same names. None: this process.
    progress
        Told how many runs are done.

    Raises
    ------
    InputError
        There is no run, or a description cannot be read. A run that fails is reported in its result.

    Examples
    --------
    >>> measure_experiment("runs/intra").results[0].values  # doctest: +SKIP
    """
    chosen = options or SharingOptions()
    found = layout(path, levels=levels, setting=setting)
    kept = [_kept(cache_folder, run, chosen) for run in found.runs]
    results = [None if place is None else _load(place) for place in kept]
    todo = [number for number, result in enumerate(results) if result is None]
    done = len(results) - len(todo)
    if progress is not None:
        progress(str(path), done, len(results))
    units = (_Unit(number, _anchored(found.runs[number]), chosen) for number in todo)
    for group in spread(executor or Serial(), _measure, units):
        for unit, result in group:
            place = kept[unit.number]
            results[unit.number] = result
            if place is not None and result.error is None:
                _store(place, result)
        done += len(group)
        if progress is not None:
            progress(str(path), done, len(results))
    return Campaign(found, chosen, tuple(result for result in results if result is not None))


@dataclass(frozen=True, slots=True)
class _Unit:
    """A run to be measured, and which one of the layout it is."""

    number: int
    run: Run
    options: SharingOptions


def _measure(unit: _Unit) -> RunResult:
    return measure_run(unit.run, unit.options)


def _anchored(run: Run) -> Run:
    """The same run, whose files are found from any current folder."""
    captures = tuple((where, str(Path(path).absolute())) for where, path in run.captures)
    return replace(run, captures=captures, counters=tuple(str(Path(path).absolute()) for path in run.counters))


def _kept(folder: str | Path | None, run: Run, options: SharingOptions) -> Path | None:
    """Return where a run's result is kept: named after its files, the options and this tool."""
    if folder is None:
        return None
    digest = hashlib.sha256()
    files = [*(path for _, path in run.captures), *run.counters]
    states = [(path, *_state(Path(path))) for path in files]
    digest.update(json.dumps([__version__, _tool(), asdict(run), asdict(options), states], default=str).encode())
    return Path(folder) / f"{digest.hexdigest()[:32]}.json"


def _state(path: Path) -> tuple[int, int]:
    """Return size and time of change: what tells that a file is the same."""
    try:
        status = path.stat()
    except OSError:
        return (-1, -1)
    return (status.st_size, status.st_mtime_ns)


@cache
def _tool() -> str:
    """Return what tells one state of the code that computes the numbers from another."""
    digest = hashlib.sha256()
    for path in (
        PACKAGE / "measures.py",
        *sorted(PACKAGE.glob("metrics/*.py")),
        *sorted(PACKAGE.glob("experiments/*.py")),
    ):
        digest.update(f"{path.relative_to(PACKAGE)} {_state(path)};".encode())
    return digest.hexdigest()


def _load(place: Path) -> RunResult | None:
    """Read a kept result; one that is absent, damaged or of another shape is measured again."""
    try:
        raw = json.loads(place.read_text(encoding="utf-8"))
        values = tuple(Value(**value) for value in raw.pop("values"))
        flows, notes, warnings = (tuple(raw.pop(name)) for name in ("flows", "notes", "warnings"))
        return RunResult(values, flows, notes=notes, warnings=warnings, **raw)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _store(place: Path, result: RunResult) -> None:
    """Keep a result; it appears by rename. A cache that cannot be written is no error."""
    partial = place.with_suffix(f".{os.getpid()}.tmp")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(asdict(result)), encoding="utf-8")
        partial.replace(place)
    except BaseException as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        if not isinstance(error, OSError):  # an interruption
            raise
