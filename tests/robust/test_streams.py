"""Standard streams that are closed or full, and outputs that are no files: one line, and no device replaced."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.fuzz import captures
from tests.fuzz.frames import connection

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def capture(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("in") / "c.pcap"
    path.write_bytes(captures.pcap(connection(40, 500)))
    return path


def shell(line: str, *words: object) -> subprocess.CompletedProcess:
    """Run a command in a shell; ``@`` is tracetool and its words."""
    command = shlex.join([sys.executable, "-m", "tracetool", *map(str, words)])
    return subprocess.run(
        ["sh", "-c", line.replace("@", command)], cwd=ROOT, capture_output=True, text=True, check=False
    )


def one_line(done: subprocess.CompletedProcess) -> str:
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("tracetool: ")
    return lines[0]


def test_standard_input_that_is_closed(tmp_path):
    done = shell("@ <&-", "ingest", "-", "-o", tmp_path / "d")
    assert done.returncode == 3
    assert one_line(done) == "tracetool: -: standard input is closed"


@pytest.mark.parametrize("words", [["flows"], ["plot-cwnd"], ["export", "packets"]])
def test_standard_output_that_is_closed(capture, words):
    done = shell("@ >&-", *words, capture)
    assert done.returncode == 1
    assert one_line(done) == "tracetool: standard output is closed"


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["flows"], ["plot-cwnd", "-o", "-", "--to", "png"], ["--help"]])
def test_standard_output_that_is_full(capture, words):
    done = shell("@ >/dev/full", *words, *([capture] if "--help" not in words else []))
    assert done.returncode == 1, done.stderr
    assert "No space left on device" in one_line(done)


def test_standard_error_that_is_closed(capture, tmp_path):
    """Notes go nowhere: neither to standard output nor into a table that was opened in its place."""
    done = shell("@ 2>&-", "ingest", capture, "-o", tmp_path / "d")
    assert (done.returncode, done.stdout) == (0, "")
    done = shell("@ 2>&- <&- >&-", "ingest", capture, "-o", tmp_path / "e")
    assert done.returncode == 0
    assert (tmp_path / "e" / "flows" / "c.parquet").read_bytes() == (
        tmp_path / "d" / "flows" / "c.parquet"
    ).read_bytes()


@pytest.mark.parametrize("words", [["report"], ["export", "flows"], ["plot-cwnd"], ["fairness"]])
@pytest.mark.parametrize("place", ["nowhere/x", "folder"])
def test_an_output_that_cannot_be_written(capture, tmp_path, words, place):
    suffix = {"export": ".csv", "plot-cwnd": ".svg"}.get(words[0], ".html")
    (tmp_path / f"folder{suffix}").mkdir()
    (tmp_path / "nowhere").write_text("in the way")
    done = shell("@", *words, capture, "-q", "-o", tmp_path / f"{place}{suffix}")
    assert done.returncode == 1, done.stderr
    assert "cannot be written" in one_line(done)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"folder{suffix}", "nowhere"]


def test_an_output_that_is_a_pipe_stays_one(capture, tmp_path):
    """Nor would /dev/null stay what it is, where root runs the command."""
    pipe = tmp_path / "page.html"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    done = shell("@", "report", capture, "-q", "-o", pipe)
    assert (done.returncode, done.stderr) == (0, "")
    reader.join(60)
    assert read[0].startswith(b"<!doctype html>") or read[0].startswith(b"<!DOCTYPE html>")
    assert pipe.is_fifo()
