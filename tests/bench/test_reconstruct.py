"""Small versions of the reconstruction benchmark: the result, not the time."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from benchmarks.generate import write
from tracetool.ingest import ingest
from tracetool.reconstruct import driver, reconstruct, whole_flows

TABLES = ("samples", "rtts", "events", "recoveries", "slow_starts", "flow_stats")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    write(str(folder / "made.pcap"), 40_000, 30)
    return reconstruct(ingest(folder / "made.pcap", folder / "out"))


def test_every_flow_is_told_of(made):
    flows, stats = made.read("flows"), made.read("flow_stats")
    assert stats["packets"].sum() == 40_000
    assert set(stats["flow"]) == set(flows["flow"])
    assert stats.height == 2 * flows.height
    acks = made.read("packets").filter(pl.col("direction") == "b2a", (pl.col("flags") & 2) == 0)
    assert made.read("samples").height == acks.height, "one sample for each ACK of the data's receiver"
    again = ["retransmission", "spurious_retransmission", "tail_loss_probe"]
    sent_again = made.read("events").filter(pl.col("kind").is_in(again))
    assert sent_again.height == stats["retransmitted_packets"].sum() > 0


@pytest.mark.parametrize(("batch", "waiting"), [(500, 1 << 20), (500, 0), (1 << 20, 0)])
def test_the_size_of_batches_and_what_waits_on_the_disk_change_nothing(made, tmp_path, monkeypatch, batch, waiting):
    monkeypatch.setattr(whole_flows, "BATCH_ROWS", batch)
    monkeypatch.setattr(whole_flows, "WAITING_BYTES", waiting)
    monkeypatch.setattr(whole_flows, "SLICE_ROWS", max(batch // 3, 7))
    monkeypatch.setattr(driver, "STATS_FLOWS", 7)
    again = ingest(made.path.parent / "made.pcap", tmp_path / "again")
    reconstruct(again)
    for table in TABLES:
        assert_frame_equal(again.read(table), made.read(table))


def test_one_flow_alone_is_as_with_the_others(made, tmp_path):
    flow = made.read("samples")["flow"].mode().min()
    alone = ingest(made.path.parent / "made.pcap", tmp_path / "alone")
    reconstruct(alone, flow=flow)
    for table in TABLES:
        assert_frame_equal(alone.read(table), made.read(table).filter(pl.col("flow") == flow))


def test_many_short_flows(tmp_path):
    write(str(tmp_path / "made.pcap"), 20_000, 2_000)
    dataset = reconstruct(ingest(tmp_path / "made.pcap", tmp_path / "out"))
    stats = dataset.read("flow_stats")
    assert stats["packets"].sum() == 20_000
    assert stats["cc"].drop_nulls().is_empty(), "too short to tell"
