"""qlog: old drafts with their arrays, current ones, sequences of records, units and reference times."""

from __future__ import annotations

import json
import time

import pytest

from tracetool import parsers
from tracetool.parsers import qlog
from tracetool.parsers.qlog_values import reference_ns

REFERENCE_MS = 1_796_026_431_000
NS = 1_000_000


def metrics(time=5, name="recovery:metrics_updated", **data):
    return {"time": time, "name": name, "data": data}


def log(*events, version="0.3", common=None, **trace):
    common = {"reference_time": REFERENCE_MS, "time_format": "relative"} if common is None else common
    return json.dumps({"qlog_version": version, "traces": [{"common_fields": common, "events": list(events), **trace}]})


def test_current_form(read):
    text = log(
        metrics(5, congestion_window=12000, ssthresh=6000, bytes_in_flight=2400, smoothed_rtt=20.5, rtt_variance=1.25,
                min_rtt=20, pacing_rate=1000000),
        metrics(9.5, congestion_window=14400),
    )  # fmt: skip
    assert parsers.detect(text.encode(), "test").NAME == "qlog"
    result = read(text)
    expected = {
        "origin": "qlog", "cwnd_segments": 10, "ssthresh_segments": 5, "inflight_bytes": 2400, "srtt_ns": 20_500_000,
        "rttvar_ns": 1_250_000, "min_rtt_ns": 20_000_000, "pacing_rate_bps": 1_000_000, "mss_bytes": 1200,
    }  # fmt: skip
    row = result.row()
    assert {key: row[key] for key in expected} == expected
    assert result.column("cwnd_segments") == [10, 12]
    assert result.column("srtt_ns") == [20_500_000] * 2  # what did not change is carried forward
    assert result.nanoseconds() == [(REFERENCE_MS + 5) * NS, (REFERENCE_MS * 2 + 19) * NS // 2]
    assert result.row("flows")["protocol"] == "quic"


@pytest.mark.parametrize(
    "name",
    ["recovery:metrics_updated", "recovery:metric_update", "quic:recovery_metrics_updated", "RECOVERY:METRIC_UPDATE"],
)
def test_every_draft_s_name_of_the_event(read, name):
    assert read(log(metrics(name=name, cwnd=2400))).column("cwnd_segments") == [2]


def old_log(*events, fields=("relative_time", "category", "event", "data"), reference="1796026431000", units=None):
    trace = {"configuration": {"time_units": units, "time_offset": "0"}} if units else {}
    trace |= {"event_fields": list(fields), "common_fields": {"reference_time": reference}, "events": list(events)}
    return json.dumps({"qlog_version": "draft-01", "traces": [trace]})


def test_old_drafts_write_arrays(read):
    event = ["5", "recovery", "metric_update", {"cwnd": 12800, "smoothed_rtt": 203}]
    result = read(old_log(event))
    assert (result.row()["cwnd_segments"], result.row()["srtt_ns"]) == (11, 203_000_000)
    upper = ("relative_time", "CATEGORY", "EVENT_TYPE", "TRIGGER", "DATA")
    event = ["5", "RECOVERY", "METRIC_UPDATE", "DEFAULT", {"cwnd": 12000}]
    assert read(old_log(event, fields=upper)).column("cwnd_segments") == [10]


def test_microseconds_where_the_trace_says_so(read):
    event = [5000, "recovery", "metrics_updated", {"cwnd": 12000, "smoothed_rtt": 20500}]
    result = read(old_log(event, reference="1796026431000000", units="us"))
    assert result.row()["srtt_ns"] == 20_500_000
    assert result.nanoseconds() == [(REFERENCE_MS + 5) * NS]


@pytest.mark.parametrize(
    "reference",
    ["1796026431.0", 1796026431, "1796026431000", 1796026431000.0, "1796026431000000", 1796026431000000000,
     {"clock_type": "system", "epoch": "unknown", "wall_clock_time": "2026-11-30T08:13:51Z"}],
)  # fmt: skip
def test_reference_times_in_every_unit(read, reference):
    result = read(log(metrics(5, cwnd=12000), common={"reference_time": reference}))
    assert result.nanoseconds() == [(REFERENCE_MS + 5) * NS]


@pytest.mark.parametrize("form", ["delta", "relative_to_previous_event"])
def test_times_may_count_from_the_event_before(read, form):
    text = log(
        metrics(5, cwnd=1200), metrics(3, cwnd=1200), common={"reference_time": REFERENCE_MS, "time_format": form}
    )
    assert result_ms(read(text)) == [5, 8]


def test_times_may_be_absolute(read):
    text = log(metrics(REFERENCE_MS + 5, cwnd=1200), common={"time_format": "absolute"})
    assert result_ms(read(text)) == [5]


def result_ms(result):
    return [time // NS - REFERENCE_MS for time in result.nanoseconds()]


def trace_in_order(*, last):
    """A trace of an old draft whose members stand before its events, or after them."""
    fields = {
        "event_fields": ["time", "category", "event", "data"],
        "configuration": {"time_units": "us", "time_offset": "2000"},
        "common_fields": {"reference_time": REFERENCE_MS},
    }
    events = {
        "events": [
            [5000, "recovery", "metrics_updated", {"cwnd": 13500, "smoothed_rtt": 21000}],
            [6000, "recovery", "parameters_set", {"max_datagram_size": 1350}],
            [7000, "recovery", "metrics_updated", {"cwnd": 27000}],
        ]
    }
    return json.dumps({"qlog_version": "draft-01", "traces": [events | fields if last else fields | events]})


def test_fields_after_the_events_mean_the_same(read):
    """The members of a JSON object have no order, and some writers put a trace's fields last."""
    result = read(trace_in_order(last=True))
    assert result.column("cwnd_segments") == [10, 20]
    assert result.column("mss_bytes") == [1350, 1350]
    assert result.column("srtt_ns") == [21_000_000] * 2
    assert result_ms(result) == [7, 9]
    assert not result.codes
    assert result.frames["samples"].equals(read(trace_in_order(last=False)).frames["samples"])


def test_fields_that_come_too_late_are_told(read, monkeypatch):
    monkeypatch.setattr(qlog, "HELD", 2)
    assert "stands after its events" in read(trace_in_order(last=True)).message("late_fields")


def test_without_a_reference_time_the_clock_is_told(read):
    result = read(log(metrics(5, cwnd=1200), common={}))
    assert result.nanoseconds() == [5 * NS]
    assert "clock_not_utc" in result.codes


def test_states_and_lost_packets_are_events(read):
    lost = {
        "time": 7,
        "name": "recovery:packet_lost",
        "data": {"header": {"packet_size": 1252}, "trigger": "time_threshold"},
    }
    state = {"time": 8, "name": "quic:congestion_state_updated", "data": {"old": "slow_start", "new": "recovery"}}
    result = read(log(metrics(5, cwnd=12000), lost, state, metrics(9, cwnd=6000)))
    assert result.column("kind", "events") == ["packet_lost", "cong_state"]
    assert result.column("bytes", "events") == [1252, None]
    assert result.column("evidence", "events") == ["packet_lost, time_threshold", "recovery"]
    assert result.column("phase") == [None, "recovery", "recovery"]


@pytest.mark.parametrize(
    ("before", "mss"),
    [
        ({"time": 1, "name": "recovery:parameters_set", "data": {"max_datagram_size": 1350}}, 1350),
        ({"time": 1, "name": "transport:packet_sent", "data": {"header": {"packet_size": 1280}}}, 1280),
        ({"time": 1, "name": "transport:packet_sent", "data": {"raw": {"length": 1252}}}, 1252),
        ({"time": 1, "name": "transport:packet_received", "data": {"raw": {"length": 1452}}}, 1200),
    ],
)
def test_segments_are_of_the_largest_datagram_known(read, before, mss):
    row = read(log(before, metrics(5, cwnd=mss * 10))).row()
    assert (row["cwnd_segments"], row["mss_bytes"]) == (10, mss)


def test_addresses_name_the_flow(read):
    begin = {"time": 0, "name": "connectivity:connection_started",
             "data": {"src_ip": "192.0.2.1", "dst_ip": "2001:db8::1", "src_port": 5000, "dst_port": "443"}}  # fmt: skip
    flow = read(log(begin, metrics(5, cwnd=1200))).row("flows")
    assert (flow["addr_a"], flow["port_a"], flow["addr_b"], flow["port_b"]) == ("192.0.2.1", 5000, "2001:db8::1", 443)


def test_traces_are_flows(read):
    file = json.loads(log(metrics(5, cwnd=1200)))
    file["traces"].append(json.loads(log(metrics(6, cwnd=2400)))["traces"][0])
    result = read(json.dumps(file))
    assert result.column("flow") == [0, 1]
    assert result.column("addr_a", "flows") == ["test#0", "test#1"]


@pytest.mark.parametrize("lead", ["\x1e", ""])
def test_sequences_of_records(read, lead):
    first = {"file_schema": "urn:ietf:params:qlog:file:sequential", "serialization_format": "application/qlog+json-seq",
             "trace": {"common_fields": {"reference_time": REFERENCE_MS}}}  # fmt: skip
    records = [first, metrics(5, name="quic:recovery_metrics_updated", congestion_window=12000), metrics(6, cwnd=1200)]
    text = "".join(f"{lead}{json.dumps(record)}\n" for record in records)
    assert parsers.detect(text.encode(), "test").NAME == "qlog"
    result = read(text)
    assert result.column("cwnd_segments") == [10, 1]
    assert result_ms(result) == [5, 6]
    torn = read(text + lead + '{"time": 7, "na\n' + lead + json.dumps(metrics(8, cwnd=2400)) + "\n")
    assert torn.column("cwnd_segments") == [10, 1, 2]
    assert torn.log.rows[0]["line"] == 4


@pytest.mark.parametrize("ssthresh", [2**32 - 1, 2**64 - 1, None, "x"])
def test_thresholds_that_are_not_set(read, ssthresh):
    assert read(log(metrics(5, cwnd=1200, ssthresh=ssthresh))).row()["ssthresh_segments"] is None


def test_a_file_that_ends_early_keeps_what_came_before(read):
    text = log(*(metrics(i, cwnd=1200 * i) for i in range(1, 9)))
    result = read(text[: text.index('"time": 7')])
    assert len(result.frames["samples"]) == 6
    assert "ends early" in result.message("damaged_json")


def test_any_chunking_gives_the_same_tables(read):
    text = log(*(metrics(i, cwnd=1200 * i) for i in range(1, 9)))
    whole = read(text)
    for chunk in (1, 29):
        for table, frame in read(text, chunk=chunk, parser="qlog").frames.items():
            assert frame.equals(whole.frames[table], null_equal=True), table


def test_mutations_raise_nothing_unexpected(survives):
    survives(
        log(*(metrics(i, cwnd=1200 * i, smoothed_rtt=3.5) for i in range(1, 9))).encode(),
        "qlog",
        [b"9" * 30, b"[", b"{", b'"', b"null", b"-1", b"1e999", b",", b"[]", b"\xff"],
    )


@pytest.mark.parametrize(
    ("name", "samples", "flows", "events", "first"),
    [
        ("picoquic-ssinghjah__server.qlog", 838, 1, 4, {"inflight_bytes": 2034}),
        ("qvis__doublevantage_100ms.qlog", 1817, 2, 0, {"inflight_bytes": 1280}),
        ("qvis__parallel_10_50KB_f5.qlog", 45, 1, 0, {"inflight_bytes": 1280}),
        ("qvis__quictrace_example_github.qlog", 3679, 1, 238, {"srtt_ns": 126_536_000, "cwnd_segments": 13}),
        ("picoquic__qlog_trace_ecn_ref.txt", 25, 1, 3, {"inflight_bytes": 1765}),
        ("pcap2qlog__ngtcp2-29-dsb.qlog", 0, 2, 0, None),
        ("qvis__new_cid.qlog", 0, 1, 0, None),
    ],
)
def test_files_of_the_corpus(read_file, name, samples, flows, events, first):
    result = read_file(f"corpus/qlog/{name}")
    assert result.parser == "qlog"
    assert [len(result.frames[table]) for table in ("samples", "flows", "events")] == [samples, flows, events]
    if first:
        assert {key: result.row()[key] for key in first} == first
    assert not result.log.damaged


def test_a_wall_clock_without_a_zone_is_utc(monkeypatch):
    """Wherever the reader is."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert reference_ns({"wall_clock_time": "2026-11-30T08:13:51"}) == 1_796_026_431_000_000_000
        assert reference_ns({"wall_clock_time": "2026-11-30T09:13:51+01:00"}) == 1_796_026_431_000_000_000
    finally:
        monkeypatch.undo()
        time.tzset()
