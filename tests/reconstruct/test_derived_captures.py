"""Captures with faults still show what the sender knew: begun in mid-connection, lacking frames, every frame twice."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import polars as pl
import pytest

from benchmarks import accuracy
from tracetool.ingest import ingest
from tracetool.reconstruct import reconstruct

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_traces"
TRACES = Path(os.environ.get("TRACETOOL_SHARED", ROOT.parent / "shared")) / "traces"
#: Few that differ: who grows by a cube, by one a round trip, by the bandwidth; losses or none, alone or not, no SACK.
SCENARIOS = ["cubic-base", "cubic-loss", "reno-shallow", "bbr-deep", "bbr-loss", "cubic-vs-bbr", "reno-no-sack"]


def bars_missed(flow):
    """Bars that the flow of one scenario misses."""
    median, p90 = (0.1, 0.3) if flow["cc"] == "bbr" else (0.02, 0.1)
    held = {
        "median": flow["median"] <= median,
        "p90": flow["p90"] <= p90,
        "ssthresh": flow["cc"] == "bbr" or flow["ssthresh"] >= 0.85,
        "srtt": flow["srtt"] <= 0.1,
        "cc": flow["named"] == flow["cc"],
    }
    return [name for name, right in held.items() if not right]


@pytest.mark.parametrize("how", accuracy.DERIVED)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_worse_capture_tells_the_same(name, how, tmp_path):
    if not (TRACES / name).exists():
        pytest.skip(f"the shared trace {name} is not there")
    for flow in accuracy.measured(TRACES / name, "sender", tmp_path, how):
        assert bars_missed(flow) == [], flow


def capture(name, how, folder):
    path = folder / f"{name}.pcap"
    whole = gzip.decompress((SAMPLES / f"{name}.pcap.gz").read_bytes())
    path.write_bytes(accuracy.derive(whole, how) if how else whole)
    return reconstruct(ingest([path], folder / "dataset"))


def truth(name, folder):
    return ingest([SAMPLES / f"{name}.tcp_probe.txt.gz"], folder / "kernel").read("samples").filter(origin="tcp_probe")


@pytest.mark.parametrize("how", accuracy.DERIVED)
def test_a_worse_capture_of_a_sample_tells_the_same(how, tmp_path):
    dataset = capture("reno-sawtooth", how, tmp_path)
    flow = dataset.read("flow_stats").sort("data_bytes").row(-1, named=True)
    mine = dataset.read("samples").filter(flow=flow["flow"], direction=flow["direction"])
    told = truth("reno-sawtooth", tmp_path).filter(pl.col("time").is_between(mine["time"].min(), mine["time"].max()))
    found = accuracy.measures(accuracy.joined(mine, told, "5ms"))
    assert bars_missed({**found, "cc": "reno", "named": flow["cc"]}) == []


@pytest.mark.parametrize("name", ["reno-sawtooth", "cubic-gso", "reno-nanoseconds"])
def test_frames_held_twice_change_no_number(name, tmp_path):
    once, twice = (
        capture(name, how, tmp_path / str(how)) for how in (None, "twice") if not (tmp_path / str(how)).mkdir()
    )
    for table in ("flow_stats", "slow_starts", "recoveries"):
        one, two = (dataset.read(table) for dataset in (once, twice))
        counted = [column for column in one.columns if "frame" not in column]
        assert one.select(counted).equals(two.select(counted)), table


def test_a_threshold_says_what_it_rests_on(tmp_path):
    samples = capture("reno-sawtooth", "late", tmp_path).read("samples")
    known = samples.filter(pl.col("ssthresh_segments").is_not_null())
    assert known["ssthresh_basis"].null_count() == 0
    assert set(known["ssthresh_basis"]) == {"assumed", "replayed"}
    assert (
        samples.filter(pl.col("ssthresh_segments").is_null())["ssthresh_basis"].null_count()
        == samples.height - known.height
    )
