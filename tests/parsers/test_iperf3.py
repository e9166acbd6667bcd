"""iperf3 reports: JSON, JSON stream, full output, the other side's report, failures, damage."""

from __future__ import annotations

import json

import pytest

from tracetool import parsers

SECOND = 1_000_000_000
START = 1_796_030_815


def connection(socket=5, local_port=4000):
    return {
        "socket": socket, "local_host": "192.0.2.1", "local_port": local_port, "remote_host": "198.51.100.2",
        "remote_port": 5201,
    }  # fmt: skip


def start(*connections, **test):
    return {
        "connected": list(connections) or [connection()],
        "version": "iperf 3.16",
        "system_info": "Linux host 6.1",
        "timestamp": {"time": "Mon, 30 Nov 2026 09:26:55 GMT", "timesecs": START},
        "tcp_mss_default": 1448,
        "test_start": {"protocol": "TCP", "num_streams": 1, "omit": 0, "reverse": 0, **test},
    }


def stream(end=0.5, socket=5, **facts):
    told = {
        "socket": socket, "start": 0, "end": end, "seconds": 0.5, "bytes": 1000, "bits_per_second": 1.0,
        "retransmits": 2, "snd_cwnd": 14480, "snd_wnd": 65536, "rtt": 40250, "rttvar": 1155, "omitted": False,
        "sender": True,
    }  # fmt: skip
    return {key: value for key, value in (told | facts).items() if value is not None}


def interval(*streams):
    return {"streams": list(streams), "sum": {}}


END = {
    "sum_sent": {"bytes": 2000, "bits_per_second": 16000.5},
    "sender_tcp_congestion": "cubic",
    "receiver_tcp_congestion": "reno",
}


def report(*intervals, **parts):
    return {"start": start(), "intervals": list(intervals), "end": END} | parts


def text(value):
    return json.dumps(value, indent="\t")


def test_an_upload(read):
    run = text(report(interval(stream(0.5)), interval(stream(1.000165, retransmits=3, snd_cwnd=28960))))
    assert parsers.detect(run.encode(), "test").NAME == "iperf3"
    result = read(run)
    assert result.nanoseconds() == [START * SECOND + SECOND // 2, START * SECOND + 1_000_165_000]
    expected = {
        "direction": "a2b", "origin": "iperf3", "cwnd_segments": 10, "srtt_ns": 40_250_000, "rttvar_ns": 1_155_000,
        "mss_bytes": 1448, "snd_wnd_bytes": 65536, "retransmitted_segments": 2, "cc": "cubic",
        "ssthresh_segments": None,
    }  # fmt: skip
    row = result.row()
    assert {key: row[key] for key in expected} == expected
    assert result.column("cwnd_segments") == [10, 20]
    assert result.column("retransmitted_segments") == [2, 5]  # since the start, as in every other source
    flow = result.row("flows")
    assert (flow["addr_a"], flow["port_a"], flow["port_b"], flow["protocol"]) == ("192.0.2.1", 4000, 5201, "tcp")
    assert (flow["payload_bytes_a2b"], flow["payload_bytes_b2a"]) == (2000, None)
    told = result.metadata()
    assert (told["end.sum_sent.bits_per_second"], told["start.version"]) == ("16000.5", "iperf 3.16")


def test_the_start_is_known_to_a_second_and_said_so(read):
    result = read(text(report(interval(stream()))))
    assert "whole seconds" in result.message("coarse_start")
    assert result.row("inputs")["time_resolution_ns"] == SECOND


def test_milliseconds_of_the_start_are_used_where_they_are_told(read):
    run = report(interval(stream()))
    run["start"]["timestamp"]["timemillisecs"] = START * 1000 + 250
    assert read(text(run)).nanoseconds() == [START * SECOND + 750_000_000]


def test_several_streams_are_flows(read):
    both = start(connection(5, 4000), connection(7, 4001))
    result = read(text(report(interval(stream(socket=5), stream(socket=7, snd_cwnd=2896)), start=both)))
    assert result.column("flow") == [0, 1]
    assert result.column("cwnd_segments") == [10, 2]
    assert result.column("port_a", "flows") == [4000, 4001]


def test_warm_up_comes_before_the_rest(read):
    """iperf3 starts its clock anew after -O seconds."""
    run = report(interval(stream(0.5, omitted=True)), interval(stream(1.0, omitted=True)), interval(stream(0.5)))
    assert read(text(run)).nanoseconds() == [START * SECOND + ms * 1_000_000 for ms in (500, 1000, 1500)]


@pytest.mark.parametrize(
    ("facts", "column", "value"),
    [
        ({"snd_wnd": -1}, "snd_wnd_bytes", None),  # not supported there
        ({"snd_wnd": None}, "snd_wnd_bytes", None),
        ({"rtt": 0}, "srtt_ns", None),
        ({"rttvar": None}, "rttvar_ns", None),
        ({"snd_cwnd": 0}, "cwnd_segments", None),
        ({"retransmits": None}, "retransmitted_segments", None),
        ({"snd_cwnd": float("nan")}, "cwnd_segments", None),
    ],
)
def test_what_is_not_told_is_null(read, facts, column, value):
    assert read(text(report(interval(stream(**facts))))).row()[column] == value


def test_windows_that_are_no_multiple_of_the_mss_fit_the_path_s_mtu_or_are_left_out(read):
    fits = read(text(report(interval(stream(snd_cwnd=654830, pmtu=65535)))))
    assert (fits.row()["cwnd_segments"], fits.row()["mss_bytes"]) == (10, 65483)
    assert "inexact_window" not in fits.codes
    unknown = read(text(report(interval(stream(snd_cwnd=14481, pmtu=1500)))))
    assert (unknown.row()["cwnd_segments"], unknown.row()["mss_bytes"]) == (None, None)
    assert "inexact_window" in unknown.codes
    elsewhere = report(interval(stream(snd_cwnd=14481)))
    elsewhere["start"]["system_info"] = "FreeBSD host 14.0"  # windows are bytes there
    assert read(text(elsewhere)).row()["cwnd_segments"] == 10
    assert "inexact_window" not in read(text(elsewhere)).codes


def test_a_download_has_no_windows_but_those_the_server_tells(read):
    down = stream(sender=False, snd_cwnd=None, rtt=None, retransmits=None, rttvar=None, snd_wnd=None)
    alone = read(text(report(interval(down), start=start(reverse=1))))
    assert len(alone.frames["samples"]) == 0
    assert alone.row("flows")["payload_bytes_b2a"] == 1000
    there = {
        "socket": 9, "local_host": "198.51.100.2", "local_port": 5201, "remote_host": "192.0.2.1", "remote_port": 4000,
    }  # fmt: skip
    server = {"start": start(there), "intervals": [interval(stream(socket=9, snd_cwnd=28960))], "end": {}}
    run = report(interval(down), start=start(reverse=1), server_output_json=server)
    result = read(text(run))
    assert (result.row()["direction"], result.row()["cwnd_segments"]) == ("b2a", 20)
    assert len(result.frames["flows"]) == 1
    assert result.row("flows")["payload_bytes_b2a"] == 1000  # counted once


def test_both_directions_at_once(read):
    both = start(connection(5, 4000), connection(7, 4001), bidir=1)
    back = stream(socket=7, sender=False, snd_cwnd=None, rtt=None, bytes=300)
    result = read(text(report(interval(stream(), back), start=both)))
    assert result.column("payload_bytes_a2b", "flows") == [1000, None]
    assert result.column("payload_bytes_b2a", "flows") == [None, 300]
    assert result.column("direction") == ["a2b"]


def test_udp_is_a_flow_without_samples(read):
    udp = stream(snd_cwnd=None, rtt=None, retransmits=None, packets=10)
    result = read(text(report(interval(udp), start=start(protocol="UDP"))))
    assert result.row("flows")["protocol"] == "udp"
    assert len(result.frames["samples"]) == 0


def test_ipv6(read):
    ends = connection() | {"local_host": "2001:db8::1", "remote_host": "2001:db8::2"}
    assert read(text(report(interval(stream()), start=start(ends)))).row("flows")["addr_a"] == "2001:db8::1"


def test_a_run_that_failed_says_so(read):
    run = text(
        {"start": {"connected": [], "version": "iperf 3.9"}, "intervals": [], "end": {}, "error": "unable to connect"}
    )
    assert parsers.detect(run.encode(), "test").NAME == "iperf3"
    result = read(run)
    assert "unable to connect" in result.message("run_failed")
    assert result.log.damaged
    partly = read(text(report(interval(stream()), error="control socket has closed")))
    assert len(partly.frames["samples"]) == 1
    assert partly.codes[0] == "run_failed"


def streamed(*extra):
    events = [
        {"event": "start", "data": start()},
        {"event": "interval", "data": interval(stream(0.5))},
        {"event": "interval", "data": interval(stream(1.0))},
        {"event": "end", "data": END},
        *extra,
    ]
    return "".join(json.dumps(event) + "\n" for event in events)


def test_a_stream_of_events(read):
    assert parsers.detect(streamed().encode(), "test").NAME == "iperf3"
    result = read(streamed())
    assert result.nanoseconds() == [START * SECOND + SECOND // 2, START * SECOND + SECOND]
    assert result.column("cc") == ["cubic"] * 2
    assert result.row("flows")["payload_bytes_a2b"] == 2000


def test_the_full_output_after_a_stream_is_not_counted_again(read):
    whole = text(report(interval(stream(0.5)), interval(stream(1.0))))
    result = read(streamed() + whole)
    assert len(result.frames["samples"]) == 2
    assert result.row("flows")["payload_bytes_a2b"] == 2000


def test_a_stream_tells_the_server_s_report_and_errors(read):
    there = {
        "socket": 9, "local_host": "198.51.100.2", "local_port": 5201, "remote_host": "192.0.2.1", "remote_port": 4000,
    }  # fmt: skip
    server = {"start": start(there), "intervals": [interval(stream(socket=9))], "end": {}}
    result = read(streamed({"event": "server_output_json", "data": server}, {"event": "error", "data": "interrupted"}))
    assert result.column("direction") == ["a2b", "a2b", "b2a"]
    assert "interrupted" in result.message("run_failed")


def test_runs_appended_to_one_file(read):
    other = report(interval(stream()), start=start(connection(5, 4001)))
    result = read(text(report(interval(stream()))) + "\n" + text(other))
    assert result.column("flow") == [0, 1]


# -- damage


def test_a_report_that_ends_early_keeps_what_came_before(read):
    whole = text(report(interval(stream(0.5)), interval(stream(1.0))))
    cut = whole[: whole.rindex('"snd_cwnd"')]
    result = read(cut)
    assert len(result.frames["samples"]) == 1
    row = result.log.rows[0]
    assert (row["code"], row["severity"]) == ("damaged_json", "error")
    assert "ends early" in row["message"]
    assert 0 < row["offset_bytes"] <= len(cut)


@pytest.mark.parametrize("chunk", [1, 17, 5000])
def test_any_chunking_gives_the_same_tables(read, chunk):
    run = text(report(*(interval(stream(i / 2)) for i in range(1, 9)))) + streamed()
    whole, parts = read(run), read(run, chunk=chunk)
    for table, frame in whole.frames.items():
        assert frame.equals(parts.frames[table], null_equal=True), table


def test_mutations_raise_nothing_unexpected(survives):
    survives(
        (text(report(interval(stream()), interval(stream(1.0)))) + streamed()).encode(),
        "iperf3",
        [b"9" * 30, b"[", b"{", b'"', b"null", b"-1", b"1e999", b",", b"[]", b"\xff", b"true"],
    )


@pytest.mark.parametrize(
    "odd",
    [
        {"start": 1, "intervals": 2, "end": 3},
        {
            "start": {"connected": {"socket": 1}, "version": "iperf 3"},
            "intervals": [1, {"streams": 3}, {"streams": [1]}],
        },
        {
            "start": start({"socket": 5, "local_host": None}),
            "intervals": [interval(stream() | {"end": "x"}, stream(end=1e300))],
        },
        {"start": start() | {"timestamp": 5, "test_start": []}, "intervals": [interval(stream())]},
        {"server_output_json": "no", "intervals": [None]},
    ],
)
def test_members_of_another_kind_are_passed_over(read, odd):
    assert len(read(text(odd), "iperf3").frames["samples"]) == 0


# -- real reports


@pytest.mark.parametrize(
    ("name", "samples", "flows", "first"),
    [
        ("bbrv3-fabric__hs10_out.json", 10, 1, {"cwnd_segments": 537208 // 1448, "srtt_ns": 46_749_000, "cc": "bbr"}),
        ("cs244_dctcp__mouse_0.json", 4, 1, {"cwnd_segments": 166, "retransmitted_segments": 1, "cc": "dctcp"}),
        ("cse222a__cubic-delay20-loss1pct.json", 3750, 5, {"cwnd_segments": 4741, "snd_wnd_bytes": 16513024}),
        ("iperf3-python__results.json", 13, 1, {"cwnd_segments": 396, "srtt_ns": None, "cc": None}),
        (
            "tcp-performance-evaluation__loss0.5_rep1.json",
            10,
            1,
            {"cwnd_segments": 10, "retransmitted_segments": 11074},
        ),
    ],
)
def test_reports_of_the_corpus(read_file, name, samples, flows, first):
    result = read_file(f"corpus/iperf3/{name}")
    assert result.parser == "iperf3"
    assert (len(result.frames["samples"]), len(result.frames["flows"])) == (samples, flows)
    assert {key: result.row()[key] for key in first} == first
    assert not result.log.damaged
