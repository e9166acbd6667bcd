"""SIFTR: versions 1.2 and 1.3, 25, 27 and 28 columns, IPv4 and IPv6."""

# ruff: noqa: E501 - lines of logs are as long as they are
from __future__ import annotations

import pytest

from tracetool import parsers
from tracetool.errors import FormatError

V12 = "enable_time_secs=1238556193\tenable_time_usecs=462104\tsiftrver=1.2.2\thz=1000\ttcp_rtt_scale=32\tsysname=FreeBSD\tsysver=604000\tipmode=4\n"
V13 = (
    "enable_time_secs=1685191807\tenable_time_usecs=160752\tsiftrver=1.3.0\tsysname=FreeBSD\tsysver=1400089\tipmode=4\n"
)
END = "disable_time_secs=1685191816\tdisable_time_usecs=629397\ttotal_tcp_pkts=20\ttotal_skipped_tcp_pkts=4\tflow_list=192.0.2.2;1-192.0.2.3;5001,\n"


def old(cwnd=14480, ssthresh=1073725440, srtt=1280, state=4, extra="", local="192.0.2.2", ports=(22, 5001)):
    return (
        f"o,0xbec491a5,1238556193.463551,{local},{ports[0]},192.0.2.3,{ports[1]},{ssthresh},{cwnd},6144,66560,66608,8,1,{state},"
        f"1448,{srtt},1,996,255,33304,208,66608,0,208{extra}\n"
    )


def new(cwnd=14600, ssthresh=7300, srtt=1000, state=4, kind="i", local="192.0.2.2"):
    return (
        f"{kind},1685191814.185109,{local},32291,192.0.2.3,5001,{ssthresh},{cwnd},2,65160,65700,7,9,{state},1460,{srtt},1,"
        "16778209,230000,33580,0,65700,0,1460,0,86707916,130\n"
    )


def test_version_1_2(read):
    assert parsers.detect((V12 + old()).encode(), "test").NAME == "siftr"
    result = read(V12 + old() + END)
    expected = {
        "origin": "siftr", "direction": "a2b", "cwnd_segments": 10, "ssthresh_segments": None, "srtt_ns": 40_000_000,
        "inflight_bytes": 208, "mss_bytes": 1448, "snd_wnd_bytes": 66560, "rcv_wnd_bytes": 66608, "phase": "slow_start",
    }  # fmt: skip
    row = result.row()
    assert {key: row[key] for key in expected} == expected
    assert result.nanoseconds() == [1_238_556_193_463_551_000]
    assert result.row("inputs")["capture_drops"] == 4
    flow = result.row("flows")
    assert (flow["addr_a"], flow["port_a"], flow["window_scale_a"], flow["window_scale_b"]) == ("192.0.2.2", 22, 1, 8)


def test_version_1_3_has_microseconds_and_no_hash(read):
    result = read(V13 + new() + new(kind="o"))
    expected = {
        "cwnd_segments": 10,
        "ssthresh_segments": 5,
        "srtt_ns": 1_000_000,
        "inflight_bytes": 1460,
        "phase": None,
    }
    row = result.row()
    assert {key: row[key] for key in expected} == expected
    assert len(result.frames["samples"]) == 2


@pytest.mark.parametrize("extra", ["", ",7,9,1", ",3,4"])
def test_column_counts_25_28_and_27(read, extra):
    assert read(V12 + old(extra=extra)).column("cwnd_segments") == [10]


@pytest.mark.parametrize(("local", "shown"), [("2001:db8:0:0:0:0:0:1", "2001:db8::1"), ("2001:db8::1", "2001:db8::1")])
def test_ipv6_long_and_short(read, local, shown):
    assert read(V12 + old(local=local)).row("flows")["addr_a"] == shown
    assert read(V13 + new(local=local)).row("flows")["addr_a"] == shown


def test_before_the_connection_stands_there_is_no_sample(read):
    result = read(V12 + old(state=2))
    assert (len(result.frames["samples"]), len(result.frames["flows"])) == (0, 1)


def test_without_its_first_line_the_rtt_of_1_2_has_no_unit(read):
    assert parsers.detect(old().encode(), "test").NAME == "siftr"
    result = read(old())
    assert result.row()["srtt_ns"] is None
    assert "srtt_unit" in result.codes


def test_siftr_2_is_refused(read):
    with pytest.raises(FormatError, match=r"only 1\.2 and 1\.3"):
        read(V13.replace("1.3.0", "2.5") + new())


@pytest.mark.parametrize(
    "torn", [new()[:60] + "\n", new().replace(",14600,", ",x,"), "garbage\n", new(local="192.0.2.300"), "i,1\n"]
)
def test_a_torn_line_is_told_and_what_is_around_it_kept(read, torn):
    result = read(V13 + new() + torn + new())
    assert len(result.frames["samples"]) == 2
    row = next(row for row in result.log.rows if row["severity"] == "error")
    assert (row["code"], row["line"]) == ("torn_line", 3)


def test_any_chunking_gives_the_same_tables(read):
    text = V13 + new() * 5 + "torn\n" + new() + END
    whole = read(text)
    for chunk in (1, 23):
        for table, frame in read(text, chunk=chunk).frames.items():
            assert frame.equals(whole.frames[table], null_equal=True), table


def test_mutations_raise_nothing_unexpected(survives):
    survives(
        (V12 + old() * 3 + new() * 3 + END).encode(),
        "siftr",
        [b"9" * 30, b",", b"=", b"\t", b"\n", b":", b"-", b"\xff", b"0x"],
    )


@pytest.mark.parametrize(("name", "cwnd", "srtt"), [("2010", 119, 29_250_000), ("2023", 10, 1_000_000)])
def test_lines_of_the_manual(read_file, name, cwnd, srtt):
    """172312 bytes of 1448 are 119 segments; 936 ticks / (32 * 1000 Hz) are 29.25 ms."""
    row = read_file(f"corpus/siftr/excerpt__man4-siftr-{name}.txt").row()
    assert (row["cwnd_segments"], row["srtt_ns"], row["ssthresh_segments"]) == (cwnd, srtt, None)
