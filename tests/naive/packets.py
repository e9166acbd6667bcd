"""Twin of `tracetool.kernels.packet_records` and `packet_columns`: rows of `packets`, sorted as Python sorts them."""

from __future__ import annotations

NUMBERS = {
    "TIME": "time", "SEQ": "seq", "ACK": "ack", "PAYLOAD": "payload_bytes", "TSVAL": "tsval", "TSECR": "tsecr",
    "SEGMENTS": "segments", "WINDOW_RAW": "window_raw", "FRAME": "frame", "FRAME_BYTES": "frame_bytes",
    "CAPTURED": "captured_bytes", "IP_ID": "ip_id", "FLAGS": "flags", "WINDOW": "window_bytes",
}  # fmt: skip
KNOWN_AS = {"flags": 0, "ecn": 0}  # what is not known is -1, but for these


def value(row, name):
    """A number of a row as the kernels take it."""
    if name == "window_bytes" and row["window_raw"] == 0:
        return 0  # a window of 0 needs no scale
    return KNOWN_AS.get(name, -1) if row[name] is None else row[name]


def columns(rows):
    """Columns by name of rows in the order in which they were read, sorted by flow and frame."""
    rows = sorted(rows, key=lambda row: (row["flow"], row["frame"]))
    made = {name: [value(row, source) for row in rows] for name, source in NUMBERS.items()}
    made["flow"] = [row["flow"] for row in rows]
    made["way"] = [int(row["direction"] == "b2a") for row in rows]
    made |= {name: [value(row, name) for row in rows] for name in ("ecn", "interface")}
    made["sack"] = [row["sack"] or [] for row in rows]
    return made
