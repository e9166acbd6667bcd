"""Packet records as a table: sorted by flow, gathered into columns, with a validity bitmap only where a null is."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tracetool import tables
from tracetool.kernels import gather
from tracetool.kernels.records import HAS_ACK, HAS_INTERFACE, HAS_IP_ID, HAS_SACK, HAS_TCP, HAS_TIMESTAMPS, HAS_WINDOW

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Columns as `tracetool.kernels.gather.gather_columns` takes them.
_COLUMNS = {
    "frame": "i8", "time": "i8", "flow": "i4", "direction": "i1", "protocol": "i1", "seq": "i8", "ack": "i8",
    "payload_bytes": "i8", "segments": "i4", "flags": "u2", "window_bytes": "i8", "window_raw": "u2", "tsval": "i8",
    "tsecr": "i8", "offsets": "i4", "edges": "i8", "ip_id": "i4", "ttl": "u1", "dscp": "u1", "ecn": "u1",
    "ip_bytes": "i8", "frame_bytes": "i8", "captured_bytes": "i8", "interface": "i4", "has": "u1",
}  # fmt: skip
_KNOWN = {
    "seq": HAS_TCP, "flags": HAS_TCP, "window_raw": HAS_TCP, "ack": HAS_ACK, "window_bytes": HAS_WINDOW,
    "tsval": HAS_TIMESTAMPS, "tsecr": HAS_TIMESTAMPS, "ip_id": HAS_IP_ID, "sack": HAS_SACK,
    "interface": HAS_INTERFACE,
}  # fmt: skip
_WORDS = {"direction": ("a2b", "b2a"), "protocol": ("tcp", "udp")}


class Columns:
    """Makes tables of packet records; reuses the memory of those that nobody holds any more.

    (Fresh memory is zeroed page by page by the kernel, which costs as much as filling it.)

    Parameters
    ----------
    name
        Value of the `input` column.
    group
        Largest number of rows of a table.
    """

    def __init__(self, name: str, group: int) -> None:
        self._name = name
        self._group = group
        self._free: dict[str, list[NDArray[Any]]] = {}
        self._order, self._keys, self._spare = (np.empty(group, np.uint32) for _ in range(3))
        self._counts = np.empty((1 << gather.BITS) + 1, np.int64)

    def _take(self, kind: str, count: int) -> NDArray[Any]:
        """Lend memory; it comes back by itself when nothing refers to it any more."""
        size = self._group + 1
        if count > size:
            return np.empty(count, kind)
        free = self._free.setdefault(kind, [])
        base = free.pop() if free else np.empty(size, kind)
        lent = base[:count]
        weakref.finalize(lent, free.append, base).atexit = False
        return lent

    def table(self, packets: NDArray[Any], edges: NDArray[np.int64]) -> pa.Table:
        """Build the rows of one group.

        Parameters
        ----------
        packets : PACKET array
            One group, in order of capture.
        edges : int64 array
            Pool of SACK edges that the records refer to.

        Returns
        -------
        pa.Table
            In the columns of `packets`; words are dictionary-encoded.
        """
        count = len(packets)
        gather.order_by_flow(packets, count, self._order, self._keys, self._spare, self._counts)
        lengths = {"offsets": count + 1, "edges": len(edges)}
        made = {name: self._take(kind, lengths.get(name, count)) for name, kind in _COLUMNS.items()}
        gather.gather_columns(packets, self._order, count, edges, *made.values())
        bitmaps = {bit: self._bitmap(made["has"], bit) for bit in set(_KNOWN.values())}
        arrays = [self._column(field, made, bitmaps, count) for field in tables.schema("packets")]
        return pa.Table.from_arrays(arrays, names=tables.columns("packets"))

    def _column(
        self,
        field: pa.Field,
        made: dict[str, NDArray[Any]],
        bitmaps: dict[int, tuple[pa.Buffer | None, int]],
        count: int,
    ) -> pa.Array:
        if field.name == "input":
            return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int8)), pa.array([self._name]))
        if field.name in _WORDS:
            codes = pa.Array.from_buffers(pa.int8(), count, [None, pa.py_buffer(made[field.name])])
            return pa.DictionaryArray.from_arrays(codes, pa.array(_WORDS[field.name]), safe=False)
        validity, nulls = bitmaps[_KNOWN[field.name]] if field.name in _KNOWN else (None, 0)
        if field.name == "sack":
            values = pa.Array.from_buffers(pa.int64(), len(made["edges"]), [None, pa.py_buffer(made["edges"])])
            offsets = pa.py_buffer(made["offsets"])
            return pa.Array.from_buffers(field.type, count, [validity, offsets], nulls, children=[values])
        return pa.Array.from_buffers(field.type, count, [validity, pa.py_buffer(made[field.name])], nulls)

    def _bitmap(self, has: NDArray[np.uint8], bit: int) -> tuple[pa.Buffer | None, int]:
        bitmap = np.empty((len(has) + 7) // 8, np.uint8)
        nulls = gather.pack_bits(has, len(has), bit, bitmap)
        return (pa.py_buffer(bitmap), nulls) if nulls else (None, 0)
