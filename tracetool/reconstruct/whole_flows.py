"""The packets of one input, handed on in batches of whole flows, in memory that does not grow with the capture.

`packets` holds slices of time, each sorted by flow. They are read once, into records of fixed size: each slice is cut
by batch, and a batch is handed on when the last packet of its flows was read. What waits beyond `WAITING_ROWS` goes to
a temporary file that has no name, so that nothing is left behind whatever happens. A single flow is never cut: the
largest one sets the least memory.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tracetool.kernels.packet_records import RECORD

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: Packets in a batch, unless one flow has more.
BATCH_ROWS = 1 << 15
#: Packets that may wait in memory for the rest of their flows.
WAITING_ROWS = 1 << 17
#: Records that a cache holds while their fields are filled one by one.
CACHED_ROWS = 1 << 12
#: Fields of a record by columns of `packets`, and what stands for null.
NUMBERS = {
    "frame": ("frame", -1), "time": ("time", -1), "flow": ("flow", -1), "seq": ("seq", -1), "ack": ("ack", -1),
    "payload_bytes": ("payload", -1), "segments": ("segments", -1), "flags": ("flags", 0),
    "window_bytes": ("window", -1), "window_raw": ("window_raw", -1), "tsval": ("tsval", -1), "tsecr": ("tsecr", -1),
    "ip_id": ("ip_id", -1), "ecn": ("ecn", 0), "frame_bytes": ("frame_bytes", -1), "captured_bytes": ("captured", -1),
    "interface": ("interface", -1),
}  # fmt: skip
COLUMNS = [*NUMBERS, "direction", "sack"]


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


def whole_flows(path: Any, packets: Ints, *, parts: int = 1) -> Iterator[tuple[range, Rows]]:
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
    tuple
        The flow numbers of the batch, and their packets; slices of time follow one another, each sorted by flow.

    Examples
    --------
    >>> for flows, rows in whole_flows(path, np.array([120, 80])):  # doctest: +SKIP
    ...     print(flows, len(rows))
    """
    with tempfile.TemporaryFile() as spilled:
        for batch in batches(path, packets, spilled, parts=parts):
            yield batch.flows, batch.take()


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
    waiting: dict[int, Pending] = {}
    wanted = np.flatnonzero(packets > 0)
    numbers, starts = np.unique(batch_of[wanted], return_index=True)
    for batch, start, end in zip(numbers.tolist(), starts, np.append(starts[1:], len(wanted)), strict=False):
        flows = wanted[start:end]
        waiting[batch] = Pending(range(int(flows[0]), int(flows[-1]) + 1), int(packets[flows].sum()), spilled)
    held = 0
    for rows in _slices(path, packets):
        chosen = batch_of[rows.records["flow"]]
        cuts = np.append(np.flatnonzero(np.diff(chosen, prepend=-1)), len(rows)).tolist()
        edges = np.append(0, np.cumsum(rows.records["edges"], dtype=np.int64))
        for start, end in itertools.pairwise(cuts):
            batch = int(chosen[start])
            part = waiting[batch]
            part.add(Rows(rows.records[start:end], rows.edges[edges[start] : edges[end]]))
            held += end - start
            if part.missing == 0:
                held -= part.held
                yield waiting.pop(batch)
        full = held > WAITING_ROWS
        for part in waiting.values():
            part.spill() if full else part.keep()
        held = 0 if full else held
        del rows


def _slices(path: Any, packets: Ints) -> Iterator[Rows]:
    """Row groups of the file, without flows that are not wanted."""
    wanted = packets > 0
    pool = pa.default_memory_pool()
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=COLUMNS)
            if not wanted.all():
                rows = rows.filter(pa.array(wanted[rows["flow"].to_numpy()]))
            if rows.num_rows:
                made = records_of(rows)
                del rows
                pool.release_unused()
                yield made


def records_of(rows: pa.Table) -> Rows:
    """Rows of `packets` as records, in their order."""
    sack = rows["sack"].combine_chunks()
    columns = {name: _ints(rows[column], unknown) for column, (name, unknown) in NUMBERS.items()}
    columns["way"] = pc.not_equal(rows["direction"], "a2b").to_numpy()
    columns["edges"] = pc.fill_null(pc.list_value_length(sack), 0).to_numpy(zero_copy_only=False)
    columns["window"] = np.where(columns["window_raw"] == 0, 0, columns["window"])  # 0 needs no scale
    records = np.empty(rows.num_rows, RECORD)
    for start in range(0, len(records), CACHED_ROWS):
        part = slice(start, start + CACHED_ROWS)
        some = records[part]
        for name, values in columns.items():
            some[name] = values[part]
    return Rows(records, pc.list_flatten(sack).to_numpy(zero_copy_only=False).astype(np.int64))


def _ints(column: pa.ChunkedArray, unknown: int) -> npt.NDArray[np.integer[Any]]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if column.null_count:
        wide = pa.types.is_unsigned_integer(column.type) and unknown < 0
        column = pc.fill_null(column.cast(pa.int64()) if wide else column, unknown)
    return np.asarray(column.to_numpy())


@dataclass
class Pending:
    """A batch of whole flows: what of it is in memory, and where in the temporary file the rest is.

    Attributes
    ----------
    flows
        Their numbers, from the first to the last.
    missing
        Packets that were not read yet.
    file
        The temporary file.
    held
        Packets in memory.
    """

    flows: range
    missing: int
    file: IO[bytes]
    held: int = 0
    parts: list[Rows] = field(default_factory=list)
    stored: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, rows: Rows) -> None:
        """Take in rows of a slice."""
        self.parts.append(rows)
        self.missing -= len(rows)
        self.held += len(rows)

    def keep(self) -> None:
        """Copy what came with the last slice, so that the slice itself need not wait."""
        if self.parts and self.parts[-1].records.base is not None:
            records, edges = self.parts[-1]
            self.parts[-1] = Rows(records.copy(), edges.copy())

    def spill(self) -> None:
        """Write what is in memory to the file."""
        for records, edges in self.parts:
            self.stored.append((self.file.seek(0, 2), len(records), len(edges)))
            self.file.write(records.view(np.uint8).data)
            self.file.write(edges.view(np.uint8).data)
        if self.parts:
            self.file.flush()
        self.parts, self.held = [], 0

    def take(self) -> Rows:
        """All of it, in the order in which it came, once; any thread may ask."""
        parts, self.parts = self.parts, []
        records = np.empty(sum(n for _, n, _ in self.stored) + sum(map(len, parts)), RECORD)
        edges = np.empty(sum(n for _, _, n in self.stored) + sum(len(part.edges) for part in parts), np.int64)
        at = edge = 0
        for offset, count, several in self.stored:
            wanted = [records[at : at + count].view(np.uint8).data, edges[edge : edge + several].view(np.uint8).data]
            if os.preadv(self.file.fileno(), wanted, offset) != sum(part.nbytes for part in wanted):
                raise OSError("a temporary file lost what was written to it")
            at, edge = at + count, edge + several
        for part in parts:
            records[at : at + len(part)] = part.records
            edges[edge : edge + len(part.edges)] = part.edges
            at, edge = at + len(part), edge + len(part.edges)
        return Rows(records, edges)
