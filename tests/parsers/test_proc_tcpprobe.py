"""/proc/net/tcpprobe: 9, 10 and 11 columns, the unit of srtt, torn lines."""

from __future__ import annotations

import pytest

from tracetool import parsers


def line(
    time=2.5, *, una=0x1A2A387C, flight=14480, cwnd=11, ssthresh=2147483647, srtt=85, rcv_wnd=None, ends=None, digits=9
):
    seconds = f"{time:.{digits}f}"
    tail = "".join(f" {value}" for value in (srtt, rcv_wnd) if value is not None)
    ends = ends or "192.0.2.2:39815 192.0.2.1:5001"
    return f"{seconds} {ends} 32 {una:#x} {(una - 0) % 2**32:#x} {cwnd} {ssthresh} 14592{tail}\n".replace(
        f"{una:#x} ", f"{(una + flight) % 2**32:#x} ", 1
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "2.221032535 192.0.2.2:39815 192.0.2.1:5001 32 0x1a2a710c 0x1a2a387c 11 2147483647 14592 85\n",
            {"cwnd_segments": 11, "srtt_ns": 340_000_000, "rcv_wnd_bytes": None, "snd_nxt": 0x1A2A710C - 0x1A2A387C},
        ),
        (
            "0.004313854 192.0.2.101:22 192.0.2.1:57321 32 0xa34f92b0 0xa34f9240 10 2147483647 131024 1 43520\n",
            {"srtt_ns": 4_000_000, "rcv_wnd_bytes": 43520, "snd_wnd_bytes": 131024},
        ),
        (
            "0.004113 192.0.2.2:39815 192.0.2.1:5001 1448 0x1a2a710c 0x1a2a387c 3 2147483647 5792\n",
            {"cwnd_segments": 3, "srtt_ns": None, "ssthresh_segments": None, "snd_wnd_bytes": 5792},
        ),
        (
            "1.204517003 [2001:db8::1]:53578 [2001:db8::2]:5299 32 0x9b75f241 0x9b75e000 97 95 248320 57 65536\n",
            {"cwnd_segments": 97, "ssthresh_segments": 95, "srtt_ns": 228_000_000, "phase": None},
        ),
        (
            "0.1 x\n0.000066000 192.0.2.11:8080 192.0.2.2:37063 0 0x1187eaa2 0x1187eaa2 10 0 14624 176\n",
            {"ssthresh_segments": None, "phase": "slow_start"},  # some copies of the module print 0 for not set
        ),
    ],
)
def test_columns(read, text, expected):
    assert parsers.detect(text.encode(), "test").NAME == "tcp_probe"
    row = read(text, hz=250).row()
    assert {key: row[key] for key in expected} == expected
    assert row["origin"] == "tcp_probe"


def test_columns_and_clock_are_told(read):
    result = read(line() + line(2.6))
    assert result.metadata()["columns"] == "10"
    assert result.metadata()["clock"] == "since /proc/net/tcpprobe was opened"
    assert result.row("inputs")["time_resolution_ns"] == 1
    assert read(line(digits=6, srtt=None)).row("inputs")["time_resolution_ns"] == 1000


def acks(unit_ns, rtt_ns=50_000_000, count=400, srtt_error=1.0):
    """A bulk sender whose ACKs come every millisecond, a round trip after their data."""
    srtt = int(rtt_ns * srtt_error / unit_ns)
    flight = rtt_ns // 1_000_000 * 1448
    return "".join(
        line(1 + i / 1000, una=0x1000 + i * 1448, flight=flight, srtt=srtt, rcv_wnd=29696) for i in range(count)
    )


@pytest.mark.parametrize(
    ("unit", "unit_ns"),
    [
        ("microseconds", 1000),
        ("jiffies (HZ=1000)", 1_000_000),
        ("jiffies (HZ=300)", 3_333_333),
        ("jiffies (HZ=250)", 4_000_000),
        ("jiffies (HZ=100)", 10_000_000),
    ],
)
def test_rule_6_the_log_s_own_round_trips_tell_the_unit_of_srtt(read, unit, unit_ns):
    result = read(acks(unit_ns, rtt_ns=200_000_000, count=1200))
    assert result.metadata()["srtt_unit"] == unit
    assert result.row()["srtt_ns"] == 200_000_000 // unit_ns * unit_ns
    assert unit in result.message("srtt_unit")


def test_rule_6_an_option_overrules(read):
    result = read(acks(1000), hz=100)
    assert result.metadata()["srtt_unit"] == "jiffies (HZ=100)"
    assert "srtt_unit" not in result.codes


def test_rule_6_without_round_trips_large_values_are_microseconds_and_small_ones_unknown(read):
    assert read(line(srtt=24000, rcv_wnd=1)).row()["srtt_ns"] == 24_000_000
    result = read(line(srtt=180, rcv_wnd=1))
    assert result.row()["srtt_ns"] is None
    assert "--hz" in result.message("srtt_unit")
    assert result.metadata()["srtt_unit"] == "unknown"


def test_flows_by_address_pair_and_reuse(read):
    other = "127.0.0.1:6653 127.0.0.1:47631"
    result = read(line() + line(2.6, ends=other) + line(2.7) + line(2.8, una=0x1000) + line(2.9, una=0x1005))
    assert result.column("flow") == [0, 1, 0, 2, 2]
    assert result.column("snd_una") == [0, 0, 0, 0, 5]


def test_a_wrap_is_no_reuse(read):
    result = read(line(una=0xFFFF_FFF0) + line(2.6, una=0x10))
    assert result.column("flow") == [0, 0]
    assert result.column("snd_una") == [0, 0x20]


@pytest.mark.parametrize(
    "torn",
    [
        "2.6 192.0.2.2:39815 192.0.2.1:5001 32\n",
        line(2.6, rcv_wnd=29312),  # 11 columns among lines of 10: two lines in one
        line(2.6, ends="192.0.2.2:99999 192.0.2.1:5001"),
        line(2.6, ends="192.0.2.299:9 192.0.2.1:5001"),
        line(2.6).replace("0x", "", 2)[3:],
        "9999999999.000000000" + line(2.6)[11:],
    ],
)
def test_a_torn_line_is_told_and_what_is_around_it_kept(read, torn):
    result = read(line() + torn + line(2.7), hz=250)
    assert result.nanoseconds() == [2_500_000_000, 2_700_000_000]
    row = next(row for row in result.log.rows if row["severity"] == "error")
    assert (row["code"], row["line"], row["offset_bytes"]) == ("torn_line", 2, len(line()))


def test_a_log_killed_while_writing(read):
    result = read(line() + line(2.6)[:60], hz=250)
    assert len(result.frames["samples"]) == 1
    assert "ends early" in result.message("torn_line")


def test_a_whole_last_line_without_line_end_is_read(read):
    assert len(read((line() + line(2.6)).rstrip("\n"), hz=250).frames["samples"]) == 2


@pytest.mark.parametrize("chunk", [1, 9, 1000])
def test_any_chunking_gives_the_same_tables(read, chunk):
    text = acks(4_000_000, count=90) + "torn\n" + acks(4_000_000, count=5)
    whole, parts = read(text), read(text, chunk=chunk)
    for table, frame in whole.frames.items():
        assert frame.equals(parts.frames[table], null_equal=True), table


def test_pieces_are_bounded(read):
    result = read(line(srtt=24000) * 70_000)
    assert max(result.pieces) == 65_536
    assert result.frames["samples"]["srtt_ns"].unique().to_list() == [24_000_000]


def test_mutations_raise_nothing_unexpected(survives):
    survives(
        acks(4_000_000, count=30).encode(),
        "proc_tcpprobe",
        [b"9" * 30, b"\n", b" ", b"\x00", b".", b"0x", b"[", b"\xff", b":"],
    )


def test_the_unit_is_found_in_the_old_form_of_real_logs(read, read_file):
    """Real events written as the old module would have, in each unit: found, or left unknown, never mistaken."""
    import polars as pl

    samples = read_file("traces/cubic-deep/tcp_probe.txt.gz").frames["samples"]
    busiest = samples["flow"].mode()[0]
    rows = samples.filter(pl.col("flow") == busiest).with_columns(pl.col("time").to_physical())
    begin = rows["time"][0]
    for unit, unit_ns in (("microseconds", 1000), ("jiffies (HZ=1000)", 1_000_000), ("jiffies (HZ=250)", 4_000_000)):
        text = "".join(
            line((time - begin) / 1e9 + 1, una=una, flight=nxt - una, srtt=srtt // unit_ns, rcv_wnd=1)
            for time, una, nxt, srtt in rows.select("time", "snd_una", "snd_nxt", "srtt_ns").iter_rows()
        )
        assert read(text).metadata()["srtt_unit"] == unit
