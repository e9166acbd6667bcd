"""Counts from captures against the counters of the kernels that sent and received the packets."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pytest

from tracetool.ingest import ingest
from tracetool.metrics.loss import loss
from tracetool.metrics.out_of_sequence import CLASSES, out_of_sequence
from tracetool.metrics.reordering import reordering
from tracetool.metrics.reordering_by_sack import reordering_by_sack
from tracetool.metrics.rtt import rtt_timestamp

SHARED = Path(os.environ.get("TRACETOOL_SHARED", Path(__file__).parents[2].parent / "shared"))
TRACES = SHARED / "traces"

pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="the shared traces are missing")


def counters(name):
    rows = (line.split() for line in (TRACES / name / "nstat.txt").read_text().splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}


@pytest.fixture
def packets(tmp_path):
    def reading(name, side="sender"):
        return ingest(TRACES / name / f"{side}.pcap.gz", tmp_path / side).read("packets")

    return reading


@pytest.mark.parametrize(
    "name", ["cubic-loss", "cubic-gso", "reno-no-sack", "cubic-no-timestamps", "two-cubic", "bbr-base"]
)
def test_retransmitted_segments(name, packets):
    found = loss(packets(name))
    assert found["retransmitted"].sum() == counters(name)["TcpRetransSegs"]


def test_duplicates_that_the_receiver_reported(packets):
    assert loss(packets("cubic-reorder"))["spurious"].sum() == counters("cubic-reorder")["TcpExtTCPDSACKRecv"]


@pytest.mark.parametrize("name", ["cubic-loss", "reno-heavy-loss-rto", "bbr-base", "two-cubic"])
def test_timeouts_and_classes(name, packets):
    rows = packets(name)
    found = out_of_sequence(rows, rtt_timestamp(rows))
    total = {kind: found[kind].sum() for kind in CLASSES}
    told = counters(name)
    assert total["retransmission-timeout"] == told["TcpExtTCPTimeouts"]
    assert total["retransmission-fast"] == pytest.approx(told["TcpExtTCPFastRetrans"], rel=0.05)
    assert sum(total.values()) == told["TcpRetransSegs"]
    assert total["reordered"] == 0


def test_reordering_on_a_path_that_reorders(packets):
    configured = json.loads((TRACES / "cubic-reorder" / "scenario.json").read_text())["reorder"]
    behind = packets("cubic-reorder", "receiver").filter(pl.col("protocol") == "tcp")
    bulk = reordering(behind).sort("packets").row(-1, named=True)
    # About eight thousand packets: three standard deviations of the configured share.
    spread = 3 * (configured * (1 - configured) / bulk["packets"]) ** 0.5
    assert bulk["ratio"] == pytest.approx(configured, abs=spread)
    classes = out_of_sequence(behind, rtt_timestamp(behind))
    assert classes["reordered"].sum() == bulk["reordered"]
    seen = reordering_by_sack(packets("cubic-reorder")).sort("segments").row(-1, named=True)
    assert 0.9 * bulk["reordered"] <= seen["reordered"] <= bulk["reordered"]


@pytest.mark.parametrize("name", ["cubic-loss", "cubic-base", "bbr-base"])
def test_loss_is_no_reordering(name, packets):
    assert reordering(packets(name, "receiver"))["reordered"].sum() == 0
    assert reordering_by_sack(packets(name))["reordered"].sum() == 0
