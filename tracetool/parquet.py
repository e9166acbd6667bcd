"""One Parquet file, written by a thread of its own while the next rows are made.

How a column is stored follows from what it holds: times are kept as differences, and not compressed, since that gains
nothing and rows are sought by them; other numbers that grow along a flow, or are many, lose their equal high bytes
(byte stream split); words are dictionaries, and what is left is plain. zstd where it gains, lz4 where it does not;
`docs/performance.md` has the measurements.
"""

from __future__ import annotations

import base64
import os
import threading
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from tracetool import tables

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

_AHEAD = 2  # pieces that may wait to be written
_BATCH = 1 << 16  # values that are encoded at once
_SPLIT = frozenset({"frame", "seq", "ack", "ip_id"})
_SLIGHT = frozenset({"payload_bytes", "captured_bytes"})  # two or three values in turn: zstd gains nothing
_DELTA = frozenset({"time", "tsval", "tsecr", "sack.list.element", "snd_una", "snd_nxt", "start", "end"})
#: Tables with a row for every other packet, or more: what a reader must find in them is time, flow by flow.
_LONG = frozenset({"samples", "rtts", "events"})
_SOUGHT = ("frame", "time", "flow")  # columns by which rows are chosen: row groups carry their bounds


@dataclass
class TableFile:
    """Writes the rows of one table to one file.

    Parameters
    ----------
    table
        Name of the table.
    path
        The file.
    row_group
        Rows of a row group; pieces should have as many, or several times as many.

    Attributes
    ----------
    rows
        Number of rows so far.
    """

    table: str
    path: Path
    row_group: int
    rows: int = 0
    _physical: Any = None
    # These queues are in C: one in Python loses who waits for it if an interruption arrives while it wakes them.
    _queue: SimpleQueue[pa.Table | None] = field(default_factory=SimpleQueue)
    _room: SimpleQueue[None] = field(default_factory=SimpleQueue)  # one for each piece that may still come
    _error: BaseException | None = None
    _ended: bool = False
    _thread: threading.Thread | None = None

    def write(self, rows: Any) -> None:
        """Append rows: checked now, written soon.

        Raises
        ------
        SchemaError
            If they do not fit the table.
        OSError
            If an earlier piece could not be written.
        """
        checked = rows if _fits(self.table, rows) else tables.cast(self.table, rows)
        if self._thread is None:
            self._physical = _physical(self.table, checked)
            for _ in range(_AHEAD):
                self._room.put(None)
            self._thread = threading.Thread(target=self._work, name=f"write {self.table}", daemon=True)
            self._thread.start()
        self._raise()
        self.rows += checked.num_rows
        if checked.num_rows:
            self._room.get()
            self._queue.put(_as_physical(checked, self._physical))

    def end(self) -> None:
        """Say that there are no more rows: what is left is written, and the file completed, while others are."""
        if self._thread is not None and not self._ended:
            self._queue.put(None)
            self._ended = True  # not before: an interruption between the two would leave the thread without an end

    def close(self) -> None:
        """Wait until everything is written and on the disk, and the file is complete.

        Raises
        ------
        OSError
            If it could not be written.
        """
        self.end()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        ended = False
        try:
            with _writer(self.table, self.path, self._physical) as writer:
                while (rows := self._queue.get()) is not None:
                    self._room.put(None)
                    writer.write_table(rows, self.row_group)
                    del rows  # its memory may be used again while this waits for the next piece
                ended = True
            with self.path.open("rb") as content:
                os.fsync(content.fileno())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that writes or closes
            self._error = error
            while not ended and self._queue.get() is not None:  # a disk may be full only as the file is completed
                self._room.put(None)


def _writer(table: str, path: Path, physical: pa.Schema) -> Any:
    import pyarrow.parquet as pq

    names = [f"{column.name}.list.element" if _is_list(column) else column.name for column in physical]
    words = [column.name for column in physical if _is_word(column)]
    if table == "packets":
        encoding = {name: "DELTA_BINARY_PACKED" for name in names if name in _DELTA}
        encoding |= {name: "BYTE_STREAM_SPLIT" for name in names if name in _SPLIT}
        compression = dict.fromkeys(names, "zstd") | dict.fromkeys(_SLIGHT, "lz4") | {"time": "none"}
        dictionary = [*words, "flow"]
    elif table in _LONG:
        encoding = {name: "BYTE_STREAM_SPLIT" for name in names if name not in words}
        compression = dict.fromkeys(names, "lz4")
        dictionary = words
    else:
        encoding = {name: "DELTA_BINARY_PACKED" for name in names if name in _DELTA | _SPLIT}
        compression = dict.fromkeys(names, "zstd")
        dictionary = [name for name in names if name not in encoding]
    # Readers see the table's own schema, with the meaning of each column, not the dictionaries it was written from.
    logical = base64.b64encode(tables.schema(table).serialize().to_pybytes())
    return pq.ParquetWriter(
        path,
        physical.with_metadata({**tables.schema(table).metadata, b"ARROW:schema": logical}),
        compression=compression,
        use_dictionary=dictionary,
        column_encoding=encoding,
        write_statistics=[name for name in names if name in _SOUGHT],
        store_schema=False,
        write_batch_size=_BATCH,
    )


def _is_word(column: pa.Field) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(column.type) or pa.types.is_string(column.type))


def _is_list(column: pa.Field) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(column.type))


def _fits(table: str, rows: Any) -> bool:
    """Whether rows have the table's columns and types, words as dictionaries allowed: nothing to convert."""
    import pyarrow as pa

    schema = tables.schema(table)
    if not isinstance(rows, pa.Table) or rows.column_names != schema.names:
        return False
    for wanted, column in zip(schema, rows.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if kind != wanted.type or (not wanted.nullable and column.null_count):
            return False
    return True


def _physical(table: str, rows: pa.Table) -> pa.Schema:
    """Schema of the file: the table's, with dictionaries where the first rows have them."""
    import pyarrow as pa

    schema = tables.schema(table)
    return pa.schema([wanted.with_type(kind) for wanted, kind in zip(schema, rows.schema.types, strict=True)])


def _as_physical(rows: pa.Table, physical: pa.Schema) -> pa.Table:
    """Rows with the types of the file."""
    import pyarrow as pa

    pairs = zip(physical, rows.columns, strict=True)
    columns = [column if column.type == wanted.type else column.cast(wanted.type) for wanted, column in pairs]
    return pa.Table.from_arrays(columns, schema=physical)
