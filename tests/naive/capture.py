"""Slow, obvious twins of the capture kernels: dictionaries and slices, one packet at a time.

Plain Ethernet, raw IPv4 and IPv6 without extension headers only: what is special has tests of its own.
"""

from __future__ import annotations

import struct
from typing import Any


def walk_pcap(data: bytes, order: str = "<", tick: int = 1000) -> list[tuple[int, int, bytes]]:
    """(time, original length, frame) of each whole record after the file's header."""
    found, at = [], 24
    while at + 16 <= len(data):
        seconds, fraction, captured, original = struct.unpack_from(f"{order}IIII", data, at)
        frame = data[at + 16 : at + 16 + captured]
        if len(frame) < captured:
            break
        found.append((seconds * 10**9 + fraction * tick, original, frame))
        at += 16 + captured
    return found


def options(data: bytes) -> dict[str, Any]:
    """TCP options by name."""
    found: dict[str, Any] = {"sack": []}
    at = 0
    while at < len(data):
        kind = data[at]
        if kind == 0:
            break
        if kind == 1:
            at += 1
            continue
        if at + 2 > len(data) or data[at + 1] < 2 or at + data[at + 1] > len(data):
            found["cut"] = True
            break
        value = data[at + 2 : at + data[at + 1]]
        if kind == 2 and len(value) == 2:
            found["mss"] = int.from_bytes(value)
        elif kind == 3 and len(value) == 1:
            found["shift"] = min(value[0], 14)
        elif kind == 4 and not value:
            found["sack_permitted"] = True
        elif kind == 5 and len(value) % 8 == 0:
            found["sack"] = list(struct.unpack(f"!{len(value) // 4}I", value))
        elif kind == 8 and len(value) == 8:
            found["tsval"], found["tsecr"] = struct.unpack("!II", value)
        elif kind == 30:
            found["mptcp"] = True
        elif kind == 34 or (kind in (253, 254) and value[:2] == b"\xf9\x89"):
            found["fast_open"] = True
        at += data[at + 1]
    return found


def unwrap(value: int, base: int, near: int) -> int:
    """The number congruent to ``value - base`` modulo 2^32 that lies nearest to another one."""
    first = (value - base) % 2**32 + (near // 2**32) * 2**32
    return min((first - 2**32, first, first + 2**32), key=lambda number: (abs(number - near), number))


def order_by_flow(rows: list[tuple[int, int]]) -> list[int]:
    """Positions sorted by (flow, direction), those that are equal in their old order."""
    return sorted(range(len(rows)), key=lambda k: rows[k])


def segment(frame: bytes, link: int) -> tuple[tuple[bytes, int], tuple[bytes, int], bytes, int] | None:
    """(source, port), (target, port), TCP header and captured payload, payload length on the wire."""
    packet = frame
    if link == 1:
        if frame[12:14] not in (b"\x08\0", b"\x86\xdd"):
            return None
        packet = frame[14:]
    if packet[0] >> 4 == 4:
        size, total = (packet[0] & 15) * 4, int.from_bytes(packet[2:4])
        protocol, source, target = packet[9], packet[12:16], packet[16:20]
    else:
        size, total = 40, 40 + int.from_bytes(packet[4:6])
        protocol, source, target = packet[6], packet[8:24], packet[24:40]
    if protocol != 6:
        return None
    tcp = packet[size:]
    ports = struct.unpack("!HH", tcp[:4])
    return (source, ports[0]), (target, ports[1]), tcp, total - size - (tcp[12] >> 4) * 4


def packets(records: list[tuple[int, int, bytes]], link: int = 1) -> list[dict[str, Any]]:
    """Rows of `packets` for TCP, without the columns that only copy a header field."""
    rows = []
    current: dict[frozenset, int] = {}
    flows: list[dict[str, Any]] = []
    for number, (time, _, frame) in enumerate(records, 1):
        parts = segment(frame, link)
        if parts is None:
            continue
        here, there, tcp, payload = parts
        seq, ack = struct.unpack("!II", tcp[4:12])
        flags = int.from_bytes(tcp[12:14]) & 0x1FF
        key = frozenset([here, there])
        flow = current.get(key)
        if flow is not None and flags & 18 == 2 and flows[flow]["opened"].get(here, seq) != seq:
            flow = None
        if flow is None:
            flow = current[key] = len(flows)
            flows.append({"a": there if flags & 18 == 18 else here, "base": {}, "opened": {}})
            flows[flow].update(edge={here: 0, there: 0}, sent=set())
        state = flows[flow]
        base, edge = state["base"], state["edge"]
        # A stream is known by the last SYN-ACK's number, rows count from the last one before data.
        opened = state["opened"]
        opened[here] = seq if flags & 18 == 18 else opened.get(here, seq if flags & 2 else (seq - 1) % 2**32)
        if flags & 16:
            opened.setdefault(there, (ack - 1) % 2**32)
        if flags & 18 == 18 and here not in state["sent"] and not payload:
            base[here], edge[here] = seq, 0 if base.get(here) != seq else edge[here]
        base.setdefault(here, seq if flags & 2 else (seq - 1) % 2**32)
        relative = unwrap(seq, base[here], edge[here])
        row = {"frame": number, "time": time, "flow": flow, "seq": relative, "ack": None, "payload_bytes": payload}
        row["direction"] = "a2b" if state["a"] == here else "b2a"
        if not flags & 4:
            edge[here] = max(edge[here], relative + payload + (flags & 1) + (flags >> 1 & 1))
        if flags & 16:
            base.setdefault(there, (ack - 1) % 2**32)
            row["ack"] = unwrap(ack, base[there], edge[there])
            if not flags & 4:
                edge[there] = max(edge[there], row["ack"])
        if payload:
            state["sent"].add(here)
        said = options(tcp[20 : (tcp[12] >> 4) * 4])
        row["tsval"] = said.get("tsval")
        sack = said["sack"] if there in base else []
        row["sack"] = [unwrap(value, base[there], edge[there]) for value in sack] or None
        rows.append(row)
    return rows
