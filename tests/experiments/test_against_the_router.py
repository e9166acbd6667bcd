"""The experiments' tables against the router's own log: drops, bytes and frames that really reached the queue."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import polars as pl
import pytest

from tracetool.experiments.campaign import measure_experiment
from tracetool.experiments.cells import long_table, parts
from tracetool.experiments.contenders import contenders
from tracetool.experiments.layout import layout
from tracetool.experiments.run import measure_run
from tracetool.experiments.sharing import SharingOptions, interval_of
from tracetool.ingest import ingest
from tracetool.measures import jain_index
from tracetool.metrics.fairness import throughput_ratio

SHARED = Path(os.environ.get("TRACETOOL_SHARED", Path(__file__).parents[2].parent / "shared"))
INTRA = SHARED / "experiments" / "intra"
SWEEP = SHARED / "experiments" / "sweep"
RUNS = list(layout(INTRA).runs) if INTRA.is_dir() else []

pytestmark = pytest.mark.skipif(not RUNS, reason="the shared experiments are missing")


def router_log(run):
    """Frames that reached the queue: time, whether they were dropped, bytes, and the source's last octet."""
    text = gzip.decompress((INTRA / run.name / "path.csv.gz").read_bytes())
    log = pl.read_csv(text, schema_overrides={"time": pl.String})
    seconds, fraction = (log["time"].str.split(".").list.get(part).cast(pl.Int64) for part in (0, 1))
    return log.with_columns(time_ns=seconds * 10**9 + fraction, dropped=pl.col("event") == "drop").filter(
        pl.col("event").is_in(["enq", "mark", "drop"])
    )


def interval(run, tmp_path):
    """The overlap of the two flows by the sender's clock, which is the router's."""
    dataset = ingest(dict(run.captures)["sender"], tmp_path / "sender")
    return interval_of(contenders(dataset.read("packets"), dataset.read("flows")).flows, SharingOptions())


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(run, id=run.name, marks=[] if number % 9 == 0 else pytest.mark.slow)
        for number, run in enumerate(RUNS)
    ],
)
def test_run_against_the_router(run, tmp_path):
    values = {value.table: value.value for value in measure_run(run, SharingOptions()).values if value.scale is None}
    log = router_log(run)
    assert values["queue_drop_ratio"] == pytest.approx(log["dropped"].mean(), rel=0.02)
    span = interval(run, tmp_path)
    passed = log.filter(~pl.col("dropped"), pl.col("time_ns").is_between(span.start_ns, span.end_ns, closed="left"))
    used = 8e9 * passed["bytes"].sum() / (run.setting.rate_bps * span.length_ns)
    assert values["link_utilisation"] == pytest.approx(used, rel=0.01)
    sources = passed.group_by("src_octet").agg(pl.col("bytes").sum())["bytes"].to_list()
    assert values["jain"] == pytest.approx(jain_index(sources).value, rel=0.01)
    assert values["throughput_ratio"] == pytest.approx(throughput_ratio(sources).value, rel=0.02)


@pytest.mark.slow
def test_all_tables_and_the_second_call_measures_nothing(tmp_path, monkeypatch):
    first = measure_experiment(INTRA, cache_folder=tmp_path)
    found, warnings = parts(first)
    table = long_table(found)
    assert warnings == []
    assert set(table["table"]) == {
        "jain",
        "throughput_ratio",
        "link_utilisation",
        "queue_drop_ratio",
        "convergence_time",
        "jain_by_scale",
        "cov_by_scale",
    }
    cells = table.filter(pl.col("repetition") == "", pl.col("table") == "jain")
    assert (len(cells), cells["n"].to_list()) == (12, [2] * 12)
    monkeypatch.setattr("tracetool.experiments.campaign.measure_run", None)
    assert long_table(parts(measure_experiment(INTRA, cache_folder=tmp_path))[0]).equals(table)


@pytest.mark.slow
def test_sweep_gives_one_part_per_swept_level():
    found, _ = parts(measure_experiment(SWEEP))
    assert [part.levels for part in found] == [("delay", "protocol"), ("loss", "protocol")]
    lossy = long_table(found).filter(
        pl.col("table") == "retransmission_ratio", pl.col("loss") == "3pct", pl.col("repetition") == ""
    )
    assert all(0.02 < value < 0.04 for value in lossy["value"])
