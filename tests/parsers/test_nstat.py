"""Counters: nstat, /proc/net/netstat, listings in a loop."""

# ruff: noqa: E501 - data in its own layout
from __future__ import annotations

from tracetool import parsers


def listing(resent, train=1):
    return f"#kernel\nTcpRetransSegs                  {resent}                  0.0\nTcpExtTCPHystartTrainDetect     {train}                  0.0\n"


def test_a_listing(read):
    assert parsers.detect(listing(7).encode(), "test").NAME == "nstat"
    result = read(listing(7))
    assert result.metadata() == {"counter.TcpRetransSegs": "7", "counter.TcpExtTCPHystartTrainDetect": "1"}
    assert len(result.frames["flows"]) == 0
    assert result.row("inputs")["records"] == 1


def test_listings_in_a_loop_tell_what_was_added(read):
    result = read("1796026431\n" + listing(7) + "1796026432.5\n" + listing(9))
    told = result.metadata()
    assert (told["counter.TcpRetransSegs"], told["increase.TcpRetransSegs"]) == ("9", "2")
    assert result.nanoseconds("last_time", "inputs") == [1_796_026_432_500_000_000]
    assert result.row("inputs")["records"] == 2


def test_listings_of_what_was_added_are_summed_up(read):
    """Without -a, nstat prints increments, which may fall."""
    told = read(listing(7) + listing(2)).metadata()
    assert told["counter.TcpRetransSegs"] == "9"
    assert "increase.TcpRetransSegs" not in told


def test_proc_files(read):
    text = "TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 0 3\nTcp: RtoAlgorithm MaxConn RetransSegs\nTcp: 1 -1 7\n"
    assert parsers.detect(text.encode(), "test").NAME == "nstat"
    told = read(text).metadata()
    assert told == {"counter.TcpExtSyncookiesSent": "0", "counter.TcpExtTCPTimeouts": "3", "counter.TcpRtoAlgorithm": "1",
                    "counter.TcpRetransSegs": "7"}  # fmt: skip


def test_a_torn_group_is_told(read):
    result = read("TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 0\n" + listing(7), "nstat")
    assert result.log.rows[0]["line"] == 2
    assert result.metadata()["counter.TcpRetransSegs"] == "7"


def test_mutations_raise_nothing_unexpected(survives):
    survives(
        (listing(7) + "TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 0 3\n").encode(),
        "nstat",
        [b"9" * 30, b" ", b"\n", b":", b"\xff"],
    )


def test_counters_of_the_traces(read_file):
    told = read_file("traces/cubic-base/nstat.txt").metadata()
    assert told["counter.TcpRetransSegs"] == "7"
