"""tcp_probe logs that are torn, lost in part, out of order, in pieces, or laid out so that they say too little."""

# ruff: noqa: E501 - lines of logs are as long as they are
from __future__ import annotations

import random

import pytest

from tests.parsers.probe_lines import ftrace, payload, state
from tracetool.errors import FormatError

# -- damage


def test_lost_events_are_told_with_their_line_and_counted_as_drops(read):
    result = read(ftrace() + "CPU:0 [LOST 28 EVENTS]\n" + "CPU:1 [LOST EVENTS]\n" + ftrace("12.000002"))
    assert [(row["code"], row["line"], row["count"]) for row in result.log.rows[:2]] == [
        ("lost_events", 2, 28),
        ("lost_events", 3, 1),
    ]
    assert result.row("inputs")["capture_drops"] == 29
    assert len(result.frames["samples"]) == 2


def test_overwritten_events_are_told(read):
    text = "# tracer: nop\n# entries-in-buffer/entries-written: 5050/7050   #P:2\n##### CPU 1 buffer started ####\n"
    result = read(text + ftrace())
    assert result.codes[:2] == ["overwritten_events"] * 2
    assert result.log.rows[0]["count"] == 2000
    assert not result.log.damaged


@pytest.mark.parametrize(
    "torn",
    [
        ftrace()[:180] + "\n",
        ftrace()[60:],
        ftrace(src="192.0.2.300:5000"),
        ftrace(src="192.0.2.1:99999"),
        ftrace(cookie=None),  # where the others have one
        ftrace().replace("snd_cwnd=10", "snd_cwnd=99999999999999999999"),
        ftrace().replace("snd_una=0x1000", "snd_una=0x1000000000"),
        ftrace(time="99999999999999.000001"),
        "\x00\xff\x00garbage\n",
        state(9),
        state(3).replace("sport=5000", "sport=x"),
    ],
)
def test_a_torn_line_is_told_and_what_is_around_it_kept(read, torn):
    before, after = ftrace("12.000001"), ftrace("12.000009")
    raw = before.encode() + torn.encode("latin1") + after.encode()
    result = read(raw)
    assert result.nanoseconds() == [12_000_001_000, 12_000_009_000]
    row = next(row for row in result.log.rows if row["severity"] == "error")
    assert (row["code"], row["line"], row["offset_bytes"]) == ("torn_line", 2, len(before))
    assert len(result.frames["flows"]) == 1


def test_two_lines_run_together_lose_the_first_only(read):
    result = read(ftrace() + ftrace("12.000002")[:150] + ftrace("12.000003"))
    assert result.nanoseconds() == [12_000_001_000, 12_000_003_000]
    assert result.log.damaged


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("# tracer: nop\n#\n# nop latency trace v1.1.5 on 6.18\n# latency: 0 us, #4/4, CPU#0\n", "latency-format"),
        ("# tracer: nop\n   relay-32567     0b..1.  123us : tcp_probe: family=AF_INET " + payload() + "\n", "latency-format"),
        ("# tracer: nop\n32567 1 1837280255799 type: 2273\n", "raw"),
        ("# tracer: nop\n00002f95 00000001 18ecd13f56c68d6f type: 2271\n", "hex"),
        ("# tracer: nop\n" + ftrace(body="saddr=<INVALID-SIZE> daddr=<INVALID-SIZE> sport=0x14b3 (5299) snd_cwnd=0xa"), "fields"),
        ("cpus=2\n  iperf3-14309 [000]  5978.766125: tcp_probe:   saddr=\n daddr=\n sport=5998 dport=1 snd_cwnd=10\n", "trace-cmd"),
        ("tcp_probe: " + payload() + "\n", "context-info"),
        ("  26352.200000             3  " + payload() + " sock_cookie=bf\n", "perf script"),
    ],
)  # fmt: skip
def test_a_layout_without_what_is_needed_is_refused_with_what_to_do(read, text, reason):
    with pytest.raises(FormatError, match=reason) as caught:
        read(text)
    assert "line" in str(caught.value)
    assert "\n" not in str(caught.value)


# -- time


def test_clocks(read):
    assert read(ftrace("1796030815.430479")).metadata()["clock"] == "UTC"
    assert read(ftrace("15.430479")).metadata()["clock"] == "since boot"
    ticks = read(ftrace("183192"))
    assert ticks.metadata()["clock"] == "ticks"
    assert ticks.nanoseconds() == [183_192]
    assert ticks.row("inputs")["time_resolution_ns"] is None
    assert read(ftrace("183192"), hz=250).nanoseconds() == [183_192 * 4_000_000]


def test_small_inversions_between_cpus_are_sorted_within_the_flow_and_large_ones_left(read):
    times = ["12.000100", "12.000050", "12.000300", "11.000000", "12.000400"]
    result = read("".join(ftrace(time) for time in times))
    assert result.nanoseconds() == [12_000_050_000, 12_000_100_000, 12_000_300_000, 11_000_000_000, 12_000_400_000]


# -- streams


def log_of(count: int) -> str:
    random.seed(1)
    una, lines = 0xFFFF_0000, ["# tracer: nop\n", "CPU:0 [LOST 3 EVENTS]\n"]
    for i in range(count):
        una = (una + random.choice([0, 1448, 2896])) % 2**32
        lines.append(ftrace(f"12.{i:06}", una=una, nxt=(una + 14480) % 2**32, cwnd=10 + i, cookie=f"{i % 3:x}"))
        if i % 7 == 0:
            lines.append(state(i % 5, f"12.{i:06}"))
        if i % 11 == 0:
            lines.append(lines[-1][: random.randrange(20, 90)] + "\n")
    return "".join(lines)


@pytest.mark.parametrize("chunk", [1, 7, 311, 4096])
def test_any_chunking_gives_the_same_tables(read, chunk):
    text = log_of(60)
    whole, parts = read(text), read(text, chunk=chunk)
    for table, frame in whole.frames.items():
        assert frame.equals(parts.frames[table], null_equal=True), table
    assert len(whole.frames["samples"]) == 60


def test_pieces_are_bounded(read):
    result = read("".join(ftrace(f"12.{i:06}") for i in range(70_000)))
    assert max(result.pieces) == 65_536
    assert len(result.frames["samples"]) == 70_000


def test_mutations_raise_nothing_unexpected(survives):
    survives(log_of(20).encode(), "tcp_probe", [b"9" * 30, b"\n", b"\r", b"\x00", b"=", b" ", b"-", b":", b"[", b"]"])


def test_a_log_without_events_is_a_dataset_without_samples(read):
    result = read("# tracer: nop\n#\n")
    assert result.codes == ["no_records"]
    assert result.row("inputs")["records"] == 0
    assert result.row("inputs")["first_time"] is None
