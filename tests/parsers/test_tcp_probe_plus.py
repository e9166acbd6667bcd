"""tcp_probe_plus: hexadecimal columns, the state and counters they add."""

# ruff: noqa: E501 - lines of logs are as long as they are
from __future__ import annotations

import pytest

from tracetool import parsers


def line(
    kind=0,
    seconds=0xC,
    una=0x3BC07BE2,
    flight=14480,
    cwnd=10,
    ssthresh=0x7FFFFFFF,
    state=0,
    lost=0,
    sacked=0,
    addr="c0000201",
):
    nxt = (una + flight) % 2**32
    return (
        f"{kind:x} {seconds:x} 6d9b8ea {addr} acd2 c0000202 1389 0 10 165369bc {una:x} {state:x} {nxt:x} {una:x} {nxt:x} 0 "
        f"{cwnd:x} {ssthresh:x} 7120 18e0 638 30d40 c9 a {lost:x} {sacked:x} 0 0 0 0 22b24d5\n"
    )


def test_columns(read):
    text = "# 2017-12-17 17:35:33\n" + line(state=3, ssthresh=0x20, lost=2, sacked=5)
    assert parsers.detect(text.encode(), "test").NAME == "tcp_probe_plus"
    result = read(text)
    expected = {
        "origin": "tcp_probe_plus", "direction": "a2b", "cwnd_segments": 10, "ssthresh_segments": 32, "srtt_ns": 796_000,
        "rttvar_ns": 398_000, "snd_una": 0, "snd_nxt": 14480, "snd_wnd_bytes": 0x7120, "pacing_rate_bps": 0x22B24D5 * 8,
        "phase": "recovery", "ca_state": "recovery", "lost_segments": 2, "sacked_segments": 5, "inflight_bytes": None,
    }  # fmt: skip
    row = result.row()
    assert {key: row[key] for key in expected} == expected
    assert result.nanoseconds() == [12_114_931_946]
    flow = result.row("flows")
    assert (flow["addr_a"], flow["port_a"], flow["addr_b"], flow["port_b"]) == ("192.0.2.1", 44242, "192.0.2.2", 5001)


def test_phases_and_flows(read):
    result = read(line() + line(kind=1, cwnd=40, ssthresh=20) + line(kind=4) + line(una=0x10) + line(addr="a"))
    assert result.column("phase") == ["slow_start", "congestion_avoidance", "slow_start", "slow_start"]
    assert result.column("flow") == [0, 0, 1, 2]  # numbers that fall are a later connection
    assert result.rows("flows")[2]["addr_a"] == "0.0.0.10"


@pytest.mark.parametrize("torn", [line()[:60] + "\n", line().replace("acd2", "xyz"), "9 " + line()[2:]])
def test_a_torn_line_is_told(read, torn):
    result = read(line() + torn + line())
    assert len(result.frames["samples"]) == 2
    assert (result.log.rows[0]["code"], result.log.rows[0]["line"]) == ("torn_line", 2)


def test_any_chunking_gives_the_same_tables(read):
    text = line() + "torn\n" + line(cwnd=12)
    whole = read(text)
    for table, frame in read(text, chunk=3).frames.items():
        assert frame.equals(whole.frames[table], null_equal=True), table


def test_mutations_raise_nothing_unexpected(survives):
    survives((line() * 4).encode(), "tcp_probe_plus", [b"f" * 30, b" ", b"\n", b"0", b"\xff"])


def test_files_of_the_corpus(read_file):
    result = read_file("corpus/tcpprobe/tcp_probe_plus__tcp-stat.log")
    assert result.parser == "tcp_probe_plus"
    assert len(result.frames["samples"]) > 4000
    assert result.row()["cwnd_segments"] == 10
    assert not result.log.damaged
