"""xplot files are read by tcptrace's own converter, and use no command that tcptrace does not use."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.report.made import make
from tracetool.report import charts
from tracetool.report.export import render

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
COMMANDS = {"dot", "line", "dtick", "utick", "atext"}


@pytest.fixture(scope="session")
def dataset(tmp_path_factory):
    return make(tmp_path_factory.mktemp("xplot") / "dataset")


def drawing(text: str) -> list[list[str]]:
    """Drawing commands, each with its numbers; the line behind a text command belongs to it."""
    lines = text.splitlines()
    texts = {"title", "xlabel", "ylabel", "atext"}
    kept = [
        line.split() for before, line in zip(["", *lines], lines, strict=False) if before.split(" ")[0] not in texts
    ]
    return [words for words in kept if len(words) > 1 and words[0] != "dtime"]


@pytest.mark.parametrize("name", sorted(charts.CHARTS))
def test_every_command_is_known_and_has_its_numbers(dataset, name):
    found = drawing(str(render(charts.build(name, dataset), "xplot")))
    assert found
    for command, *numbers in found:
        assert command in COMMANDS
        assert len(numbers) == (4 if command == "line" else 2)
        assert np.isfinite([float(number) for number in numbers]).all()


@pytest.mark.skipif(not shutil.which("xpl2gpl") or not shutil.which("gawk"), reason="no xpl2gpl, or no gawk for it")
@pytest.mark.parametrize("name", ["cwnd", "time-sequence", "rtt", "slow-start", "queue"])
def test_tcptraces_converter_reads_all_of_it(dataset, name, tmp_path):
    text = str(render(charts.build(name, dataset), "xplot"))
    (tmp_path / "plot.xpl").write_text(text)
    done = subprocess.run(["xpl2gpl", "plot.xpl"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Bad line" not in done.stdout + done.stderr
    points = [line for line in (tmp_path / "plot.datasets").read_text().splitlines() if line.strip()]
    commands = [words[0] for words in drawing(text)]
    # Text is no point but a label.
    assert len(points) == 2 * commands.count("line") + sum(commands.count(c) for c in ("dot", "dtick", "utick"))
    labels = (tmp_path / "plot.labels").read_text().splitlines()
    assert len(labels) == commands.count("atext")


@pytest.mark.skipif(not shutil.which("tcptrace"), reason="tcptrace is not installed")
def test_tcptrace_begins_its_files_alike_and_knows_the_commands(dataset, tmp_path):
    capture = SAMPLES / "reno-rto.pcap.gz"
    subprocess.run(["tcptrace", "-S", capture], cwd=tmp_path, capture_output=True, check=True)
    theirs = (tmp_path / "a2b_tsg.xpl").read_text()
    ours = str(render(charts.build("time-sequence", dataset), "xplot"))
    heads = [[word for word in text.splitlines() if word in ("title", "xlabel", "ylabel")] for text in (theirs, ours)]
    assert heads[0] == heads[1]
    assert theirs.splitlines()[-1] == ours.splitlines()[-1] == "go"
    assert {"line", "atext"} <= {words[0] for words in drawing(theirs)}
    colors = set(re.findall(r"^[a-z]+$", theirs, re.MULTILINE))
    assert {"green", "white", "red"} <= colors
