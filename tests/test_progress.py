"""Progress: bars with rate and time left on a terminal, a line for each input elsewhere, nothing with --quiet."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[1] / "sample_traces"
CAPTURE = SAMPLES / "reno-rto.pcap.gz"
LOG = SAMPLES / "reno-rto.tcp_probe.txt.gz"


def tracetool(*words, folder):
    """Run a command with standard error on a terminal; return its standard output and what the terminal got."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tracetool", *map(str, words)]
    environment = {**os.environ, "COLUMNS": "100", "TERM": "xterm"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, cwd=folder, env=environment) as running:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:  # Linux's word for the end of a terminal
                break
            if not part:
                break
            seen += part
        out = running.stdout.read()
    os.close(ours)
    assert running.returncode == 0, seen
    return out.decode(), re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())


def plain(*words, folder):
    command = [sys.executable, "-m", "tracetool", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    return done.stdout, done.stderr.splitlines()


@pytest.fixture
def dataset(tmp_path):
    plain("ingest", CAPTURE, LOG, "--out", "dataset", "--quiet", folder=tmp_path)
    return tmp_path / "dataset"


TIME_LEFT = r" \d\d:\d\d"


def test_ingest_has_a_bar_for_each_input(tmp_path):
    out, seen = tracetool("ingest", CAPTURE, LOG, "--out", "dataset", folder=tmp_path)
    assert out == ""
    assert re.search(r"reno-rto\.pcap\.gz ━+ ", seen)  # done between two pictures, perhaps: its end is not seen
    assert re.search(r"reno-rto\.tcp_probe\.txt\.gz ━+ 18\.5/18\.5 kB, [\d.]+ [kMGT]?B/s" + TIME_LEFT, seen)


def test_reconstruct_counts_packets(dataset):
    _, seen = tracetool("reconstruct", "dataset", folder=dataset.parent)
    assert re.search(r"reno-rto ━+ 1,752/1,752 packets, [\d.]+ ?[kMG]?/s" + TIME_LEFT, seen)


def test_fairness_of_an_experiment_counts_runs(tmp_path):
    out, seen = tracetool("fairness", SAMPLES / "experiment.toml", folder=tmp_path)
    assert "Intra-Protocol Fairness" in out
    assert re.search(r"experiment\.toml ━+ 1/1 runs", seen)


def test_report_counts_what_it_reads_and_draws(tmp_path):
    out, seen = tracetool("report", CAPTURE, "-o", "page.html", folder=tmp_path)
    assert out == ""
    for part in (r"reno-rto\.pcap\.gz [━╸╺ ]+", r"page\.html [━╸╺ ]+ \d/7 charts"):
        assert re.search(part, seen), part


def test_bars_do_not_take_standard_output(tmp_path):
    out, seen = tracetool("flows", CAPTURE, folder=tmp_path)
    assert out == plain("flows", CAPTURE, folder=tmp_path)[0]
    assert "10.0.0.10:44053" in out
    assert "10.0.0.10:44053" not in seen


@pytest.mark.parametrize("words", [("ingest", CAPTURE, "--out", "new"), ("reconstruct", "dataset"),
                                   ("fairness", SAMPLES / "experiment.toml"), ("report", CAPTURE, "-o", "p.html"),
                                   ("flows", CAPTURE)])  # fmt: skip
def test_quiet_is_silent_on_a_terminal_and_off_it(dataset, words):
    assert tracetool(*words, "--quiet", folder=dataset.parent)[1] == ""
    assert plain(*words, "--quiet", folder=dataset.parent)[1] == []


def test_off_a_terminal_each_input_has_one_line(dataset):
    folder = dataset.parent
    _, lines = plain("ingest", CAPTURE, LOG, "--out", "new", folder=folder)
    assert [
        sum(f"{path}: {kind}," in line for line in lines) for path, kind in ((CAPTURE, "pcap"), (LOG, "tcp_probe"))
    ] == [1, 1]
    _, lines = plain("reconstruct", "dataset", folder=folder)
    assert lines[0] == "tracetool: reno-rto: 1,752 packets"
    _, lines = plain("report", CAPTURE, "-o", "p.html", folder=folder)
    assert [line.split(": ")[-1] for line in lines if "p.html" in line] == ["7 charts"]
    assert sum(str(CAPTURE) in line for line in lines) == 1
    assert plain("flows", CAPTURE, folder=folder)[1] == []
