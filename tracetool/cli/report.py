"""``tracetool report``: one self-contained page about everything."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated, Any

import typer

from tracetool.cli.options import Flow, Inputs, Quiet
from tracetool.cli.workers import Jobs, Scheduler, workers

STATIC_HELP = "Pictures instead of charts: the page needs no JavaScript, and prints and mails well."
FLOWS_HELP = "How many flows are shown with charts, those with the most payload first."


def command(
    inputs: Inputs,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The page to write, FILE.html.")],
    flow: Flow = None,
    flows: Annotated[int | None, typer.Option("--flows", min=0, max=10_000, metavar="N", help=FLOWS_HELP)] = None,
    title: Annotated[str, typer.Option("--title", help="Heading of the page.")] = "",
    static: Annotated[bool, typer.Option("--static", help=STATIC_HELP)] = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
) -> None:
    """Write one self-contained page about captures, logs, a dataset, or an experiment's folder of runs.

    What is odd about the inputs comes first, then the flows with their charts, slow starts and recoveries. The page
    works offline.
    """
    from tracetool import api
    from tracetool.cli.prepare import dataset_of, effort
    from tracetool.cli.progress import progress
    from tracetool.experiments.layout import is_experiment
    from tracetool.report.export import check_page

    check_page(out)
    command_line = shlex.join(["tracetool", *sys.argv[1:]])
    if len(inputs) == 1 and is_experiment(inputs[0]):
        with workers(jobs, scheduler) as executor:
            api.report(inputs[0], out, executor=executor)
        return
    with (
        workers(jobs, scheduler, *effort(inputs)) as executor,
        dataset_of(inputs, quiet=quiet, told_each=True, executor=executor) as dataset,
    ):
        chosen = None if flow is None else [api.connection(dataset, flow)]
        options: dict[str, Any] = {} if flows is None else {"flows": flows}
        with progress(quiet=quiet) as steps:
            update = steps.of("charts")
            api.report(
                dataset,
                out,
                static=static,
                connections=chosen,
                title=title,
                command=command_line,
                progress=update and (lambda done, total: update(out, done, total)),
                **options,
            )
