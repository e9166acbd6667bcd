"""Small versions of the ingest benchmark: the result, not the time."""

from __future__ import annotations

import polars as pl
import pyarrow.parquet as pq
import pytest

from benchmarks.generate import write
from tracetool import writer
from tracetool.ingest import ingest


@pytest.mark.parametrize(("packets", "flows"), [(30_000, 1), (30_000, 40), (30_000, 3_000), (5_000, 5_000)])
def test_every_packet_and_flow_is_there(tmp_path, packets, flows):
    write(str(tmp_path / "made.pcap"), packets, flows)
    dataset = ingest(tmp_path / "made.pcap", tmp_path / "out")
    rows = dataset.read("packets")
    assert rows["frame"].sort().to_list() == list(range(1, packets + 1))
    height = dataset.read("flows").height
    assert height == rows.filter(pl.col("flags") == 2).height  # each opens with one SYN
    assert 0.99 * flows <= height <= flows  # the last ones may not come to that
    found = dataset.read("flows").select("packets_a2b", "packets_b2a").sum().row(0)
    assert sum(found) == packets
    assert rows.select("flow", "direction", "frame").equals(rows.select("flow", "direction", "frame").sort(pl.all()))
    assert dataset.read("diagnostics").filter(pl.col("severity") == "error").is_empty()


def test_connections_under_way_show_no_handshake(tmp_path):
    write(str(tmp_path / "made.pcap"), 10_000, 30, under_way=True)
    dataset = ingest(tmp_path / "made.pcap", tmp_path / "out")
    assert dataset.read("packets").height == 10_000
    assert dataset.read("packets").filter(pl.col("flags") & 2 > 0).is_empty()
    assert dataset.read("flows").height == 30


def test_row_groups_and_size(tmp_path, monkeypatch):
    from tracetool.packets import decoder

    monkeypatch.setattr(decoder.Decoder.__init__, "__defaults__", (10_000,))
    monkeypatch.setattr(writer, "ROW_GROUP", 5_000)
    write(str(tmp_path / "made.pcap"), 35_000, 20)
    (file,) = ingest(tmp_path / "made.pcap", tmp_path / "out").files("packets")
    facts = pq.ParquetFile(file).metadata
    assert [facts.row_group(k).num_rows for k in range(facts.num_row_groups)] == [5_000] * 7
    assert file.stat().st_size / 35_000 <= 12  # with small row groups
    rows = pl.read_parquet(file).select("flow", "direction", "frame")
    for start in range(0, 35_000, 10_000):
        group = rows[start : start + 10_000]
        assert group.equals(group.sort(pl.all()))
        assert sorted(group["frame"]) == list(range(start + 1, min(start + 10_000, 35_000) + 1))
