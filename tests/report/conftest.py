"""What the tests of the pictures share: frames made by hand, golden files, a reader of PNG pixels."""

from __future__ import annotations

import json
import os
import struct
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

GOLDEN = Path(__file__).parent / "golden"
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def golden():
    """Compare with a golden file; TRACETOOL_UPDATE_GOLDEN=1 writes it instead (look at the diff)."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("TRACETOOL_UPDATE_GOLDEN"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture
def golden_spec(golden):
    """Compare a Vega-Lite specification, without the parts that a new Altair changes."""

    def check(name: str, spec: dict) -> None:
        kept = {key: value for key, value in spec.items() if key not in ("$schema", "config", "datasets")}
        golden(name, json.dumps(kept, indent=1, sort_keys=True) + "\n")

    return check


@pytest.fixture
def pixels():
    """Decode a PNG of 8-bit RGBA into an array of shape (rows, columns, 4)."""
    return decode_png


def decode_png(data: bytes) -> np.ndarray:
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, body, header = 8, b"", b""
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        chunk = data[at + 8 : at + 8 + length]
        header, body = (chunk, body) if kind == b"IHDR" else (header, body + chunk if kind == b"IDAT" else body)
        at += 12 + length
    width, height, depth, color = struct.unpack_from(">IIBB", header)
    assert (depth, color) == (8, 6)
    raw = zlib.decompress(body)
    stride = 4 * width
    rows, above = [], bytes(stride)
    for start in range(0, len(raw), stride + 1):
        above = _unfilter(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), above)
        rows.append(above)
    return np.frombuffer(b"".join(rows), np.uint8).reshape(height, width, 4).astype(np.int64)


def _unfilter(kind: int, line: bytearray, above: bytes) -> bytes:
    for i in range(len(line) if kind else 0):
        left, up, corner = (line[i - 4], above[i], above[i - 4]) if i >= 4 else (0, above[i], 0)
        if kind == 1:
            guess = left
        elif kind == 2:
            guess = up
        elif kind == 3:
            guess = (left + up) // 2
        else:
            base = left + up - corner
            guess = min((left, up, corner), key=lambda value: abs(base - value))
        line[i] = (line[i] + guess) & 255
    return bytes(line)


def at(seconds: float) -> datetime:
    return START + timedelta(microseconds=round(seconds * 1e6))


@pytest.fixture
def samples() -> pl.DataFrame:
    """One flow: slow start to 64, HyStart's exit, a loss at 6 s that halves it, growth again."""
    rows = []
    for step in range(240):
        seconds = step * 0.05
        if seconds < 1:
            cwnd, ssthresh, phase = min(64, round(10 * 2 ** (seconds * 3))), None, "slow_start"
        elif seconds < 6:
            cwnd, ssthresh, phase = 64 + round((seconds - 1) * 8), 64, "congestion_avoidance"
        elif seconds < 6.3:
            cwnd, ssthresh, phase = 52, 52, "recovery"
        else:
            cwnd, ssthresh, phase = 52 + round((seconds - 6.3) * 6), 52, "congestion_avoidance"
        rows.append((0, "a2b", "tcp_probe", at(seconds), cwnd, ssthresh, phase, cwnd * 1448 - 700, 1448))
    schema = {
        "flow": pl.Int32,
        "direction": pl.String,
        "origin": pl.String,
        "time": pl.Datetime("ns", "UTC"),
        "cwnd_segments": pl.Int64,
        "ssthresh_segments": pl.Int64,
        "phase": pl.String,
        "inflight_bytes": pl.Int64,
        "mss_bytes": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


@pytest.fixture
def marks() -> dict[str, pl.DataFrame]:
    """Events, recoveries and slow starts that belong to `samples`."""
    time = pl.Datetime("ns", "UTC")
    events = pl.DataFrame(
        {
            "flow": [0, 0],
            "time": [at(6.01), at(6.02)],
            "kind": ["retransmission", "spurious_retransmission"],
            "trigger": ["fast", None],
            "frame": [1042, 1050],
        }
    )
    recoveries = pl.DataFrame(
        {
            "flow": [0],
            "start": [at(6.0)],
            "end": [at(6.3)],
            "kind": ["fast"],
            "cwnd_before_segments": [104],
            "ssthresh_after_segments": [52],
            "lost_segments": [2],
            "undone": [False],
        }
    )
    slow_starts = pl.DataFrame(
        {"flow": [0], "start": [at(0)], "end": [at(1.0)], "exit_cause": ["hystart_train"], "verdict": ["too_early"]}
    )
    return {
        "events": events.with_columns(pl.col("time").cast(time)),
        "recoveries": recoveries.with_columns(pl.col("start", "end").cast(time)),
        "slow_starts": slow_starts.with_columns(pl.col("start", "end").cast(time)),
    }
