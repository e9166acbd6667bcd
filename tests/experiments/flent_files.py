"""Synthetic Flent files with totals that are known beforehand, in the shape of version 4."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

STEP_S = 0.2


@dataclass
class Transfer:
    """One TCP series: its name, the host at the far end, its mean in Mbit/s, and ss samples if wanted."""

    name: str
    host: str
    mean_mbit: float
    rtts_ms: list[float] = field(default_factory=list)


def flent_file(
    transfers: list[Transfer],
    pings_ms: list[float | None],
    *,
    title: str = "",
    length_s: int = 10,
    start_s: int = 1_600_000_000,
    gap: bool = False,
    metadata: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A data file: raw values at 5 Hz, their interpolation as results, means as the tools would tell them.

    ``gap`` leaves out every second value of the grid, so that sums over it are wrong and the means are not.
    """
    raw: dict[str, list[dict[str, Any]]] = {}
    series_meta: dict[str, dict[str, Any]] = {}
    for number, transfer in enumerate(transfers):
        values: list[dict[str, Any]] = [
            {"t": start_s + step * STEP_S, "dur": STEP_S, "val": transfer.mean_mbit}
            for step in range(0, int(length_s / STEP_S), 2 if gap else 1)
        ]
        values += [
            {"t": start_s + place * 0.1 + 0.05, "tcp_cwnd": 10 + place, "tcp_rtt": rtt, "tcp_rtt_var": 1.5}
            for place, rtt in enumerate(transfer.rtts_ms)
        ]
        raw[transfer.name] = sorted(values, key=lambda value: value["t"])
        series_meta[transfer.name] = {
            "COMMAND": f"/usr/bin/netperf -P 0 -D -0.20 -4 -H {transfer.host} -p 12865 -t TCP_STREAM -l {length_s}",
            "IDX": number,
            "MEAN_VALUE": transfer.mean_mbit,
            "RUNNER": "NetperfDemoRunner",
            "UNITS": "Mbits/s",
        }
    raw["Ping (ms) ICMP"] = [
        {"seq": float(seq), "t": start_s + seq * STEP_S, "val": value}
        for seq, value in enumerate(pings_ms)
        if value is not None
    ]
    series_meta["Ping (ms) ICMP"] = {"COMMAND": "/usr/bin/fping -D -p 200", "RUNNER": "PingRunner", "UNITS": "ms"}
    grid = [round(step * STEP_S, 3) for step in range(int(length_s / STEP_S))]
    moment = datetime.fromtimestamp(start_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    facts = {
        "BATCH_NAME": None, "DATA_FILENAME": "x.flent.gz", "FLENT_VERSION": "2.1.1", "HOST": transfers[0].host,
        "HOSTS": sorted({transfer.host for transfer in transfers}), "IP_VERSION": 4, "LENGTH": length_s,
        "LOCAL_HOST": "client", "NAME": "synthetic", "SERIES_META": series_meta, "STEP_SIZE": STEP_S, "T0": moment,
        "TIME": moment, "TITLE": title, "TOTAL_LENGTH": length_s, **(metadata or {}),
    }  # fmt: skip
    results = {name: [_at(values, start_s + x) for x in grid] for name, values in raw.items()}
    return {"metadata": facts, "raw_values": raw, "results": results, "version": 4, "x_values": grid}


def _at(values: list[dict[str, Any]], time: float) -> float | None:
    """The grid's value: that of a raw value at this very step, else a gap."""
    return next((value.get("val") for value in values if abs(value["t"] - time) < STEP_S / 4 and "val" in value), None)


def write(path: Path, file: dict[str, Any]) -> Path:
    """Write as Flent does: sorted keys, indented, compressed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(file, indent=2, sort_keys=True).encode()))
    return path
