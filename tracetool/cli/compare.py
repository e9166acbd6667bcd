"""``tracetool compare``: what was inferred from a capture against what the kernel said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tracetool.cli.options import Csv, Flow, Inputs, Json, Quiet

if TYPE_CHECKING:
    import polars as pl

    from tracetool.report.comparison import Comparison

#: Connections that are compared when none is chosen, the heaviest first.
MAX_COMPARED = 100
OUT_HELP = (
    "Draw the kernel's and the inferred cwnd, and their difference, into a file (.html, .svg, .png, .pdf, .txt, ...)."
)


def command(
    inputs: Inputs,
    flow: Flow = None,
    out: Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help=OUT_HELP)] = None,
    as_json: Json = False,
    as_csv: Csv = False,
    quiet: Quiet = False,
) -> None:
    """Compare what is inferred from a capture with the word of a tcp_probe, ss or iperf3 log of the same flows.

    Flows are matched by address pair and time, the offset of the log's clock is estimated and taken out. Each line is
    a quantity: the rows that the log has of it, the share of them for which nothing was inferred, relative errors
    (median, p90, p99), the share that agrees (ssthresh with ssthresh, cwnd with its bounds), and the bounds' median
    width against cwnd.
    """
    from tracetool import api
    from tracetool.cli import output
    from tracetool.cli.prepare import dataset_of
    from tracetool.report import comparison
    from tracetool.report.selection import heaviest

    with dataset_of(inputs, quiet=quiet) as dataset:
        chosen = heaviest(dataset, MAX_COMPARED) if flow is None else [api.connection(dataset, flow)]
        comparisons = comparison.compare(dataset, chosen)
        frame = comparison.comparison_table(comparisons)
        output.table(frame, "\n".join(map(_text, comparisons)), as_json=as_json, as_csv=as_csv)
        if out is not None:
            from tracetool.report.export import save

            save(comparison.comparison_figure(comparisons[0]), out)


def _text(one: Comparison) -> str:
    clock = one.clock
    if clock.spread_ns is None:
        offset = "clocks taken as equal: too few common sequence numbers to estimate an offset"
    else:
        offset = (
            f"its clock is {clock.offset_ns / 1e6:+.3f} ms against the capture's "
            f"(spread {clock.spread_ns / 1e6:.3f} ms, {clock.matches:,} matches)"
        )
    head = f"{one.connection}: {one.origin} ({one.log}) against capture {one.capture}\n"
    return f"{head}{offset}\n{_errors(one.errors)}"


def _errors(errors: pl.DataFrame) -> str:
    from tracetool.cli import output

    def share(value: float | None) -> str:
        return "-" if value is None else f"{100 * value:.2f}"

    rows = [
        [
            row["quantity"],
            str(row["rows"]),
            *(share(row[k]) for k in ("missing", "median", "p90", "p99", "agreement", "width")),
        ]
        for row in errors.iter_rows(named=True)
    ]
    headers = ["quantity", "rows", "missing %", "median %", "p90 %", "p99 %", "agree %", "width %"]
    return output.columns(headers, rows)
