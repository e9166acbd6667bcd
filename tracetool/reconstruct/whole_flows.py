"""The packets of one input, handed on in batches of whole flows, in memory that does not grow with the capture.

`packets` holds slices of time, each sorted by flow. They are read once, into records of fixed size: each slice is cut
by batch, and a batch is handed on when the last packet of its flows was read. What waits beyond `WAITING_ROWS` goes to
a temporary file that has no name, so that nothing is left behind whatever happens. A single flow is never cut: the
largest one sets the least memory.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections import deque
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tracetool.kernels import packet_records
from tracetool.kernels.packet_records import RECORD

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: Packets in a batch, unless one flow has more.
BATCH_ROWS = 1 << 16
#: Packets that are read at once.
SLICE_ROWS = 1 << 16
#: Packets that may wait in memory for the rest of their flows.
WAITING_ROWS = 1 << 17
#: Columns of `packets` that are never null, and those that may be, as `kernels.packet_records` takes them.
ALWAYS = ("frame", "time", "flow", "direction", "payload_bytes", "segments", "frame_bytes", "captured_bytes")
MAYBE = ("seq", "ack", "flags", "window_bytes", "window_raw", "tsval", "tsecr", "ip_id", "ecn", "interface")
COLUMNS = [*ALWAYS, *MAYBE, "sack"]


class Rows(NamedTuple):
    """Some rows of `packets`.

    Attributes
    ----------
    records
        One `RECORD` per packet; -1 is unknown.
    edges
        SACK edges of all, end to end; each record has the number of its own.
    """

    records: npt.NDArray[np.void]
    edges: Ints

    def __len__(self) -> int:
        """Return the number of packets."""
        return len(self.records)


def whole_flows(path: Any, packets: Ints, *, parts: int = 1) -> Iterator[Rows]:
    """Read the packets of one input in batches of whole flows.

    Parameters
    ----------
    path
        Parquet file of `packets`: a path, or what pyarrow has opened.
    packets
        Number of packets of each flow, by flow number; 0 for flows that are not wanted.
    parts
        Make at least so many batches where there are enough flows and packets, so that as many can be worked on.

    Yields
    ------
    Rows
        Slices of time follow one another, each sorted by flow.

    Examples
    --------
    >>> for rows in whole_flows(path, np.array([120, 80])):  # doctest: +SKIP
    ...     print(len(rows))
    """
    with tempfile.TemporaryFile() as spilled:
        for batch in batches(path, packets, spilled, parts=parts):
            yield batch.take()


def batches(path: Any, packets: Ints, spilled: IO[bytes], *, parts: int = 1) -> Iterator[Pending]:
    """Read as `whole_flows` does; what was spilled is not yet read back, so that others may do it.

    Parameters
    ----------
    path, packets, parts
        As above.
    spilled
        Temporary file, open until the last batch was taken.

    Yields
    ------
    Pending
    """
    total = int(packets.sum())
    size = max(1, min(BATCH_ROWS, -(-total // parts)))
    batch_of = (np.cumsum(packets) - packets) // size  # the first packet of a flow decides
    missing = np.bincount(batch_of, packets).astype(np.int64)
    waiting: dict[int, Pending] = {}
    held: deque[_Slice] = deque()
    for rows, flow, edges_at in _slices(path, packets):
        part = _Slice(rows, spilled)
        chosen = batch_of[flow]
        cuts = np.append(np.flatnonzero(np.diff(chosen, prepend=-1)), len(rows))
        edges = edges_at[cuts].tolist()
        at = cuts.tolist()
        for k, batch in enumerate(chosen[cuts[:-1]].tolist()):
            pending = waiting.setdefault(batch, Pending())
            pending.add(part, at[k], at[k + 1], edges[k], edges[k + 1])
            missing[batch] -= at[k + 1] - at[k]
            if not missing[batch]:
                yield waiting.pop(batch).complete()
        held.append(part)
        del rows, part
        while sum(map(len, held)) > WAITING_ROWS:
            held.popleft().spill()


def _slices(path: Any, packets: Ints) -> Iterator[tuple[Rows, Ints, Ints]]:
    """Rows of the file without flows that are not wanted; of each the flow, and where its SACK edges begin.

    They come in pieces of row groups.
    """
    wanted = packets > 0
    with pq.ParquetFile(path, read_dictionary=["direction"]) as file:
        for group in range(file.num_row_groups):
            for piece in file.iter_batches(SLICE_ROWS, [group], COLUMNS, use_threads=False):
                rows = piece
                if not wanted.all():
                    rows = rows.filter(pa.array(wanted[rows["flow"].to_numpy()]))
                if rows.num_rows:
                    yield records_of(rows)


def records_of(rows: pa.RecordBatch) -> tuple[Rows, Ints, Ints]:
    """Rows of `packets` as records, in their order; of each the flow, and where its SACK edges begin."""
    columns = {name: rows[name] for name in COLUMNS}
    words = columns["direction"].dictionary.to_pylist()
    columns["direction"] = columns["direction"].indices
    sack = columns["sack"]
    edges_at = sack.offsets.to_numpy()
    records = np.empty(rows.num_rows, RECORD)
    given: list[Any] = [_values(columns[name]) for name in ALWAYS]
    given += (part for name in MAYBE for part in (_values(columns[name]), _bits(columns[name])))
    given += [edges_at, words.index("a2b") if "a2b" in words else -1, records]
    packet_records.records_of(*given)
    edges = sack.values.to_numpy()[edges_at[0] : edges_at[-1]].astype(np.int64)
    return Rows(records, edges), columns["flow"].to_numpy(), edges_at - edges_at[0]


def _values(column: pa.Array) -> npt.NDArray[Any]:
    """A column's numbers, in the same memory; where it is null, whatever is there."""
    kind = np.dtype("i8") if pa.types.is_timestamp(column.type) else column.type.to_pandas_dtype()
    return np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column)]


def _bits(column: pa.Array) -> npt.NDArray[np.uint8]:
    """Which of a column's numbers are there, one bit each; nothing where all are."""
    if not column.null_count:
        return np.empty(0, np.uint8)
    if column.offset:
        return np.packbits(column.is_valid().to_numpy(zero_copy_only=False), bitorder="little")
    return np.frombuffer(column.buffers()[0], np.uint8)


class _Slice:
    """Rows that were read together: in memory, or from some time on in the temporary file.

    Parameters
    ----------
    rows
        Sorted by flow.
    file
        The temporary file.
    """

    def __init__(self, rows: Rows, file: IO[bytes]) -> None:
        self.rows: Rows | None = rows
        self._size, self._records_bytes = len(rows), rows.records.nbytes
        self._file = file
        self._offset = 0
        self.waiting = 0  # batches that have rows of it, and are not complete

    def __len__(self) -> int:
        return self._size

    def spill(self) -> None:
        """Write them to the file, if any of them still wait for others."""
        if self.waiting and self.rows is not None:
            records, edges = self.rows
            self._offset = self._file.seek(0, 2)
            self._file.write(records.view(np.uint8).data)
            self._file.write(edges.view(np.uint8).data)
            self._file.flush()
        self.rows = None  # batches that are complete have them

    def read(self, begin: int, edges_begin: int, records: npt.NDArray[np.void], edges: Ints) -> None:
        """Read some of them back."""
        self._read(records, self._offset + begin * RECORD.itemsize)
        self._read(edges, self._offset + self._records_bytes + edges_begin * edges.itemsize)

    def _read(self, wanted: npt.NDArray[Any], offset: int) -> None:
        if len(wanted) and os.preadv(self._file.fileno(), [wanted.view(np.uint8).data], offset) != wanted.nbytes:
            raise OSError("a temporary file lost what was written to it")


class Pending:
    """A batch of whole flows: where its rows are."""

    def __init__(self) -> None:
        self._slices: list[_Slice] = []
        self._places = array("q")  # where in each slice its rows begin and end, and their SACK edges
        self._held: list[Rows | None] = []  # slices in memory, once it is complete

    def add(self, part: _Slice, begin: int, end: int, edges_begin: int, edges_end: int) -> None:
        """Take in rows of a slice."""
        self._slices.append(part)
        self._places.extend((begin, end, edges_begin, edges_end))
        part.waiting += 1

    def complete(self) -> Pending:
        """Note that there are no more rows to come."""
        for part in self._slices:
            part.waiting -= 1
        self._held = [part.rows for part in self._slices]
        return self

    def take(self) -> Rows:
        """All of it, in the order in which it came; any thread may ask."""
        places = np.array(self._places).reshape(-1, 4)
        at = np.append(0, np.cumsum(places[:, 1] - places[:, 0]))
        edges_at = np.append(0, np.cumsum(places[:, 3] - places[:, 2]))
        records, edges = np.empty(at[-1], RECORD), np.empty(edges_at[-1], np.int64)
        for k, (part, rows) in enumerate(zip(self._slices, self._held, strict=True)):
            begin, end, edges_begin, edges_end = places[k].tolist()
            mine, its = records[at[k] : at[k + 1]], edges[edges_at[k] : edges_at[k + 1]]
            if rows is None:
                part.read(begin, edges_begin, mine, its)
            else:
                mine[:], its[:] = rows.records[begin:end], rows.edges[edges_begin:edges_end]
        return Rows(records, edges)
