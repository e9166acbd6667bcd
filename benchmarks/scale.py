"""What many captures cost, by the number of processes: the table of `docs/scale.md`.

Captures are generated once, into a folder that must have room for them. Each step is a whole command, its processes
included; CPU time is that of all of them. The last lines say what the manifest of many inputs costs.

    python benchmarks/scale.py FOLDER                                    8 captures of 500,000 packets; 1 and 2 jobs
    python benchmarks/scale.py FOLDER --captures 64 --packets 20000 --jobs 1 2 4
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from generate import write

from tracetool.dataset import Dataset
from tracetool.writer import Written


def run(*words: str) -> tuple[float, float, float]:
    """Run a command to its end; return wall and CPU seconds and the largest process's memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "tracetool", *words, "-q"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)}: exit code {process.returncode}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def size(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def captures(folder: Path, count: int, packets: int) -> Path:
    """Generate captures where they are not there."""
    made = folder / f"{count}x{packets}"
    made.mkdir(exist_ok=True)
    for number in range(count):
        path = made / f"c{number:04}.pcap"
        if not path.exists():
            write(str(path), packets, max(packets // 5000, 1), 96, seed=number + 1)
    return made


def manifest(folder: Path, count: int) -> tuple[float, int]:
    """CPU seconds for one more input in a manifest of many, and its size."""
    dataset = Dataset.create(folder / "manifest")
    files = dict.fromkeys(("diagnostics", "flows", "inputs", "packets"), "c.parquet")
    facts = {
        "source": "/data/run/capture.pcap",
        "format": "pcap",
        "size_bytes": 1,
        "sha256": "0" * 64,
        "damaged": False,
    }
    some = [Written(f"capture-{number}", "ingest", files, dict.fromkeys(files, 1), facts) for number in range(count)]
    dataset.commit(some[1:])
    start = time.process_time()
    dataset.commit(some[:1])
    return time.process_time() - start, (folder / "manifest" / "dataset.json").stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--captures", type=int, default=8)
    parser.add_argument("--packets", type=int, default=500_000)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    made = captures(options.folder, options.captures, options.packets)
    millions = options.captures * options.packets / 1e6
    out = options.folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    run("ingest", str(made / "c0000.pcap"), "--out", str(out))  # compile the kernels
    run("reconstruct", str(out))
    print(
        f"{options.captures} captures of {options.packets:,} packets, {size(made) / millions / 1e6:.0f} bytes a packet"
    )
    print("| step | jobs | wall s | CPU s | CPU s per M packets | bytes written per packet | MB, largest process |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for jobs in options.jobs:
        shutil.rmtree(out, ignore_errors=True)
        before = 0
        for step in (["ingest", str(made), "--out", str(out)], ["reconstruct", str(out)]):
            wall, cpu, peak = run(*step, "-j", str(jobs))
            written, before = size(out) - before, size(out)
            print(
                f"| {step[0]} | {jobs} | {wall:.1f} | {cpu:.1f} | {cpu / millions:.2f} "
                f"| {written / millions / 1e6:.1f} | {peak:.0f} |",
                flush=True,
            )
    shutil.rmtree(out)
    for count in (1_000, 10_000):
        seconds, length = manifest(options.folder, count)
        print(f"manifest of {count:,} inputs: {length / 1e6:.1f} MB, {seconds * 1e3:.0f} ms of CPU for one more")
        shutil.rmtree(options.folder / "manifest")


if __name__ == "__main__":
    main()
