"""Accuracy of the inference against the kernel's own word: the tables of `docs/inference.md`.

TRACES holds one folder per scenario with `sender.pcap.gz` (and perhaps `receiver.pcap.gz`), `tcp_probe.txt.gz` and
`scenario.json`. Only the capture is given to the inference; the kernel's log of the same flows is the truth.

    python benchmarks/accuracy.py TRACES                            the table, as Markdown
    python benchmarks/accuracy.py TRACES --capture receiver         the same for captures at the receiver
    python benchmarks/accuracy.py TRACES --derived late             the same for captures that begin in mid-connection
    python benchmarks/accuracy.py TRACES --write docs/inference.md  put all of them into the document
"""

from __future__ import annotations

import argparse
import gzip
import heapq
import json
import random
import re
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

from tracetool.ingest import ingest
from tracetool.reconstruct import reconstruct

FIRST_PORT = 5201
DERIVED = ("late", "lacking", "twice")
FILE_HEADER, RECORD_HEADER = 24, 16
NANOSECONDS = bytes.fromhex("4d3cb2a1")
AT_MOST = {"sender": "5ms", "receiver": "20ms"}
HEAD = (
    "| scenario | flow | named | cwnd: median | p90 | p99 | in bounds | ssthresh | srtt: p90 | slow start left by |\n"
    "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n"
)


def joined(inferred: pl.DataFrame, kernel: pl.DataFrame, at_most: str) -> pl.DataFrame:
    """Kernel's rows, each with the inferred sample nearest in time."""
    mine = inferred.select("time", mine=pl.struct(pl.all())).sort("time")
    both = kernel.sort("time").join_asof(mine, on="time", strategy="nearest", tolerance=at_most)
    return both.filter(pl.col("mine").is_not_null())


def measures(both: pl.DataFrame) -> dict[str, float]:
    """Errors of one flow, as parts of the true value."""
    mine = pl.col("mine").struct
    cwnd, ssthresh = pl.col("cwnd_segments"), pl.col("ssthresh_segments")
    off = (mine.field("cwnd_segments") - cwnd).abs()
    error = pl.when(off <= 1).then(0.0).otherwise(off / cwnd)
    least = cwnd // 2 + cwnd // 4  # the kernel prints no less than this outside of recovery
    guess = mine.field("ssthresh_segments")
    slack = pl.max_horizontal(ssthresh * 0.05, pl.lit(2.0))
    near = ((guess - ssthresh).abs() <= slack) | ((pl.max_horizontal(guess, least) - ssthresh).abs() <= slack)
    low, high = mine.field("cwnd_low_segments"), mine.field("cwnd_high_segments").fill_null(1 << 40)
    return both.select(
        median=error.quantile(0.5),
        p90=error.quantile(0.9),
        p99=error.quantile(0.99),
        bounds=((low <= cwnd) & (cwnd <= high)).mean(),
        ssthresh=(near.fill_null(value=False) | (guess.is_null() & ssthresh.is_null())).mean(),
        srtt=((mine.field("srtt_ns") - pl.col("srtt_ns")) / pl.col("srtt_ns")).abs().quantile(0.9),
    ).row(0, named=True)


def records(capture: bytes) -> list[bytes]:
    """Records of a classic little-endian pcap, each with its header."""
    found, at = [], FILE_HEADER
    while at + RECORD_HEADER <= len(capture):
        size = RECORD_HEADER + struct.unpack_from("<I", capture, at + 8)[0]
        found.append(capture[at : at + size])
        at += size
    return found


def when(record: bytes, units: int) -> int:
    """Time of a record, in the capture's units since the epoch."""
    seconds, fraction = struct.unpack_from("<II", record)
    return int(seconds * units + fraction)


def derive(capture: bytes, how: str) -> bytes:
    """Make a worse capture of a pcap file.

    Parameters
    ----------
    capture : bytes
        Classic little-endian pcap.
    how : {"late", "lacking", "twice"}
        The first third of its time cut off; one frame in a hundred missing; every frame again 3 microseconds later.

    Returns
    -------
    bytes
    """
    units = 10**9 if capture.startswith(NANOSECONDS) else 10**6
    whole = records(capture)
    if how == "late":
        first, last = when(whole[0], units), when(whole[-1], units)
        kept = [record for record in whole if when(record, units) >= first + (last - first) // 3]
    elif how == "lacking":
        lost = random.Random(1)
        kept = [record for record in whole if lost.random() >= 0.01]
    else:
        copies = [
            struct.pack("<II", *divmod(when(record, units) + 3 * units // 10**6, units)) + record[8:]
            for record in whole
        ]
        # frames that were written out of order stay so
        kept = list(heapq.merge(whole, copies, key=lambda record: when(record, units)))
    return capture[:FILE_HEADER] + b"".join(kept)


def measured(scenario: Path, capture: str, folder: Path, how: str | None = None) -> list[dict[str, Any]]:
    """Errors of all flows of one scenario: `measures`, and what was inferred of the flow as a whole.

    Parameters
    ----------
    scenario : Path
        Folder of the scenario.
    capture : {"sender", "receiver"}
    folder : Path
        Room for datasets.
    how : str, optional
        See `derive`.
    """
    truth = ingest([scenario / "tcp_probe.txt.gz"], folder / "kernel")
    path = scenario / f"{capture}.pcap.gz"
    if how:
        path = folder / f"{capture}.pcap"
        path.write_bytes(derive(gzip.decompress((scenario / f"{capture}.pcap.gz").read_bytes()), how))
    mine = reconstruct(ingest([path], folder / "capture"))
    flows, samples = mine.read("flows"), mine.read("samples")
    spans = {
        row["flow"]: row
        for row in mine.read("packets")
        .group_by("flow")
        .agg(first=pl.col("time").min(), last=pl.col("time").max())
        .to_dicts()
    }
    kernel_flows, kernel = truth.read("flows"), truth.read("samples").filter(origin="tcp_probe")
    found = []
    for number, spec in enumerate(json.loads((scenario / "scenario.json").read_text())["flows"]):
        port = FIRST_PORT + number
        # who sent the first packet seen is side a, not always who opened the connection
        wanted = flows.filter(
            ((pl.col("port_b") == port) | (pl.col("port_a") == port)) & (pl.col("protocol") == "tcp")
        ).with_columns(payload=pl.max_horizontal("payload_bytes_a2b", "payload_bytes_b2a"))
        if wanted.is_empty() or spec.get("udp"):
            continue
        flow = wanted.sort("payload").row(-1, named=True)
        direction, own = ("a2b", flow["port_a"]) if flow["port_b"] == port else ("b2a", flow["port_b"])
        this = (pl.col("flow") == flow["flow"]) & (pl.col("direction") == direction)
        same = kernel_flows.filter((pl.col("port_a") == own) & (pl.col("port_b") == port))
        span = spans[flow["flow"]]
        told = kernel.filter(
            pl.col("flow").is_in(same["flow"].to_list())
            & (pl.col("direction") == "a2b")
            & pl.col("time").is_between(span["first"], span["last"])
        )
        starts = mine.read("slow_starts").filter(this).sort("episode")
        rows = joined(samples.filter(this), told, AT_MOST[capture])
        found.append(
            {
                "scenario": scenario.name,
                "cc": spec["cc"],
                "named": mine.read("flow_stats").filter(this)["cc"][0],
                "exit_cause": starts["exit_cause"][0] if starts.height else None,
                "rows": rows,
                **measures(rows),
            }
        )
    return found


def line(scenario: str, cc: str, named: str, numbers: dict[str, Any], cause: str) -> str:
    """One row of the table."""
    shown = (numbers[name] for name in ("median", "p90", "p99", "bounds", "ssthresh", "srtt"))
    cells = "".join(f"| {'' if number is None else f'{number:.1%}'} " for number in shown)
    return f"| {scenario} | {cc} | {named} {cells}| {cause} |"


def table(traces: Path, capture: str, how: str | None = None) -> str:
    """Markdown table of all scenarios; below them, all rows of their flows together."""
    found: list[dict[str, Any]] = []
    for scenario in sorted(path.parent for path in traces.glob("*/scenario.json")):
        if (scenario / f"{capture}.pcap.gz").exists():
            with tempfile.TemporaryDirectory() as folder:
                found += measured(scenario, capture, Path(folder), how)
    lines = [line(flow["scenario"], flow["cc"], flow["named"], flow, flow["exit_cause"] or "") for flow in found]
    for kinds in (("cubic", "reno"), ("bbr",)):
        some = [flow for flow in found if flow["cc"] in kinds]
        if some:
            right = sum(flow["named"] == flow["cc"] for flow in some)
            together = measures(pl.concat([flow["rows"] for flow in some]))
            lines.append(line("**all rows**", ", ".join(kinds), f"{right} of {len(some)}", together, ""))
    return HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """Print a table, or write all of them into a document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path)
    parser.add_argument("--capture", choices=list(AT_MOST), default="sender")
    parser.add_argument("--derived", choices=DERIVED)
    parser.add_argument("--write", type=Path)
    words = parser.parse_args()
    if words.write is None:
        sys.stdout.write(table(words.traces, words.capture, words.derived))
        return
    made = {capture: table(words.traces, capture) for capture in AT_MOST}
    made |= {how: table(words.traces, "sender", how) for how in DERIVED}
    text = words.write.read_text()
    for mark, lines in made.items():
        start, end = f"<!-- accuracy: {mark} -->\n", "<!-- end -->"
        pattern = re.escape(start) + r".*?" + re.escape(end)
        text = re.sub(pattern, lambda _, new=f"{start}\n{lines}\n{end}": new, text, flags=re.DOTALL)
    words.write.write_text(text)


if __name__ == "__main__":
    main()
