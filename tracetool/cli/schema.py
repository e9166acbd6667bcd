"""``tracetool schema``: the tables and what their columns mean."""

from __future__ import annotations

from typing import Annotated

import typer

from tracetool.cli.options import Json


def command(
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="Name of a table.")] = None,
    as_json: Json = False,
) -> None:
    """List the tables, or the columns of one with types, units and meaning."""
    import json

    from tracetool import tables
    from tracetool.cli import output

    if as_json:
        found = tables.definition(table) if table else [tables.definition(name) for name in tables.names()]
        output.write(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    elif table is None:
        rows = [[name, tables.definition(name)["description"]] for name in tables.names()]
        output.write(output.columns(["table", "what it holds"], rows, left=(0, 1)))
    else:
        rows = [
            [c["name"], c["type"] + ("" if c["nullable"] else " not null"), c.get("unit", ""), c["description"]]
            for c in tables.definition(table)["columns"]
        ]
        output.write(output.columns(["column", "type", "unit", "meaning"], rows, left=(0, 1, 2, 3)))
