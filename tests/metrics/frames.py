"""Small hand-made frames in the columns of the tables."""

from __future__ import annotations

import polars as pl

SECOND = 10**9


def packets(*rows, input_name="in"):
    """Rows of ``packets`` from dicts; what a row leaves out takes a quiet default."""
    defaults = {
        "input": input_name,
        "flow": 0,
        "direction": "a2b",
        "protocol": "tcp",
        "seq": 1,
        "ack": 1,
        "payload_bytes": 0,
        "segments": 1,
        "flags": 16,
        "tsval": None,
        "tsecr": None,
        "sack": None,
        "ip_id": None,
    }
    schema = {
        "input": pl.String,
        "flow": pl.Int32,
        "direction": pl.String,
        "protocol": pl.String,
        "sack": pl.List(pl.Int64),
        **dict.fromkeys(("seq", "ack", "payload_bytes", "segments", "flags", "tsval", "tsecr", "ip_id"), pl.Int64),
        **dict.fromkeys(("ip_bytes", "frame_bytes", "frame"), pl.Int64),
        "time": pl.Datetime("ns", "UTC"),
    }
    full = []
    for number, row in enumerate(rows, 1):
        filled = defaults | {"frame": number} | row
        filled["ip_bytes"] = filled["payload_bytes"] + 40
        filled["frame_bytes"] = filled["payload_bytes"] + 54
        full.append(filled)
    return pl.DataFrame(full, schema=schema)


def rtts(*rows):
    """Rows of ``rtts``: time, rtt_ns and, if given, the method."""
    full = [
        {"input": "in", "flow": 0, "direction": "a2b", "time": time, "rtt_ns": rtt, "method": (*rest, "ack")[0]}
        for time, rtt, *rest in rows
    ]
    schema = {
        "input": pl.String,
        "flow": pl.Int32,
        "direction": pl.String,
        "time": pl.Datetime("ns", "UTC"),
        "rtt_ns": pl.Int64,
        "method": pl.String,
    }
    return pl.DataFrame(full, schema=schema)


def binned(**series):
    """A frame of bytes per bin, one column per entity."""
    length = max((len(values) for values in series.values()), default=0)
    return pl.DataFrame({"bin": list(range(length)), "start_ns": [SECOND * k for k in range(length)], **series})


def counters(*rows):
    """Rows of ``queue_counters`` of one queue: time, sent bytes, sent packets, dropped, marked."""
    names = ("time", "sent_bytes", "sent_packets", "dropped_packets", "marked_packets")
    full = [dict(zip(names, row, strict=True)) for row in rows]
    frame = pl.DataFrame(full, schema=dict.fromkeys(names, pl.Int64)).with_columns(
        pl.col("time").cast(pl.Datetime("ns", "UTC"))
    )
    names = {"input": "r", "device": "e", "handle": "1:", "parent": "root", "kind": "q"}
    return frame.with_columns(**{name: pl.lit(value) for name, value in names.items()}, is_root=True)
