"""Who does a command's work: this process, processes of this machine (``--jobs``), or a cluster (``--scheduler``)."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated

import typer

from tracetool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, metavar="N", help="Processes that share the work (default: the cores)."),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Dask scheduler whose workers share the work, such as tcp://10.0.0.1:8786; see docs/scale.md.",
    ),
]
START_S = 2.0  # what it takes until processes can work
MANY = 1 << 20


@contextlib.contextmanager
def workers(
    jobs: int | None, scheduler: str | None, units: int = MANY, seconds: float = float("inf")
) -> Iterator[Executor | None]:
    """Executor for a command; None where this process does the work.

    Parameters
    ----------
    units
        Into how many parts the work can be divided; a single one uses all cores by itself.
    seconds
        Roughly how long it takes: processes are not started for less than that costs, unless they are asked for.
    """
    from tracetool import executors

    if jobs is not None and scheduler is not None:
        raise UsageError("--jobs and --scheduler exclude each other")
    wanted = min(jobs or executors.cores(), units)
    if scheduler is not None:
        with executors.cluster(scheduler) as executor:
            yield executor
    elif wanted > 1 and (jobs is not None or seconds > START_S):
        with executors.processes(wanted) as executor:
            yield executor
    else:
        yield None
