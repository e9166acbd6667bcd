"""What the report page says in words and tables, as plain rows: no markup, everything from data still unescaped.

The page's template escapes all of it. Numbers come from the tables of the dataset; here they only get a form that
people read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tracetool.report.flow_table import flow_table, seen_by
from tracetool.report.plain import printable
from tracetool.report.selection import one_view, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracetool.dataset import Dataset
    from tracetool.reconstruct.connections import Connection

UNKNOWN = "\N{EN DASH}"
MAX_FLOWS = 5_000
"""Rows of the table of flows; a page with more would be slow to open, and `tracetool flows` has them all."""
MAX_ROWS = 200
"""Rows of every other table."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its text, and the number that it sorts by (None: it sorts as text)."""

    text: str
    order: float | None = None


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table with its headings; `left_out` says how many rows were too many."""

    headings: tuple[str, ...]
    rows: list[list[Cell]]
    left_out: int = 0

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers: those stand at the right, and so do the dashes for unknown ones."""
        return [any(row[place].order is not None for row in self.rows) for place in range(len(self.headings))]


def text(value: Any) -> Cell:
    """Return a cell of text, a dash for null.

    Examples
    --------
    >>> text(None).text == UNKNOWN
    True
    """
    return Cell(UNKNOWN if value is None else printable(str(value)))


def number(value: float | None, form: str = ",.0f", factor: float = 1.0) -> Cell:
    """Return a cell of a number times `factor`, a dash for null.

    Examples
    --------
    >>> number(1_234_567, ",.1f", 1e-6).text
    '1.2'
    """
    return Cell(UNKNOWN) if value is None else Cell(format(value * factor, form), float(value))


def inputs_sheet(dataset: Dataset) -> Sheet:
    """Return the inputs with what limits them: cuts, drops, damage, offloads."""
    table = dataset.read("inputs")
    merged = (
        dataset.scan("packets")
        .group_by("input")
        .agg(merged=(pl.col("segments") > 1).sum(), cut=(pl.col("captured_bytes") < pl.col("frame_bytes")).sum())
        .collect()
    )
    table = table.join(merged, on="input", how="left", maintain_order="left")
    found = []
    for row in table.iter_rows(named=True):
        span = None if None in (row["first_time"], row["last_time"]) else row["last_time"] - row["first_time"]
        found.append(
            [
                text(row["input"]),
                text(row["format"]),
                number(row["records"]),
                text(row["first_time"] and row["first_time"].isoformat(" ", "milliseconds")),
                number(None if span is None else span.total_seconds(), ",.3f"),
                number(row["snaplen_bytes"]),
                number(row["capture_drops"]),
                number(row["cut"]),
                number(row["merged"]),
                text({True: "damaged", False: "whole", None: None}[row["damaged"]]),
            ]
        )
    headings = ("input", "format", "records", "begins (UTC)", "lasts (s)", "snaplen (B)", "capture drops")
    return Sheet((*headings, "cut packets", "super-frames", "state"), found[:MAX_ROWS], max(0, len(found) - MAX_ROWS))


def diagnostics_sheet(dataset: Dataset) -> Sheet:
    """Return the oddities met, gravest first, equal ones counted."""
    order = pl.col("severity").cast(pl.String).replace_strict({"error": 0, "warning": 1, "info": 2}, default=3)
    table = (
        dataset.scan("diagnostics")
        .group_by("input", "severity", "code")
        .agg(
            times=pl.col("count").fill_null(1).sum(),
            message=pl.col("message").first(),
            frame=pl.col("frame").min(),
            offset=pl.col("offset_bytes").min(),
            line=pl.col("line").min(),
        )
        .with_columns(order=order)
        .sort("order", "input", "code")
        .collect()
    )
    found = []
    for row in table.head(MAX_ROWS).iter_rows(named=True):
        places = [
            f"{name} {row[key]:,}"
            for key, name in (("frame", "frame"), ("line", "line"), ("offset", "byte"))
            if row[key] is not None
        ]
        found.append(
            [
                text(row["severity"]),
                text(row["input"]),
                text(row["code"]),
                text(row["message"]),
                text(places[0] if places else None),
                number(row["times"]),
            ]
        )
    return Sheet(("severity", "input", "code", "what", "first at", "times"), found, max(0, len(table) - MAX_ROWS))


def flows_sheet(dataset: Dataset) -> Sheet:
    """Return one row per connection and its heavier direction, the most payload first."""
    flows = flow_table(dataset).with_columns(payload=pl.max_horizontal("payload_bytes_a2b", "payload_bytes_b2a"))
    flows = flows.sort("payload", descending=True, nulls_last=True, maintain_order=True)
    exits = dataset.read("slow_starts").with_columns(pl.col("direction").cast(pl.String))
    exits = exits.sort("episode").unique(["input", "flow", "direction"], keep="first")
    keys = ["input", "flow", "direction"]
    flows = flows.join(exits.select(*keys, "exit_cause", "verdict"), on=keys, how="left", maintain_order="left")
    found = [_flow_row(row) for row in flows.head(MAX_FLOWS).iter_rows(named=True)]
    headings = (
        "input",
        "flow",
        "stream",
        "protocol",
        "sender",
        "receiver",
        "seen by",
        "lasts (s)",
        "payload (MB)",
        "goodput (Mbit/s)",
    )
    more = (
        "resent (%)",
        "min RTT (ms)",
        "mean RTT (ms)",
        "congestion control",
        "left slow start by",
        "vantage",
        "closed",
    )
    return Sheet((*headings, *more), found, max(0, len(flows) - MAX_FLOWS))


def _flow_row(row: dict[str, Any]) -> list[Cell]:
    near, far = ("a", "b") if row["direction"] == "a2b" else ("b", "a")
    span = None if None in (row["start"], row["end"]) else (row["end"] - row["start"]).total_seconds()
    segments, again = row.get("data_segments"), row.get("retransmitted_segments")
    share = 100 * again / segments if segments and again is not None else None
    confidence = row.get("cc_confidence")
    cc = row.get("cc") and (f"{row['cc']} ({confidence:.0%})" if confidence is not None else row["cc"])
    return [
        text(row["input"]),
        number(row["flow"], ".0f"),
        number(row["stream"], ".0f"),
        text(row["protocol"]),
        text(_end(row, near)),
        text(_end(row, far)),
        text(seen_by(row["origins"])),
        number(span, ",.3f"),
        number(row["payload"], ",.3f", 1e-6),
        number(row.get("goodput_bps"), ",.3f", 1e-6),
        number(share, ".3f"),
        number(row.get("rtt_min_ns"), ",.3f", 1e-6),
        number(row.get("rtt_mean_ns"), ",.3f", 1e-6),
        text(cc),
        text(row["exit_cause"] and row["exit_cause"].replace("_", " ")),
        text(row["vantage"]),
        text(row["close"]),
    ]


def _end(row: dict[str, Any], side: str) -> str | None:
    address, port = row[f"addr_{side}"], row[f"port_{side}"]
    if address is None:
        return None
    host = f"[{address}]" if ":" in address else address
    return host if port is None else f"{host}:{port}"


def slow_start_words(dataset: Dataset, connection: Connection) -> list[str]:
    """Return a sentence for each slow-start episode: how it ended, how that fits the path, and the evidence."""
    found = rows(dataset, "slow_starts", one_view(connection)).sort("input", "episode")
    return [_episode_words(row) for row in found.head(MAX_ROWS).iter_rows(named=True)]


def _episode_words(row: dict[str, Any]) -> str:
    begun = row["start"]
    where = f"Slow start {row['episode'] + 1}" + (f" ({row['kind']})" if row.get("kind") else "")
    if row["end"] is None:
        words = [f"{where} never ended within the trace."]
    else:
        took = f" after {(row['end'] - begun).total_seconds():.3f} s" if begun is not None else ""
        rounds = f" and {row['rounds']} round trips" if row["rounds"] is not None else ""
        cause = (row["exit_cause"] or "unknown").replace("_", " ")
        sure = f", confidence {row['confidence']:.0%}" if row["confidence"] is not None else ""
        words = [f"{where} ended{took}{rounds} (cause: {cause}{sure})."]
    if row["cwnd_exit_segments"] is not None:
        words.append(f"cwnd was then {row['cwnd_exit_segments']:,} segments" + _against_path(row) + ".")
    if row["verdict"]:
        words.append(f"Verdict: {row['verdict'].replace('_', ' ')}.")
    if row.get("evidence"):
        words.append(f"Evidence: {row['evidence']}.".replace("..", "."))
    return printable(f"{row['input']}: " + " ".join(words), limit=2_000)


def _against_path(row: dict[str, Any]) -> str:
    if row["bdp_segments"] is None or row["exit_to_bdp"] is None:
        return ""
    return f", {row['exit_to_bdp']:.2f} of the path's bandwidth-delay product of {row['bdp_segments']:,.0f} segments"


def recoveries_sheet(dataset: Dataset, connection: Connection) -> Sheet:
    """Return the recoveries of a connection."""
    table = rows(dataset, "recoveries", one_view(connection))
    found = []
    for row in table.head(MAX_ROWS).iter_rows(named=True):
        lasted = None if row["end"] is None else (row["end"] - row["start"]).total_seconds() * 1e3
        found.append(
            [
                text(row["input"]),
                text(row["start"].isoformat(" ", "microseconds")[11:]),
                number(lasted, ",.1f"),
                text(row["kind"]),
                number(row["cwnd_before_segments"]),
                number(row["ssthresh_after_segments"]),
                number(row["beta"], ".3f"),
                number(row["lost_segments"]),
                text({True: "undone", False: "", None: None}[row["undone"]]),
            ]
        )
    headings = ("input", "begins (UTC)", "lasts (ms)", "kind", "cwnd before", "ssthresh after", "beta", "lost", "")
    return Sheet(headings, found, max(0, len(table) - MAX_ROWS))


def stats_sheet(dataset: Dataset, connection: Connection) -> Sheet:
    """Return the statistics of a connection, one column per input; what no input knows is left out."""
    table = rows(dataset, "flow_stats", connection)
    names = [name for name in table.columns if name not in ("input", "flow", "direction") and table[name].count()]
    found = []
    for name in names:
        unit = "ms" if name.endswith("_ns") else ""
        label = name.removesuffix("_ns").replace("_", " ") + (f" ({unit})" if unit else "")
        found.append([text(label), *(_value(value, unit) for value in table[name])])
    return Sheet(("", *(printable(name) for name in table["input"])), found)


def _value(value: Any, unit: str) -> Cell:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return text(value)
    if unit:
        return number(value, ",.3f", 1e-6)
    return number(value) if isinstance(value, int) else number(value, ",.4g")


def frame_sheet(table: pl.DataFrame, headings: Sequence[str] = ()) -> Sheet:
    """Return a small frame as it is."""
    found = [[_value(value, "") for value in row] for row in table.head(MAX_ROWS).iter_rows()]
    return Sheet(tuple(headings) or tuple(table.columns), found, max(0, len(table) - MAX_ROWS))
