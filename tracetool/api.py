"""The library's front door: each function takes captures, logs or a dataset, and gives a frame or a chart.

What is not a dataset yet is ingested and reconstructed into a temporary one.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracetool.dataset import Dataset
from tracetool.errors import UsageError
from tracetool.ingest import ingest_each
from tracetool.reconstruct import reconstruct
from tracetool.tables import columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Executor

    import altair as alt
    import polars as pl

    from tracetool.ingest import Ingested, Progress
    from tracetool.reconstruct.connections import Connection
    from tracetool.report.figure import Figure

    Inputs = Dataset | str | Path | Iterable[str | Path]
    Flows = str | int | Iterable[str | int] | None


def open(path: str | Path) -> Dataset:  # noqa: A001 - reads well as tracetool.open
    """Open a dataset that exists.

    Raises
    ------
    DatasetError
        If there is none.
    """
    return Dataset.open(path)


@contextlib.contextmanager
def prepared(
    inputs: Inputs,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    inferring: Progress | None = None,
    told: Callable[[Ingested], None] | None = None,
) -> Iterator[Dataset]:
    """A dataset with everything inferred, from whatever is given.

    A dataset is completed in place where inputs were not reconstructed yet. Captures and logs go into a temporary
    dataset, which is gone when the context is left.

    Parameters
    ----------
    inputs
        A dataset or its folder, or captures and logs (see `tracetool.ingest`).
    executor
        Reads and reconstructs; a temporary dataset is in the system's folder for them, which workers must share.
    progress
        Told how far the reading is, in bytes of each input.
    inferring
        Told how far the inference is, in packets of each input.
    told
        Called with what became of each input; without it an input that fails raises its error.
    """
    if isinstance(inputs, Dataset):
        with inputs.damage_told():
            yield reconstruct(inputs, executor=executor, progress=inferring)
        return
    paths = [inputs] if isinstance(inputs, (str, Path)) else list(inputs)
    folders = [path for path in paths if Dataset.is_dataset(path)]
    if folders and len(paths) > 1:
        raise UsageError(f"{folders[0]}: is a dataset: give one dataset alone, or captures and logs")
    if folders:
        dataset = Dataset.open(folders[0])
        with dataset.damage_told():
            yield reconstruct(dataset, executor=executor, progress=inferring)
        return
    with tempfile.TemporaryDirectory(prefix="tracetool-") as folder:
        for result in ingest_each(paths, Path(folder) / "dataset", executor=executor, progress=progress):
            if told is not None:
                told(result)
            elif result.error is not None:
                raise result.error
        dataset = Dataset.create(Path(folder) / "dataset")  # which is not there where no input could be read
        yield reconstruct(dataset, executor=executor, progress=inferring)


def flows(inputs: Inputs) -> pl.DataFrame:
    """Return the flows of captures, logs or a dataset: one row per connection, however many inputs saw it.

    Returns
    -------
    polars.DataFrame
        Columns of `flows`, and of `flow_stats` for the direction with the most payload (`direction` names it), as the
        capture has them if there is one; ``inputs`` and ``origins`` name all that saw the connection. See
        `tracetool.report.flow_table.flow_table`.
    """
    from tracetool.report.flow_table import flow_table

    with prepared(inputs) as dataset:
        return flow_table(dataset)


def slow_starts(inputs: Inputs) -> pl.DataFrame:
    """Return the slow-start episodes of captures, logs or a dataset, and why each ended (table `slow_starts`)."""
    with prepared(inputs) as dataset:
        return dataset.read("slow_starts")


def fairness(inputs: Inputs, *, executor: Executor | None = None, **options: Any) -> pl.DataFrame:
    """Return rates and shares of the flows that carry data; options are those of `SharingOptions`.

    Parameters
    ----------
    executor
        Reads and reconstructs what is not yet; None: this process.
    options
        Fields of `tracetool.experiments.sharing.SharingOptions`: interval, scales, layer, grouping, ...

    Raises
    ------
    NothingMatchedError
        If no capture is given, or no flow in it carries data.
    """
    from tracetool.experiments.datasets import dataset_sharing
    from tracetool.experiments.sharing import SharingOptions

    with prepared(inputs, executor=executor) as dataset:
        return dataset_sharing(dataset, SharingOptions(**options)).flows


def compare_runs(
    runs: str | Path | Iterable[str | Path],
    *,
    by: Iterable[str] = (),
    average: bool = False,
    progress: Progress | None = None,
    told: Callable[[Ingested], None] | None = None,
) -> pl.DataFrame:
    """Compare test runs: bandwidth, ping, TCP's round trips, fairness between hosts, one row per run.

    Parameters
    ----------
    runs
        Files, or folders of runs; see `tracetool.experiments.run_folders.runs_in`.
    by
        What tells the runs apart: fields of the metadata, or patterns with one group for a run's path.
    average
        One row per set of parameters, with the means of its runs.
    progress, told
        As for `prepared`.

    Returns
    -------
    polars.DataFrame
        Columns ``run``, those of ``by``, `tracetool.metrics.runs.NUMBERS`, ``slow_start_exits`` and ``sources``.
    """
    from tracetool.experiments.run_folders import label, parameter, runs_in
    from tracetool.metrics.runs import measure_run, table

    names = list(by)
    rows = []
    for run in runs_in([runs] if isinstance(runs, (str, Path)) else runs):
        with prepared(run.files, progress=progress, told=told) as dataset:
            facts = dict(dataset.read("metadata").select("key", "value").iter_rows())
            if not dataset.inputs:
                continue
            told_apart = {label(name): parameter(run, name, facts) for name in names}
            rows.append({"run": run.name, **told_apart, **measure_run(dataset)})
    return table(rows, [label(name) for name in names], average=average)


def connection(dataset: Dataset, flow: str | int | None = None) -> Connection:
    """Choose a connection of a dataset, with its views from all inputs; see `tracetool.reconstruct.connections`."""
    from tracetool.reconstruct.connections import select
    from tracetool.report.selection import weighted_flows

    return select(weighted_flows(dataset), flow)


def flow_rows(dataset: Dataset, table: str, chosen: Connection) -> pl.DataFrame:
    """Rows of a table that belong to a connection, from all of its views; both directions."""
    import polars as pl

    if "flow" not in columns(table):
        return dataset.read(table, [part.input for part in chosen.parts])
    views = [dataset.scan(table, [part.input]).filter(pl.col("flow") == part.flow) for part in chosen.parts]
    return pl.concat(views).collect()


def figure(
    dataset: Dataset,
    chart: str,
    flow: Flows = None,
    *,
    flows: int | None = None,
    start: float | None = None,
    stop: float | None = None,
    **options: Any,
) -> Figure:
    """Build a chart as a Figure.

    Parameters
    ----------
    chart
        Name of a chart; see `tracetool.report.charts`.
    flow
        See `plot_cwnd`; None: what the chart shows by default.
    flows
        Instead of `flow`: how many of the heaviest flows to show.
    start, stop
        Ends of the time axis, in seconds on it; None: where the data ends.
    options
        The chart's own.
    """
    from tracetool.report import charts, selection
    from tracetool.report.zoom import zoomed

    chosen: list[Connection] | None = None
    if flows is not None:
        chosen = selection.heaviest(dataset, flows, share=0.0)
    elif flow is not None:
        words = [flow] if isinstance(flow, (str, int)) else flow
        found = [connection(dataset, word) for word in words]
        chosen = list({(each.parts[0].input, each.parts[0].flow): each for each in found}.values())
    return zoomed(charts.build(chart, dataset, chosen, **options), start, stop)


def plot_cwnd(inputs: Inputs, flow: Flows = None, **options: Any) -> alt.Chart:
    """Draw cwnd and ssthresh of a flow against time.

    Parameters
    ----------
    inputs
        Captures, tcp_probe and ss logs, or a dataset; several views of one flow are overlaid.
    flow
        Flow id, ``stream N`` or ``HOST:PORT-HOST:PORT``, or several of them; None: the flow with the most payload.
    options
        ``flows`` (this many of the heaviest), ``layout`` (``overlay``, ``multiples``), ``start``, ``stop``, ``log``.

    Returns
    -------
    altair.Chart
        Shows itself in a notebook; ``.save("x.html")`` writes it.

    Raises
    ------
    NothingMatchedError
        If there is no such flow.
    """
    from tracetool.report.vega import to_chart

    with prepared(inputs) as dataset:
        return to_chart(figure(dataset, "cwnd", flow, **options))


def report(inputs: Inputs, out: str | Path, *, executor: Executor | None = None, **options: Any) -> Path:
    """Write a self-contained page about captures, logs, a dataset, or an experiment's folder of runs.

    Parameters
    ----------
    out
        The file.
    executor
        Reads, reconstructs and measures what is not yet; None: this process.
    options
        Those of `tracetool.report.page.write`; an experiment takes none.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    UsageError
        If `out` is ``-``, or ends as a file of another format than HTML does.
    DatasetWriteError
        If it cannot be written.
    """
    from tracetool.experiments.layout import is_experiment
    from tracetool.report.export import check_page
    from tracetool.report.page import write

    check_page(out)
    if isinstance(inputs, (str, Path)) and is_experiment(inputs):
        return _experiment_report(inputs, Path(out), executor)
    with prepared(inputs, executor=executor) as dataset:
        return write(dataset, out, **options)


def _experiment_report(folder: str | Path, out: Path, executor: Executor | None) -> Path:
    from tracetool.experiments.campaign import measure_experiment
    from tracetool.experiments.cells import parts
    from tracetool.report.export import write_atomic
    from tracetool.report.tables import renderer
    from tracetool.report.tables.experiment import experiment_page

    campaign = measure_experiment(folder, executor=executor)
    found, warnings = parts(campaign)
    write_atomic(out, renderer("html")(experiment_page(campaign, found, warnings)).encode())
    return out
