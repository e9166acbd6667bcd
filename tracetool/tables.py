"""The tables: their Arrow schemas, read from ``schemas/*.json``, and the cast and check that every write passes.

The JSON files are the single source of names, types, units and meaning. In the repository (and an editable install)
they stand in ``schemas/`` at the top; a wheel carries them as ``tracetool/schemas``.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracetool.errors import TracetoolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl
    import pyarrow as pa

#: What fits a column of strings: its offsets have 32 bits.
_SHORT_BYTES = 1 << 31
PACKAGE = Path(__file__).resolve().parent
#: Where the schemas may stand: inside an installed package, or at the top of the repository.
FOLDERS = (PACKAGE / "schemas", PACKAGE.parent / "schemas")


class SchemaError(TracetoolError, TypeError):
    """Rows that do not fit the table they are meant for."""


@cache
def _folder() -> Path:
    for folder in FOLDERS:
        if (folder / "packets.json").is_file():
            return folder
    raise SchemaError(f"no schemas in {' or '.join(map(str, FOLDERS))}: the installation is incomplete")


@cache
def names() -> tuple[str, ...]:
    """Names of all tables, sorted.

    Examples
    --------
    >>> names()[:3]
    ('diagnostics', 'events', 'flow_stats')
    """
    return tuple(sorted(path.stem for path in _folder().glob("*.json")))


@cache
def definition(table: str) -> dict[str, Any]:
    """Definition of one table as its JSON file has it: description, key, columns.

    Raises
    ------
    UsageError
        If there is no such table.
    """
    if table not in names():
        raise UsageError(f"no table {table!r}: the tables are {', '.join(names())}")
    loaded: dict[str, Any] = json.loads((_folder() / f"{table}.json").read_text(encoding="utf-8"))
    return loaded


def columns(table: str) -> tuple[str, ...]:
    """Column names of a table, in order."""
    return tuple(column["name"] for column in definition(table)["columns"])


def _arrow_type(name: str) -> pa.DataType:
    import pyarrow as pa

    if name.startswith("list<"):
        return pa.list_(pa.field("element", _arrow_type(name[5:-1]), nullable=False))
    simple: dict[str, pa.DataType] = {
        "string": pa.string(),
        "bool": pa.bool_(),
        "float64": pa.float64(),
        "timestamp": pa.timestamp("ns", "UTC"),
    }
    return simple.get(name) or getattr(pa, name)()


@cache
def schema(table: str) -> pa.Schema:
    """Arrow schema of a table; each field's metadata holds its unit and description.

    Examples
    --------
    >>> schema("rtts").field("rtt_ns").metadata[b"unit"]
    b'ns'
    """
    import pyarrow as pa

    doc = definition(table)
    fields = []
    for column in doc["columns"]:
        meta = {"description": column["description"]}
        if "unit" in column:
            meta["unit"] = column["unit"]
        fields.append(pa.field(column["name"], _arrow_type(column["type"]), column["nullable"], metadata=meta))
    return pa.schema(fields, metadata={"tracetool.table": table, "tracetool.schema_version": str(doc["version"])})


@cache
def _fields(table: str) -> dict[str, tuple[pa.DataType, bool]]:
    """Type of each column, and whether it may be null."""
    return {field.name: (field.type, field.nullable) for field in schema(table)}


def cast(table: str, rows: Any) -> pa.Table:
    """Rows of any kind (Arrow table or batch, Polars frame) in the table's exact schema.

    Columns are put in order, absent nullable ones are filled with null, and types are converted where nothing is
    lost.

    Raises
    ------
    SchemaError
        If a column is unknown, a required one is absent or has nulls, or a value does not fit its type.
    """
    import pyarrow as pa

    arrow: pa.Table = rows if isinstance(rows, pa.Table) else pa.table(rows)
    given = dict(zip(arrow.column_names, arrow.columns, strict=True))
    wanted = _fields(table)
    if unknown := given.keys() - wanted.keys():
        raise SchemaError(f"table {table}: unknown columns {', '.join(sorted(unknown))}")
    arrays = []
    for name, (kind, nullable) in wanted.items():
        array = given.get(name)
        if array is None:
            array = pa.nulls(arrow.num_rows, kind)
        elif array.type != kind:  # casting loads all of pyarrow.compute
            try:
                array = array.cast(kind)
            except pa.ArrowInvalid as error:
                raise SchemaError(f"table {table}, column {name}: {error}") from None
        if not nullable and array.null_count:
            raise SchemaError(f"table {table}, column {name}: {array.null_count} nulls where a value is required")
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=schema(table))


def of_frame(frame: pl.DataFrame) -> pa.Table:
    """Arrow table of a Polars frame, with strings of the type that tables have.

    `cast` would do it too, and load all of pyarrow.compute: a twentieth of what a small command takes.

    Examples
    --------
    >>> import polars as pl
    >>> of_frame(pl.DataFrame({"cc": ["bbr", None]})).schema.field("cc").type
    DataType(string)
    """
    import pyarrow as pa

    table: pa.Table = frame.to_arrow()
    columns = [_strings(column.combine_chunks()) if _is_large(column) else column for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _is_large(column: pa.ChunkedArray) -> bool:
    import pyarrow as pa

    return pa.types.is_large_string(column.type) and len(column) > 0 and column.nbytes < _SHORT_BYTES


def _strings(array: pa.Array) -> pa.Array:
    """The same strings with offsets of 32 bits."""
    import numpy as np
    import pyarrow as pa

    known, offsets, text = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[: array.offset + len(array) + 1].astype(np.int32)
    buffers = [known, pa.py_buffer(ends), text]
    return pa.Array.from_buffers(pa.string(), len(array), buffers, array.null_count, array.offset)


def from_rows(table: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Table from a list of dicts; keys that are absent become null.

    Examples
    --------
    >>> from_rows("metadata", [{"input": "a", "key": "title", "value": "test"}]).num_rows
    1
    """
    import pyarrow as pa

    wanted = _fields(table)
    given = {key: None for row in rows for key in row}
    if unknown := given.keys() - wanted.keys():
        raise SchemaError(f"table {table}: unknown columns {', '.join(sorted(unknown))}")
    arrays = {name: pa.array([row.get(name) for row in rows], wanted[name][0]) for name in given}
    return cast(table, pa.table(arrays)) if rows else empty(table)


def empty(table: str) -> pa.Table:
    """A table without rows."""
    return schema(table).empty_table()
