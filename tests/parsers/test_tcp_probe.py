"""tcp_probe events: every tracer's layout, every kernel's fields, and the rules that are easy to get wrong."""

# ruff: noqa: E501 - lines of logs are as long as they are
from __future__ import annotations

import pytest

from tests.parsers.probe_lines import ftrace, payload, resent, state
from tracetool import parsers

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
