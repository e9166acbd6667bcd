"""Values inside qlog events and traces, which each draft writes in its own way: times, sizes, addresses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tracetool.parsers.json_text import number


def signed_ns(value: Any, unit_ns: int) -> int | None:
    """Nanoseconds of a time; strings are numbers in old drafts."""
    sign, value = (-1, value[1:]) if isinstance(value, str) and value.startswith("-") else (1, value)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value < 0:
        sign, value = -1, -value
    told = number(value, unit_ns)
    return None if told is None else sign * told


def reference_ns(value: Any) -> int:
    """A trace's reference time; its unit shows in its size."""
    if isinstance(value, dict):
        value = value.get("wall_clock_time") or value.get("epoch")
        try:
            clock = datetime.fromisoformat(str(value))
            return round((clock if clock.tzinfo else clock.replace(tzinfo=UTC)).timestamp() * 1e6) * 1000
        except (ValueError, OverflowError):
            return 0
    for factor, least in ((1e9, 1e9), (1e6, 1e11), (1e3, 1e14), (1, 1e17)):
        told = number(value)
        if told is not None and least <= told < least * 100:
            # Seconds have a fraction of up to a microsecond that a product of floats would blur.
            return round(float(value) * 1e6) * 1000 if factor == 1e9 else round(told * factor)
    return 0


def size_bytes(data: dict[str, Any]) -> int | None:
    """Bytes of a packet; drafts name the place differently."""
    for part, key in (("header", "packet_size"), ("raw", "length")):
        inner = data.get(part)
        if isinstance(inner, dict) and (size := number(inner.get(key))):
            return size
    return number(data.get("packet_size")) or None


def ends(data: dict[str, Any], *, sent: bool) -> tuple[str, str] | None:
    """Local and remote end, where an event names addresses."""
    if data.get("src_ip") and data.get("dst_ip"):  # of a connection that starts: seen from its client
        return (f"[{data['src_ip']}]:{data.get('src_port', '*')}", f"[{data['dst_ip']}]:{data.get('dst_port', '*')}")
    told = [data.get("addr_from"), data.get("addr_to")]
    found = []
    for end in told if sent else reversed(told):
        if isinstance(end, dict):
            host, port = end.get("ip_v4") or end.get("ip_v6"), end.get("port_v4") or end.get("port_v6")
            found.append(f"[{host}]:{port}")
    return (found[0], found[1]) if len(found) == 2 else None
