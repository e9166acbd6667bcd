"""Compare reconstruction, all hypotheses tried, with tcptrace: the second table of `docs/performance.md`.

Captures are generated and ingested once, into a folder that must have room for them. Runs alternate (tracetool,
tcptrace, tracetool, ...), each a whole process with its start-up; ratios are taken pair by pair, and their median is
what counts. One core's speed is that of the process pinned to it, start-up taken off by the difference of two sizes.

    python benchmarks/reconstruct.py FOLDER               all, with 3 pairs each
    python benchmarks/reconstruct.py FOLDER 5m            at two cores against tcptrace
    python benchmarks/reconstruct.py FOLDER core memory   packets a second on one core; peak memory at 5 M and 20 M
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

from generate import write
from ingest import INGEST, TCPTRACE, Run, run

RECONSTRUCT = "import sys; from tracetool.reconstruct import reconstruct; reconstruct(sys.argv[1], force=True)"
#: packets, flows
CAPTURES = {
    "1m": (1_000_000, 400),
    "5m": (5_000_000, 2_000),
    "20m": (20_000_000, 2_000),
    "1m-one-flow": (1_000_000, 1),
    "1m-100k-flows": (1_000_000, 100_000),
    "1m-under-way": (1_000_000, 3_000),
}
#: Those that lack the handshakes.
UNDER_WAY = {"1m-under-way"}


def captured(folder: Path, name: str) -> Path:
    """Generate a capture if it is not there."""
    path = folder / f"reconstruct-{name}.pcap"
    if not path.exists():
        write(str(path), *CAPTURES[name], under_way=name in UNDER_WAY)
    return path


def ingested(folder: Path, name: str) -> Path:
    """Ingest a capture into a dataset of its own if it is not there."""
    dataset = folder / f"reconstruct-{name}"
    if not dataset.exists():
        run([sys.executable, "-c", INGEST, str(captured(folder, name)), str(dataset)])
    return dataset


def reconstruct(dataset: Path, cores: int | None = None) -> Run:
    """Reconstruct all flows of a dataset anew."""
    pinned = ["taskset", "-c", ",".join(map(str, range(cores)))] if cores else []
    return run([*pinned, sys.executable, "-c", RECONSTRUCT, str(dataset)])


def compare(folder: Path, name: str, pairs: int) -> None:
    """Print one row of the table."""
    dataset, capture = ingested(folder, name), captured(folder, name)
    ours, theirs = [], []
    for _ in range(pairs):
        ours.append(reconstruct(dataset))
        theirs.append(run([*TCPTRACE, str(capture)]))
    walls = sorted(a.wall_s / b.wall_s for a, b in zip(ours, theirs, strict=True))
    cpus = [a.cpu_s / b.cpu_s for a, b in zip(ours, theirs, strict=True)]
    wall, peer, cpu = (
        statistics.median(v) for v in ([r.wall_s for r in ours], [r.wall_s for r in theirs], [r.cpu_s for r in ours])
    )
    print(
        f"| {name} | {wall:.1f} | {cpu:.1f} | {peer:.1f} | {statistics.median(walls):.2f} [{walls[0]:.2f} "
        f"{walls[-1]:.2f}] | {statistics.median(cpus):.2f} | {max(r.peak_mb for r in ours):.0f} |",
        flush=True,
    )


def core(folder: Path, pairs: int) -> None:
    """Print packets a second on one core, beside tcptrace's, from the CPU time that more packets take."""
    speeds = []
    for _ in range(pairs):
        small, large = (reconstruct(ingested(folder, name), 1) for name in ("1m", "5m"))
        peers = [run([*TCPTRACE, str(captured(folder, name))]) for name in ("1m", "5m")]
        more = CAPTURES["5m"][0] - CAPTURES["1m"][0]
        speeds.append((more / (large.cpu_s - small.cpu_s), more / (peers[1].cpu_s - peers[0].cpu_s)))
    ours, theirs = (statistics.median(column) for column in zip(*speeds, strict=True))
    print(f"| one core, millions of packets a second | {ours / 1e6:.2f} | | {theirs / 1e6:.2f} | | | |", flush=True)


def memory(folder: Path) -> None:
    """Print the peak memory at two sizes."""
    small, large = (reconstruct(ingested(folder, name)).peak_mb for name in ("5m", "20m"))
    print(f"| 20m against 5m | | | | | | {large:.0f} against {small:.0f}: {large / small:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help=f"{', '.join(CAPTURES)}, core, memory")
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    reconstruct(ingested(options.folder, "1m"))  # compile the kernels
    print("| dataset | tracetool s | CPU s | tcptrace s | wall ratio [min max] | CPU ratio | peak MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in options.names or ["1m", "5m", "core", "memory", "1m-100k-flows", "1m-one-flow", "1m-under-way"]:
        if name == "core":
            core(options.folder, options.pairs)
        elif name == "memory":
            memory(options.folder)
        else:
            compare(options.folder, name, options.pairs)


if __name__ == "__main__":
    main()
