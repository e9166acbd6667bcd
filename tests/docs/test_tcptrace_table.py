"""docs/tcptrace.md: each line that tcptrace prints has a row, and each column named there exists."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tracetool import tables

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "tcptrace.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")[:2]]
    for line in DOCUMENT.splitlines()
    if line.startswith("| ") and not line.startswith(("| tcptrace", "| ---"))
]


def test_columns_named_in_the_table_exist():
    known = set(tables.columns("flow_stats")) | {f"flows.{name}" for name in tables.columns("flows")}
    named = {name for _, column in ROWS for name in re.findall(r"`([^`]+)`", column)}
    assert len(named) > 60
    assert named <= known


def test_the_document_accounts_for_every_column_of_flow_stats():
    key = set(tables.definition("flow_stats")["key"])
    assert set(tables.columns("flow_stats")) - key <= set(re.findall(r"`([a-z0-9_]+)`", DOCUMENT))


@pytest.mark.skipif(shutil.which("tcptrace") is None, reason="tcptrace is not installed")
def test_every_line_that_tcptrace_prints_has_a_row():
    capture = ROOT / "sample_traces" / "reno-rto.pcap.gz"
    said = subprocess.run(["tcptrace", "-l", "-r", "-W", capture], capture_output=True, text=True, check=True).stdout
    body = said.split("TCP connection 1:")[1]
    labels = set(re.findall(r"^\s+([A-Za-z#][\w#/ .()-]*?):\s+\S", body, re.MULTILINE))
    assert len(labels) > 50
    assert labels - {re.sub(r" \((bytes|pkts|whole connection)\)$", "", row[0]) for row in ROWS} == set()
