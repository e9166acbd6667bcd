"""Full disks, folders that cannot be written, inputs that vanish, readers that go away: one line, and whole data."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.fuzz import captures
from tests.fuzz.frames import connection
from tracetool.dataset import Dataset, DatasetWriteError
from tracetool.ingest import ingest, ingest_each
from tracetool.reconstruct import reconstruct

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_traces"
CAPTURE, OTHER = SAMPLES / "reno-sawtooth.pcap.gz", SAMPLES / "reno-rto.pcap.gz"


def tracetool(*args: object, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "tracetool", *map(str, args)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, **options)


@contextlib.contextmanager
def small_disk(folder: Path, size: str):
    """A disk in memory; skips where it cannot be had."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode != 0:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def one_line(done: subprocess.CompletedProcess) -> str:
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("tracetool: ")
    return lines[0]


@pytest.mark.parametrize("size", ["64k", "200k"])
def test_a_full_disk(tmp_path, size):
    """Whatever fits is there and whole; what does not leaves nothing behind; with room, the run is finished."""
    with small_disk(tmp_path / "disk", size) as disk:
        done = tracetool("ingest", OTHER, CAPTURE, "-q", "-o", disk / "d")
        if done.returncode == 0:  # then what is inferred does not fit
            done = tracetool("reconstruct", disk / "d", "-q")
        assert done.returncode == 1, done
        assert "no space left" in one_line(done)
        dataset = Dataset.open(disk / "d")
        for table in ("packets", "flows", "inputs", "samples"):
            dataset.read(table)
        assert not [path for path in disk.rglob("*.tmp") if path.stat().st_size]
        assert not list(disk.rglob(".parts/*"))
        subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
        assert tracetool("ingest", OTHER, CAPTURE, "-q", "-o", disk / "d").returncode == 0
        assert tracetool("reconstruct", disk / "d", "-q").returncode == 0
        whole = reconstruct(ingest([OTHER, CAPTURE], tmp_path / "whole"))
        for table in ("packets", "events", "flow_stats"):
            assert Dataset.open(disk / "d").read(table).height == whole.read(table).height


def test_a_full_temporary_disk(tmp_path):
    """Commands that need a temporary dataset say where it did not fit."""
    with small_disk(tmp_path / "disk", "64k") as disk:
        done = tracetool("flows", OTHER, "-q", env=os.environ | {"TMPDIR": str(disk)})
        assert done.returncode == 1
        assert "no space left" in one_line(done)
        assert str(disk) in done.stderr
        assert not list(disk.iterdir())


def test_a_read_only_file_system(tmp_path):
    ingest(OTHER, tmp_path / "made" / "d")
    with small_disk(tmp_path / "disk", "8m") as disk:
        subprocess.run(["cp", "-r", str(tmp_path / "made" / "d"), str(disk / "d")], check=True)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for done in (
            tracetool("ingest", CAPTURE, "-q", "-o", disk / "d"),
            tracetool("ingest", CAPTURE, "-q", "-o", disk / "new"),
            tracetool("reconstruct", disk / "d", "-q"),
        ):
            assert done.returncode == 1
            assert "read-only" in one_line(done)
        assert Dataset.open(disk / "d").read("packets").height


def test_a_folder_without_permission(tmp_path, monkeypatch):
    """Root may write anywhere, so the refusal is made up."""

    def refuse(*_args, **_options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(DatasetWriteError, match="d: cannot be written: Permission denied"):
        ingest(OTHER, tmp_path / "d")


def test_an_input_that_vanished(tmp_path):
    path = tmp_path / "gone.pcap"
    path.write_bytes(captures.pcap(connection()))
    results = ingest_each([path, OTHER], tmp_path / "d")
    path.unlink()
    first, second = results
    assert str(first.error) == f"{path}: No such file or directory"
    assert second.status == "added"


def test_an_input_that_shrinks_or_fails_while_it_is_read(tmp_path, monkeypatch):
    """An error of the disk in the middle of a file: what came before is kept, and told."""
    from tracetool import hashed, sources

    path = tmp_path / "half.pcap"
    path.write_bytes(captures.pcap(connection(2000, 1000)))
    assert path.stat().st_size > sources.READ_BYTES
    readinto = hashed.Hashed.readinto

    def failing(self, buffer):
        if self.size_bytes >= sources.READ_BYTES:
            raise OSError(errno.EIO, "Input/output error")
        return readinto(self, buffer)

    monkeypatch.setattr(hashed.Hashed, "readinto", failing)
    (result,) = ingest_each(path, tmp_path / "d")
    if result.error is None:
        assert result.damaged
        assert "Input/output error" in str(result.diagnostics)
    else:
        assert "Input/output error" in str(result.error)
    assert Dataset.open(tmp_path / "d").manifest()["inputs"].keys() <= {"half"}


def test_a_reader_that_goes_away():
    for args in (["export", "packets"], ["check"], ["flows", "--json"]):
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-m", "tracetool", *args, str(OTHER)]
        done = subprocess.run(command, cwd=ROOT, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
        os.close(write)
        assert done.stderr == ""
        assert done.returncode == 0


def test_two_ingests_into_one_dataset_at_once(tmp_path):
    """Both finish, each input is there once, and a third run adds nothing."""
    runs = [
        [
            sys.executable,
            "-m",
            "tests.robust.child",
            "ingest",
            str(OTHER),
            str(CAPTURE),
            "-q",
            "-o",
            str(tmp_path / "d"),
        ]
    ] * 2
    started = [
        subprocess.Popen(run, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for run in runs
    ]
    for process in started:
        assert process.communicate(timeout=240)[1] == ""
        assert process.returncode == 0
    dataset = Dataset.open(tmp_path / "d")
    entries = dataset.manifest()["inputs"]
    assert sorted({entry["sha256"] for entry in entries.values()}) == sorted(
        hashlib.sha256(path.read_bytes()).hexdigest() for path in (OTHER, CAPTURE)
    )
    assert len(entries) == 2, "the same content was added twice"
    assert [result.status for result in ingest_each([OTHER, CAPTURE], tmp_path / "d")] == ["present", "present"]


def test_a_run_killed_while_it_made_the_dataset(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / ".dataset.json.tmp").write_text("{")
    assert ingest(OTHER, tmp_path / "d").inputs == ["reno-rto"]


def test_two_threads_into_one_dataset(tmp_path):
    path = tmp_path / "c.pcap"
    path.write_bytes(captures.pcap(connection()))
    threads = [threading.Thread(target=ingest, args=(path, tmp_path / "d")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Dataset.open(tmp_path / "d").inputs) == 1


def test_inputs_are_never_changed(tmp_path):
    path = tmp_path / "c.pcap"
    path.write_bytes(captures.pcap(connection()) + b"\0\1\2")
    before = path.stat(), path.read_bytes()
    reconstruct(ingest(path, tmp_path / "d"))
    assert tracetool("check", path).returncode == 4
    after = path.stat(), path.read_bytes()
    assert (before[0].st_mtime_ns, before[0].st_ino, before[1]) == (after[0].st_mtime_ns, after[0].st_ino, after[1])
    assert {entry.name for entry in tmp_path.iterdir()} == {"c.pcap", "d"}


def test_locks_and_parts_of_a_dead_run_do_no_harm(tmp_path):
    dataset = ingest(OTHER, tmp_path / "d")
    (dataset.path / ".inputs" / "reno-sawtooth.lock").write_text("")
    parts = dataset.path / ".parts" / "reno-sawtooth" / "attempt"
    parts.mkdir(parents=True)
    for table in ("packets", "flows"):
        (parts / table).write_bytes(b"torn")
    (dataset.path / ".dataset.json.tmp").write_text("{")
    ingest(CAPTURE, tmp_path / "d")
    assert Dataset.open(tmp_path / "d").inputs == ["reno-rto", "reno-sawtooth"]
    assert not list(dataset.path.rglob("*.tmp"))
    assert not list((dataset.path / ".parts").iterdir())
