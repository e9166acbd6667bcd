"""Plain tables: columns by name, by option, by number; units; separators; no header."""

# ruff: noqa: E501 - data in its own layout
from __future__ import annotations

import pytest

from tracetool import parsers
from tracetool.errors import FormatError, UsageError
from tracetool.parsers import csv_table

SECOND = 1_000_000_000


def test_columns_by_their_names(read):
    text = "time,snd_cwnd,ssthresh,rtt_us,saddr,sport,daddr,dport\n1796026431.5,10,2147483647,40250,192.0.2.1,5000,192.0.2.2,80\n"
    assert parsers.detect(text.encode(), "test").NAME == "csv_table"
    result = read(text)
    expected = {"origin": "csv_table", "cwnd_segments": 10, "ssthresh_segments": None, "srtt_ns": 40_250_000}
    row = result.row()
    assert {key: row[key] for key in expected} == expected
    assert result.nanoseconds() == [1796026431 * SECOND + SECOND // 2]
    flow = result.row("flows")
    assert (flow["addr_a"], flow["port_a"], flow["addr_b"], flow["port_b"]) == ("192.0.2.1", 5000, "192.0.2.2", 80)
    assert not result.log.rows


@pytest.mark.parametrize("separator", [",", "\t", ";", " "])
def test_separators(read, separator):
    assert read(f"t{separator}cwnd\n1.5{separator}10\n2.5{separator}11\n").column("cwnd_segments") == [10, 11]


@pytest.mark.parametrize(
    ("header", "time"),
    [
        ("time", 1500),
        ("time_s", 1500),
        ("time (ms)", 1.5),
        ("time_us", 0.0015),
        ("Timestamp_ns", 0.0000015),
        ("ts [msec]", 1.5),
    ],
)
def test_units_in_names(read, header, time):
    assert read(f"{header},cwnd\n1500,10\n").nanoseconds() == [round(time * SECOND)]


def test_columns_named_by_the_user(read):
    text = "when,w,m,r\n1500.25,14480,1448,40\n"
    result = read(text, "csv_table", columns={"time": "when:ms", "cwnd": "w:bytes", "mss": "m", "srtt_ns": "r"})
    assert result.nanoseconds() == [1_500_250_000]
    assert (result.row()["cwnd_segments"], result.row()["srtt_ns"]) == (10, 40_000_000)


def test_columns_by_number_and_no_header(read):
    """As a bpftrace script prints it."""
    text = "10662503,10,192.0.2.1,192.0.2.2,5001,34790\n10662504,12,192.0.2.1,192.0.2.2,5001,34790\n"
    columns = {"time": "1:ms", "cwnd": "2", "src": "3", "dst": "4", "sport": "5", "dport": "6"}
    result = read(text, "csv_table", columns=columns)
    assert result.column("cwnd_segments") == [10, 12]
    assert result.nanoseconds() == [10_662_503_000_000, 10_662_504_000_000]
    assert result.row("flows")["port_b"] == 34790
    assert "clock_not_utc" in result.codes


def test_an_unknown_table_is_read_where_columns_are_named():
    assert parsers.detect(b"1,2\n", "test", table=True).NAME == "csv_table"
    with pytest.raises(FormatError, match="--columns"):
        parsers.detect(b"1,2\n", "test")


def test_nanoseconds_are_exact(read):
    assert read("time,cwnd\n1796026431.123456789,10\n").nanoseconds() == [1796026431123456789]


def test_times_as_dates(read):
    assert read("time,cwnd\n2026-11-30T08:13:51Z,10\n").nanoseconds() == [1796026431 * SECOND]


@pytest.mark.parametrize(
    ("cell", "value"), [("", None), ("NaN", None), ("-1", None), ("x", None), ("1e1", 10), ("10.0", 10)]
)
def test_cells_that_are_no_numbers_are_null(read, cell, value):
    assert read(f"time,cwnd\n1,{cell}\n").column("cwnd_segments") == [value]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"time": "t"}, "no column for cwnd"),
        ({"time": "x", "cwnd": "w"}, "no column 'x'"),
        ({"time": "9", "cwnd": "w"}, "no column '9'"),
        ({"when": "t", "cwnd": "w"}, "no 'when'"),
        ({"time": "t:weeks", "cwnd": "w"}, "no unit 'weeks'"),
    ],
)
def test_what_the_user_names_must_be_there(read, columns, message):
    with pytest.raises(UsageError, match=message):
        read("t,w\n1,2\n", "csv_table", columns=columns)


def test_a_torn_row_is_told(read):
    result = read("time,cwnd\n1,10\n2\n3,11\nx,5\n")
    assert result.column("cwnd_segments") == [10, 11]
    assert [row["line"] for row in result.log.rows if row["severity"] == "error"] == [3, 5]


@pytest.mark.parametrize("head", ["time,bytes\n1,2\n", "a,cwnd\n", "Set the time, and cwnd.\n", "", "\n\n"])
def test_other_text_is_no_table(head):
    assert not parsers.get("csv_table").sniff(head.encode())


def test_any_chunking_gives_the_same_tables(read):
    text = "# made by a script\ntime,cwnd,flow\n" + "".join(f"{i}.25,{i},f{i % 2}\n" for i in range(20))
    whole = read(text)
    assert len(whole.frames["flows"]) == 2
    for table, frame in read(text, chunk=3).frames.items():
        assert frame.equals(whole.frames[table], null_equal=True), table


def test_mutations_raise_nothing_unexpected(survives):
    good = b"time,cwnd,src,sport,dst,dport,srtt\n" + b"1.5,10,192.0.2.1,1,192.0.2.2,2,40.5\n" * 5
    survives(good, "csv_table", [b"9" * 30, b",", b'"', b"\n", b"\x00", b"-", b"e", b".", b"\xff", b"\t"])


def test_only_a_newline_ends_the_line_of_names():
    """Other separators of lines stand within it, for the one who decides as for the one who reads."""
    assert csv_table.sniff(b"time\tcwnd\n")
    assert not csv_table.sniff(b"time\tcwnd\x1e,,,,,,\n1,10,,,,,\n")
