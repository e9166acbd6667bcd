"""Progress on standard error: bars with rate and time left on a terminal, one line for each thing otherwise."""

from __future__ import annotations

import contextlib
import sys
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from tracetool.cli.output import counted, note, number
from tracetool.diagnostics import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress as Bars

    from tracetool.ingest import Progress

NAME_CELLS, BAR_CELLS = 26, 14
"""Width of a name and of a bar: with state and time left they fit into 80 columns."""


@contextlib.contextmanager
def progress(*, quiet: bool, lines: bool = True) -> Iterator[Steps]:
    """Steps whose progress is shown until the context is left.

    Parameters
    ----------
    quiet
        Show nothing.
    lines
        Print a line for each thing where standard error is no terminal.
    """
    steps = Steps(quiet=quiet, lines=lines)
    try:
        yield steps
    finally:
        steps.stop()


class Steps:
    """Makes the functions that long work tells how far it is."""

    def __init__(self, *, quiet: bool, lines: bool) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown = not quiet and (self._terminal or lines)
        self._bars: Bars | None = None
        self._tasks: dict[tuple[str, str], Any] = {}

    def of(self, unit: str, *, lines: bool = True) -> Progress | None:
        """Function to be told how far things are, each by its name; None where nothing is shown.

        Parameters
        ----------
        unit
            What is counted: ``B`` for bytes, ``packets``, ``runs``, ``charts``.
        lines
            Whether a line is printed for each where there is no terminal.
        """
        if not self._shown or not (self._terminal or lines):
            return None
        return partial(self._draw if self._terminal else self._tell, unit)

    def stop(self) -> None:
        """Take the bars away: what is printed from here on stands alone."""
        if self._bars is not None:
            self._bars.stop()
        self._bars = None
        self._tasks.clear()

    def _tell(self, unit: str, what: str, done: int, total: int | None) -> None:
        """Print the name of a thing and how much of it there is, when first told of it."""
        if self._tasks.setdefault((unit, what), done) is done and total is not None:
            self._tasks[unit, what] = None
            note(f"tracetool: {what}: {counted(total, unit)}")

    def _draw(self, unit: str, what: str, done: int, total: int | None) -> None:
        bars = self._bars or self._start()
        if (unit, what) not in self._tasks:
            for task in bars.tasks:
                bars.update(task.id, visible=not task.finished)
            self._tasks[unit, what] = bars.add_task(short(what), total=total, state="")
        task = next(task for task in bars.tasks if task.id == self._tasks[unit, what])
        bars.update(task.id, completed=done, total=total, state=state(done, total, task.elapsed, unit))

    def _start(self) -> Bars:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self._bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(BAR_CELLS),
            TextColumn("{task.fields[state]}", markup=False),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=False,  # standard output is data, and goes where the user sends it
        )
        self._bars.start()
        return self._bars


def short(what: str) -> str:
    """Name of a file without its folders, cut to fit.

    Examples
    --------
    >>> short("runs/first/capture.pcap"), short("a" * 40)
    ('capture.pcap', '...aaaaaaaaaaaaaaaaaaaaaaa')
    """
    name = printable(PurePath(what).name or what)
    return name if len(name) <= NAME_CELLS else "..." + name[3 - NAME_CELLS :]


def state(done: int, total: int | None, elapsed: float | None, unit: str) -> str:
    """How much is done, and how fast.

    Examples
    --------
    >>> state(12_000_000, 48_000_000, 4.0, "B"), state(3, 9, 0.0, "charts")
    ('12/48 MB, 3 MB/s', '3/9 charts')
    """
    rate = f", {number(done / elapsed, 'B' if unit == 'B' else '')}/s" if elapsed and done else ""
    if total is None:
        return f"{number(done, unit)}{rate}"
    told, prefix = number(total, unit).split(" ", 1) if unit == "B" else (f"{total:,}", unit)
    scale = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}.get(prefix, 1.0)
    part = f"{done / scale:.{len(told.partition('.')[2])}f}" if unit == "B" else f"{done:,}"
    return f"{part}/{told} {prefix}{rate}"
