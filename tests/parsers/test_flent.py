"""Flent's data files: raw values, socket statistics, pings, totals, metadata, all versions."""

# ruff: noqa: E501 - data in its own layout
from __future__ import annotations

import bz2
import gzip
import json

import pytest

from tracetool import parsers, sources

T0 = 1_588_855_600


def upload(*values):
    return [{"t": T0 + i / 5, **value} for i, value in enumerate(values)]


def data(version=4, raw=None, **metadata):
    raw = raw or {
        "TCP upload": upload({"dur": 0.2, "val": 9.0}, {"tcp_cwnd": 10.0, "tcp_rtt": 20.698, "tcp_rtt_var": 10.349,
                             "tcp_pacing_rate": 11.19, "tcp_delivery_rate": 0.28}, {"dur": 0.2, "val": 11.0}),
        "Ping (ms) ICMP": [{"seq": 1, "t": T0 + 0.5, "val": 20.5}],
    }  # fmt: skip
    meta = {
        "NAME": "rrul_be", "TITLE": "cake rtt 200ms", "HOST": "server", "LOCAL_HOST": "client", "LENGTH": 10,
        "TOTAL_LENGTH": 20, "STEP_SIZE": 0.2, "T0": "2020-05-07T12:46:40.000000Z",
        "SERIES_META": {
            "TCP upload": {"MEAN_VALUE": 10.0, "UNITS": "Mbits/s", "RUNNER": "NetperfDemoRunner", "CONG_CONTROL": "cubic",
                           "COMMAND": "netperf -P 0 -H 198.51.100.7 -t TCP_STREAM"},
            "TCP upload sum": {"MEAN_VALUE": 10.0, "RUNNER": "SumRunner"},
        },
        "EGRESS_INFO": {"qdisc": "cake", "target": [1, 2]},
    } | metadata  # fmt: skip
    results = {name: [None, 1.5] for name in raw} | {"TCP upload::tcp_cwnd": [9.7, None], "TCP upload sum": [1, 2]}
    file = {"metadata": meta, "raw_values": raw, "results": results, "version": version, "x_values": [0, 0.2]}
    return {key: value for key, value in file.items() if value is not None}


def text(file):
    return json.dumps(file, indent=2, sort_keys=True)


def test_socket_statistics_become_samples(read):
    run = text(data())
    assert parsers.detect(run.encode(), "test").NAME == "flent"
    result = read(run)
    assert result.nanoseconds() == [(T0 * 10 + 2) * 100_000_000]
    expected = {
        "origin": "flent", "direction": "a2b", "cwnd_segments": 10, "srtt_ns": 20_698_000, "rttvar_ns": 10_349_000,
        "pacing_rate_bps": 11_190_000, "delivery_rate_bps": 280_000, "ssthresh_segments": None, "phase": None,
    }  # fmt: skip
    row = result.row()
    assert {key: row[key] for key in expected} == expected
    assert not result.log.rows


def test_pings_become_round_trips(read):
    result = read(text(data()))
    ping = result.row("rtts")
    assert (ping["method"], ping["rtt_ns"], result.nanoseconds(table="rtts")) == (
        "ping", 20_500_000, [(T0 * 2 + 1) * 500_000_000],
    )  # fmt: skip
    assert result.rows("flows")[ping["flow"]]["protocol"] == "icmp"


def test_series_are_flows_and_computed_ones_are_not(read):
    result = read(text(data()))
    told = result.metadata()
    assert {key: value for key, value in told.items() if key.startswith("flow.")} == {
        "flow.0.series": "Ping (ms) ICMP", "flow.1.series": "TCP upload", "flow.1.cc": "cubic",
    }  # fmt: skip
    flow = result.rows("flows")[1]
    assert (flow["addr_a"], flow["addr_b"], flow["port_a"]) == ("client", "198.51.100.7", None)


def test_totals_come_from_the_tool_not_from_the_grid(read):
    by_mean = read(text(data()))
    assert by_mean.rows("flows")[1]["payload_bytes_a2b"] == 12_500_000  # 10 Mbit/s for 10 s
    meta = data()["metadata"]["SERIES_META"]
    meta["TCP upload"] |= {"BYTES_SENT": 777, "BYTES_RECVD": 700}
    assert read(text(data(SERIES_META=meta))).rows("flows")[1]["payload_bytes_a2b"] == 777


def test_downloads_go_the_other_way(read):
    result = read(
        text(data(raw={"TCP download": upload({"val": 1.0})}, SERIES_META={"TCP download": {"MEAN_VALUE": 8}}))
    )
    assert result.row("flows")["payload_bytes_b2a"] == 10_000_000
    assert result.row("flows")["payload_bytes_a2b"] is None


def test_metadata_are_kept_by_dotted_path(read):
    told = read(text(data())).metadata()
    assert told["TITLE"] == "cake rtt 200ms"
    assert told["EGRESS_INFO.qdisc"] == "cake"
    assert told["EGRESS_INFO.target.1"] == "2"
    assert told["SERIES_META.TCP upload.MEAN_VALUE"] == "10.0"
    assert told["flent.file_version"] == "4"


def test_bbr_s_numbers(read):
    sample = {"tcp_cwnd": 80, "tcp_rtt": 40.5, "tcp_bbr_bw": 12.0, "tcp_bbr_mrtt": 40.2}
    gains = {"tcp_bbr_pacing_gain": 1.25, "tcp_bbr_cwnd_gain": 2.0}
    result = read(text(data(raw={"TCP upload": upload(sample | gains, sample)})))
    assert result.column("phase") == ["probe_bw", None]
    assert result.column("min_rtt_ns") == [40_200_000] * 2


def test_version_1_keeps_raw_values_with_the_series_or_not_at_all(read):
    meta = {"TCP upload": {"RAW_VALUES": upload({"tcp_cwnd": 7})}}
    old = data(version=None, SERIES_META=meta)
    del old["raw_values"]
    assert read(text(old)).column("cwnd_segments") == [7]
    del old["metadata"]["SERIES_META"]
    result = read(text(old))
    assert "no_raw_values" in result.codes
    assert len(result.frames["samples"]) == 0  # the grid is interpolated: nothing of it is kept
    assert result.metadata()["flent.file_version"] == "1"


def test_a_later_version_is_told(read):
    assert "version 9" in read(text(data(version=9))).message("unknown_version")


@pytest.mark.parametrize("value", ["NaN", "null", "Infinity", '"x"', "-3"])
def test_what_is_no_number_is_left_out_and_counted(read, value):
    run = text(data()).replace("20.5", value).replace("20.698", value)
    result = read(run)
    assert len(result.frames["rtts"]) == 0
    assert result.row()["srtt_ns"] is None
    assert "no_number" in result.codes


def test_other_series_are_passed_over(read):
    result = read(text(data(raw={"cpu_stats_x": [{"t": T0, "load": 1}], "VoIP": [{"t": T0, "val": 3.0}]})))
    assert result.column("protocol", "flows") == ["tcp"]  # known by its metadata


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, bytes])
def test_compression_is_looked_through(tmp_path, read, packed):
    path = tmp_path / "run.flent.gz"
    path.write_bytes(packed(text(data()).encode()))
    with sources.Source(str(path)).open() as stream:
        assert parsers.detect(stream.head(), "test").NAME == "flent"


def test_a_file_that_ends_early_keeps_what_came_before(read):
    run = text(data())
    result = read(run[: run.index('"dur": 0.2,\n        "t": 1588855600.4')])
    assert len(result.frames["samples"]) == 1
    assert result.log.damaged
    assert "ends early" in result.message("damaged_json")


@pytest.mark.parametrize("chunk", [1, 37])
def test_any_chunking_gives_the_same_tables(read, chunk):
    whole, parts = read(text(data())), read(text(data()), chunk=chunk)
    for table, frame in whole.frames.items():
        assert frame.equals(parts.frames[table], null_equal=True), table


def test_mutations_raise_nothing_unexpected(survives):
    survives(
        text(data()).encode(), "flent", [b"9" * 30, b"[", b"{", b'"', b"null", b"-1", b"1e999", b",", b"[]", b"\xff"]
    )


@pytest.mark.parametrize(
    ("name", "tables", "told"),
    [
        ("test-rrul-icmp", {"flows": 9, "rtts": 747, "samples": 0}, {"SERIES_META.TCP upload BE.MEAN_VALUE": "22.02"}),
        ("test-tcp_nup", {"flows": 51, "rtts": 99, "samples": 1506}, {"flent.file_version": "3", "IP_VERSION": "6"}),
        ("test-tcp_1up_noping-cpu_stats", {"flows": 1, "rtts": 0, "samples": 0}, {"flow.0.cc": "cubic"}),
        ("test-voip-1up", {"flows": 1, "rtts": 0, "samples": 0}, {"NAME": "voip-1up"}),
        ("test-http", {"flows": 0, "rtts": 0, "samples": 0}, {"HTTP_GETTER_WORKERS": "4"}),
    ],
)
def test_files_of_the_corpus(read_file, name, tables, told):
    result = read_file(f"corpus/flent/flent__{name}.flent.gz")
    assert result.parser == "flent"
    assert {table: len(result.frames[table]) for table in tables} == tables
    assert told.items() <= result.metadata().items()
    assert not result.log.damaged


def test_values_of_the_corpus_by_hand(read_file):
    result = read_file("corpus/flent/flent__test-tcp_nup.flent.gz")
    first = next(int(key.split(".")[1]) for key, value in result.metadata().items() if value == "TCP upload::1")
    import polars as pl

    sample = result.frames["samples"].filter(pl.col("flow") == first).row(0, named=True)
    assert (sample["cwnd_segments"], sample["srtt_ns"], sample["rttvar_ns"]) == (23, 27_460_000, 2_161_000)
    assert result.row("rtts")["rtt_ns"] == 138_000_000
    bulk = read_file("corpus/flent/flent__test-tcp_1up_noping-cpu_stats.flent.gz").row("flows")
    assert bulk["payload_bytes_a2b"] == 3_545_923_584
