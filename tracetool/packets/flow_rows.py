"""Flow records as rows of `flows`."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tracetool import tables
from tracetool.kernels import layer_names as kind
from tracetool.kernels import records as mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_LAYERS = {
    kind.VLAN: "vlan", kind.MPLS: "mpls", kind.PPPOE: "pppoe", kind.GRE: "gre", kind.IPIP: "ip", kind.VXLAN: "vxlan",
    kind.GENEVE: "geneve", kind.GTP: "gtp", kind.TEREDO: "teredo",
}  # fmt: skip
_NUMBERED = frozenset({kind.VLAN, kind.MPLS, kind.PPPOE, kind.VXLAN, kind.GENEVE, kind.GTP})


def flows_table(
    flows: NDArray[Any], sides: NDArray[Any], around: Sequence[str | None], name: str, first: int
) -> pa.Table:
    """Build rows of `flows`.

    Parameters
    ----------
    flows : FLOW array
        In order of their first packets.
    sides : SIDE array
        Two for each flow.
    around
        What `surroundings` says of them.
    name
        Value of the `input` column.
    first
        Number of the first one.
    """
    a, b = sides[0::2], sides[1::2]
    marks = flows["marks"]
    tcp = flows["protocol"] == 6
    count = len(flows)

    def has(bit: int) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = (marks & bit) != 0
        return found

    def where(values: NDArray[Any], known: NDArray[np.bool_]) -> pa.Array:
        return pa.array(values, mask=~known)

    syns = has(mark.SYN) & has(mark.SYN_ACK)
    any_syn = (a["marks"] | b["marks"]) & mark.SIDE_SYN != 0
    both = a["marks"] & b["marks"]
    one = _lacking(a, b)
    fins = both & mark.FIN != 0
    known_base = [(side["marks"] & mark.BASE != 0) & tcp for side in (a, b)]
    columns = {
        "input": pa.repeat(name, count),
        "flow": np.arange(first, first + count, dtype=np.int32),
        "stream": flows["stream"],
        "protocol": np.where(tcp, "tcp", "udp"),
        "addr_a": _addresses(flows, "a"),
        "port_a": flows["port_a"].astype(np.int32),
        "addr_b": _addresses(flows, "b"),
        "port_b": flows["port_b"].astype(np.int32),
        "encapsulation": pa.array(around, pa.string()),
        "start": _times(flows["start"]),
        "end": _times(flows["end"]),
        "packets_a2b": a["packets"],
        "packets_b2a": b["packets"],
        "payload_bytes_a2b": a["payload"],
        "payload_bytes_b2a": b["payload"],
        "handshake": where(np.where(syns & has(mark.HANDSHAKE), "full", np.where(any_syn, "partial", "none")), tcp),
        "close": where(np.where(fins & ~has(mark.RST), "fin", np.where(has(mark.RST), "rst", "open")), tcp),
        "mss_a_bytes": where(a["mss"], a["mss"] >= 0),
        "mss_b_bytes": where(b["mss"], b["mss"] >= 0),
        "window_scale_a": _scale(a),
        "window_scale_b": _scale(b),
        "sack_permitted": where(
            has(mark.SACKS) | (both & mark.SACK_PERMITTED != 0),
            tcp & (has(mark.SACKS) | (both & mark.SACK_PERMITTED != 0) | one(mark.SACK_PERMITTED)),
        ),
        "timestamps": where(
            has(mark.TIMESTAMPS) | (both & mark.SYN_TIMESTAMPS != 0), tcp & _timestamps_known(flows, a, b)
        ),
        "ecn": where(
            has(mark.ECN_GRANTED), tcp & (syns | has(mark.ECN_GRANTED) | (has(mark.SYN) & ~has(mark.ECN_ASKED)))
        ),
        "handshake_rtt_ns": where(flows["handshake_rtt"], flows["handshake_rtt"] >= 0),
        "isn_a": where(a["base"], known_base[0]),
        "isn_b": where(b["base"], known_base[1]),
        "mptcp": where(has(mark.MPTCP), tcp),
        "fast_open": where(has(mark.FAST_OPEN), tcp),
    }
    arrays = {
        key: value if isinstance(value, pa.Array) else pa.array(np.ascontiguousarray(value))
        for key, value in columns.items()
    }
    return tables.cast("flows", pa.table(arrays))


def _lacking(a: NDArray[Any], b: NDArray[Any]) -> Any:
    """Whether a side's SYN was seen without an option, which then is not in use."""

    def lacks(bit: int) -> NDArray[np.bool_]:
        there, here = ((side["marks"] & mark.SIDE_SYN != 0) & (side["marks"] & bit == 0) for side in (a, b))
        lacking: NDArray[np.bool_] = there | here
        return lacking

    return lacks


def _timestamps_known(flows: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """In use or not is known from both SYNs, from one without the option, or from any later segment."""
    seen = a["packets"] + b["packets"]
    syn_packets = ((a["marks"] & mark.SIDE_SYN != 0).astype(np.int64)) + (b["marks"] & mark.SIDE_SYN != 0)
    later = (seen > syn_packets) & (flows["marks"] & mark.SYN_AGAIN == 0)
    known: NDArray[np.bool_] = (
        later | _lacking(a, b)(mark.SYN_TIMESTAMPS) | (a["marks"] & b["marks"] & mark.SYN_TIMESTAMPS != 0)
    )
    return known


def _scale(mine: NDArray[Any]) -> pa.Array:
    """Shift sent; 0 where the SYN came without the option, null where it was not seen."""
    seen = mine["marks"] & mark.SIDE_SYN != 0
    return pa.array(np.maximum(mine["shift"], 0).astype(np.uint8), mask=~seen)


def _times(values: NDArray[np.int64]) -> pa.Array:
    made = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.timestamp("ns", "UTC"), len(values), [None, made])


def _address(high: int, low: int, version: int) -> str:
    if version == 4:
        return socket.inet_ntoa(low.to_bytes(4))
    return socket.inet_ntop(socket.AF_INET6, struct.pack("!qq", high, low))


def _addresses(flows: NDArray[Any], side: str) -> pa.Array:
    known: dict[tuple[int, int, int], str] = {}
    texts = []
    for key in zip(flows[f"{side}0"].tolist(), flows[f"{side}1"].tolist(), flows["version"].tolist(), strict=True):
        text = known.get(key)
        if text is None:
            text = known[key] = _address(*key)
        texts.append(text)
    return pa.array(texts, pa.string())


def surroundings(flows: NDArray[Any], layers: NDArray[Any]) -> list[str | None]:
    """Name the layers around each flow; None where there are none.

    Parameters
    ----------
    flows : FLOW array
        Those that are asked about.
    layers : LAYER array
        Layers that they refer to.
    """
    texts: list[str | None] = [None] * len(flows)
    for row in np.flatnonzero(flows["layers"]).tolist():
        start = int(flows["layers_at"][row])
        texts[row] = " / ".join(_layer(layer) for layer in layers[start : start + int(flows["layers"][row])])
    return texts


def _layer(layer: Any) -> str:
    number = int(layer["kind"])
    text = _LAYERS[number]
    value = int(layer["value"])
    if number in _NUMBERED or (number == kind.GRE and value):
        text += f" {value}"
    version = int(layer["version"])
    if version:
        low = _address(int(layer["low0"]), int(layer["low1"]), version)
        text += f" {low}-{_address(int(layer['high0']), int(layer['high1']), version)}"
    return text
