"""What was inferred from captures against what the kernel said of the same flows: tables and a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tracetool.errors import NothingMatchedError
from tracetool.metrics.inference_error import aligned, clock_offset, inference_error, sequence_shift
from tracetool.report.figure import Axis, Figure, Panel, Series, Style, floats, nanoseconds, seconds_after

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracetool.dataset import Dataset
    from tracetool.metrics.inference_error import ClockOffset
    from tracetool.reconstruct.connections import Connection, Part


#: Origins that speak as each ACK arrives; all others were polled.
EVENT_ORIGINS = frozenset({"tcp_probe", "siftr"})
#: Origins that never tell ssthresh: their silence does not say that it is not set.
WITHOUT_SSTHRESH = frozenset({"iperf3", "flent"})


@dataclass(frozen=True, slots=True)
class Comparison:
    """Inference from one capture against one kernel log, for one connection.

    Attributes
    ----------
    connection
        Sender, arrow, receiver.
    capture, log
        Names of the inputs.
    origin
        Who speaks in the log: tcp_probe, ss, iperf3, ...
    clock
        Offset of the log's clock.
    errors
        See `tracetool.metrics.inference_error`.
    pairs
        Kernel rows with the inferred ones beside them.
    """

    connection: str
    capture: str
    log: str
    origin: str
    clock: ClockOffset
    errors: pl.DataFrame
    pairs: pl.DataFrame


def compare(dataset: Dataset, connections: Iterable[Connection]) -> list[Comparison]:
    """Compare what was inferred from captures with the kernel's word of the same flows.

    Parameters
    ----------
    connections
        Those to look at; what only a capture or only a log saw is passed over.

    Raises
    ------
    NothingMatchedError
        If no connection was seen by both.
    """
    found = [comparison for one in connections for comparison in _comparisons(dataset, one)]
    if not found:
        raise NothingMatchedError(
            "nothing to compare: give a capture and a tcp_probe, ss or iperf3 log that saw the same flow"
        )
    return found


def _comparisons(dataset: Dataset, chosen: Connection) -> Iterator[Comparison]:
    def samples(part: Part) -> pl.DataFrame:
        mine = (pl.col("flow") == part.flow) & (pl.col("direction") == part.direction)
        return dataset.scan("samples", [part.input]).filter(mine).collect()

    views = [(part, samples(part)) for part in chosen.parts]
    for capture, inferred in views:
        if inferred.filter(pl.col("origin") == "inferred").is_empty():
            continue
        for log, kernel in views:
            for origin in kernel["origin"].unique().sort().to_list():
                if origin == "inferred":
                    continue
                said = kernel.filter(pl.col("origin") == origin)
                side = capture.direction[0]
                shift = sequence_shift(log.row[f"isn_{log.direction[0]}"], capture.row[f"isn_{side}"])
                clock = clock_offset(said, inferred, shift)
                pairs = aligned(said, inferred, offset_ns=clock.offset_ns, polled=origin not in EVENT_ORIGINS)
                errors = inference_error(pairs)
                if origin in WITHOUT_SSTHRESH:
                    errors = errors.filter(pl.col("quantity") != "ssthresh_segments")
                yield Comparison(chosen.label, capture.input, log.input, origin, clock, errors, pairs)


def comparison_table(comparisons: Iterable[Comparison]) -> pl.DataFrame:
    """All comparisons as one frame, a row per quantity."""
    return pl.concat(
        one.errors.select(
            pl.lit(one.connection).alias("connection"),
            pl.lit(one.capture).alias("capture"),
            pl.lit(one.log).alias("log"),
            pl.lit(one.origin).alias("origin"),
            pl.lit(one.clock.offset_ns).alias("clock_offset_ns"),
            pl.all(),
        )
        for one in comparisons
    )


def comparison_figure(comparison: Comparison) -> Figure:
    """Return the kernel's cwnd and the inferred one, and below how far they are apart."""
    pairs = comparison.pairs.filter(pl.col("cwnd_segments").is_not_null())
    if pairs.is_empty():
        raise NothingMatchedError(f"{comparison.connection}: {comparison.origin} says nothing of its cwnd")
    origin = int(nanoseconds(pairs["time"].head(1))[0])
    x = seconds_after(origin, pairs["time"])
    true, mine = floats(pairs["cwnd_segments"]), floats(pairs["cwnd_segments_inferred"])
    window = (
        Series(f"kernel, {comparison.origin}", "step", x, true, Style(0, 0, "*")),
        Series("inferred from packets", "step", x, mine, Style(1, 1, "o")),
    )
    error = (Series("inferred minus kernel", "step", x, 100 * (mine - true) / true, Style(1, 1, "o")),)
    return Figure(
        title=f"cwnd, inferred against the kernel's word: {comparison.connection}",
        x=Axis("time since first sample", "s"),
        panels=(
            Panel(Axis("cwnd", "segments", low=0.0), window, weight=2.0),
            Panel(Axis("error of cwnd", "%"), error),
        ),
        subtitle=f"{comparison.capture} against {comparison.log}",
        origin_ns=origin,
    )
