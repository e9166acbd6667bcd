"""``tracetool compare-runs``: test runs side by side, one row each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from tracetool.cli.options import Csv, Json, Quiet
from tracetool.errors import UsageError

if TYPE_CHECKING:
    from tracetool.ingest import Ingested

OUT_HELP = (
    "File to write, its form by its ending unless --format says it (.csv, .json, .md, .html); default: the terminal."
)

Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        help="Runs: files, or folders. A folder of several Flent files, or of folders, holds a run in each; any other "
        "folder is one run, with its captures and logs.",
    ),
]
By = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="FIELD|REGEX",
        help="What tells the runs apart (repeatable): a field of the metadata (TITLE, EGRESS_INFO.qdisc), or a pattern "
        "with one group, such as 'rtt=cake_rtt_([0-9]+)ms', for the run's path.",
    ),
]
Form = Annotated[str | None, typer.Option("--format", help="text, markdown, html, csv or json.")]
Out = Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help=OUT_HELP)]
Chart = Annotated[
    str | None,
    typer.Option(
        "--chart", metavar="FILE", help="Draw each number against the parameter: .html, .svg, .png, .txt, ..."
    ),
]
Average = Annotated[bool, typer.Option("--average", help="One row per set of parameters: the means of its runs.")]


def command(
    runs: Runs,
    by: By = None,
    average: Average = False,
    form: Form = None,
    out: Out = None,
    chart: Chart = None,
    as_json: Json = False,
    as_csv: Csv = False,
    quiet: Quiet = False,
) -> None:
    """Compare test runs, one row each: bandwidth, ping, TCP's round trips, fairness between hosts.

    Numbers that a run's Flent file does not have (retransmissions, ssthresh, slow-start exits) come from the captures
    and logs beside it.
    """
    from tracetool import api
    from tracetool.cli import output
    from tracetool.cli.progress import progress
    from tracetool.experiments.run_folders import label
    from tracetool.report.export import save, write_atomic
    from tracetool.report.runs import runs_figure, runs_page
    from tracetool.report.tables import renderer

    chosen = "json" if as_json else "csv" if as_csv else form or output.form_of(out)
    if sum((as_json, as_csv, form is not None)) > 1:
        raise UsageError("--json, --csv and --format exclude each other")
    if chosen not in {"text", "markdown", "html", "csv", "json"}:
        raise UsageError(f"--format {chosen}: expected text, markdown, html, csv or json")
    results: list[Ingested] = []

    def told(result: Ingested) -> None:
        results.append(result)
        if result.error is not None or (not quiet and result.damaged):
            output.told(result)

    with progress(quiet=quiet) as steps:
        told_of = steps.of("B", lines=False)
        frame = api.compare_runs(runs, by=by or (), average=average, progress=told_of, told=told)
    names = [label(name) for name in by or ()]
    if chosen == "csv":
        text = output.plain(frame).write_csv()
    elif chosen == "json":
        text = json.dumps(output.plain(frame).to_dicts(), indent=1, ensure_ascii=False) + "\n"
    else:
        text = renderer(chosen)(runs_page(frame, names))
    if out in {None, "-"}:
        output.write(text)
    else:
        write_atomic(str(out), text.encode())
    if chart is not None:
        save(runs_figure(frame, names[0] if names else None), chart)
    failed = [result for result in results if result.error is not None]
    if failed and len(failed) == len(results):
        raise typer.Exit(3)
    if failed or any(result.damaged for result in results):
        raise typer.Exit(4)
