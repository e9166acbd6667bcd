"""The report: one self-contained page about a dataset.

One copy of the JavaScript, no request to the network; with `static` no JavaScript at all, the charts being pictures.
Text from captures is escaped by the template; specifications stand in the page as JSON that cannot leave its element.
"""

from __future__ import annotations

import base64
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import polars as pl

from tracetool._version import __version__
from tracetool.errors import NothingMatchedError
from tracetool.metrics.fairness import fairness
from tracetool.report import comparison, page_sections
from tracetool.report.charts import MANY, build
from tracetool.report.deliveries import delivered
from tracetool.report.export import render, write_atomic
from tracetool.report.html import POLICY, javascript, script_json
from tracetool.report.plain import printable
from tracetool.report.selection import display_filter, heaviest, packets, short_names, title_of
from tracetool.report.thin import thin_figure
from tracetool.report.vega import to_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracetool.dataset import Dataset
    from tracetool.reconstruct.connections import Connection
    from tracetool.report.figure import Figure
    from tracetool.report.page_sections import Sheet

DETAILED = 8
"""Flows that are shown with charts, unless another number is asked for."""
WIDTH, COLUMNS = 900, 300
"""Width of the charts, and pixel columns that their curves are thinned to: a page of many charts must stay small."""
FLOW_CHARTS = ("cwnd", "slow-start", "rtt", "time-sequence", "throughput", "inflight")
GROUP_CHARTS = ("throughput", "fairness", "cov", "convergence", "queue")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart in the page: a specification, or in a static page a picture as a data URL."""

    name: str
    title: str
    spec: Any = None
    picture: str = ""


@dataclass(frozen=True, slots=True)
class Detail:
    """All about one connection."""

    title: str
    filter: str
    drawings: list[Drawing]
    slow_starts: list[str]
    recoveries: Sheet
    stats: Sheet


def write(
    dataset: Dataset,
    out: str | Path,
    *,
    static: bool = False,
    flows: int = DETAILED,
    connections: Sequence[Connection] | None = None,
    title: str = "",
    command: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write the report page of a dataset.

    Parameters
    ----------
    out
        File to write; it appears when it is whole.
    static
        Pictures instead of charts: the page then needs no JavaScript, and prints and mails well.
    flows
        How many connections are shown with charts, the heaviest first.
    connections
        Which connections to show instead.
    title
        Heading of the page; by default it names the inputs.
    command
        The command that made the page, to be printed in it.
    progress
        Told how many of how many charts are drawn.

    Returns
    -------
    pathlib.Path
        The file.
    """
    path = Path(out)
    page = html_of(
        dataset, static=static, flows=flows, connections=connections, title=title, command=command, progress=progress
    )
    write_atomic(path, page.encode())
    return path


def html_of(
    dataset: Dataset,
    *,
    static: bool = False,
    flows: int = DETAILED,
    connections: Sequence[Connection] | None = None,
    title: str = "",
    command: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """Return the report page as text; parameters as in `write`."""
    chosen = list(connections) if connections is not None else _heaviest(dataset, flows)
    several = len(chosen) > 1
    together = GROUP_CHARTS if several else ("queue",) if chosen else ()
    total = len(together) + len(chosen) * len(FLOW_CHARTS)
    done = 0

    def draw(name: str, group: Sequence[Connection]) -> list[Drawing]:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)
        with contextlib.suppress(NothingMatchedError):
            return [_drawing(name, build(name, dataset, group), static=static)]
        return []

    group = [drawing for name in together for drawing in draw(name, chosen[:MANY])]
    details = [
        Detail(
            title_of(dataset, one),
            display_filter(one),
            [drawing for name in FLOW_CHARTS for drawing in draw(name, [one])],
            page_sections.slow_start_words(dataset, one),
            page_sections.recoveries_sheet(dataset, one),
            page_sections.stats_sheet(dataset, one),
        )
        for one in chosen
    ]
    names = [printable(name) for name in dataset.inputs]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("report.html.j2").render(
        title=printable(title) or "tracetool report: " + ", ".join(names[:6]) + (" ..." if len(names) > 6 else ""),
        version=__version__,
        command=printable(command, limit=2_000),
        policy=POLICY if not static else POLICY.replace("script-src 'unsafe-inline' 'unsafe-eval'; ", ""),
        static=static,
        javascript="" if static else javascript(),
        script_json=script_json,
        inputs=page_sections.inputs_sheet(dataset),
        diagnostics=page_sections.diagnostics_sheet(dataset),
        flows=page_sections.flows_sheet(dataset),
        group=group,
        fairness=_fairness(dataset, chosen) if several else None,
        comparison=_comparison(dataset, chosen),
        details=details,
    )


def _heaviest(dataset: Dataset, limit: int) -> list[Connection]:
    with contextlib.suppress(NothingMatchedError):
        return heaviest(dataset, limit)
    return []


def _drawing(name: str, figure: Figure, *, static: bool) -> Drawing:
    if static:
        picture = str(render(thin_figure(figure, COLUMNS), "svg", width=WIDTH))
        data = base64.b64encode(picture.encode()).decode()
        return Drawing(name, figure.title, picture=f"data:image/svg+xml;base64,{data}")
    return Drawing(name, figure.title, spec=to_spec(figure, width=WIDTH, columns=COLUMNS))


def _fairness(dataset: Dataset, chosen: Sequence[Connection]) -> Sheet | None:
    """Return the measures of fairness of what the flows delivered."""
    try:
        table = packets(dataset, chosen)
    except NothingMatchedError:
        return None
    names = short_names(dataset, chosen)
    got = delivered(table).group_by("flow").agg(bytes=pl.col("payload_bytes").sum())
    rates = pl.DataFrame({"flow": list(names)}, schema={"flow": pl.Int32}).join(got, on="flow", how="left")
    return page_sections.frame_sheet(fairness(rates.with_columns(pl.col("bytes").fill_null(0))))


def _comparison(dataset: Dataset, chosen: Sequence[Connection]) -> Sheet | None:
    """Return how far the inferred numbers are from the kernel's, where both are there."""
    try:
        found = comparison.compare(dataset, chosen)
    except NothingMatchedError:
        return None
    return page_sections.frame_sheet(comparison.comparison_table(found))
