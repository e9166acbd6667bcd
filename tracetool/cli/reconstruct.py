"""``tracetool reconstruct``: infer what the senders were doing."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

from tracetool.cli.options import Quiet
from tracetool.cli.workers import Jobs, Scheduler, workers


def command(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="Folder of a dataset, or its object-store URL.")],
    force: Annotated[bool, typer.Option("--force", help="Do it again where it is done already.")] = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
) -> None:
    """Infer cwnd, ssthresh, RTT, recoveries and slow-start exits of every flow in a dataset."""
    from tracetool.cli import output
    from tracetool.cli.prepare import effort_of
    from tracetool.cli.progress import progress
    from tracetool.dataset import Dataset
    from tracetool.reconstruct import reconstruct
    from tracetool.reconstruct.inputs import pending

    opened = Dataset.open(dataset)
    todo = pending(opened, force=force)
    with workers(jobs, scheduler, *effort_of(todo)) as executor, progress(quiet=quiet) as steps:
        done = reconstruct(opened, force=force, executor=executor, progress=steps.of("packets"))
    done.note_command(shlex.join(["tracetool", *sys.argv[1:]]))
    if not quiet:
        import polars as pl

        flows = done.scan("flow_stats").select(pl.len()).collect().item()
        news = "" if todo else ", nothing was left to do (--force does it again)"
        output.note(f"{opened}: {output.counted(flows, 'flow directions')} reconstructed{news}")
