"""A Dask scheduler and two worker processes on loopback do the work; one that is killed in the middle loses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from tracetool import executors, tables
from tracetool.dataset import Dataset
from tracetool.errors import UsageError
from tracetool.ingest import ingest, ingest_each
from tracetool.reconstruct import reconstruct

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_traces"
INPUTS = [SAMPLES / f"{name}.pcap.gz" for name in ("reno-rto", "reno-sawtooth", "two-reno", "cubic-loss-exit")]


class Cluster:
    """Address of a scheduler, and its workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen] = []
        self.file = folder / "scheduler.json"
        self.run("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")
        while not self.file.exists() or not self.file.read_text():
            time.sleep(0.05)
        self.address: str = json.loads(self.file.read_text())["address"]
        self.workers = [
            self.run("worker", "--host", "127.0.0.1", "--no-nanny", "--nthreads", "1", "--no-dashboard")
            for _ in range(2)
        ]

    def run(self, what: str, *words: str) -> subprocess.Popen:
        """Start a part of the cluster, in an empty folder: inputs are not found by chance."""
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", what, "--scheduler-file", str(self.file), *words],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.started.append(process)
        return process


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    pytest.importorskip("distributed", reason="Dask is not installed")
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    for process in made.started:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Dataset:
    return reconstruct(ingest(INPUTS, tmp_path_factory.mktemp("alone") / "d"))


def same(there: Dataset, here: Dataset) -> None:
    assert there.inputs == here.inputs
    for table in tables.names():
        assert_frame_equal(there.read(table), here.read(table))


def commands(cluster: Cluster, folder: Path):
    """Function that runs a command over a cluster."""

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "tracetool", *words, "--scheduler", cluster.address, "-q"]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    return run


def test_ingest_and_reconstruct(cluster, alone, tmp_path):
    """Relative names are the user's; workers have another current folder."""
    run = commands(cluster, tmp_path)
    run("ingest", *(os.path.relpath(path, tmp_path) for path in INPUTS), "--out", "d")
    run("reconstruct", "d")
    same(Dataset.open(tmp_path / "d"), alone)


@pytest.mark.slow
def test_fairness_and_report(cluster, tmp_path):
    run = commands(cluster, tmp_path)
    assert "Jain" in run("fairness", str(SAMPLES / "experiment.toml"), "--no-cache")
    run("report", str(INPUTS[0]), "-o", "page.html", "--flows", "0")
    assert (tmp_path / "page.html").stat().st_size > 1000


def holder(cluster: Cluster, path: Path) -> subprocess.Popen:
    """The worker that has a file open."""
    for worker in cluster.workers:
        for entry in Path(f"/proc/{worker.pid}/fd").iterdir():
            with suppress(OSError):
                if entry.readlink() == path:
                    return worker
    raise AssertionError("no worker reads it")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_a_worker_killed_in_the_middle_loses_nothing(cluster, alone, tmp_path):
    """One input is a pipe: half of it is read when the worker is killed, all of it by the worker that is left."""
    pipe = tmp_path / "reno-sawtooth.pcap.gz"
    os.mkfifo(pipe)
    content = INPUTS[1].read_bytes()
    killed = []

    def feed() -> None:
        with pipe.open("wb") as end:  # waits for a reader
            end.write(content[: len(content) // 2])
            end.flush()
            worker = holder(cluster, pipe)
            worker.send_signal(signal.SIGKILL)
            worker.wait()
            killed.append(worker)
        with pipe.open("wb") as end:  # waits for the next one
            end.write(content)

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    with executors.cluster(cluster.address) as executor:
        results = list(ingest_each([INPUTS[0], pipe, *INPUTS[2:]], tmp_path / "d", executor=executor))
        feeder.join(60)
        assert len(killed) == 1
        assert [each.status for each in results] == ["added"] * len(INPUTS)
        dataset = reconstruct(Dataset.open(tmp_path / "d"), executor=executor)
    same(dataset, alone)
    assert not [path for path in (tmp_path / "d" / ".parts").rglob("*") if path.is_file()]


def test_workers_without_this_version_are_told_in_a_line(cluster, tmp_path, monkeypatch):
    """What they are asked to do is in a module that they do not have."""
    (tmp_path / "only_here.py").write_text("def work(number):\n    return number\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import only_here

    with (
        pytest.raises(executors.WorkerError, match=r"^the workers have another version .*only_here.*install this one"),
        executors.cluster(cluster.address) as executor,
    ):
        list(executors.spread(executor, only_here.work, [1]))


def test_no_scheduler_there(monkeypatch):
    pytest.importorskip("distributed", reason="Dask is not installed")
    monkeypatch.setattr(executors, "CONNECT_S", 0.3)
    with (
        pytest.raises(executors.WorkerError, match=r"^tcp://127.0.0.1:9: no Dask scheduler can be reached there"),
        executors.cluster("tcp://127.0.0.1:9"),
    ):
        pass


@pytest.mark.parametrize("address", ["nonsense://x", "nonsense", "", "tcp://:::", "tcp://192.0.2.1:port", "inproc://"])
def test_an_address_that_makes_no_sense(address):
    """It is refused at once: nothing is tried, nothing is left for a later moment to complain about."""
    pytest.importorskip("distributed", reason="Dask is not installed")
    before = threading.active_count()
    with (
        pytest.raises(UsageError, match=r"^--scheduler '.*': .*: write it as tcp://10.0.0.1:8786$"),
        executors.cluster(address),
    ):
        pass
    assert threading.active_count() == before


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"pip install 'tracetool\[dask\]'"), executors.cluster("tcp://127.0.0.1:9"):
        pass
