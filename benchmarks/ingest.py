"""Compare the ingest of generated captures with tcptrace and tshark: the table of `docs/performance.md`.

Runs alternate (tracetool, peer, tracetool, peer, ...), each a whole process with its start-up; the ratio is taken pair
by pair, and its median is what counts. Captures are generated once, into a folder that must have room for them.

    python benchmarks/ingest.py FOLDER            all, with 5 pairs each
    python benchmarks/ingest.py FOLDER 1m 5m      some
    python benchmarks/ingest.py FOLDER marginal   what the packets of 20m cost that 5m has not
    python benchmarks/ingest.py FOLDER tshark     conversations, and fields with tcp.analysis.*
    python benchmarks/ingest.py FOLDER cores      two cores against one
    python benchmarks/ingest.py FOLDER memory     peak memory at 400 MB and 4 GB (full-size frames)
    python benchmarks/ingest.py FOLDER bytes      size of `packets`: generated, and the sample traces
    python benchmarks/ingest.py FOLDER query      one flow of 20m against the summary of all
    python benchmarks/ingest.py FOLDER startup    --help, and flows of a small capture
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from generate import write

INGEST = "import sys; from tracetool.ingest import ingest; ingest(sys.argv[1], sys.argv[2])"
TCPTRACE = ["tcptrace", "-n", "-l", "-r", "-W"]
CONVERSATIONS = ["tshark", "-n", "-q", "-z", "conv,tcp", "-r"]
FIELDS = (
    "frame.number", "frame.time_epoch", "tcp.stream", "ip.src", "ip.dst", "tcp.srcport", "tcp.dstport", "tcp.seq",
    "tcp.ack", "tcp.len", "tcp.flags", "tcp.window_size", "tcp.analysis.ack_rtt", "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission", "tcp.analysis.duplicate_ack", "tcp.analysis.bytes_in_flight",
)  # fmt: skip
ANALYSIS = ["tshark", "-n", "-T", "fields", *(word for name in FIELDS for word in ("-e", name)), "-r"]
SAMPLES = Path(__file__).resolve().parents[1] / "sample_traces"
QUERIES = """
import sys, time, polars as pl
packets = pl.scan_parquet(sys.argv[1])
flow = packets.select(pl.col("flow").max() // 2).collect().item()
names = ("time", "direction", "seq", "ack", "payload_bytes", "flags")
one = packets.filter(pl.col("flow") == flow).select(names)
payload = pl.col("payload_bytes")
sums = (pl.len(), payload.sum(), payload.max().alias("most"), pl.col("time").min(), pl.col("time").max().alias("end"))
took = []
for query in [one, packets.group_by("flow").agg(*sums)] * 6:
    start = time.perf_counter()
    query.collect()
    took.append(time.perf_counter() - start)
print(min(took[2::2]), min(took[3::2]))
"""
#: packets, flows, snaplen
CAPTURES = {
    "1m": (1_000_000, 100, 96),
    "5m": (5_000_000, 1_000, 96),
    "20m": (20_000_000, 2_000, 96),
    "1m-100k-flows": (1_000_000, 100_000, 96),
    "1m-syn-scan": (1_000_000, 1_000_000, 96),
    "5m-full": (5_000_000, 1_000, 65_535),
    "400mb": (395_000, 100, 65_535),
    "4gb": (3_950_000, 100, 65_535),
}


OTHERS = ("marginal", "tshark", "cores", "memory", "bytes", "query", "startup")


#: As an installed package runs: with its byte code at hand, even where the environment forbids to write it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


class Run(NamedTuple):
    """What one process took."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def run(command: list[str]) -> Run:
    """Run a command to its end, silently."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def ingest(capture: Path, cores: int | None = None) -> Run:
    """Ingest a capture into a dataset that is thrown away; say how many bytes a packet took."""
    with tempfile.TemporaryDirectory(dir=capture.parent) as folder:
        pinned = ["taskset", "-c", ",".join(map(str, range(cores)))] if cores else []
        return run([*pinned, sys.executable, "-c", INGEST, str(capture), f"{folder}/out"])


def bytes_per_packet(captures: list[Path], folder: Path) -> float:
    """Size of the `packets` table, of all captures together."""
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory(dir=folder) as made:
        for capture in captures:
            run([sys.executable, "-c", INGEST, str(capture), f"{made}/out"])
        files = list(Path(made, "out", "packets").iterdir())
        return sum(f.stat().st_size for f in files) / sum(pq.ParquetFile(f).metadata.num_rows for f in files)


def query_ratio(capture: Path) -> tuple[float, float]:
    """Seconds for one flow, and for the summary of all flows."""
    with tempfile.TemporaryDirectory(dir=capture.parent) as folder:
        run([sys.executable, "-c", INGEST, str(capture), f"{folder}/out"])
        file = next(Path(folder, "out", "packets").iterdir())
        done = subprocess.run([sys.executable, "-c", QUERIES, str(file)], capture_output=True, text=True, check=True)
        one, all_of_them = map(float, done.stdout.split())
        return one, all_of_them


def print_ratios(name: str, peer: str, ratios: list[float]) -> None:
    """Print a row that has nothing but a ratio."""
    print(
        f"| {name} | {peer} | | | {statistics.median(ratios):.2f} [{min(ratios):.2f} {max(ratios):.2f}] | | |",
        flush=True,
    )


def start_up(pairs: int) -> None:
    """Print how long small things take, against the least that they could."""
    small = str(SAMPLES / "reno-sawtooth.pcap.gz")
    ours = [sys.executable, "-m", "tracetool"]
    for name, command, peer in (
        ("tracetool --help", [*ours, "--help"], "pass"),
        ("tracetool flows, a small capture", [*ours, "flows", "-q", small], "import polars, pyarrow"),
    ):
        run(command)
        ratios = [run(command).wall_s / run([sys.executable, "-c", peer]).wall_s for _ in range(4 * pairs)]
        print_ratios(name, f"python -c {peer!r}", ratios)


def marginal(folder: Path, pairs: int) -> None:
    """Print what a packet costs once everything is running."""
    small, large = (capture_of(folder, name) for name in ("5m", "20m"))
    ratios = []
    for _ in range(pairs):
        ours = ingest(large).wall_s - ingest(small).wall_s
        ratios.append(ours / (run([*TCPTRACE, str(large)]).wall_s - run([*TCPTRACE, str(small)]).wall_s))
    print_ratios("20m less 5m", "tcptrace", ratios)


def compare(name: str, capture: Path, peer: list[str], pairs: int) -> None:
    """Print one row of the table."""
    ours, theirs = [], []
    for _ in range(pairs):
        ours.append(ingest(capture))
        theirs.append(run(peer))
    walls = sorted(a.wall_s / b.wall_s for a, b in zip(ours, theirs, strict=True))
    cpus = [a.cpu_s / b.cpu_s for a, b in zip(ours, theirs, strict=True)]
    wall, peer_wall = (statistics.median(r.wall_s for r in runs) for runs in (ours, theirs))
    print(
        f"| {name} | {' '.join(peer[:3])} | {wall:.2f} | {peer_wall:.2f} | {statistics.median(walls):.2f} "
        f"[{walls[0]:.2f} {walls[-1]:.2f}] | {statistics.median(cpus):.2f} | {max(r.peak_mb for r in ours):.0f} |",
        flush=True,
    )


def capture_of(folder: Path, name: str) -> Path:
    """Generate a capture if it is not there."""
    path = folder / f"{name}.pcap"
    if not path.exists():
        packets, flows, snaplen = CAPTURES[name]
        room = shutil.disk_usage(folder).free
        if room < 2 * packets * (1100 if snaplen > 1500 else 110):
            raise SystemExit(f"{folder}: no room for {path.name}")
        write(str(path), packets, flows, snaplen)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help=f"{', '.join(CAPTURES)}, {', '.join(OTHERS)}")
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    names = options.names or ["1m", "5m", "20m", "1m-100k-flows", "5m-full", *OTHERS]
    ingest(capture_of(options.folder, "1m"))  # compile the kernels
    print("| capture | peer | tracetool s | peer s | wall ratio [min max] | CPU ratio | peak MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in names:
        if name == "tshark":
            capture = capture_of(options.folder, "1m")
            compare("1m", capture, [*CONVERSATIONS, str(capture)], min(options.pairs, 3))
            compare("1m", capture, [*ANALYSIS, str(capture)], min(options.pairs, 3))
        elif name == "cores":
            capture = capture_of(options.folder, "5m")
            ratios = [ingest(capture, 2).wall_s / ingest(capture, 1).wall_s for _ in range(options.pairs)]
            print_ratios("5m, two cores", "5m, one core", ratios)
        elif name == "memory":
            small, large = (ingest(capture_of(options.folder, size)).peak_mb for size in ("400mb", "4gb"))
            print(f"| 4gb | 400mb | | | | | {large:.0f} against {small:.0f}: {large / small:.2f} |")
        elif name == "bytes":
            generated, samples = [capture_of(options.folder, "5m")], sorted(SAMPLES.glob("*.pcap.gz"))
            for kind, captures in (("5m", generated), ("sample traces", samples)):
                print(f"| {kind} | bytes a packet | {bytes_per_packet(captures, options.folder):.2f} | | | | |")
        elif name == "marginal":
            marginal(options.folder, options.pairs)
        elif name == "query":
            one, summary = query_ratio(capture_of(options.folder, "20m"))
            print(
                f"| one flow of 20m, 6 columns | summary of all | {one:.4f} | {summary:.4f} | {one / summary:.3f} | | |"
            )
        elif name == "startup":
            start_up(options.pairs)
        else:
            compare(name, (path := capture_of(options.folder, name)), [*TCPTRACE, str(path)], options.pairs)


if __name__ == "__main__":
    main()
