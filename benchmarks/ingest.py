"""Compare the ingest of generated captures with tcptrace and tshark: the table of `docs/performance.md`.

Runs alternate (tracetool, peer, tracetool, peer, ...), each a whole process with its start-up; the ratio is taken pair
by pair, and its median is what counts. Captures are generated once, into a folder that must have room for them.

    python benchmarks/ingest.py FOLDER            all, with 5 pairs each
    python benchmarks/ingest.py FOLDER 1m 5m      some
    python benchmarks/ingest.py FOLDER memory     peak memory at 400 MB and 4 GB (full-size frames)
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


def bytes_per_packet(capture: Path, packets: int) -> float:
    """Size of the `packets` table."""
    with tempfile.TemporaryDirectory(dir=capture.parent) as folder:
        run([sys.executable, "-c", INGEST, str(capture), f"{folder}/out"])
        return sum(path.stat().st_size for path in Path(folder, "out", "packets").iterdir()) / packets


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
    parser.add_argument("names", nargs="*", help=f"{', '.join(CAPTURES)}, tshark, cores, memory, bytes")
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    names = options.names or ["1m", "5m", "20m", "1m-100k-flows", "5m-full", "tshark", "cores", "memory", "bytes"]
    ingest(capture_of(options.folder, "1m"))  # compile the kernels
    print("| capture | peer | tracetool s | peer s | wall ratio [min max] | CPU ratio | peak MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in names:
        if name == "tshark":
            capture = capture_of(options.folder, "1m")
            compare("1m", capture, ["tshark", "-n", "-q", "-z", "conv,tcp", "-r", str(capture)], min(options.pairs, 3))
        elif name == "cores":
            capture = capture_of(options.folder, "5m")
            ratios = [ingest(capture, 2).wall_s / ingest(capture, 1).wall_s for _ in range(options.pairs)]
            print(f"| 5m | one core | | | {statistics.median(ratios):.2f} [{min(ratios):.2f} {max(ratios):.2f}] | | |")
        elif name == "memory":
            small, large = (ingest(capture_of(options.folder, size)).peak_mb for size in ("400mb", "4gb"))
            print(f"| 4gb | 400mb | | | | | {large:.0f} against {small:.0f}: {large / small:.2f} |")
        elif name == "bytes":
            capture = capture_of(options.folder, "5m")
            print(f"| 5m | bytes a packet | {bytes_per_packet(capture, CAPTURES['5m'][0]):.2f} | | | | |")
        else:
            compare(name, (path := capture_of(options.folder, name)), [*TCPTRACE, str(path)], options.pairs)


if __name__ == "__main__":
    main()
