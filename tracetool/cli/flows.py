"""``tracetool flows``: one line per flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracetool.cli.options import Csv, Flow, Inputs, Json, Quiet

if TYPE_CHECKING:
    import polars as pl

LONG_HELP = "Print everything known of the flow, one value per line, as tcptrace -l does."


def command(
    inputs: Inputs,
    flow: Flow = None,
    long: Annotated[bool, typer.Option("--long", "-l", help=LONG_HELP)] = False,
    as_json: Json = False,
    as_csv: Csv = False,
    quiet: Quiet = False,
) -> None:
    """List the flows of captures, logs or a dataset: who, how much, how fast, which congestion control.

    A connection that several inputs saw is one flow: its numbers are those of the capture at the sender, if there is
    one, and the columns `inputs` and `origins` name all that saw it. Where another congestion control than the one that
    is named fits the sends as well, a question mark stands behind it.
    """
    from tracetool import api
    from tracetool.cli import output
    from tracetool.cli.prepare import dataset_of
    from tracetool.report.flow_table import flow_table

    with dataset_of(inputs, quiet=quiet) as dataset:
        frame = flow_table(dataset)
        if flow is not None:
            import polars as pl

            chosen = api.connection(dataset, flow)
            frame = frame.filter(
                pl.any_horizontal(*((pl.col("input") == p.input) & (pl.col("flow") == p.flow) for p in chosen.parts))
            )
        output.table(frame, _long(frame) if long else _text(frame), as_json=as_json, as_csv=as_csv)


def _text(frame: pl.DataFrame) -> str:
    from tracetool.cli import output
    from tracetool.reconstruct.connections import endpoint
    from tracetool.report.flow_table import seen_by

    rows = []
    several = frame["inputs"].explode().n_unique() > 1
    for row in frame.iter_rows(named=True):
        ends = (endpoint(row["addr_a"], row["port_a"]), endpoint(row["addr_b"], row["port_b"]))
        sender, receiver = ends if row["direction"] == "a2b" else ends[::-1]
        rows.append(
            [
                *([row["input"]] if several else []),
                str(row["flow"]),
                row["protocol"],
                f"{sender} > {receiver}",
                _seconds(row["start"], row["end"]),
                output.number(row[f"payload_bytes_{row['direction']}"], "B"),
                output.number(row["goodput_bps"], "bit/s"),
                output.number(row["retransmitted_segments"]),
                output.milliseconds(row["rtt_min_ns"]),
                _control(row["cc"], row["cc_confidence"]),
                *([seen_by(row["origins"])] if several else []),
            ]
        )
    headers = ["flow", "", "sender > receiver", "seconds", "payload", "goodput", "retx", "min RTT ms", "cc"]
    if several:
        return output.columns(["input", *headers, "seen by"], rows, left=(0, 2, 3, 9, 10))
    return output.columns(headers, rows, left=(1, 2, 8))


def _control(cc: str | None, confidence: float | None) -> str:
    """A congestion control's name; with a question mark where another fits the sends as well."""
    return "-" if cc is None else f"{cc}?" if cc != "unknown" and confidence == 0 else cc


def _seconds(start: Any, end: Any) -> str:
    return "-" if start is None or end is None else f"{(end - start).total_seconds():.2f}"


def _long(frame: pl.DataFrame) -> str:
    from tracetool import tables
    from tracetool.cli import output

    units = {
        column["name"]: column.get("unit", "")
        for table in ("flows", "flow_stats")
        for column in tables.definition(table)["columns"]
    }
    blocks = []
    for row in output.plain(frame).iter_rows(named=True):
        cells = [[name, "-" if value is None else _value(value), units.get(name, "")] for name, value in row.items()]
        blocks.append(output.columns(["", "", ""], cells, left=(0, 2)).lstrip("\n"))
    return "\n".join(blocks)


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
