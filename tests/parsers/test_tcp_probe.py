"""tcp_probe events: every tracer's layout, every kernel's fields, and the rules that are easy to get wrong."""

# ruff: noqa: E501 - lines of logs are as long as they are
from __future__ import annotations

import contextlib
import random

import pytest

from tracetool import parsers
from tracetool.errors import FormatError, TracetoolError

PAYLOAD = (
    "src={src} dest={dest} mark=0x0 data_len={length} snd_nxt={nxt:#x} snd_una={una:#x} snd_cwnd={cwnd} "
    "ssthresh={ssthresh} snd_wnd=65536 srtt={srtt} rcv_wnd=64512"
)
FACTS = {
    "src": "192.0.2.1:5000", "dest": "192.0.2.9:443", "length": 0, "nxt": 0x9000, "una": 0x1000, "cwnd": 10,
    "ssthresh": 2147483647, "srtt": 30250,
}  # fmt: skip


def payload(**facts):
    return PAYLOAD.format(**(FACTS | facts))


def ftrace(time="12.000001", event="tcp_probe", body=None, cookie="2a", **facts):
    body = body or payload(**facts) + (f" sock_cookie={cookie}" if cookie else "")
    return f"          <idle>-0       [001] ..s2.   {time}: {event}: {body}\n"


def state(number, time="12.000002", local="192.0.2.1", port=5000, remote="192.0.2.9", dport=443):
    return ftrace(
        time,
        "tcp_cong_state_set",
        f"family=AF_INET sport={port} dport={dport} saddr={local} daddr={remote} saddrv6=::ffff:{local} "
        f"daddrv6=::ffff:{remote} cong_state={number}",
    )


def resent(time="12.000003", extra=""):
    return ftrace(
        time,
        "tcp_retransmit_skb",
        "skbaddr=00000000aa skaddr=00000000bb family=AF_INET sport=5000 dport=443 saddr=192.0.2.1 daddr=192.0.2.9 "
        f"saddrv6=::ffff:192.0.2.1 daddrv6=::ffff:192.0.2.9 state=TCP_ESTABLISHED{extra}",
    )


# -- layouts: (line, time in ns)

LAYOUTS = {
    "4.16, length": (
        "          <idle>-0     [004] ..s7    49.823798: tcp_probe: " + payload().replace("data_len", "length") + "\n",
        49_823_798_000,
    ),
    "4.19, cookie": (
        "          iperf3-3829  [003] .... 1892945.576997: tcp_probe: " + payload() + " sock_cookie=ab41\n",
        1_892_945_576_997_000,
    ),
    "5.18, family": (
        "           curl-32567   [000] b..1.  1554.820269: tcp_probe: family=AF_INET " + payload() + " sock_cookie=10a4\n",
        1_554_820_269_000,
    ),
    "6.10, addresses": (
        "           curl-32567   [000] b..1.  1554.820269: tcp_probe: family=AF_INET "
        + payload()
        + " sock_cookie=10a4 skbaddr=00000000210c6be7 skaddr=00000000913c200a\n",
        1_554_820_269_000,
    ),
    "unknown keys": (
        "           curl-32567   [000] b..1.  1554.820269: tcp_probe: " + payload() + " sock_cookie=10a4 mptcp=1 x=[y]\n",
        1_554_820_269_000,
    ),
    "another order": (
        "  curl-7 [000] b..1.  1554.820269: tcp_probe: sock_cookie=1 new=3 " + payload().replace(" snd_una", " z=1 snd_una") + "\n",
        1_554_820_269_000,
    ),
    "tgid, 5.10": (
        "           curl-32567   (  32567) [000] b..1.  1835.968221: tcp_probe: " + payload() + " sock_cookie=1\n",
        1_835_968_221_000,
    ),
    "tgid unknown, 4.14": ("          <idle>-0     [000] (-----) ..s1  9.000001: tcp_probe: " + payload() + "\n", 9_000_001_000),
    "no flags": ("          <idle>-0     [000] 9.000001: tcp_probe: " + payload() + "\n", 9_000_001_000),
    "task name with blanks and brackets": ("   my [x] task-2-77   [000] d.s.. 9.000001: tcp_probe: " + payload() + "\n", 9_000_001_000),
    "trace-cmd of an instance": (
        "probe:            relay-32567 [000]  1872.984606: tcp_probe:            family=AF_INET "
        + payload().replace("mark=0x0", "mark=0")
        + " sock_cookie=10d1 skbaddr=0xffff88813a93c300 skaddr=0xffff8881031ee5c0\n",
        1_872_984_606_000,
    ),
    "trace-cmd -l": ("hy:   iperf3-14309   0..s2.  5978.766125: tcp_probe:            " + payload() + "\n", 5_978_766_125_000),
    "trace-cmd -l, no flags": ("   iperf3-14309   1.....  5978.766125: tcp_probe:  " + payload() + "\n", 5_978_766_125_000),
    "trace-cmd -t": ("           relay-32567 [000]  1872.984606123: tcp_probe: " + payload() + "\n", 1_872_984_606_123),
    "perf": (
        "           relay 32567 [001]  1848.883258:          tcp:tcp_probe: family=AF_INET " + payload() + " sock_cookie=112\n",
        1_848_883_258_000,
    ),
    "perf --ns": ("         swapper     0 [001]  1848.883279466: tcp:tcp_probe: " + payload() + "\n", 1_848_883_279_466),
    "perf, pid/tid and period": ("   irq/69-x 19/20 [003] 99975.473448:          1 tcp:tcp_probe: " + payload() + "\n", 99_975_473_448_000),
    "tai clock": ("         netpath-1 [000] ..s2. 1796030815.430479: tcp_probe: " + payload() + "\n", 1_796_030_815_430_479_000),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_gives_the_same_sample(read, name):
    line, time = LAYOUTS[name]
    assert parsers.detect(line.encode(), "test").NAME == "tcp_probe"
    result = read(line)
    row = result.row()
    assert result.nanoseconds() == [time]
    expected = {
        "flow": 0, "direction": "a2b", "origin": "tcp_probe", "cwnd_segments": 10, "ssthresh_segments": None,
        "srtt_ns": 30_250_000, "snd_una": 0, "snd_nxt": 0x8000, "snd_wnd_bytes": 65536, "rcv_wnd_bytes": 64512,
        "min_rtt_ns": None, "inflight_bytes": None, "ca_state": None, "phase": "slow_start",
    }  # fmt: skip
    assert {key: row[key] for key in expected} == expected
    flow = result.row("flows")
    assert (flow["addr_a"], flow["port_a"], flow["addr_b"], flow["port_b"]) == ("192.0.2.1", 5000, "192.0.2.9", 443)
    assert not result.log.damaged


def test_headers_and_empty_lines_are_no_events(read):
    text = (
        "# tracer: nop\n#\n# entries-in-buffer/entries-written: 1/1   #P:2\n#\n#           TASK-PID     CPU#\n\n"
        "cpus=2\nversion = 6\nCPU 1 is empty\n" + ftrace()
    )
    result = read(text)
    assert len(result.frames["samples"]) == 1
    assert result.codes == ["clock_not_utc"]


# -- the rules


def test_rule_1_an_event_shows_the_state_before_its_ack(read):
    """The row stands at the ACK's own time with snd_una as it was; nothing is shifted to the next event."""
    result = read(ftrace("12.000001", una=0x1000) + ftrace("12.040001", una=0x2000))
    assert list(zip(result.nanoseconds(), result.column("snd_una"), strict=True)) == [
        (12_000_001_000, 0),
        (12_040_001_000, 0x1000),
    ]


def test_rule_2_src_is_the_local_end(read):
    result = read(ftrace(length=1448))
    assert result.row("flows")["addr_a"] == "192.0.2.1"
    assert result.row("flows")["payload_bytes_b2a"] == 1448  # the segment that came in


def test_rule_3_ssthresh_is_stored_as_printed_and_said_so(read):
    result = read(ftrace(cwnd=100, ssthresh=75))
    assert result.column("ssthresh_segments") == [75]
    assert result.metadata()["ssthresh"] == "tcp_current_ssthresh()"


@pytest.mark.parametrize(
    ("ca_state", "cwnd", "ssthresh", "phase"),
    [
        (None, 10, 2147483647, "slow_start"),
        (None, 90, 80, None),  # recovery would look the same
        (None, 70, 80, None),
        (0, 70, 80, "slow_start"),
        (0, 80, 80, "congestion_avoidance"),
        (1, 100, 75, "congestion_avoidance"),
        (2, 100, 80, "congestion_avoidance"),
        (3, 70, 80, "recovery"),
        (4, 1, 80, "loss"),
    ],
)
def test_rule_3_phase_is_the_kernels_own_test(read, ca_state, cwnd, ssthresh, phase):
    before = ftrace("11.0000000"[:9]) + (state(ca_state, "11.500000") if ca_state is not None else "")
    result = read(before + ftrace(cwnd=cwnd, ssthresh=ssthresh))
    assert result.column("phase")[-1] == phase


def test_a_control_that_sets_no_threshold_has_no_phase_once_its_window_fell(read):
    result = read("".join(ftrace(f"12.00000{i}", cwnd=cwnd) for i, cwnd in enumerate((40, 80, 4, 40))))
    assert result.column("phase") == ["slow_start", "slow_start", None, None]


def test_rule_5_windows_are_segments_and_rule_6_srtt_is_microseconds(read):
    row = read(ftrace(cwnd=7, srtt=1500)).row()
    assert (row["cwnd_segments"], row["srtt_ns"]) == (7, 1_500_000)
    assert read(ftrace(srtt=0)).row()["srtt_ns"] is None  # no sample yet


def test_rule_9_marks_and_states_as_each_tool_prints_them(read):
    perf = "      curl 7 [001] 1848.883258: tcp:tcp_retransmit_skb: skbaddr=0xff sport=5000 dport=443 saddr=192.0.2.1 "
    perf += "daddr=192.0.2.9 saddrv6=::ffff:192.0.2.1 daddrv6=::ffff:192.0.2.9 state=0x1\n"
    probe = "      curl 7 [001] 1848.883259: tcp:tcp_probe: " + payload(nxt=0, una=0).replace("0x0", "0") + "\n"
    result = read(probe + perf)
    assert result.column("kind", "events") == ["retransmission"]
    assert result.row()["snd_nxt"] == 0
    assert not result.log.damaged


def test_rule_10_bytes_in_flight_are_known_in_state_open_only(read):
    text = state(0) + ftrace("12.000004") + state(1, "12.000005") + ftrace("12.000006") + state(3, "12.000007")
    result = read(text + ftrace("12.000008"))
    assert result.column("inflight_bytes") == [0x8000, None, None]
    assert result.column("ca_state") == ["open", "disorder", "recovery"]


# -- sequence numbers and flows


def test_sequence_numbers_are_unwrapped(read):
    numbers = [0xFFFF_F000, 0xFFFF_FFF0, 0x10, 0x7000_0010, 0xE000_0010, 0x10]
    result = read("".join(ftrace(f"12.00000{i}", una=una, nxt=(una + 8) % 2**32) for i, una in enumerate(numbers)))
    assert result.column("snd_una") == [0, 0xFF0, 0x1010, 0x7000_1010, 0xE000_1010, 0x1_0000_1010]
    assert [nxt - una for una, nxt in zip(result.column("snd_una"), result.column("snd_nxt"), strict=True)] == [8] * 6


def test_a_cookie_tells_reused_ports_apart(read):
    result = read(ftrace(cookie="1") + ftrace(cookie="2", una=0x77, nxt=0x99) + ftrace(cookie="1", una=0x1008))
    assert result.column("flow") == [0, 1, 0]
    assert result.column("snd_una") == [0, 0, 8]
    assert len(result.frames["flows"]) == 2


def test_without_a_cookie_a_sequence_number_that_goes_back_does(read):
    old = {"cookie": None}
    result = read(
        ftrace(**old)
        + ftrace("12.5", **old).replace("12.5", "12.500000")
        + ftrace("13.000000", una=0x10, nxt=0x20, **old)
    )
    assert result.column("flow") == [0, 0, 1]
    assert result.column("snd_una") == [0, 0, 0]


def test_mapped_and_plain_addresses_are_one_flow(read):
    mapped = ftrace(src="[::ffff:192.0.2.1]:5000", dest="[::ffff:192.0.2.9]:443").replace(
        "tcp_probe: ", "tcp_probe: family=AF_INET6 "
    )
    result = read(mapped + ftrace("12.000002"))
    assert result.column("flow") == [0, 0]
    assert result.row("flows")["addr_a"] == "192.0.2.1"


def test_ipv6(read):
    result = read(ftrace(src="[2001:db8::1]:53578", dest="[2001:db8:0:0::2]:5299"))
    flow = result.row("flows")
    assert (flow["addr_a"], flow["port_a"], flow["addr_b"]) == ("2001:db8::1", 53578, "2001:db8::2")


def test_both_ends_on_the_host_are_two_flows(read):
    there = ftrace(cookie="5")
    back = ftrace("12.000002", cookie="6", src="192.0.2.9:443", dest="192.0.2.1:5000")
    result = read(there + back)
    assert result.column("flow") == [0, 1]
    assert set(result.column("direction")) == {"a2b"}


def test_a_receiver_is_a_flow_with_samples_too(read):
    result = read("".join(ftrace(f"12.00000{i}", length=1448, nxt=0x1000) for i in range(3)))
    flow = result.row("flows")
    assert (flow["payload_bytes_a2b"], flow["payload_bytes_b2a"]) == (0, 3 * 1448)
    assert len(result.frames["samples"]) == 3


# -- companions


def test_companions_become_events_of_the_same_flow(read):
    result = read(ftrace() + state(3) + resent() + state(4, "12.000004") + resent("12.000005") + state(0, "12.000006"))
    assert result.column("flow", "events") == [0] * 5
    assert result.column("kind", "events") == ["cong_state", "retransmission"] * 2 + ["cong_state"]
    assert result.column("trigger", "events") == [None, "fast", None, "rto", None]
    assert [result.column("evidence", "events")[i] for i in (0, 2, 4)] == ["recovery", "loss", "open"]
    assert set(result.column("origin", "events")) == {"tcp_probe"}


def test_a_retransmission_that_failed_is_none(read):
    result = read(ftrace() + resent(extra=" err=0") + resent("12.000004", " err=-11"))
    assert result.column("kind", "events") == ["retransmission", "retransmission_failed"]
    assert "err=-11" in result.column("evidence", "events")[1]


def test_ipv6_companions_are_known_by_their_ipv6_addresses(read):
    """saddr and daddr of such a socket hold something else."""
    probe = ftrace(src="[2001:db8::1]:5000", dest="[2001:db8::9]:443")
    event = state(3).replace("::ffff:192.0.2.1", "2001:db8::1").replace("::ffff:192.0.2.9", "2001:db8::9")
    result = read(probe + event.replace("saddr=192.0.2.1", "saddr=127.0.0.6"))
    assert len(result.frames["flows"]) == 1


def test_a_flow_that_only_companions_name_is_joined_by_its_first_probe(read):
    result = read(state(0) + ftrace("12.000003"))
    assert len(result.frames["flows"]) == 1
    assert result.column("ca_state") == ["open"]


def test_other_events_are_counted_not_read(read):
    other = ftrace("12.000002", "tcp_rcv_space_adjust", "sport=5000 dport=443 saddr=192.0.2.1 daddr=192.0.2.9")
    result = read(ftrace() + other + other)
    assert result.log.rows[0] | {"message": ""} == result.log.rows[0] | {
        "code": "other_events", "count": 2, "severity": "info", "message": "",
    }  # fmt: skip


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


def test_mutations_raise_nothing_unexpected(read):
    random.seed(2)
    good = log_of(20).encode()
    for _ in range(400):
        bad = bytearray(good)
        for _ in range(random.randrange(1, 12)):
            at = random.randrange(len(bad))
            kind = random.randrange(4)
            if kind == 0:
                bad[at] = random.randrange(256)
            elif kind == 1:
                del bad[at : at + random.randrange(1, 60)]
            elif kind == 2:
                bad[at:at] = bad[random.randrange(len(bad)) :][: random.randrange(40)]
            else:
                bad[at:at] = random.choice([b"9" * 30, b"\n", b"\r", b"\x00", b"=", b" ", b"-", b":", b"[", b"]"])
        with contextlib.suppress(TracetoolError):
            read(bytes(bad), "tcp_probe")


def test_a_log_without_events_is_a_dataset_without_samples(read):
    result = read("# tracer: nop\n#\n")
    assert result.codes == ["no_records"]
    assert result.row("inputs")["records"] == 0
    assert result.row("inputs")["first_time"] is None


# -- real logs


def test_real_logs_hold_a_row_for_each_event(read_file, shared):
    import gzip

    for name in ("cubic-base", "bbr-loss", "reno-no-sack", "four-mixed-nano"):
        text = gzip.decompress((shared / "traces" / name / "tcp_probe.txt.gz").read_bytes()).decode()
        result = read_file(f"traces/{name}/tcp_probe.txt.gz")
        assert len(result.frames["samples"]) == text.count(": tcp_probe: ")
        assert len(result.frames["events"]) == text.count(": tcp_cong_state_set: ") + text.count(
            ": tcp_retransmit_skb: "
        )
        assert not result.log.damaged


def test_rule_1_holds_in_real_logs_as_in_the_capture(read_file):
    """snd_una of an event is what the event before acknowledged: no jump passes what had been sent by then."""
    import polars as pl

    samples = read_file("traces/cubic-base/tcp_probe.txt.gz").frames["samples"]
    jumps = samples.filter(pl.col("snd_una") > pl.col("snd_nxt").shift(1).over("flow"))
    assert len(jumps) == 0
