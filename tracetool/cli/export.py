"""``tracetool export``: a table as CSV, JSON or Parquet."""

from __future__ import annotations

from typing import Annotated

import typer

from tracetool.cli.options import Csv, Flow, Inputs, Json, Quiet


def command(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Name of a table; `tracetool schema` lists them.")],
    inputs: Inputs,
    flow: Flow = None,
    columns: Annotated[str | None, typer.Option("--columns", metavar="NAME,...", help="Only these columns.")] = None,
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File to write: .csv, .json or .parquet; - for standard output."
        ),
    ] = "-",
    as_json: Json = False,
    as_csv: Csv = False,
    quiet: Quiet = False,
) -> None:
    """Print or write one table of captures, logs or a dataset; as CSV unless told otherwise."""
    from pathlib import Path

    from tracetool import api, tables
    from tracetool.cli import output
    from tracetool.cli.prepare import dataset_of
    from tracetool.errors import UsageError
    from tracetool.writer import writing

    names = tables.columns(table)
    wanted = [name.strip() for name in columns.split(",")] if columns else list(names)
    if unknown := [name for name in wanted if name not in names]:
        raise UsageError(f"table {table} has no column {', '.join(unknown)}: it has {', '.join(names)}")
    suffix = Path(out).suffix.lower() if out != "-" else ".json" if as_json else ".csv"
    if suffix not in {".csv", ".json", ".parquet"} or (as_json and as_csv):
        raise UsageError(f"{out}: cannot write that: give a name that ends in .csv, .json or .parquet")
    with dataset_of(inputs, quiet=quiet) as dataset:
        chosen = None if flow is None else api.connection(dataset, flow)
        frame = dataset.read(table) if chosen is None else api.flow_rows(dataset, table, chosen)
        frame = frame.select(wanted)
        if out == "-":
            output.table(frame, "", as_json=suffix == ".json", as_csv=suffix == ".csv")
            return
        with writing(out), Path(out).open("wb") as file:
            if suffix == ".parquet":
                frame.write_parquet(file)
            elif suffix == ".csv":
                output.plain(frame).write_csv(file)
            else:
                output.plain(frame).write_json(file)
