"""The packets of one input, handed on in batches of whole flows, in memory that does not grow with the capture.

`packets` holds slices of time, each sorted by flow. They are read once: each is cut by batch, and a batch is handed on
when the last packet of its flows was read. What waits beyond `WAITING_ROWS` goes to a temporary file that has no name,
so that nothing is left behind whatever happens. A single flow is never cut: the largest one sets the least memory.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

#: Packets in a batch, unless one flow has more.
BATCH_ROWS = 1 << 17
#: Packets that may wait in memory for the rest of their flows.
WAITING_ROWS = 1 << 19
COLUMNS = (
    "frame", "time", "flow", "direction", "seq", "ack", "payload_bytes", "segments", "flags", "window_bytes",
    "window_raw", "tsval", "tsecr", "sack", "ip_id", "ecn", "frame_bytes", "captured_bytes",
)  # fmt: skip


def whole_flows(path: Any, packets: npt.NDArray[np.int64], *, parts: int = 1) -> Iterator[tuple[range, pa.Table]]:
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
    ...     print(flows, rows.num_rows)
    """
    total = int(packets.sum())
    size = max(1, min(BATCH_ROWS, -(-total // parts)))
    batch_of = (np.cumsum(packets) - packets) // size  # the first packet of a flow decides
    waiting: dict[int, _Waiting] = {}
    for batch in np.unique(batch_of[packets > 0]).tolist():
        flows = np.flatnonzero(batch_of == batch)
        waiting[batch] = _Waiting(range(int(flows[0]), int(flows[-1]) + 1), int(packets[flows].sum()))
    with tempfile.TemporaryFile() as spilled:
        held = 0
        for rows in _slices(path, packets):
            flow = rows["flow"].to_numpy()
            batches = batch_of[flow]
            starts = np.flatnonzero(np.diff(batches, prepend=-1))
            for start, end in zip(starts, [*starts[1:], len(flow)], strict=True):
                batch = int(batches[start])
                held += end - start
                part = waiting[batch]
                part.add(rows.slice(start, end - start))
                if part.missing == 0:
                    held -= part.held
                    yield part.flows, waiting.pop(batch).take(spilled)
            if held > WAITING_ROWS:
                for part in waiting.values():
                    part.spill(spilled)
                held = 0
                del rows
                pa.default_memory_pool().release_unused()


def _slices(path: Any, packets: npt.NDArray[np.int64]) -> Iterator[pa.Table]:
    """Row groups of the file, without flows that are not wanted."""
    wanted = packets > 0
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=list(COLUMNS), use_threads=False)
            if not wanted.all():
                rows = rows.filter(pa.array(wanted[rows["flow"].to_numpy()]))
            if rows.num_rows:
                yield rows


@dataclass
class _Waiting:
    """A batch that is not whole yet: what is in memory, and where in the temporary file the rest is."""

    flows: range
    missing: int
    held: int = 0
    tables: list[pa.Table] = field(default_factory=list)
    stored: list[int] = field(default_factory=list)

    def add(self, rows: pa.Table) -> None:
        self.tables.append(rows)
        self.missing -= rows.num_rows
        self.held += rows.num_rows

    def spill(self, file: IO[bytes]) -> None:
        if self.tables:
            self.stored.append(file.seek(0, 2))
            rows = pa.concat_tables(self.tables).combine_chunks()
            with pa.ipc.new_stream(file, rows.schema) as stream:
                stream.write_table(rows)
            self.tables, self.held = [], 0

    def take(self, file: IO[bytes]) -> pa.Table:
        parts = []
        for offset in self.stored:
            file.seek(offset)
            parts.append(pa.ipc.open_stream(file).read_all())
        return pa.concat_tables([*parts, *self.tables])
