"""The page of an experiment: the tables of intra-protocol fairness studies, or those of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracetool.report.tables.document import Block, Document, Grid, Heading, Lines, RunPage, Text
from tracetool.report.tables.grid import MISSING, cell_text, format_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracetool.experiments.campaign import Campaign
    from tracetool.experiments.cells import Cell, Part

ROUTER = ("router-counters", "two-captures")
DROP_HEADINGS = {
    ROUTER: ("Queue drop ratio on the bottleneck router",),
    ("endpoint-captures",): ("3p. Path loss ratio of the captured flows (sender and receiver captures)",),
    ("sender-capture",): (
        "3e. Estimated loss ratio of the captured flows (from the sender, not the router)",
        "~ (R - S)/N: retransmitted less spurious (DSACK) over sent segments. Misses",
        "pure ACKs, other traffic and the tail; counts losses anywhere on the path.",
    ),
}
SWEEP_COLUMNS = (
    ("throughput", "Mbit/s", 1e-6, 3),
    ("rtt_mean", "RTT mean ms", 1e3, 3),
    ("rtt_p95", "RTT p95 ms", 1e3, 3),
    ("retransmission_ratio", "Retransmitted", 1, 6),
    ("reordering", "Reordered", 1, 6),
)


def experiment_page(campaign: Campaign, found: Sequence[Part], warnings: Sequence[str] = ()) -> Document:
    """Arrange an experiment's cells into its page.

    Parameters
    ----------
    campaign
        What was measured.
    found, warnings
        Its parts and warnings (`tracetool.experiments.cells.parts`).
    """
    fair = any("jain" in part.tables for part in found)
    title = campaign.layout.manifest.title or ("Intra Protocol Fairness" if fair else "Sweep")
    blocks: list[Block] = [Heading(1, title), Heading(2, "Experimental Setting"), Lines(_setting(campaign))]
    for part in found:
        blocks += _fairness(campaign, part) if "jain" in part.tables else _sweep(part)
    if warnings:
        blocks += [Heading(2, "Warnings"), Lines(tuple(warnings))]
    return Document(tuple(blocks), tuple(_run_pages(campaign)))


def _setting(campaign: Campaign) -> tuple[str, ...]:
    """Return the lines of the setting: as declared, else what all runs have in common."""
    lines = list(campaign.layout.manifest.lines)
    if not lines:
        settings = [run.setting for run in campaign.layout.runs]
        rates = {(setting.rate_bps, setting.layer) for setting in settings}
        queues = {setting.queue_bytes for setting in settings}
        (rate, layer), queue = max(rates, key=str), max(queues, key=str)
        lines.append(f"Bottleneck Bandwidth: {_one(rates, _rate(rate, layer))}")
        lines.append(f"Queue size: {_one(queues, 'not declared' if queue is None else f'{queue} bytes')}")
        lines.append(f"Background traffic: {_background([setting.background for setting in settings])}")
    options = campaign.options
    absent = "counts as zero" if options.absent == "zero" else "is left out"
    lines.append(f"Interval: {options.interval}; a silent flow {absent}")
    return tuple(lines)


def _one(values: set[Any], text: str) -> str:
    return text if len(values) == 1 else "differs between runs"


def _rate(rate: int | None, layer: str) -> str:
    return "not declared" if rate is None else f"{rate / 1e6:g} Mbit/s ({layer} bytes)"


def _background(declared: Sequence[bool | None]) -> str:
    if all(one is None for one in declared):
        return "not declared"
    return "YES" if any(declared) else "NO"


def _fairness(campaign: Campaign, part: Part) -> list[Block]:
    """Return the seven tables."""
    options = campaign.options
    labels = {table: _labels(part, table) for table in part.tables}
    blocks: list[Block] = [
        Heading(2, "1. Intra-Protocol Fairness"),
        Heading(3, "1.1 Fairness index (Jain's) for intra-protocol fairness"),
        Lines((f"({labels['jain']})",)),
        _grid(part, "jain"),
        Heading(3, "1.2 Throughput Ratio for intra-protocol fairness"),
        Lines((f"(min/max; {labels['throughput_ratio']})",)),
        _grid(part, "throughput_ratio"),
        Heading(2, "2. Link Utilization"),
        Lines(("Link utilization table", f"({labels['link_utilisation']})")),
        _grid(part, "link_utilisation"),
        Heading(2, "3. Queue Dropping Ratio"),
    ]
    for sources, heading in DROP_HEADINGS.items():
        if any(cell.label in sources for cell in part.cells.values() if cell.table == "queue_drop_ratio"):
            blocks += [Lines(heading), _grid(part, "queue_drop_ratio", sources)]
    convergence = f"({labels['convergence_time']}; seconds from the later flow's start)"
    dof = f"(standard deviation with ddof {options.ddof}; all captured frames towards the receivers)"
    blocks += [
        Heading(2, "4. Convergence Time"),
        Heading(3, "4.1 Convergence Time for two flows"),
        Lines((convergence, *_censored(part))),
        _grid(part, "convergence_time"),
        Heading(3, "4.2 Fairness index over various time scales"),
        Lines(("Fairness index table",)),
        _scales(part, "jain_by_scale"),
        Heading(2, "5. Coefficient of Variance (CoV) of Total throughput"),
        Lines(("CoV table", dof)),
        _scales(part, "cov_by_scale"),
    ]
    return blocks


def _labels(part: Part, table: str) -> str:
    found = {cell.label or "" for cell in part.cells.values() if cell.table == table}
    return "; ".join(sorted(found))


def _censored(part: Part) -> tuple[str, ...]:
    """Say which repetitions never converged; they are not in the means."""
    lines = []
    for cell in part.cells.values():
        if cell.table != "convergence_time":
            continue
        for (name, _), value in zip(cell.repetitions, cell.values, strict=True):
            if value.censored_at is not None:
                where = "/".join(cell.levels)
                lines.append(f"{where} [{name}]: not reached in {value.censored_at:.6f} s, not in the mean")
    return tuple(lines)


def _axes(part: Part) -> tuple[int, list[int]]:
    """Return which level gives the columns (the protocol, else the last), and which ones name the rows."""
    if not part.levels:
        return -1, []
    column = part.levels.index("protocol") if "protocol" in part.levels else len(part.levels) - 1
    return column, [number for number in range(len(part.levels)) if number != column]


def _row_keys(part: Part, rows: list[int]) -> list[tuple[str, ...]]:
    """Return the combinations of the row levels that occur, in order."""
    ranks = [{value: rank for rank, value in enumerate(part.values[number])} for number in rows]
    seen = {tuple(cell.levels[number] for number in rows) for cell in part.cells.values()}
    return sorted(seen, key=lambda key: [rank[value] for rank, value in zip(ranks, key, strict=True)])


def _levels(part: Part, column: int, rows: list[int], key: tuple[str, ...], value: str) -> tuple[str, ...]:
    levels = [""] * len(part.levels)
    for number, name in zip(rows, key, strict=True):
        levels[number] = name
    if column >= 0:
        levels[column] = value
    return tuple(levels)


def _columns(part: Part, column: int) -> tuple[str, ...]:
    return part.values[column] if column >= 0 else ("value",)


def _grid(part: Part, table: str, sources: Sequence[str] | None = None) -> Grid:
    """Return a table of rows (delays) and columns (protocols), each cell linked to its repetitions."""
    column, rows = _axes(part)
    body = []
    for key in _row_keys(part, rows):
        line = [Text(value) for value in key] or [Text("all")]
        for value in _columns(part, column):
            cell = part.cells.get((table, _levels(part, column, rows, key, value), None))
            hidden = cell is not None and sources is not None and cell.label not in sources
            line.append(Text(MISSING) if hidden else cell_text(cell))
        body.append(tuple(line))
    names = [part.levels[number].capitalize() for number in rows] or [""]
    return Grid((*names, *_columns(part, column)), tuple(body), len(names))


def _scales(part: Part, table: str) -> Grid:
    """Return a table of protocols and time scales, one column per delay."""
    column, rows = _axes(part)
    keys = _row_keys(part, rows)
    scales = sorted({cell.scale for cell in part.cells.values() if cell.table == table and cell.scale is not None})
    body = []
    for value in _columns(part, column):
        for position, scale in enumerate(scales):
            cells = [part.cells.get((table, _levels(part, column, rows, key, value), scale)) for key in keys]
            first = Text(value if position == 0 else "")
            body.append((first, Text(f"{scale:g}sec"), *(cell_text(cell, links=False) for cell in cells)))
    name = part.levels[column].capitalize() if column >= 0 else ""
    header = (name, "", *("/".join(key) or "all" for key in keys))
    return Grid(header, tuple(body), 2)


def _sweep(part: Part) -> list[Block]:
    """Return a table of one row per algorithm and value of the swept level."""
    column, rows = _axes(part)
    swept = " and ".join(part.levels[number] for number in rows) or "run"
    body = []
    for value in _columns(part, column):
        for position, key in enumerate(_row_keys(part, rows)):
            levels = _levels(part, column, rows, key, value)
            cells = [part.cells.get((table, levels, None)) for table, *_ in SWEEP_COLUMNS]
            line = [Text(value if position == 0 else ""), *(Text(name) for name in key)]
            line += [
                cell_text(cell, factor=factor, digits=digits, links=table == "throughput")
                for cell, (table, _, factor, digits) in zip(cells, SWEEP_COLUMNS, strict=True)
            ]
            body.append(tuple(line))
    name = part.levels[column].capitalize() if column >= 0 else ""
    header = (name, *(part.levels[number].capitalize() for number in rows), *(text for _, text, *_ in SWEEP_COLUMNS))
    labels = {cell.table: cell.label or "" for cell in part.cells.values()}
    said = f"(RTT from data to ACK; reordered: {labels.get('reordering', '')})"
    return [Heading(2, f"Algorithm by {swept}"), Lines((said,)), Grid(header, tuple(body), 1 + len(rows))]


def _run_pages(campaign: Campaign) -> list[RunPage]:
    """Return each run's own page."""
    pages = []
    for number, (run, result) in enumerate(zip(campaign.layout.runs, campaign.results, strict=True)):
        blocks: list[Block] = [Heading(1, run.name)]
        if result.error:
            blocks.append(Lines((result.error,)))
        else:
            blocks.append(
                Lines((f"Interval: {result.interval}, {result.interval_s:.6f} s", *result.notes, *result.warnings))
            )
            blocks += [_flows(result.flows), _values(result.values)]
        pages.append(RunPage(number, run.name, tuple(blocks)))
    return pages


def _flows(flows: Sequence[dict[str, Any]]) -> Grid:
    rows = tuple(
        (
            Text(str(flow["label"])),
            Text(format_number(flow["start_s"], digits=3)),
            Text(format_number(flow["end_s"], digits=3)),
            Text(format_number(flow["rate_bps"] / 1e6, digits=6)),
            Text(format_number(flow["share"])),
        )
        for flow in flows
    )
    return Grid(("Flow", "from s", "to s", "Mbit/s", "Share"), rows)


def _values(values: Sequence[Any]) -> Grid:
    rows = tuple(
        (
            Text(value.table),
            Text("" if value.scale is None else f"{value.scale:g}sec"),
            Text(value.reason or value.label or ""),
            Text(format_number(value.value)),
        )
        for value in values
    )
    return Grid(("Number", "Scale", "", "Value"), rows, 3)


def cell_of(found: Sequence[Part], table: str, levels: tuple[str, ...], scale: float | None = None) -> Cell | None:
    """Return one cell of an experiment, or nothing where there is none."""
    return next((part.cells[(table, levels, scale)] for part in found if (table, levels, scale) in part.cells), None)
