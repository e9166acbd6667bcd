"""The stage as a whole: which tables appear, what is done again, and that batches and spilling change nothing."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from tests.fuzz import captures, frames
from tracetool.dataset import Dataset
from tracetool.ingest import ingest
from tracetool.reconstruct import driver, reconstruct, whole_flows
from tracetool.reconstruct.batch import batch_of
from tracetool.reconstruct.driver import INFERRED

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
CAPTURE = SAMPLES / "two-reno.pcap.gz"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return reconstruct(ingest([CAPTURE], tmp_path_factory.mktemp("driver") / "dataset"))


def test_all_tables_are_there_and_the_vantage_is_in_flows(done):
    files = done.manifest()["inputs"][done.inputs[0]]["stages"]["reconstruct"]["files"]
    assert set(INFERRED) <= set(files)
    flows = done.read("flows")
    assert flows["flow"].to_list() == list(range(flows.height)), "each flow once, though two stages wrote the table"
    assert set(flows["vantage"]) == {"sender"}
    stats = done.read("flow_stats")
    assert stats.height == 2 * flows.height
    assert stats["packets"].sum() == done.read("packets").height


def test_what_is_done_is_not_done_again_unless_asked(done):
    name = done.inputs[0]
    path = done.path / "events" / f"{name}.parquet"
    before = path.stat().st_mtime_ns
    reconstruct(done)
    assert path.stat().st_mtime_ns == before
    reconstruct(done.path, force=True)
    assert path.stat().st_mtime_ns > before


def test_one_flow_alone_and_then_the_rest(tmp_path):
    dataset = ingest([CAPTURE], tmp_path / "dataset")
    told = []
    reconstruct(dataset, flow=1, progress=lambda *what: told.append(what))
    assert set(dataset.read("flow_stats")["flow"]) == {1}
    assert told[-1][1] == told[-1][2] > 0
    reconstruct(dataset)
    assert set(dataset.read("flow_stats")["flow"]) == set(dataset.read("flows")["flow"])


def test_a_capture_without_packets_has_all_tables(tmp_path):
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    dataset = reconstruct(ingest([empty], tmp_path / "dataset"))
    assert [dataset.read(table).height for table in INFERRED] == [0] * len(INFERRED)


@pytest.mark.parametrize("waiting", [0, 2000, 1 << 20])
@pytest.mark.parametrize("size", [1, 1000, 1 << 18])
def test_batches_hold_whole_flows_in_order(done, tmp_path, monkeypatch, size, waiting):
    # small row groups: every flow is in many of them
    rows = pq.read_table(done.files("packets")[0])
    path = tmp_path / "packets.parquet"
    with pq.ParquetWriter(path, rows.schema) as writer:
        for start in range(0, rows.num_rows, 500):
            part = rows.sort_by("frame").slice(start, 500)
            writer.write_table(
                part.sort_by([("flow", "ascending"), ("direction", "ascending"), ("frame", "ascending")])
            )
    monkeypatch.setattr(whole_flows, "BATCH_ROWS", size)
    monkeypatch.setattr(whole_flows, "SLICE_ROWS", 170)
    monkeypatch.setattr(whole_flows, "WAITING_BYTES", waiting)
    flows = done.read("flows").sort("flow")
    counts = flows.select(pl.sum_horizontal("packets_a2b", "packets_b2a")).to_series().to_numpy()
    expected = done.read("packets").sort("flow", "frame")
    seen = []
    for rows in whole_flows.whole_flows(path, counts):
        batch = batch_of(rows)
        for index, flow in enumerate(batch.flows.tolist()):
            mine = slice(batch.bounds[index], batch.bounds[index + 1])
            theirs = expected.filter(pl.col("flow") == flow)
            assert batch.frame[mine].tolist() == theirs["frame"].to_list()
            assert batch.seq[mine].tolist() == theirs["seq"].to_list()
            edges = batch.sacks[batch.sack_at[mine.start] : batch.sack_at[mine.stop]]
            assert edges.tolist() == theirs["sack"].explode().drop_nulls().to_list()
            seen.append(flow)
    assert sorted(seen) == flows["flow"].to_list()


@given(st.lists(st.integers(0, 9)), st.integers(1, 12))
def test_a_batch_has_as_many_flows_as_fit(packets, size):
    expected, batch, filled = [], 0, 0
    for count in packets:
        if filled + count > size and filled:
            batch, filled = batch + 1, 0
        expected.append(batch)
        filled += count
    found = whole_flows._batches(np.array(packets, np.int64), size).tolist()
    pairs = list(pairwise(at for at, count in enumerate(packets) if count))  # flows without packets may be anywhere
    assert [found[a] == found[b] for a, b in pairs] == [expected[a] == expected[b] for a, b in pairs]
    assert found == sorted(found)


def test_rows_of_many_batches_share_row_groups(done, tmp_path, monkeypatch):
    monkeypatch.setattr(whole_flows, "BATCH_ROWS", 1)  # each flow is a batch
    groups = {}
    for rows in (1000, 1 << 16):
        monkeypatch.setattr(driver, "WRITTEN_ROWS", rows)
        again = reconstruct(ingest([CAPTURE], tmp_path / str(rows)))
        for table in INFERRED:
            key = [name for name in ("flow", "direction", "time", "frame") if name in again.read(table).columns]
            assert_frame_equal(again.read(table).sort(key), done.read(table).sort(key))
        written = pq.ParquetFile(again.files("samples")[0]).metadata
        groups[rows] = [written.row_group(at).num_rows for at in range(written.num_row_groups)]
    total = sum(groups[1 << 16])
    assert groups[1 << 16] == [total]
    assert sum(groups[1000]) == total > 2000
    assert all(rows % 1000 == 0 for rows in groups[1000][:-1]), "but for the last, they are full"


def test_unwanted_flows_are_left_out(done):
    counts = np.array([0, *(0 for _ in range(done.read("flows").height - 1))])
    assert list(whole_flows.whole_flows(done.files("packets")[0], counts)) == []


def test_a_kernel_log_tells_its_slow_start(tmp_path):
    causes = {}
    for name in ("cubic-hystart-train", "cubic-hystart-delay", "cubic-loss-exit"):
        dataset = reconstruct(ingest([SAMPLES / f"{name}.tcp_probe.txt.gz"], tmp_path / name))
        samples = dataset.read("samples")
        data = samples.group_by("flow").len().sort("len")["flow"][-1]
        starts = dataset.read("slow_starts").filter(pl.col("flow") == data).sort("episode")
        causes[name] = starts["exit_cause"][0]
        set_at = samples.filter((pl.col("flow") == data) & pl.col("ssthresh_segments").is_not_null())["time"].min()
        assert starts["end"][0] == set_at
        assert {"flow_stats", "recoveries", "rtts"} <= set(
            dataset.manifest()["inputs"][dataset.inputs[0]]["stages"]["reconstruct"]["files"]
        )
        assert samples["origin"].unique().to_list() == ["tcp_probe"], "the kernel's samples are left as they are"
    assert causes == {
        "cubic-hystart-train": "hystart_train",
        "cubic-hystart-delay": "hystart_delay",
        "cubic-loss-exit": "loss",
    }


def test_a_dataset_of_several_inputs(tmp_path):
    dataset = ingest([CAPTURE, SAMPLES / "reno-rto.ss.txt.gz"], tmp_path / "dataset")
    reconstruct(str(tmp_path / "dataset"))
    assert set(Dataset.open(dataset.path).read("flow_stats")["input"]) == {"two-reno"}
    recoveries = dataset.read("recoveries").filter(pl.col("input") != "two-reno")
    assert "rto" in recoveries["kind"].to_list()
    assert_frame_equal(
        dataset.read("flows").select("input").unique().sort("input"), pl.DataFrame({"input": sorted(dataset.inputs)})
    )


def test_words_that_are_there_twice_are_stored_once(tmp_path):
    from tracetool.reconstruct.samples import dictionary

    column = dictionary(np.array([0, 2, -1, 1, 3], np.int8), ("a", "a", "b", "c"))
    pq.write_table(pa.table({"word": column}), tmp_path / "words.parquet")
    assert pq.read_table(tmp_path / "words.parquet")["word"].to_pylist() == ["a", "b", None, "a", "c"]
    assert len(column.dictionary) == 3


def test_a_clock_that_goes_back_gives_no_times_below_zero(tmp_path):
    packets = [
        captures.enhanced(frame, time=captures.START * 10**9 - number * 10**6)
        for number, frame in enumerate(frames.connection(30))
    ]
    (tmp_path / "back.pcapng").write_bytes(b"".join([captures.section(), captures.interface(), *packets]))
    dataset = reconstruct(ingest(tmp_path / "back.pcapng", tmp_path / "out"))
    starts, stats = dataset.read("slow_starts"), dataset.read("flow_stats")
    assert starts.height
    assert starts["min_rtt_ns"].null_count() == starts.height
    assert stats["idle_max_ns"].null_count() == stats.height
    numbers = stats.select(pl.selectors.numeric())
    assert {name: numbers[name].min() for name in numbers.columns if (numbers[name].min() or 0) < 0} == {}


def test_a_column_that_packets_have_gained_since_is_unknown(tmp_path):
    """As in a dataset that an earlier version wrote."""
    dataset = ingest(Path(__file__).resolve().parents[2] / "sample_traces" / "two-reno.pcap.gz", tmp_path)
    (file,) = dataset.files("packets")
    pl.read_parquet(file).drop("interface").write_parquet(file)
    assert reconstruct(dataset).read("flow_stats").height == 4
