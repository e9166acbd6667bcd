"""What the flows of a capture tell about it, as diagnostics: one row of each kind, with their number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracetool.kernels import records as mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracetool.diagnostics import DiagnosticLog, Severity

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
_TEXTS: tuple[tuple[str, Severity, str], ...] = (
    ("one_direction", "warning", "have packets in one direction only: the other way was not captured"),
    ("mid_connection", "warning", "were under way when the capture began: window scales are unknown"),
    ("ports_reused", "info", "have the addresses and ports of an earlier one; each is a flow of its own"),
    ("same_addresses", "info", "have the addresses and ports of another one in another VLAN or tunnel"),
)


def note_flows(flows: NDArray[Any], sides: NDArray[Any], around: Sequence[str | None], log: DiagnosticLog) -> None:
    """Note what the TCP connections of a capture tell about it.

    Parameters
    ----------
    flows : FLOW array
        In order of their first packets.
    sides : SIDE array
        Two for each flow.
    around
        What stands around those flows that have layers, by row.
    log
        Takes ``one_direction``, ``mid_connection``, ``ports_reused`` and ``same_addresses``.
    """
    a, b = sides[0::2], sides[1::2]
    tcp = flows["protocol"] == 6
    data = a["payload"] + b["payload"] > 0
    no_syn = (a["marks"] | b["marks"]) & mark.SIDE_SYN == 0
    closed = (a["marks"] & b["marks"] & mark.FIN != 0) & (flows["marks"] & mark.RST == 0)
    silent = np.minimum(a["packets"], b["packets"]) == 0
    reused, elsewhere = _same_ends(flows, np.flatnonzero(tcp), around)
    one_way, under_way = silent & (data | no_syn | closed), no_syn & data
    found: tuple[Sequence[int] | NDArray[np.intp], ...] = (
        np.flatnonzero(tcp & one_way),
        np.flatnonzero(tcp & under_way),
        reused,
        elsewhere,
    )
    for (code, severity, text), which in zip(_TEXTS, found, strict=True):
        if count := len(which):
            first = int(which[0])
            message = f"{count} connections {text} (first: flow {first})"
            log.add(code, message, severity=severity, time=int(flows["start"][first]), count=count)


def _same_ends(
    flows: NDArray[Any], rows: NDArray[np.intp], around: Sequence[str | None]
) -> tuple[list[int], list[int]]:
    """Flows with the ends of an earlier one in the same surroundings, and flows with the ends of one in others."""
    groups: dict[Any, dict[str, list[int]]] = {}
    for row in _suspects(flows, rows).tolist():
        flow = flows[row]
        ends = sorted((int(flow[f"{s}0"]), int(flow[f"{s}1"]), int(flow[f"port_{s}"])) for s in "ab")
        group = groups.setdefault((int(flow["version"]), *ends), {})
        group.setdefault((around[row] if flow["layers"] else None) or "", []).append(row)
    reused = [row for group in groups.values() for same in group.values() for row in same[1:]]
    elsewhere = [row for group in groups.values() if len(group) > 1 for same in group.values() for row in same]
    return sorted(reused), sorted(elsewhere)


def _suspects(flows: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows whose ends have the same hash as those of another one, in order."""
    both = np.zeros(len(rows), np.uint64)
    for side in "ab":
        spread = np.zeros(len(rows), np.uint64)
        for field in (f"{side}0", f"{side}1", f"port_{side}"):
            spread = (spread ^ flows[field][rows].astype(np.uint64)) * _SPREAD
            spread ^= spread >> np.uint64(29)
        both += spread
    order = np.argsort(both)
    same = np.flatnonzero(both[order[1:]] == both[order[:-1]])
    return np.unique(rows[np.concatenate([order[same], order[same + 1]])])
