"""compare-runs: the Cake round's table from a folder of Flent files whose numbers are known, and from captures."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tracetool import api
from tracetool.cli import app
from tracetool.errors import InputError, UsageError
from tracetool.experiments.run_folders import RunFiles, label, parameter, runs_in
from tracetool.metrics.runs import NUMBERS, table
from tracetool.report.runs import runs_figure, runs_page

SHARED = Path(os.environ.get("TRACETOOL_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))


def generator():
    spec = importlib.util.spec_from_file_location("flent_files", Path(__file__).with_name("flent_files.py"))
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["flent_files"] = module
    spec.loader.exec_module(module)
    return module


flent_files = generator()
Transfer = flent_files.Transfer
PINGS = [10.0, 20.0, 30.0, 40.0, None]


def cake_run(rtt, up=(3.0, 1.0), down=(6.0, 2.0), **facts):
    """Two hosts, of which one gets more; TCP RTT of rtt ms and twice that."""
    transfers = [
        Transfer("TCP upload::1", "198.51.100.1", up[0], [rtt, 2 * rtt]),
        Transfer("TCP upload::2", "198.51.100.2", up[1]),
        Transfer("TCP download::1", "198.51.100.1", down[0]),
        Transfer("TCP download::2", "198.51.100.2", down[1]),
    ]
    return flent_files.flent_file(transfers, PINGS, title=f"cake rtt {rtt}ms", **facts)


@pytest.fixture
def cake_round(tmp_path):
    """A folder as the Cake round's: a run in each folder, in an order that sorts wrongly as text."""
    for rtt, best in ((200, 3.0), (400, 2.0), (1000, 1.0)):
        folder = tmp_path / "round" / f"cake_rtt_{rtt}ms_rrulbe_eg_cake_18.0mbit"
        flent_files.write(folder / "run.flent.gz", cake_run(rtt, up=(best, 1.0), gap=True))
        (folder / "index.html").write_text("<html>notes</html>")
    return tmp_path / "round"


BY = "rtt=cake_rtt_([0-9]+)ms"


def test_the_cake_round_s_numbers(cake_round):
    frame = api.compare_runs(cake_round, by=[BY])
    assert frame["rtt"].to_list() == [200, 400, 1000]
    row = frame.row(0, named=True)
    expected = {
        "up_bps": 4e6, "down_bps": 8e6, "sum_bps": 12e6,  # from the tools' means, though the grid has gaps
        "ping_mean_ns": 25e6, "ping_median_ns": 25e6, "ping_p95_ns": 38.5e6, "ping_p99_ns": 39.7e6,
        "tcp_rtt_mean_ns": 300e6, "tcp_rtt_p95_ns": 390e6,
        "host_ratio_up": 3.0, "host_jain_up": 0.8, "host_ratio_down": 3.0, "host_jain_down": 0.8,
    }  # fmt: skip
    assert {key: row[key] for key in expected} == pytest.approx(expected)
    assert row["retransmitted_segments"] is None  # Flent does not tell, and nothing else is there
    assert row["ssthresh_segments"] is None
    assert frame["host_ratio_up"].to_list() == [3.0, 2.0, 1.0]


def test_the_command_prints_the_table(cake_round):
    done = CliRunner().invoke(app, ["compare-runs", str(cake_round), "--by", BY, "-q"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0] == "3 runs"
    assert lines[2].split("  ")[0].strip() == "rtt"
    assert [line.split()[0] for line in lines[3:6]] == ["200", "400", "1000"]
    assert "12.00" in lines[3]


@pytest.mark.parametrize("form", ["markdown", "html", "csv", "json"])
def test_other_forms(cake_round, tmp_path, form):
    out = tmp_path / f"table.{form}"
    done = CliRunner().invoke(
        app, ["compare-runs", str(cake_round), "--by", BY, "--format", form, "-o", str(out), "-q"]
    )
    assert done.exit_code == 0, done.output
    text = out.read_text()
    if form == "json":
        assert [row["rtt"] for row in json.loads(text)] == [200, 400, 1000]
        assert set(NUMBERS) <= set(json.loads(text)[0])
    elif form == "csv":
        assert text.splitlines()[0].startswith("run,rtt,up_bps")
    else:
        assert "sum (Mbit/s)" in text
        assert "12.00" in text


def test_a_chart_of_each_number_against_the_parameter(cake_round, tmp_path):
    chart = tmp_path / "chart.txt"
    done = CliRunner().invoke(app, ["compare-runs", str(cake_round), "--by", BY, "--chart", str(chart), "-q"])
    assert done.exit_code == 0, done.output
    assert "bandwidth" in chart.read_text()
    figure = runs_figure(api.compare_runs(cake_round, by=[BY]), "rtt")
    assert figure.panels[0].series[0].x.tolist() == [200, 400, 1000]
    assert figure.panels[0].series[0].y.tolist() == [12, 11, 10]
    assert [panel.y.label for panel in figure.panels] == [
        "bandwidth", "ping", "TCP RTT", "host ratio", "Jain's index over hosts",
    ]  # fmt: skip


def test_runs_may_be_told_apart_by_metadata(tmp_path):
    for name, qdisc in (("a", "fq_codel"), ("b", "cake")):
        flent_files.write(tmp_path / f"{name}.flent.gz", cake_run(50, metadata={"EGRESS_INFO": {"qdisc": qdisc}}))
    frame = api.compare_runs(tmp_path, by=["EGRESS_INFO.qdisc"])
    assert frame["EGRESS_INFO.qdisc"].to_list() == ["cake", "fq_codel"]
    assert api.compare_runs(tmp_path, by=["nothing"])["nothing"].to_list() == [None, None]


def test_repetitions_are_averaged_if_asked_for(tmp_path):
    for name, best in (("rtt_50ms_1", 3.0), ("rtt_50ms_2", 5.0), ("rtt_90ms_1", 1.0)):
        flent_files.write(tmp_path / f"{name}.flent.gz", cake_run(50, up=(best, 1.0)))
    frame = api.compare_runs(tmp_path, by=["rtt=rtt_([0-9]+)ms"], average=True)
    assert frame.select("rtt", "runs", "up_bps").rows() == [(50, 2, 5e6), (90, 1, 2e6)]


def test_what_a_run_does_not_have_is_null_not_zero(tmp_path):
    only_up = flent_files.flent_file([Transfer("TCP upload", "198.51.100.1", 3.0)], [])
    row = api.compare_runs(flent_files.write(tmp_path / "x.flent.gz", only_up)).row(0, named=True)
    assert (row["up_bps"], row["sum_bps"]) == (3e6, 3e6)
    missing = {name for name in NUMBERS if row[name] is None}
    assert missing == set(NUMBERS) - {"up_bps", "sum_bps"}  # one host has nobody to be fair to


def test_a_starved_host_gives_no_ratio(tmp_path):
    transfers = [Transfer("TCP upload::1", "198.51.100.1", 3.0), Transfer("TCP upload::2", "198.51.100.2", 0.5)]
    path = flent_files.write(tmp_path / "x.flent.gz", flent_files.flent_file(transfers, []))
    assert api.compare_runs(path)["host_ratio_up"].item() == 6.0


# -- runs and their files


def test_what_makes_a_run(tmp_path):
    for name in ("a.flent.gz", "b.flent.gz"):
        flent_files.write(tmp_path / "flat" / name, cake_run(50))
    (tmp_path / "flat" / "a-ss.txt").write_text(
        "1796026431\nESTAB 0 0 192.0.2.1:1 192.0.2.9:80\n\t cubic rto:4 rtt:4/2 cwnd:10\n"
    )
    (tmp_path / "flat" / "notes.md").write_text("# notes\n")
    flat = str(tmp_path / "flat")
    assert [(Path(run.name).name, len(run.files)) for run in runs_in([flat])] == [("a.flent.gz", 2), ("b.flent.gz", 1)]
    flent_files.write(tmp_path / "deep" / "one" / "x.flent.gz", cake_run(50))
    (tmp_path / "deep" / "one" / "ss.txt").write_text((tmp_path / "flat" / "a-ss.txt").read_text())
    assert [(Path(run.name).name, len(run.files)) for run in runs_in([tmp_path / "deep"])] == [("one", 2)]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no file there"):
        runs_in([tmp_path / "empty"])


def test_parameters():
    run = RunFiles("runs/cake_rtt_200ms", ())
    assert parameter(run, "rtt=rtt_([0-9]+)ms", {}) == "200"
    assert parameter(run, "speed_([0-9]+)", {}) is None
    assert parameter(run, "name=TITLE", {"TITLE": "x"}) == "x"
    assert label("rtt=rtt_([0-9]+)ms") == "rtt"
    with pytest.raises(UsageError, match="no group"):
        parameter(run, r"(?:rtt)", {})
    with pytest.raises(UsageError, match="no pattern"):
        parameter(run, "rtt_(", {})


def test_numbers_sort_as_numbers_and_names_as_names():
    rows = [{"run": str(i), "x": x} for i, x in enumerate(("1000", "200", None))]
    assert table(rows, ["x"])["x"].to_list() == [200, 1000, None]
    assert table([*rows, {"run": "9", "x": "b"}], ["x"])["x"].to_list() == ["1000", "200", "b", None]
    assert len(table([], ["x"])) == 0


def test_the_page_leaves_out_the_common_folder_and_empty_columns():
    grid = runs_page(table([{"run": "a/b/x", "up_bps": 1e6}, {"run": "a/b/y"}], []), []).blocks[1]
    assert [str(row[0]) for row in grid.rows] == ["x", "y"]
    assert grid.header == ("run", "up (Mbit/s)")
    assert str(grid.rows[1][1]) == "-"


# -- real ones


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not there")
def test_a_folder_of_captures_and_logs_counts_each_transfer_once():
    """cubic-base has two captures, tcp_probe, ss and iperf3 of one flow over a 12 Mbit/s bottleneck."""
    row = api.compare_runs(SHARED / "traces" / "cubic-base").row(0, named=True)
    assert 10.5e6 < row["up_bps"] < 12e6
    assert row["down_bps"] is None
    assert row["retransmitted_segments"] == 7  # as the kernel's counter has it
    assert row["slow_start_exits"] == "hystart_train"
    assert 40e6 < row["tcp_rtt_mean_ns"] < 110e6


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared corpus is not there")
def test_the_generator_writes_what_flent_writes():
    """Same members, same kinds of values, same keys of raw values and of a series' metadata as a real file."""
    path = SHARED / "corpus" / "flent" / "flent__test-tcp_nup.flent.gz"
    real = json.loads(gzip.decompress(path.read_bytes()))
    made = json.loads(json.dumps(cake_run(200)))
    assert set(made) == set(real)
    assert {key: type(made[key]) for key in made} == {key: type(real[key]) for key in real}
    assert set(made["metadata"]) <= set(real["metadata"])
    kinds = {frozenset(value) for series in real["raw_values"].values() for value in series}
    assert {frozenset(value) for series in made["raw_values"].values() for value in series} <= kinds
    told = set().union(*(facts.keys() for facts in real["metadata"]["SERIES_META"].values()))
    assert set().union(*(facts.keys() for facts in made["metadata"]["SERIES_META"].values())) <= told
    assert all(len(values) == len(made["x_values"]) for values in made["results"].values())
