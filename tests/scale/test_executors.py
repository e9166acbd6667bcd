"""Whoever does the work, the dataset is the same; what is cut off is done by the next run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.fuzz import captures
from tests.fuzz.frames import connection
from tracetool import executors, tables
from tracetool.dataset import Dataset
from tracetool.errors import FormatError
from tracetool.ingest import ingest, ingest_each
from tracetool.reconstruct import reconstruct

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Captures of different length, some with the same name, a copy, one of no format, and an empty one."""
    above = tmp_path_factory.mktemp("captures")
    for number in range(12):
        below = above / f"run{number % 3}"
        below.mkdir(exist_ok=True)
        (below / f"c{number // 3}.pcap").write_bytes(captures.pcap(connection(5 + 3 * number, 100)))
    (above / "run2" / "copy.pcap").write_bytes((above / "run0" / "c1.pcap").read_bytes())
    (above / "run1" / "README.md").write_text("no capture")
    (above / "run1" / "empty.pcap").write_bytes(b"")
    return above


def bytes_of(dataset: Path) -> dict[str, bytes]:
    """Every file that the dataset lists, and the manifest."""
    opened = Dataset.open(dataset)
    files = {file for table in tables.names() for file in opened.files(table)}
    return {str(Path(file).relative_to(dataset)): Path(file).read_bytes() for file in files} | {
        "dataset.json": (dataset / "dataset.json").read_bytes()
    }


def test_threads_give_the_same_bytes_as_one_after_the_other(folder, tmp_path):
    alone = list(ingest_each(folder, tmp_path / "alone"))
    reconstruct(tmp_path / "alone")
    with ThreadPoolExecutor(4) as pool:
        shared = list(ingest_each(folder, tmp_path / "shared", executor=pool))
        reconstruct(tmp_path / "shared", executor=pool)
    assert bytes_of(tmp_path / "shared") == bytes_of(tmp_path / "alone")
    outcomes = [{(each.source, each.input, each.status) for each in results} for results in (alone, shared)]
    assert outcomes[0] == outcomes[1]
    assert [each.status for each in alone].count("added") == 12
    assert [(each.source, each.input) for each in alone if each.status == "present"] == [
        (str(folder / "run2" / "copy.pcap"), "c1")
    ]
    assert {Path(each.source).name for each in alone if each.error} == {"README.md", "empty.pcap"}


class Interrupted(executors.Executor):
    """A worker that was killed amid its work, as the interruption came: what it had written so far is there."""

    def submit(self, _fn, /, task):
        left = task.dataset.path / ".parts" / task.name / "one"
        left.mkdir(parents=True)
        (left / "packets").touch()
        raise KeyboardInterrupt


@pytest.mark.parametrize("stage", [partial(ingest, ROOT / "sample_traces" / "two-reno.pcap.gz"), reconstruct])
def test_what_a_worker_left_is_removed(stage, folder, tmp_path):
    data = tmp_path / "data"
    ingest(folder / "run0", data)
    with pytest.raises(KeyboardInterrupt):
        stage(data, executor=Interrupted())
    assert not list(data.glob(".parts/*"))


def interrupted():
    yield 1
    raise KeyboardInterrupt


def test_an_interruption_ends_the_workers_at_once():
    """And not only when the pool is left: what they wrote is to be removed before."""

    class Pool(executors.Serial):
        killed = False

        def kill(self):
            self.killed = True

    pool = Pool()
    with pytest.raises(KeyboardInterrupt):
        list(executors.spread(pool, abs, interrupted()))
    assert pool.killed


def in_a_temporary_folder(seconds):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "file").touch()
        time.sleep(seconds)


def busy(temporary):
    yield 30
    while not list(temporary.rglob("file")):
        yield 0
    raise KeyboardInterrupt


def test_temporary_files_of_workers_that_were_ended_are_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with pytest.raises(KeyboardInterrupt), executors.processes(2) as pool:
        list(executors.spread(pool, in_a_temporary_folder, busy(tmp_path)))
    assert not list(tmp_path.iterdir())


def test_the_order_in_which_work_is_done_does_not_matter(folder, tmp_path):
    """The first inputs are the last to be done: names, manifest and the choice among copies stay."""

    class Backwards(executors.Executor):
        def __init__(self):
            self.waiting = []

        def submit(self, fn, /, *args, **kwargs):
            future = executors.Future()
            self.waiting.append((future, fn, args, kwargs))
            if len(self.waiting) == 15:
                for each, work, words, named in reversed(self.waiting):
                    each.set_result(work(*words, **named))
            return future

    list(ingest_each(folder, tmp_path / "alone"))
    list(ingest_each(folder, tmp_path / "backwards", executor=Backwards()))
    assert bytes_of(tmp_path / "backwards") == bytes_of(tmp_path / "alone")


def test_what_is_there_is_not_read_again(folder, tmp_path, monkeypatch):
    ingest(folder / "run0", tmp_path / "d")

    def refuse(*_args):
        raise AssertionError("read again")

    monkeypatch.setattr("tracetool.reading._read", refuse)
    assert {each.status for each in ingest_each(folder / "run0", tmp_path / "d")} == {"present"}


def test_two_reconstructions_at_once_do_the_work_once(folder, tmp_path, monkeypatch):
    """The second one waits for the first, and then sees that it is done."""
    from tracetool.reconstruct import driver, inputs

    dataset = ingest(folder / "run0" / "c0.pcap", tmp_path / "d")
    asked, pending = threading.Event(), inputs.pending

    def watched(*words, **named):
        try:
            return pending(*words, **named)
        finally:
            asked.set()

    def refuse(*_args):
        raise AssertionError("done again")

    first = dataset.writer("c0", inputs.STAGE)
    monkeypatch.setattr(inputs, "pending", watched)
    monkeypatch.setattr(driver, "infer", refuse)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(reconstruct, tmp_path / "d")
        assert asked.wait(60)
        with first:
            first.write("rtts", tables.empty("rtts"))
            first.commit()
        second.result(60)
    assert dataset.entries["c0"]["stages"]["reconstruct"]["rows"] == {"rtts": 0}


def test_relative_names_are_found_from_any_folder(folder, tmp_path, monkeypatch):
    """Workers may have another current folder; the dataset says what the user said."""
    monkeypatch.chdir(folder)

    class Elsewhere(executors.Serial):
        def submit(self, fn, /, *args, **kwargs):
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir("/")
                return super().submit(fn, *args, **kwargs)

    dataset = ingest("run0", str(tmp_path / "d"), executor=Elsewhere())
    assert dataset.entries["c0"]["source"] == "run0/c0.pcap"
    with pytest.raises(FormatError, match=r"^run1/README.md: unknown format"):
        ingest("run1/README.md", tmp_path / "d", executor=Elsewhere())


def test_groups_grow_while_the_one_who_takes_them_is_busy():
    """Dealing with each result alone would take half a second here; all results come, each once."""
    sizes, seen = [], []
    for group in executors.spread(executors.Serial(), abs, range(0, -1000, -1)):
        sizes.append(len(group))
        seen += [task for task, _ in group]
        time.sleep(0.001)
    assert seen == list(range(0, -1000, -1))
    assert max(sizes) > 1


@pytest.mark.parametrize("refusing", [True, False])
def test_what_was_done_before_the_workers_died_is_handed_over(refusing):
    """Whether the executor says so as it is given the next task, or with the result of one."""

    class Dying(executors.Serial):
        def submit(self, fn, /, *args, **kwargs):
            if args[0] < 3:
                return super().submit(fn, *args, **kwargs)
            if refusing:
                raise executors.BrokenExecutor
            future = executors.Future()
            future.set_exception(executors.BrokenExecutor())
            return future

    seen = []

    def take() -> None:
        for group in executors.spread(Dying(), abs, range(10)):
            seen.extend(group)
            time.sleep(0.001)  # so that the next results wait to be handed over

    with pytest.raises(executors.WorkerError, match="what was finished is kept"):
        take()
    assert seen == [(0, 0), (1, 1), (2, 2)]


def test_an_error_ends_the_work_and_what_waits_is_cancelled():
    """Of ten thousand units, those that were under way at most are done."""
    begun = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 3:
            raise FormatError("three")
        return number

    with pytest.raises(FormatError, match="three"), ThreadPoolExecutor(1) as pool:
        list(executors.spread(pool, work, range(10_000)))
    assert 3 in begun
    assert len(begun) <= 4 + executors.WINDOW


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "tracetool", *map(str, words)]


def test_processes_give_the_same_bytes_and_go_on_after_a_failed_one(folder, tmp_path):
    alone = tmp_path / "alone"
    list(ingest_each(folder, alone))
    reconstruct(alone)
    done = subprocess.run(
        command("ingest", folder, "-j", 2, "-o", tmp_path / "d"), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 4, done.stderr
    assert done.stderr.count("unknown format") == 2
    assert done.stderr.count(": input '") == 12
    assert "already there as 'c1', skipped" in done.stderr
    done = subprocess.run(
        command("reconstruct", tmp_path / "d", "-j", 2, "-q"), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    made, expected = bytes_of(tmp_path / "d"), bytes_of(alone)
    made.pop("dataset.json")  # the command is noted in it
    expected.pop("dataset.json")
    assert made == expected
    assert list(Dataset.open(tmp_path / "d").inputs) == list(Dataset.open(alone).inputs)


def _die(number: int) -> int:
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_worker_process_that_is_killed_is_told_in_a_line():
    with pytest.raises(executors.WorkerError, match="run it again"), executors.processes(2) as pool:
        list(executors.spread(pool, _die, range(10)))


def _where(_number: int) -> int:
    return os.getpid()


def test_worker_processes_end_with_their_parent(tmp_path):
    """Even if it is killed and can tell them nothing."""
    program = (
        "import sys, time, os\n"
        "from tracetool.executors import processes, spread\n"
        "from tests.scale.test_executors import _where\n"
        "if __name__ == '__main__':\n"
        "    with processes(2) as pool:\n"
        "        for group in spread(pool, _where, range(1)):\n"
        "            print(group[0][1], flush=True)\n"
        "        time.sleep(100)\n"
    )
    (tmp_path / "program.py").write_text(program)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py")],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        text=True,
    )
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    process.kill()
    process.communicate()
    for _ in range(200):
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            break
        time.sleep(0.05)
    else:
        pytest.fail("the worker lives on")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_all_processes_of_a_run_is_told_in_a_line(tmp_path, number):
    """As a terminal's interrupt key and `timeout` send it: workers die, or do not care, and say nothing."""
    for k in range(40):
        (tmp_path / f"c{k}.pcap").write_bytes(captures.pcap(connection(2000 + k, 100)))
    run = subprocess.Popen(
        command("ingest", tmp_path, "-j", 2, "-q", "-o", tmp_path / ".d"),
        cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while run.poll() is None and not list((tmp_path / ".d").rglob("packets/*.parquet")):
        time.sleep(0.01)
    os.killpg(run.pid, number)
    _, told = run.communicate(timeout=120)
    assert run.returncode == 128 + number, told
    assert told == "tracetool: interrupted: what was finished is kept, run it again to go on\n"


def test_units_that_wait_for_a_lost_worker_are_not_cancelled_under_its_pool(capfd):
    """The pool's own thread gives each of them its error, and is disturbed by none that is cancelled meanwhile."""
    with pytest.raises(executors.WorkerError), executors.processes(2) as pool:
        list(executors.spread(pool, _die, range(200)))
    assert capfd.readouterr().err == ""


def test_cores_are_those_that_the_process_is_bound_to():
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from tracetool import executors; "
    printed = subprocess.check_output([sys.executable, "-c", code + "print(executors.cores())"], text=True)
    assert printed == "1\n"
    assert executors.cores() == len(os.sched_getaffinity(0))
