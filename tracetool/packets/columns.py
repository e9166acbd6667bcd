"""Packet records as a table: sorted by flow, gathered into columns, with a validity bitmap only where a null is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tracetool import tables
from tracetool.kernels import gather
from tracetool.kernels.records import HAS_ACK, HAS_IP_ID, HAS_SACK, HAS_TCP, HAS_TIMESTAMPS, HAS_WINDOW

if TYPE_CHECKING:
    from numpy.typing import NDArray

_COLUMNS = {
    "frame": "i8", "time": "i8", "flow": "i4", "direction": "i1", "protocol": "i1", "seq": "i8", "ack": "i8",
    "payload_bytes": "i8", "segments": "i4", "flags": "u2", "window_bytes": "i8", "window_raw": "u2", "tsval": "i8",
    "tsecr": "i8", "offsets": "i4", "edges": "i8", "ip_id": "i4", "ttl": "u1", "dscp": "u1", "ecn": "u1",
    "ip_bytes": "i8", "frame_bytes": "i8", "captured_bytes": "i8", "has": "u1",
}  # fmt: skip
_KNOWN = {
    "seq": HAS_TCP, "flags": HAS_TCP, "window_raw": HAS_TCP, "ack": HAS_ACK, "window_bytes": HAS_WINDOW,
    "tsval": HAS_TIMESTAMPS, "tsecr": HAS_TIMESTAMPS, "ip_id": HAS_IP_ID, "sack": HAS_SACK,
}  # fmt: skip
_WORDS = {"direction": ("a2b", "b2a"), "protocol": ("tcp", "udp")}


def packets_table(packets: NDArray[Any], edges: NDArray[np.int64], name: str) -> pa.Table:
    """Build the rows of one group.

    Parameters
    ----------
    packets : PACKET array
        One group, in order of capture.
    edges : int64 array
        Pool of SACK edges that the records refer to.
    name
        Value of the `input` column.

    Returns
    -------
    pa.Table
        In the columns of `packets`; words are dictionary-encoded.
    """
    count = len(packets)
    order, spare = np.empty(count, np.uint32), np.empty(count, np.uint32)
    gather.order_by_flow(packets, count, order, spare)
    made = {column: np.empty(count, kind) for column, kind in _COLUMNS.items()}
    made["offsets"] = np.empty(count + 1, np.int32)
    made["edges"] = np.empty(len(edges), np.int64)
    gather.gather_columns(packets, order, count, edges, *made.values())
    arrays = [_column(field, made, count, name) for field in tables.schema("packets")]
    return pa.Table.from_arrays(arrays, names=tables.columns("packets"))


def _column(field: pa.Field, made: dict[str, NDArray[Any]], count: int, name: str) -> pa.Array:
    if field.name == "input":
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int8)), pa.array([name]))
    if field.name in _WORDS:
        return pa.DictionaryArray.from_arrays(pa.array(made[field.name]), pa.array(_WORDS[field.name]))
    validity, nulls = _validity(field.name, made["has"])
    if field.name == "sack":
        values = pa.Array.from_buffers(pa.int64(), len(made["edges"]), [None, pa.py_buffer(made["edges"])])
        offsets = pa.py_buffer(made["offsets"])
        return pa.Array.from_buffers(field.type, count, [validity, offsets], nulls, children=[values])
    return pa.Array.from_buffers(field.type, count, [validity, pa.py_buffer(made[field.name])], nulls)


def _validity(column: str, has: NDArray[np.uint8]) -> tuple[pa.Buffer | None, int]:
    bit = _KNOWN.get(column)
    if bit is None or not len(has):
        return None, 0
    bitmap = np.empty((len(has) + 7) // 8, np.uint8)
    nulls = gather.pack_bits(has, len(has), bit, bitmap)
    return (pa.py_buffer(bitmap), nulls) if nulls else (None, 0)
