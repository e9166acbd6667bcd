"""The decoder: frames in, rows of `packets` out, flows at the end.

While packets are decoded into one group, a thread makes a table of the group before.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from tracetool.kernels import decode, flow_table, layers, records
from tracetool.packets.columns import Columns
from tracetool.packets.flow_notes import note_flows
from tracetool.packets.flow_rows import flows_table, surroundings
from tracetool.packets.notes import report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    import pyarrow as pa
    from numpy.typing import NDArray

    from tracetool.diagnostics import DiagnosticLog

#: Packets that are sorted by flow together, so that one flow is cheap to find: such a slice of time fills four row
#: groups, whose bounds leave most flows out.
SLICE = 1 << 18
_FEW = 1024  # rows that tables start with
_PIECE = 1 << 16  # flows in a piece of their table


class Decoder:
    """Turns frames into tables; what it knows of flows lasts from call to call.

    Parameters
    ----------
    name
        Value of the `input` column.
    group
        Packets in a piece of the `packets` table.

    Attributes
    ----------
    state : STATE record
        Counters: frames, packets in the current group, flows, first and last time, ...
    """

    def __init__(self, name: str, group: int = SLICE) -> None:
        self.name = name
        self._states = np.zeros(1, records.STATE)
        self.state = self._states[0]
        self.state["seed"] = int.from_bytes(os.urandom(7), "little")
        self._flows = np.zeros(_FEW, records.FLOW)
        self._sides = np.zeros(2 * _FEW, records.SIDE)
        self._flow_slots = np.full(2 * _FEW, -1, np.int32)
        self._conversations = np.zeros(_FEW, records.CONVERSATION)
        self._conversation_slots = np.full(2 * _FEW, -1, np.int32)
        self._layer_rows = np.zeros(_FEW, records.LAYER)
        self._heads = np.zeros(2, records.HEAD)
        self._layers = np.zeros(layers.MAX_LAYERS, records.LAYER)
        self._options = np.zeros(1, records.OPTIONS)
        self._edges = np.zeros(8, np.int64)
        self._notes = np.zeros(decode.NOTES, records.NOTE)
        self._packets, self._others = (np.empty(group, records.PACKET) for _ in range(2))
        self._pool, self._other_pool = (np.empty(8 * group, np.int64) for _ in range(2))  # of SACK edges
        self._columns = Columns(name, group)
        self._thread = ThreadPoolExecutor(1, "gather")
        self._table: Future[pa.Table] | None = None  # of the other packets

    def feed(self, buffer: NDArray[np.uint8], frames: NDArray[Any], count: int) -> Iterator[pa.Table]:
        """Decode frames of a buffer; yield the table of a group when the one after it is full."""
        first = 0
        while True:
            first, status = decode.decode(
                buffer, frames, first, count, self._packets, self._pool, self._heads, self._layers, self._options,
                self._edges, self._flows, self._sides, self._flow_slots, self._conversations, self._conversation_slots,
                self._layer_rows, self._notes, self._states,
            )  # fmt: skip
            if status == decode.DONE:
                return
            if status == decode.GROUP:
                yield from self._made()
                self._gather()
            elif status == decode.GROW_FLOWS:
                self._grow_flows()
            elif status == decode.GROW_CONVERSATIONS:
                self._conversations = _longer(self._conversations)
                self._conversation_slots = self._rehashed(
                    self._conversations, int(self.state["conversations"]), self._conversation_slots
                )
            else:
                self._layer_rows = _longer(self._layer_rows)

    def _gather(self) -> None:
        """Have the table made of the packets so far."""
        try:
            self._table = self._thread.submit(self._columns.table, *self._full())
        except BaseException:  # an interruption while the thread starts: the process would wait for it, and it for work
            self._thread.shutdown(wait=False)
            raise

    def _made(self) -> Iterator[pa.Table]:
        """Wait for the table that is being made, if any."""
        if self._table is not None:
            yield self._table.result()

    def _full(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Give away the packets and edges so far; the next ones go where those were that are a table by now."""
        packets, edges = self._packets[: int(self.state["packets"])], self._pool[: int(self.state["edges"])]
        self._packets, self._others = self._others, self._packets
        self._pool, self._other_pool = self._other_pool, self._pool
        self.state["packets"] = 0
        self.state["edges"] = 0
        return packets, edges

    def _grow_flows(self) -> None:
        self._flows = _longer(self._flows)
        self._sides = _longer(self._sides)
        self._flow_slots = self._rehashed(self._flows, int(self.state["flows"]), self._flow_slots)

    def _rehashed(self, rows: NDArray[Any], count: int, old: NDArray[np.int32]) -> NDArray[np.int32]:
        slots = np.full(2 * len(rows), -1, np.int32)
        flow_table.rehash(rows, count, old, slots, int(self.state["seed"]))
        return slots

    def finish(self, log: DiagnosticLog) -> Iterator[tuple[str, pa.Table]]:
        """Yield the last packets and the flows; report what was odd."""
        yield from (("packets", table) for table in self._made())
        if self.state["packets"]:
            yield "packets", self._columns.table(*self._full())
        self._thread.shutdown()
        count = int(self.state["flows"])
        flows, sides = self._flows[:count], self._sides[: 2 * count]
        around = surroundings(flows, self._layer_rows)
        for at in range(0, max(count, 1), _PIECE):
            rows = slice(at, at + _PIECE)
            yield "flows", flows_table(flows[rows], sides[2 * at :][: 2 * _PIECE], around[rows], self.name, at)
        note_flows(flows, sides, around, log)
        report(self._notes, log)


def _longer(rows: NDArray[Any]) -> NDArray[Any]:
    longer = np.zeros(2 * len(rows), rows.dtype)
    longer[: len(rows)] = rows
    return longer
