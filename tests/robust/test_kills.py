"""Killed at any moment, a run leaves a dataset that opens, and running it again gives what an undisturbed run gives."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tracetool import tables
from tracetool.dataset import Dataset
from tracetool.errors import DatasetError
from tracetool.ingest import ingest
from tracetool.reconstruct import reconstruct

ROOT = Path(__file__).resolve().parents[2]
INPUTS = [str(ROOT / "sample_traces" / name) for name in ("reno-rto.pcap.gz", "reno-rto.tcp_probe.txt.gz")]
KILLS = int(os.environ.get("TRACETOOL_KILLS", "10"))
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
#: Python itself dies of the signal where it comes after the last line of the program.
ENDS = {signal.SIGINT: (0, 130, -2), signal.SIGTERM: (0, 143, -15), signal.SIGKILL: (0, -9)}


def start(*args: str) -> subprocess.Popen:
    child = [sys.executable, "-X", "faulthandler", "-m", "tests.robust.child", *args]
    process = subprocess.Popen(
        child, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": "."}
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def told(process: subprocess.Popen) -> tuple[str, str]:
    """What it printed until it ended; where it does not end, the test fails with the stacks of its threads."""
    try:
        return process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        waits = [path.read_text() for path in Path(f"/proc/{process.pid}/task").glob("*/wchan")]
        process.send_signal(signal.SIGABRT)
        pytest.fail(f"it did not end; its threads wait in {waits}\n{process.communicate(timeout=60)[1]}")


def contents(folder: Path) -> dict[str, pl.DataFrame]:
    """Every table, in an order that does not depend on who was first."""
    dataset = Dataset.open(folder)
    return {name: dataset.read(name).sort("input", maintain_order=True) for name in tables.names()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple[Path, dict[str, pl.DataFrame], dict[str, float]]:
    """A dataset that was only ingested, the tables of a finished one, and how long each step takes."""
    folder = tmp_path_factory.mktemp("undisturbed")
    reconstruct(ingest(INPUTS, folder / "warm"))  # kernels are compiled: that is not what is measured
    took = {}
    for step, args in (("ingest", [*INPUTS, "--out"]), ("reconstruct", [])):
        process = start(step, *args, str(folder / "whole"))
        began = time.monotonic()
        assert process.communicate()[1] is not None
        took[step] = time.monotonic() - began
        assert process.returncode == 0
        if step == "ingest":
            shutil.copytree(folder / "whole", folder / "ingested")
    return folder / "ingested", contents(folder / "whole"), took


@pytest.mark.timeout(3600)
def test_killed_at_random_moments(undisturbed, tmp_path):
    ingested, expected, took = undisturbed
    rng = random.Random(7)
    hit = 0
    for number in range(KILLS):
        folder = tmp_path / str(number)
        step = ("ingest", "reconstruct")[number % 2]
        if step == "reconstruct":
            shutil.copytree(ingested, folder)
        process = start(step, *([*INPUTS, "-q", "--out"] if step == "ingest" else ["-q"]), str(folder))
        time.sleep(rng.uniform(0, took[step]))
        how = rng.choice(SIGNALS)
        process.send_signal(how)
        out, err = told(process)
        assert out == ""
        assert process.returncode in ENDS[how], err
        hit += process.returncode != 0
        assert err.count("tracetool:") <= 1, err
        assert "Traceback (most recent call last):\n" not in err, err  # a library in Rust may tell of a panic, though
        try:
            before = contents(folder)
        except DatasetError as error:
            assert "no dataset there" in str(error)  # killed before there was one
            assert step == "ingest"
        else:
            assert set(before["packets"]["input"].unique()) <= {"reno-rto"}
        reconstruct(ingest(INPUTS, folder))
        for table, frame in contents(folder).items():
            assert_frame_equal(frame, expected[table], check_row_order=True)
        left = [*folder.rglob("*.tmp"), *(path for path in folder.rglob(".parts/**/*") if path.is_file())]
        assert not left
        shutil.rmtree(folder)
    assert hit > KILLS // 4  # kills did meet running commands
