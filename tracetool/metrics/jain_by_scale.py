"""Jain's index over time scales: how fair the sharing is in windows of 1 s to 160 s.

Table 4.2 of intra-protocol fairness studies. A scale finer than the data is reported as
degenerate: every window then holds one flow, and the index would say 1/n, which is no finding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracetool.measures import Absent, Measure, jain_index, mean, window_sums

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

SCALES_S = (1, 5, 10, 20, 40, 80, 160)


@dataclass(frozen=True, slots=True)
class ScaleFairness:
    """Jain's index at one time scale.

    Parameters
    ----------
    jain
        The mean over the windows where it is defined.
    windows
        Whole windows in the interval.
    coverage
        Defined windows over whole windows; null without a window.
    moved_windows
        Windows in which every entity moved bytes.
    mean_of_defined
        The mean even where the scale is degenerate (what older tools printed).
    """

    jain: Measure
    windows: int
    coverage: float | None
    moved_windows: int
    mean_of_defined: float | None


def jain_series(entities: Sequence[Sequence[int | None]], *, absent: Absent = "zero") -> list[float | None]:
    """Return Jain's index in each window; null where nobody sent or data is missing.

    Parameters
    ----------
    entities
        One series of bytes per window for each entity, all of one length.

    Examples
    --------
    >>> jain_series([[1, 0, 2], [1, 0, 0]])
    [1.0, None, 0.5]
    """
    return [
        None if absent == "zero" and None in window else jain_index(window, absent=absent).value
        for window in zip(*entities, strict=True)
    ]


def fairness_at_scale(
    entities: Sequence[Sequence[int | None]],
    *,
    whole: Iterable[int | None] | None = None,
    finer_than_data: bool = False,
    absent: Absent = "zero",
) -> ScaleFairness:
    """Return Jain's index at one scale, from bytes in windows of that length.

    Parameters
    ----------
    entities
        One series of bytes per window for each declared entity; null marks a gap in the data.
    whole
        Bytes of each entity over the whole interval (default: the sum of its windows).
    finer_than_data
        The scale is known to lie below twice the spacing of the data.
    absent
        How a silent entity counts.

    Returns
    -------
    ScaleFairness
        ``degenerate`` where no window ever held all entities although the whole interval is
        shared more evenly than 1/n.

    Examples
    --------
    >>> fairness_at_scale([[1, 0, 1, 0], [0, 1, 0, 1]]).jain.reason
    'degenerate'
    """
    if not entities:
        return ScaleFairness(Measure.undefined("no-flows"), 0, None, 0, None)
    series = jain_series(entities, absent=absent)
    defined = [value for value in series if value is not None]
    moved = sum(all(window) for window in zip(*entities, strict=True))
    average = mean(defined)
    coverage = len(defined) / len(series) if series else None
    if average is None:
        empty = (
            "all-zero" if series and not any(any(v or 0 for v in one) for one in entities) else "insufficient-windows"
        )
        return ScaleFairness(Measure.undefined(empty), len(series), coverage, moved, None)
    sizes = [sum(v or 0 for v in one) for one in entities] if whole is None else list(whole)
    overall = jain_index(sizes, absent=absent).value or 0.0
    # Real starvation has one entity silent over the whole interval too, so J is 1/n there as well.
    # "Clearly above": halfway from 1/n to 1 separates alternating bursts from starvation.
    n = len(entities)
    alternating = n > 1 and moved == 0 and overall > (1 / n + 1) / 2
    if finer_than_data or alternating:
        return ScaleFairness(Measure.undefined("degenerate"), len(series), coverage, moved, average)
    note = "trivial" if n == 1 else None
    return ScaleFairness(Measure(average, note=note), len(series), coverage, moved, average)


def fairness_over_time_scale(
    entities: Sequence[Sequence[int | None]],
    factors: Sequence[int],
    *,
    spacing_bins: float = 0,
    absent: Absent = "zero",
) -> dict[int, ScaleFairness]:
    """Return Jain's index at several scales, each a multiple of the base bin.

    Parameters
    ----------
    entities
        One series of bytes per base bin for each declared entity.
    factors
        The scales, in base bins.
    spacing_bins
        Median spacing of logged samples in base bins; 0 for packets. A scale below twice it is
        degenerate.

    Examples
    --------
    >>> fairness_over_time_scale([[2, 2], [2, 2]], [1, 2])[2].jain.value
    1.0
    """
    result: dict[int, ScaleFairness] = {}
    for factor in factors:
        windows = [window_sums(series, factor) for series in entities]
        totals = [sum(value or 0 for value in series) for series in entities]
        result[factor] = fairness_at_scale(
            windows, whole=totals, finer_than_data=factor < 2 * spacing_bins, absent=absent
        )
    return result


def jain_by_scale(
    bins: pl.DataFrame, *, bin_ns: int, scales_ns: Sequence[int], absent: Absent = "zero"
) -> pl.DataFrame:
    """Measure Jain's index over time scales.

    Parameters
    ----------
    bins
        ``bin``, ``start_ns`` and one column of bytes per entity (`tracetool.metrics.bins.binned`).
    bin_ns
        The length of a bin; each scale is a multiple of it.
    scales_ns
        The scales.

    Returns
    -------
    polars.DataFrame
        ``scale_ns``, ``value``, ``reason``, ``note``, ``windows``, ``coverage``, ``moved_windows``,
        ``mean_of_defined``.

    Raises
    ------
    ValueError
        A scale is no multiple of the bin.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"bin": [0, 1], "start_ns": [0, 5], "a": [1, 1], "b": [1, 1]})
    >>> jain_by_scale(table, bin_ns=5, scales_ns=[5, 10])["value"].to_list()
    [1.0, 1.0]
    """
    import polars as pl

    for scale_ns in scales_ns:
        if scale_ns % bin_ns:
            raise ValueError(f"a time scale of {scale_ns} ns: expected a multiple of the {bin_ns} ns bin")
    entities = [bins.get_column(name).to_list() for name in bins.columns if name not in ("bin", "start_ns")]
    found = fairness_over_time_scale(entities, [scale_ns // bin_ns for scale_ns in scales_ns], absent=absent)
    rows = [
        (s, f.jain.value, f.jain.reason, f.jain.note, f.windows, f.coverage, f.moved_windows, f.mean_of_defined)
        for s, f in zip(scales_ns, found.values(), strict=True)
    ]
    schema = {
        "scale_ns": pl.Int64,
        "value": pl.Float64,
        "reason": pl.String,
        "note": pl.String,
        "windows": pl.Int64,
        "coverage": pl.Float64,
        "moved_windows": pl.Int64,
        "mean_of_defined": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")
