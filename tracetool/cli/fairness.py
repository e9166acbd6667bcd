"""``tracetool fairness``: how flows share a bottleneck, in captures or over an experiment's runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracetool.cli.options import Csv, Json, Quiet
from tracetool.cli.workers import Jobs, Scheduler, workers
from tracetool.errors import UsageError

if TYPE_CHECKING:
    from tracetool.experiments.setting import Setting
    from tracetool.experiments.sharing import SharingOptions

OUT_HELP = (
    "File to write, its form by its ending unless --format says it (.csv, .json, .md, .html); with --format html and "
    "no ending a folder: one page per run."
)

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT...",
        help="Captures or one dataset; or one experiment: a folder of runs such as <delay>/<protocol>/<repetition>/, "
        "or its experiment.toml.",
    ),
]
Interval = Annotated[
    str,
    typer.Option(
        help="overlap (latest start to earliest end of the flows), whole, or steady (the 60 s before the end)."
    ),
]
From = Annotated[
    float | None, typer.Option("--from", metavar="SECONDS", help="Start, from the first payload packet of any flow.")
]
To = Annotated[float | None, typer.Option("--to", metavar="SECONDS", help="End, from the same moment.")]
Scales = Annotated[str, typer.Option(help="Time scales in seconds, separated by commas.")]
Layer = Annotated[str, typer.Option(help="Whose bytes count: payload, ip, frame or wire.")]
Group = Annotated[str, typer.Option(help="Group flows by cc, host, port or protocol.")]
Label = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="KEY=NAME", help="Name a group: a receiver's port, an address, or address:port."),
]
Port = Annotated[
    list[int] | None,
    typer.Option("--port", help="Receiver port of a flow that takes part (repeatable); a silent one counts as zero."),
]
Absent = Annotated[str, typer.Option(help="A silent flow counts as zero, or is dropped: zero or drop.")]
Ddof = Annotated[int, typer.Option(min=0, max=1, help="1: sample standard deviation instead of the population's.")]
Theta = Annotated[float, typer.Option(min=0, max=1, help="Jain's index that counts as converged.")]
Hold = Annotated[int, typer.Option(min=1, help="Bins in a row that must reach it.")]
Bin = Annotated[float, typer.Option("--bin", min=0.001, metavar="SECONDS", help="Bin of the convergence time.")]
Stamp = Annotated[str, typer.Option(help="Which edge of the first such bin is the time: end or start.")]
Rate = Annotated[str | None, typer.Option(help="Bottleneck rate, such as 8mbit (experiments).")]
RateLayer = Annotated[str, typer.Option(help="Layer whose bytes the rate counts: payload, ip, frame or wire.")]
Background = Annotated[bool, typer.Option(help="There was traffic that the captures do not show.")]
Levels = Annotated[
    str | None,
    typer.Option(help="Names of the folder levels, such as delay,protocol,repetition; guessed if not given."),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--format", help="text (aligned), seed (tabs, as testbed pages have it), markdown, html, csv or json."
    ),
]
Out = Annotated[
    str | None,
    typer.Option("--out", "-o", metavar="PATH", help=OUT_HELP),
]
Average = Annotated[bool, typer.Option("--average-anyway", help="Average repetitions of different length or setting.")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Measure every run again.")]


def command(
    inputs: Inputs,
    interval: Interval = "overlap",
    start: From = None,
    end: To = None,
    scales: Scales = "1,5,10,20,40,80,160",
    layer: Layer = "payload",
    group: Group = "cc",
    label: Label = None,
    port: Port = None,
    absent: Absent = "zero",
    ddof: Ddof = 0,
    theta: Theta = 0.95,
    hold: Hold = 1,
    bin_s: Bin = 5.0,
    stamp: Stamp = "end",
    rate: Rate = None,
    rate_layer: RateLayer = "frame",
    background: Background = False,
    levels: Levels = None,
    form: Form = None,
    out: Out = None,
    average_anyway: Average = False,
    no_cache: NoCache = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    as_json: Json = False,
    as_csv: Csv = False,
    quiet: Quiet = False,
) -> None:
    """Measure how flows share a bottleneck: rates, Jain's index, convergence, curves over time scales.

    An experiment's runs are measured side by side and kept, and printed as the tables of fairness studies: Jain's
    index, throughput ratio, link utilisation, queue drop ratio, convergence time, index and CoV over time scales; or,
    with one flow per run, throughput, RTT, retransmissions and reordering.
    """
    from tracetool.experiments.layout import is_experiment

    if absent not in {"zero", "drop"} or stamp not in {"end", "start"}:
        raise UsageError("--absent is zero or drop, --stamp is end or start")
    options = _options(
        interval=interval,
        from_s=start,
        to_s=end,
        scales_ns=_scales(scales),
        layer=layer,
        group=group,
        groups=_labels(label or []),
        ports=tuple(port or ()),
        absent=absent,
        ddof=ddof,
        theta=theta,
        hold=hold,
        bin_ns=round(bin_s * 1e9),
        stamp=stamp,
    )
    chosen = _form(form, out, as_json=as_json, as_csv=as_csv)
    if len(inputs) == 1 and is_experiment(inputs[0]):
        setting = _setting(rate, rate_layer, background=background)
        named = tuple(levels.split(",")) if levels else ()
        folder = None if no_cache else _cache_folder()
        _experiment(inputs[0], options, named, setting, chosen, out, folder, jobs, scheduler, average_anyway, quiet)
    else:
        _captures(inputs, options, chosen, out, jobs, scheduler, quiet)


def _options(**values: object) -> SharingOptions:
    from tracetool.experiments.sharing import SharingOptions
    from tracetool.metrics.bins import LAYERS
    from tracetool.metrics.intervals import INTERVALS

    for name, known in (("interval", INTERVALS), ("layer", LAYERS)):
        if values[name] not in known:
            raise UsageError(f"--{name} {values[name]}: expected one of {', '.join(known)}")
    return SharingOptions(**values)  # type: ignore[arg-type]


def _scales(text: str) -> tuple[int, ...]:
    """Read time scales in seconds, ascending."""
    try:
        scales = sorted({round(float(part) * 1e9) for part in text.split(",")})
    except (ValueError, OverflowError):
        scales = [0]
    if scales[0] < 10**6:
        raise UsageError(f"--scales {text}: expected seconds of at least 0.001, such as 1,5,10")
    return tuple(scales)


def _labels(pairs: list[str]) -> dict[str, str]:
    labels = {}
    for pair in pairs:
        key, found, name = pair.partition("=")
        if not found or not key or not name:
            raise UsageError(f"--label {pair}: expected KEY=NAME, such as 5201=cubic")
        labels[key] = name
    return labels


def _form(form: str | None, out: str | None, *, as_json: bool, as_csv: bool) -> str:
    from tracetool.cli.output import form_of

    wanted = {name for name, given in (("json", as_json), ("csv", as_csv), (form or "", form is not None)) if given}
    if len(wanted) > 1:
        raise UsageError(f"{', '.join(sorted(wanted))} exclude each other")
    return wanted.pop() if wanted else form_of(out)


def _setting(rate: str | None, layer: str, *, background: bool) -> Setting:
    from tracetool.experiments.setting import Setting, rate_bps

    return Setting(None if rate is None else rate_bps(rate), layer, background=background or None)


def _cache_folder() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # which the XDG specification has ignored
        try:
            base = Path.home() / ".cache"
        except RuntimeError:
            raise UsageError(
                "no home folder to keep results in: name one by XDG_CACHE_HOME, or use --no-cache"
            ) from None
    return base / "tracetool" / "runs"


def _captures(
    inputs: list[str],
    options: SharingOptions,
    form: str,
    out: str | None,
    jobs: int | None,
    scheduler: str | None,
    quiet: bool,
) -> None:
    from tracetool.cli.prepare import dataset_of, effort
    from tracetool.experiments.datasets import dataset_sharing
    from tracetool.report.tables import data, renderer
    from tracetool.report.tables.sharing import sharing_page

    with (
        workers(jobs, scheduler, *effort(inputs)) as executor,
        dataset_of(inputs, quiet=quiet, told_each=True, executor=executor) as dataset,
    ):
        found = dataset_sharing(dataset, options)
        if form == "json":
            text = data.sharing_json(found, options)
        elif form == "csv":
            text = data.csv(found.flows)
        else:
            text = renderer(form)(sharing_page(found, options))
        _put(text, out)


def _experiment(
    path: str,
    options: SharingOptions,
    levels: tuple[str, ...],
    setting: Setting,
    form: str,
    out: str | None,
    cache_folder: Path | None,
    jobs: int | None,
    scheduler: str | None,
    average_anyway: bool,
    quiet: bool,
) -> None:
    from tracetool.cli import output
    from tracetool.cli.output import form_of
    from tracetool.cli.progress import progress
    from tracetool.experiments.campaign import measure_experiment
    from tracetool.experiments.cells import long_table, parts
    from tracetool.report.tables import data, html, renderer
    from tracetool.report.tables.experiment import experiment_page

    if form not in {"csv", "json"}:
        renderer(form)  # a wrong name fails before the work
    with workers(jobs, scheduler) as executor, progress(quiet=quiet) as steps:
        campaign = measure_experiment(
            path,
            options=options,
            levels=levels,
            setting=setting,
            cache_folder=cache_folder,
            executor=executor,
            progress=steps.of("runs"),
        )
    found, warnings = parts(campaign, average_anyway=average_anyway)
    if not quiet:
        for warning in warnings:
            output.note(f"tracetool: warning: {warning}")
    failed = [result for result in campaign.results if result.error]
    if form == "csv":
        _put(data.csv(long_table(found)), out)
    elif form == "json":
        _put(data.experiment_json(campaign, found, warnings), out)
    elif form == "html" and out not in {None, "-"} and form_of(out) != "html":
        _put_pages(html.pages(experiment_page(campaign, found, warnings)), Path(str(out)))
    else:
        _put(renderer(form)(experiment_page(campaign, found, warnings)), out)
    if failed:
        raise typer.Exit(3 if len(failed) == len(campaign.results) else 4)


def _put(text: str, out: str | None) -> None:
    from tracetool.cli import output

    if out in {None, "-"}:
        output.write(text)
        return
    _write(Path(str(out)), text)


def _put_pages(pages: dict[str, str], folder: Path) -> None:
    for name, text in pages.items():
        _write(folder / name, text)


def _write(path: Path, text: str) -> None:
    """Write a file by rename, and its folder if there is none."""
    from tracetool.report.export import write_atomic
    from tracetool.writer import writing

    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.encode())
