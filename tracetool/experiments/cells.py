"""An experiment's numbers as one long table: every repetition, and the mean that a printed cell shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracetool.experiments.layout import sort_key
from tracetool.metrics.repetitions import mean_over_repetitions

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tracetool.experiments.campaign import Campaign
    from tracetool.experiments.run import RunResult, Value

FAIRNESS_TABLES = (
    "jain",
    "throughput_ratio",
    "link_utilisation",
    "queue_drop_ratio",
    "convergence_time",
    "jain_by_scale",
    "cov_by_scale",
)
SWEEP_TABLES = ("throughput", "rtt_mean", "rtt_p95", "retransmission_ratio", "reordering")
# Repetitions whose intervals differ by more are runs of different length, not repetitions.
SAME_LENGTH = 0.1


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: the mean over its repetitions, and each of them.

    Parameters
    ----------
    table, levels, scale
        Where it stands; ``levels`` are values in the order of `Part.levels`.
    value, reason
        The mean, or why there is none.
    n, n_defined, sd
        Repetitions, those with a value, and their population standard deviation.
    label
        Source, layer or definition.
    repetitions
        Name, value and run (position in the layout) of each repetition.
    values
        The repetitions' values with reason and censoring.
    """

    table: str
    levels: tuple[str, ...]
    scale: float | None
    value: float | None
    reason: str | None
    n: int
    n_defined: int
    sd: float | None
    label: str | None
    repetitions: tuple[tuple[str, int], ...]
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """The runs of an experiment that share the names of their levels, and their cells.

    Parameters
    ----------
    levels
        Names of the levels, such as delay and protocol.
    values
        The values of each level, in the order of the tables.
    tables
        The tables it has, in order.
    cells
        By table, values of the levels, and scale.
    """

    levels: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    tables: tuple[str, ...]
    cells: dict[tuple[str, tuple[str, ...], float | None], Cell]


def parts(campaign: Campaign, *, average_anyway: bool = False) -> tuple[list[Part], list[str]]:
    """Arrange an experiment's numbers into cells.

    Parameters
    ----------
    campaign
        What was measured.
    average_anyway
        Average repetitions that differ in length, layer or setting, and say so.

    Returns
    -------
    parts, warnings
        One part per set of level names; what was not averaged, failed, or contradicts the declared setting.
    """
    shapes: dict[tuple[str, ...], list[int]] = {}
    for number, run in enumerate(campaign.layout.runs):
        shapes.setdefault(tuple(name for name, _ in run.levels), []).append(number)
    warnings = [
        f"{run.name}: {text}"
        for run, result in zip(campaign.layout.runs, campaign.results, strict=True)
        for text in ([result.error] if result.error else result.warnings)
    ]
    found = [
        _part(campaign, shape, members, warnings, average_anyway=average_anyway) for shape, members in shapes.items()
    ]
    return found, warnings


def _part(
    campaign: Campaign, shape: tuple[str, ...], members: list[int], warnings: list[str], *, average_anyway: bool
) -> Part:
    runs, results = campaign.layout.runs, campaign.results
    order = campaign.layout.manifest.order
    seen = [{dict(runs[number].levels)[name] for number in members} for name in shape]
    values = tuple(_ordered(names, order.get(name, ())) for name, names in zip(shape, seen, strict=True))
    several = any(len(results[number].flows) > 1 for number in members)
    tables = FAIRNESS_TABLES if several else SWEEP_TABLES
    groups: dict[tuple[str, ...], list[int]] = {}
    for number in members:
        groups.setdefault(tuple(value for _, value in runs[number].levels), []).append(number)
    cells = {}
    for levels, numbers in groups.items():
        numbers.sort(key=lambda number: sort_key(runs[number].repetition))
        good = [number for number in numbers if results[number].error is None]
        differ = _difference([results[number] for number in good], [runs[number].setting for number in good])
        if differ:
            verb = "averaged all the same" if average_anyway else "not averaged"
            warnings.append(f"{'/'.join(levels)}: repetitions {differ}: {verb}")
        names = tuple((runs[number].repetition, number) for number in good)
        for key, column in _columns([results[number] for number in good], tables).items():
            cell = _cell(key[0], levels, key[1], names, column, average=average_anyway or not differ)
            cells[(key[0], levels, key[1])] = cell
    return Part(shape, values, tables, cells)


def _ordered(values: set[str], configured: Sequence[str]) -> tuple[str, ...]:
    """Return values in the configured order, the others after them by size or alphabet."""
    first = [value for value in configured if value in values]
    return (*first, *sorted(values - set(first), key=sort_key))


def _columns(results: Sequence[RunResult], tables: tuple[str, ...]) -> dict[tuple[str, float | None], list[Value]]:
    """Return the values of each table and scale, one per run."""
    columns: dict[tuple[str, float | None], list[Value]] = {}
    for result in results:
        for value in result.values:
            if value.table in tables:
                columns.setdefault((value.table, value.scale), []).append(value)
    return columns


def _cell(
    table: str,
    levels: tuple[str, ...],
    scale: float | None,
    names: tuple[tuple[str, int], ...],
    values: Sequence[Value],
    *,
    average: bool,
) -> Cell:
    found = mean_over_repetitions(
        [value.value for value in values],
        censored_at=[value.censored_at for value in values],
        reasons=[value.reason for value in values],
    )
    labels = {value.label for value in values}
    average = average and len(labels) == 1
    label = values[0].label if len(labels) == 1 else "; ".join(sorted(str(label) for label in labels))
    mean, reason = (found.mean.value, found.mean.reason) if average or found.n == 1 else (None, "ambiguous")
    n_defined = found.n_defined if average else 0
    return Cell(table, levels, scale, mean, reason, found.n, n_defined, found.sd, label, names, tuple(values))


def _difference(results: Sequence[RunResult], settings: Sequence[object]) -> str | None:
    """Say in what repetitions differ, so that their mean would be of nothing."""
    lengths = [result.interval_s for result in results if result.interval_s is not None]
    if lengths and max(lengths) > (1 + SAME_LENGTH) * min(lengths):
        return f"last from {min(lengths):g} s to {max(lengths):g} s"
    if len({repr(setting) for setting in settings}) > 1:
        return "have different settings"
    return None


def long_table(found: Sequence[Part]) -> pl.DataFrame:
    """Return all numbers in long form: the authority, of which the printed tables are views.

    Returns
    -------
    polars.DataFrame
        ``table``, one column per level, ``scale`` (seconds), ``repetition`` (empty: the cell's mean), ``value``,
        ``n``, ``label``, ``reason``, ``censored_at``.
    """
    import polars as pl

    names = list(dict.fromkeys(name for part in found for name in part.levels))
    rows = []
    for part in found:
        for table in part.tables:
            for cell in (cell for cell in part.cells.values() if cell.table == table):
                levels = dict(zip(part.levels, cell.levels, strict=True))
                where = [table, *(levels.get(name) for name in names), cell.scale]
                for (repetition, _), value in zip(cell.repetitions, cell.values, strict=True):
                    n = int(value.value is not None)
                    rows.append([*where, repetition, value.value, n, value.label, value.reason, value.censored_at])
                rows.append([*where, "", cell.value, cell.n_defined, cell.label, cell.reason, None])
    schema = {
        "table": pl.String,
        **dict.fromkeys(names, pl.String),
        "scale": pl.Float64,
        "repetition": pl.String,
        "value": pl.Float64,
        "n": pl.Int64,
        "label": pl.String,
        "reason": pl.String,
        "censored_at": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")
