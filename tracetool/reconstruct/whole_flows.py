"""The packets of one input, handed on in batches of whole flows, in memory that does not grow with the capture.

`packets` holds slices of time, each sorted by flow. They are read once, and packed: each slice is cut by batch, and a
batch is handed on when the last packet of its flows was read. What waits beyond `WAITING_BYTES` goes to a temporary
file that has no name, so that nothing is left behind whatever happens. A single flow is never cut: the largest one sets
the least memory.
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

from tracetool import tables
from tracetool.kernels import packet_records as pr
from tracetool.reconstruct.memory import empty

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

#: Packets in a batch, unless one flow has more.
BATCH_ROWS = 1 << 16
#: Packets that are read at once.
SLICE_ROWS = 1 << 16
#: Bytes of packets that may wait in memory for the rest of their flows.
WAITING_BYTES = 1 << 24
#: Columns of `packets` that are never null, and those that may be, as `kernels.packet_records` takes them.
ALWAYS = ("frame", "time", "flow", "direction", "payload_bytes", "segments", "frame_bytes", "captured_bytes")
MAYBE = ("seq", "ack", "flags", "window_bytes", "window_raw", "tsval", "tsecr", "ip_id", "ecn", "interface")
COLUMNS = [*ALWAYS, *MAYBE, "sack"]


class Packed(NamedTuple):
    """Some packets, packed as `kernels.packet_records` does it.

    Attributes
    ----------
    content
        Sections, one after the other, and some spare bytes.
    rows, edges
        How many packets and SACK edges they hold.
    """

    content: Bytes
    rows: int
    edges: int


def whole_flows(path: Any, packets: Ints, *, parts: int = 1) -> Iterator[Packed]:
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
    Packed
        Slices of time follow one another, each sorted by flow.

    Examples
    --------
    >>> for packed in whole_flows(path, np.array([120, 80])):  # doctest: +SKIP
    ...     print(packed.rows)
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
    batch_of = _batches(packets, size)
    missing = np.bincount(batch_of, packets).astype(np.int64)
    batch_of[packets == 0] = -1
    waiting: dict[int, Pending] = {}
    held: deque[_Slice] = deque()
    bytes_held = 0
    for content, places in _slices(path, batch_of):
        part = _Slice(content, spilled)
        begin = 0
        for batch, rows, edges, end in places:
            pending = waiting.setdefault(batch, Pending())
            pending.add(part, begin, end, rows, edges)
            begin = end
            missing[batch] -= rows
            if not missing[batch]:
                yield waiting.pop(batch).complete()
        held.append(part)
        bytes_held += len(part)
        del content, part
        while bytes_held > WAITING_BYTES:
            bytes_held -= len(held[0])
            held.popleft().spill()


def _batches(packets: Ints, size: int) -> Ints:
    """Batch of each flow: flows in a row, with no more packets than ``size`` together unless there is but one."""
    ends = np.cumsum(packets)
    lasts, flow, before = [], 0, 0
    while flow < len(packets):
        flow = max(flow + 1, int(np.searchsorted(ends, before + size, "right")))
        before = int(ends[flow - 1])
        lasts.append(flow)
    return np.searchsorted(lasts, np.arange(len(packets)), "right")


def _slices(path: Any, batch_of: Ints) -> Iterator[tuple[Bytes, list[list[int]]]]:
    """Packed rows of the file, without flows of no batch; of each batch its number, rows, edges, and where they end.

    They come in pieces of row groups.
    """
    with pq.ParquetFile(path, read_dictionary=["direction"]) as file:
        for group in range(file.num_row_groups):
            for piece in file.iter_batches(SLICE_ROWS, [group], COLUMNS, use_threads=False):
                content, places = packed(piece, batch_of)
                if len(places):
                    yield content, places.tolist()


def packed(rows: pa.RecordBatch, batch_of: Ints) -> tuple[Bytes, Ints]:
    """Pack rows of `packets`, those of flows that have a batch: see `kernels.packet_records.pack`."""
    columns = {name: rows[name] if name in rows.schema.names else _unknown(name, rows) for name in COLUMNS}
    words = columns["direction"].dictionary.to_pylist()
    columns["direction"] = columns["direction"].indices
    sack = columns["sack"]
    edges_at, edges = sack.offsets.to_numpy(), sack.values.to_numpy()
    given: list[Any] = [_values(columns[name]) for name in ALWAYS]
    given += (part for name in MAYBE for part in (_values(columns[name]), _bits(columns[name])))
    room = rows.num_rows * (pr.SECTION_BYTES + pr.RECORD_BYTES) + int(edges_at[-1] - edges_at[0]) * pr.EDGE_BYTES
    content, places = empty(room, np.uint8), empty((rows.num_rows, 4))
    a2b = words.index("a2b") if "a2b" in words else -1
    given += [edges_at, edges, a2b, batch_of, content, places]
    places = places[: pr.pack(*given)]
    return content[: places[-1, 3] if len(places) else 0].copy(), places


def _unknown(name: str, rows: pa.RecordBatch) -> pa.Array:
    """A column that the table has gained since its file was written: null, as `Dataset.scan` gives it.

    Raises
    ------
    KeyError
        If it cannot be null.
    """
    wanted = tables.schema("packets").field(name)
    if not wanted.nullable:
        raise KeyError(name)
    return pa.nulls(rows.num_rows, wanted.type)


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
    content
        Them, packed.
    file
        The temporary file.
    """

    def __init__(self, content: Bytes, file: IO[bytes]) -> None:
        self.content: Bytes | None = content
        self._size = len(content)
        self._file = file
        self._offset = 0
        self.waiting = 0  # batches that have rows of it, and are not complete

    def __len__(self) -> int:
        return self._size

    def spill(self) -> None:
        """Write them to the file, if any of them still wait for others."""
        if self.waiting and self.content is not None:
            self._offset = self._file.seek(0, 2)
            self._file.write(self.content.data)
            self._file.flush()
        self.content = None  # batches that are complete have them

    def read(self, begin: int, wanted: Bytes) -> None:
        """Read some of them back."""
        if os.preadv(self._file.fileno(), [wanted.data], self._offset + begin) != len(wanted):
            raise OSError("a temporary file lost what was written to it")


class Pending:
    """A batch of whole flows: where its rows are."""

    def __init__(self) -> None:
        self._slices: list[_Slice] = []
        self._places = array("q")  # where in each slice its bytes begin and end
        self._held: list[Bytes | None] = []  # slices in memory, once it is complete
        self._rows = self._edges = 0

    def add(self, part: _Slice, begin: int, end: int, rows: int, edges: int) -> None:
        """Take in rows of a slice."""
        self._slices.append(part)
        self._places.extend((begin, end))
        self._rows += rows
        self._edges += edges
        part.waiting += 1

    def complete(self) -> Pending:
        """Note that there are no more rows to come."""
        for part in self._slices:
            part.waiting -= 1
        self._held = [part.content for part in self._slices]
        return self

    def take(self) -> Packed:
        """All of it, in the order in which it came; any thread may ask."""
        places = np.array(self._places).reshape(-1, 2)
        at = np.append(0, np.cumsum(places[:, 1] - places[:, 0])).tolist()
        content = np.empty(at[-1] + pr.SPARE_BYTES, np.uint8)
        for k, (part, held) in enumerate(zip(self._slices, self._held, strict=True)):
            begin, end = places[k].tolist()
            mine = content[at[k] : at[k + 1]]
            if held is None:
                part.read(begin, mine)
            else:
                mine[:] = held[begin:end]
        return Packed(content, self._rows, self._edges)
