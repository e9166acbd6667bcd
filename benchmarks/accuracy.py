"""Accuracy of the inference against the kernel's own word: the table of `docs/inference.md`.

TRACES holds one folder per scenario with `sender.pcap.gz` (and perhaps `receiver.pcap.gz`), `tcp_probe.txt.gz` and
`scenario.json`. Only the capture is given to the inference; the kernel's log of the same flows is the truth.

    python benchmarks/accuracy.py TRACES                            the table, as Markdown
    python benchmarks/accuracy.py TRACES --capture receiver         the same for captures at the receiver
    python benchmarks/accuracy.py TRACES --write docs/inference.md  put both into the document
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

import polars as pl

from tracetool.ingest import ingest
from tracetool.reconstruct import reconstruct

FIRST_PORT = 5201
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


def rows(scenario: Path, capture: str, folder: Path) -> list[str]:
    """Table rows of one scenario."""
    truth = ingest([scenario / "tcp_probe.txt.gz"], folder / "kernel")
    mine = reconstruct(ingest([scenario / f"{capture}.pcap.gz"], folder / "capture"))
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
        wanted = flows.filter((pl.col("port_b") == FIRST_PORT + number) & (pl.col("protocol") == "tcp"))
        if wanted.is_empty() or spec.get("udp"):
            continue
        flow = wanted.sort("payload_bytes_a2b").row(-1, named=True)
        same = kernel_flows.filter((pl.col("port_a") == flow["port_a"]) & (pl.col("port_b") == flow["port_b"]))
        span = spans[flow["flow"]]
        told = kernel.filter(
            pl.col("flow").is_in(same["flow"].to_list())
            & (pl.col("direction") == "a2b")
            & pl.col("time").is_between(span["first"], span["last"])
        )
        own = samples.filter((pl.col("flow") == flow["flow"]) & (pl.col("direction") == "a2b"))
        m = measures(joined(own, told, AT_MOST[capture]))
        stats = mine.read("flow_stats").filter((pl.col("flow") == flow["flow"]) & (pl.col("direction") == "a2b"))
        starts = mine.read("slow_starts").filter((pl.col("flow") == flow["flow"]) & (pl.col("direction") == "a2b"))
        cause = starts.sort("episode")["exit_cause"][0] if starts.height else None
        found.append(
            f"| {scenario.name} | {spec['cc']} | {stats['cc'][0]} "
            + "".join(f"| {m[name]:.1%} " for name in ("median", "p90", "p99", "bounds", "ssthresh", "srtt"))
            + f"| {cause or ''} |"
        )
    return found


def table(traces: Path, capture: str) -> str:
    """Markdown table of all scenarios."""
    lines = []
    for scenario in sorted(path.parent for path in traces.glob("*/scenario.json")):
        if (scenario / f"{capture}.pcap.gz").exists():
            with tempfile.TemporaryDirectory() as folder:
                lines += rows(scenario, capture, Path(folder))
    return HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """Print the table, or write both into a document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path)
    parser.add_argument("--capture", choices=list(AT_MOST), default="sender")
    parser.add_argument("--write", type=Path)
    words = parser.parse_args()
    if words.write is None:
        sys.stdout.write(table(words.traces, words.capture))
        return
    text = words.write.read_text()
    for capture in AT_MOST:
        mark = f"<!-- accuracy: {capture} -->\n"
        pattern = re.escape(mark) + r".*?" + re.escape("<!-- end -->")
        made = f"{mark}\n{table(words.traces, capture)}\n<!-- end -->"
        text = re.sub(pattern, lambda _, made=made: made, text, flags=re.DOTALL)
    words.write.write_text(text)


if __name__ == "__main__":
    main()
