"""ss: forms of all eras, the ways loops write times, and what a missing token means."""

# ruff: noqa: E501, ISC004 - lines of logs are as long as they are
from __future__ import annotations

import random

import pytest

from tracetool import parsers
from tracetool.errors import FormatError

HEADER = "State Recv-Q Send-Q Local Address:Port  Peer Address:PortProcess\n"
ADDRESS = "ESTAB 0      75296  192.0.2.1:38772 198.51.100.2:5201\n"
INFO = (
    "\t cubic wscale:7,9 rto:264 rtt:62.5/2.25 mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:105 ssthresh:104 "
    "bytes_sent:2405181 bytes_retrans:17376 bytes_acked:2251694 bytes_received:37 segs_out:1665 segs_in:805 "
    "data_segs_out:1663 send 19536139bps lastrcv:1136 pacing_rate 23443272bps delivery_rate 16604296bps "
    "delivered:1558 busy:1124ms rwnd_limited:24ms(2.1%) unacked:94 retrans:2/12 lost:5 sacked:11 rcv_space:14480 "
    "rcv_ssthresh:64088 notsent:373568 minrtt:40.751 snd_wnd:786432 rcv_wnd:65536\n"
)
STAMP = 1_796_026_431_698_928_446


def info(**tokens):
    """An information line with tokens changed, or left out where None."""
    words = INFO.split()
    for key, value in tokens.items():
        at = next(i for i, word in enumerate(words) if word.startswith(f"{key}:"))
        words[at : at + 1] = [] if value is None else [f"{key}:{value}"]
    return "\t " + " ".join(words) + "\n"


def listing(line=INFO, address=ADDRESS):
    return f"1796026431.698928446\n{address}{line}"


def test_all_fields(read):
    result = read(listing())
    expected = {
        "input": "test", "flow": 0, "direction": "a2b", "origin": "ss", "cwnd_segments": 105, "cwnd_low_segments": None,
        "cwnd_high_segments": None, "ssthresh_segments": 104, "srtt_ns": 62_500_000, "rttvar_ns": 2_250_000,
        "min_rtt_ns": 40_751_000, "inflight_bytes": (94 - 11 - 5 + 2) * 1448, "mss_bytes": 1448, "snd_una": 2251694,
        "snd_nxt": None, "snd_wnd_bytes": 786432, "rcv_wnd_bytes": 65536, "pacing_rate_bps": 23443272,
        "delivery_rate_bps": 16604296, "phase": None, "limited_by": None, "ca_state": None, "cc": "cubic",
        "lost_segments": 5, "sacked_segments": 11, "retransmitted_segments": 12, "delivered_segments": 1558,
    }  # fmt: skip
    row = result.row()
    assert {key: row[key] for key in expected} == expected
    assert result.nanoseconds() == [STAMP]
    flow = result.row("flows")
    assert (flow["addr_a"], flow["port_a"], flow["addr_b"], flow["port_b"]) == (
        "192.0.2.1",
        38772,
        "198.51.100.2",
        5201,
    )
    assert (flow["payload_bytes_a2b"], flow["payload_bytes_b2a"]) == (2405181, 37)
    assert (flow["window_scale_a"], flow["window_scale_b"]) == (9, 7)  # ss prints the sending side's first
    assert (flow["sack_permitted"], flow["timestamps"], flow["ecn"]) == (None, None, None)
    assert result.row("inputs")["time_resolution_ns"] == 1
    assert not result.log.rows


# -- forms of the lines: (text, expected values); the time is always the first day of 2026 unless the form has its own

FORMS = {
    "S1, iproute2 3": (
        "State      Recv-Q Send-Q        Local Address:Port          Peer Address:Port\n"
        "ESTAB      0      14480             192.0.2.1:45632             192.0.2.2:5001\n"
        "\t cubic wscale:7,7 rto:236 rtt:36.5/3.25 mss:1448 cwnd:48 ssthresh:41 send 15.2Mbps unacked:46 retrans:0/5 rcv_space:29200\n",
        {"cwnd_segments": 48, "ssthresh_segments": 41, "srtt_ns": 36_500_000, "cc": "cubic", "retransmitted_segments": 5,
         "lost_segments": None, "inflight_bytes": None, "min_rtt_ns": None, "snd_una": None},
    ),
    "S2, suffixes, timer and memory": (
        "ESTAB      0      212856 192.0.2.1:52104                192.0.2.2:5201                timer:(on,256ms,0)\n"
        "\t skmem:(r0,rb372480,t0,tb1313280,f3720,w262536,o0,bl0) ts sack cubic wscale:7,7 rto:256 rtt:54.9/0.6 mss:1448 "
        "cwnd:101 ssthresh:95 bytes_acked:1203489 segs_out:951 segs_in:486 data_segs_out:949 send 21.3Mbps lastrcv:512 "
        "pacing_rate 25.6Mbps/30Mbps unacked:99 rcv_space:29200 notsent:69504 minrtt:40.2\n",
        {"pacing_rate_bps": 25_600_000, "inflight_bytes": 99 * 1448, "lost_segments": 0, "sacked_segments": 0,
         "retransmitted_segments": 0, "limited_by": None, "phase": "congestion_avoidance", "snd_una": 1203489, "cc": "cubic"},
    ),
    "S4, IPv6": (
        HEADER + "ESTAB 0      712572     [2001:db8::1]:53578    [2001:db8::2]:5299\n"
        "\t skmem:(r0,rb131072,t0,tb801792,f2692,w759164,o0,bl0,d0) cubic wscale:10,10 rto:260 rtt:57.352/1.315 mss:1428 "
        "cwnd:98 ssthresh:95 bytes_sent:3031681 bytes_acked:2840330 send 19520714bps unacked:91 retrans:0/43 minrtt:40.223\n",
        {"cwnd_segments": 98, "min_rtt_ns": 40_223_000, "inflight_bytes": 91 * 1428, "retransmitted_segments": 43},
    ),
    "IPv6 without brackets": (
        "ESTAB 0 0 2001:db8::1:53578 2001:db8::2:5299\n\t reno rto:204 rtt:4/2 mss:1428 cwnd:10 send 28Mbps lastsnd:4\n",
        {"cwnd_segments": 10, "cc": "reno", "srtt_ns": 4_000_000},
    ),
    "S5, one line": (
        "ESTAB 0      75296  192.0.2.1:38772 192.0.2.2:5299 timer:(on,088ms,0) ino:148463 sk:10a4 cgroup:unreachable:1 <-> "
        "ts sack cubic wscale:10,10 rto:244 rtt:43.839/9.639 mss:1448 cwnd:12 bytes_sent:20309 bytes_acked:2934 "
        "send 3170875bps lastsnd:4 pacing_rate 6341696bps delivery_rate 526184bps delivered:4 app_limited unacked:12 "
        "snd_wnd:71680\n",
        {"cwnd_segments": 12, "ssthresh_segments": None, "limited_by": "cwnd", "phase": "slow_start", "cc": "cubic"},
    ),
    "S6, after an RTO": (
        ADDRESS + "\t cubic wscale:10,10 rto:544 backoff:1 rtt:68.398/0.013 mss:1448 cwnd:1 ssthresh:81 bytes_sent:4288976 "
        "bytes_acked:4107977 send 169362bps lastsnd:448 unacked:117 retrans:1/8 lost:117 minrtt:40.424 snd_wnd:1782784\n",
        {"cwnd_segments": 1, "inflight_bytes": 1448, "lost_segments": 117, "phase": "loss", "limited_by": "cwnd"},
    ),
    "S7, no State column, BBR": (
        "Recv-Q Send-Q Local Address:Port  Peer Address:Port\n0      0          [2001:db8::1]:53564    [2001:db8::2]:5299\n"
        "\t bbr wscale:10,10 rto:244 rtt:40.339/11.425 ato:40 mss:1428 cwnd:13 bytes_sent:185 bytes_acked:186 "
        "bbr:(bw:564kbps,mrtt:40.281,pacing_gain:2.88672,cwnd_gain:2.88672) send 3.68Mbps lastsnd:1456 pacing_rate 8.1Mbps "
        "delivery_rate 565kbps delivered:4 app_limited busy:84ms minrtt:40.281 snd_wnd:64512\n",
        {"cwnd_segments": 13, "phase": "startup", "delivery_rate_bps": 565_000, "limited_by": "app", "cc": "bbr",
         "inflight_bytes": 0},
    ),
    "B2, names of processes and cgroups": (
        'ESTAB  0      0               192.0.2.1:14885          192.0.2.2:4005  users:(("x cwnd:9 (y",pid=2796,fd=11),("b",pid=1,fd=2))  '
        "timer:(keepalive,2.865ms,0) uid:1000 ino:204351 sk:6b4a cgroup:/user.slice/a.scope <-> tos:0 class_id:0\n" + INFO,
        {"cwnd_segments": 105, "cc": "cubic"},
    ),
    "B7, unknown blocks": (
        ADDRESS + "\t prague wscale:7,7 rto:252 rtt:50.812/0.379 mss:1402 cwnd:4367 ssthresh:4367 "
        "prague:(alpha:100%,ai_ack_increase:4.29497e+11%,max_burst:20,round:0,rtt_indep:???) send 963950878bps lastsnd:4 "
        "pacing_rate 1e+03Mbps delivery_rate 6.34Gbps delivered:9 unacked:4000\n",
        {"cc": "prague", "pacing_rate_bps": 1_000_000_000, "delivery_rate_bps": 6_340_000_000, "phase": "congestion_avoidance"},
    ),
    "B8, dctcp": (
        ADDRESS + "\t ts sack ecn ecnseen dctcp wscale:9,9 rto:201 rtt:0.142/0.08 ato:40 mss:32768 cwnd:10 ssthresh:7"
        "dctcp:(ce_state:0,alpha:540,ab_ecn:0,ab_tot:32768) send 18460845070bps lastsnd:1 unacked:1\n",
        {"cc": "dctcp", "srtt_ns": 142_000, "cwnd_segments": 10},
    ),
    "B10, Netid": (
        "tcp           ESTAB          0               2082224                   192.0.2.10:58022                   198.51.100.20:5201\n"
        + INFO,
        {"cwnd_segments": 105},
    ),
    "B14, oldest": (
        "ESTAB 0 0 192.0.2.10:46780 198.51.100.1:www\n\t cubic wscale:6,7 rto:276 rtt:76/38 cwnd:10 send 1.5Mbps rcv_space:14600\n",
        {"cwnd_segments": 10, "srtt_ns": 76_000_000, "rttvar_ns": 38_000_000, "inflight_bytes": None,
         "retransmitted_segments": None, "mss_bytes": None, "phase": None},
    ),
    "B15, words torn apart by padding": (
        ADDRESS + "         bbr wscale:10,10 rto:204 rtt:0.275/0.21 ato:40 mss:1398 cwnd:156 byt                               "
        "es_sent:63224 una         cked:3 bytes_acked:63225 lastsnd:4\n",
        {"cwnd_segments": 156, "cc": "bbr", "inflight_bytes": 3 * 1398, "phase": None},
    ),
    "broken by a terminal": (
        ADDRESS + "\t cubic wscale:7,9 rto:264 rtt:62.5/2.25 mss:1448 cw\nnd:105 ssthresh:104 bytes_sent:9 send 195bps una\n"
        "cked:94 lost:1\n",
        {"cwnd_segments": 105, "ssthresh_segments": 104, "inflight_bytes": 93 * 1448},
    ),
    "no queues": ("ESTAB 192.0.2.1:38772 198.51.100.2:5201\n" + INFO, {"cwnd_segments": 105}),
    "trailing blanks": (ADDRESS + INFO.rstrip("\n") + " " * 300 + "\n", {"cwnd_segments": 105, "rcv_wnd_bytes": 65536}),
    "CR LF": ((ADDRESS + INFO).replace("\n", "\r\n"), {"cwnd_segments": 105, "rcv_wnd_bytes": 65536}),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_forms(read, name):
    text, expected = FORMS[name]
    assert parsers.detect(text.encode(), "test").NAME == "ss"
    result = read("1796026431.698928446\n" + text)
    row = result.row()
    assert {key: row[key] for key in expected} == expected
    assert len(result.frames["samples"]) == len(result.frames["flows"]) == 1
    assert result.nanoseconds() == [STAMP]
    assert not result.log.damaged


# -- rule 7: what a missing token means


@pytest.mark.parametrize(
    ("line", "column", "value"),
    [
        (info(ssthresh=None), "ssthresh_segments", None),
        (info(cwnd=None), "cwnd_segments", 2),  # iproute2 up to 4.0 leaves exactly this out
        (info(cwnd=None).replace("send 19536139bps ", ""), "cwnd_segments", None),
        (info(rtt=None), "srtt_ns", None),
        (info(mss=None), "inflight_bytes", None),
        (info(unacked=None, lost=None, sacked=None, retrans="0/3"), "inflight_bytes", 0),
        (info(unacked=None), "inflight_bytes", None),  # less than nothing in flight: the line contradicts itself
        (info(retrans=None), "retransmitted_segments", 0),
        (info(minrtt=None), "min_rtt_ns", None),
        (info(delivered=None), "delivered_segments", None),
        (info(snd_wnd=None), "snd_wnd_bytes", None),
        (info(rtt="1e+03/???"), "rttvar_ns", None),
        (info(rtt="1e+03/???"), "srtt_ns", 1_000_000_000),
    ],
)
def test_rule_7_a_missing_token_is_not_zero_unless_ss_says_so(read, line, column, value):
    assert read(listing(line)).row()[column] == value


def test_rcv_ssthresh_and_minrtt_are_not_taken_for_ssthresh_and_rtt(read):
    row = read(listing(info(ssthresh=None, rtt=None))).row()
    assert (row["ssthresh_segments"], row["srtt_ns"]) == (None, None)


@pytest.mark.parametrize(
    ("text", "rate"),
    [("23443272bps", 23443272), ("15.2Mbps", 15_200_000), ("963.9Kbps", 963_900), ("565kbps", 565_000), ("1.2Tbps", 1_200_000_000_000),
     ("6.34Gbps", 6_340_000_000), ("1e+03kbps", 1_000_000), ("800bps", 800), ("25.6Mbps/30Mbps", 25_600_000), ("x", None)],
)  # fmt: skip
def test_rule_8_rates_with_and_without_suffix(read, text, rate):
    line = INFO.replace("pacing_rate 23443272bps", f"pacing_rate {text}")
    assert read(listing(line)).row()["pacing_rate_bps"] == rate


@pytest.mark.parametrize(
    ("gains", "phase"),
    [("2.88672,cwnd_gain:2.88672", "startup"), ("0.34375,cwnd_gain:2.88672", "drain"), ("1.25,cwnd_gain:2", "probe_bw"),
     ("0.75,cwnd_gain:2", "probe_bw"), ("1,cwnd_gain:1", "probe_rtt"), ("x,cwnd_gain:1", None)],
)  # fmt: skip
def test_bbr_phases(read, gains, phase):
    line = INFO.replace("cubic", "bbr").replace("send ", f"bbr:(bw:5Mbps,mrtt:40.2,pacing_gain:{gains}) send ")
    assert read(listing(line)).row()["phase"] == phase


@pytest.mark.parametrize(
    ("tokens", "limit"),
    [
        ({"unacked": 105, "lost": 0, "sacked": 0, "retrans": "0/1"}, "cwnd"),
        ({"snd_wnd": 95 * 1448 - 1}, "rwnd"),
        ({}, None),
    ],
)
def test_what_limits_the_sender(read, tokens, limit):
    assert read(listing(info(**tokens))).row()["limited_by"] == limit


# -- times

A = "ESTAB 0 0 192.0.2.1:1 192.0.2.9:80\n" + INFO
B = "ESTAB 0 0 192.0.2.1:2 192.0.2.9:80\n" + INFO
SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("1796026431.5\n" + A + "1796026432\n" + A, [1796026431.5, 1796026432]),
        ("1796026431500\n" + A, [1796026431.5]),
        ("time:1796026431500000000\n" + A, [1796026431.5]),
        ("Mon Nov 30 08:13:51 UTC 2026\n" + A + B, [1796026431] * 2),
        ("Mon Nov 30 09:13:51 CET 2026\n" + A, [1796026431]),
        ("Mon 30 Nov 2026 08:13:51 AM UTC\n" + A, [1796026431]),
        ("Mo 30. Nov 09:13:51 CET 2026\n" + A, [1796026431]),
        ("2026-11-30T08:13:51,500000000+00:00\n" + A, [1796026431.5]),
        ("Every 0.3s: ss -tin     host: Mon Nov 30 08:13:51 2026\n\n" + A, [1796026431]),
        # Flent's script: the time follows
        (HEADER + A + "\nTime: 1796026431.5\n---\n" + HEADER + A + B + "\nTime: 1796026432.5\n---\n", [1796026431.5] + [1796026432.5] * 2),
        # the same with a bare time: the --- tells
        (A + "1796026431\n---\n" + A + "1796026432\n---\n", [1796026431, 1796026432]),
        # ts on both lines, and on one
        ("1796026431.5 " + A.replace("\n\t", "\n1796026431.6 \t") + "1796026432.5 " + B.replace("\n\t", "\n1796026432.6 \t"), [1796026431.6, 1796026432.6]),
        ("1796026431.5 " + A.replace("\n\t", " "), [1796026431.5]),
        ("2026-11-30T08:13:51.5Z " + A.replace("\n\t", " "), [1796026431.5]),
        # times of day
        (A.replace("\n\t", " ").rstrip("\n") + " 00:00:01.500000 \n", [1.5]),
        ("00:00:01.25 " + A.replace("\n\t", " "), [1.25]),
    ],
)  # fmt: skip
def test_times(read, text, times):
    result = read(text)
    assert result.nanoseconds() == [round(time * SECOND) for time in times]
    assert not result.log.damaged


def test_a_listing_before_the_first_time_is_left_out_and_told(read):
    result = read(A + B + "1796026431\n" + A)
    assert result.nanoseconds() == [1796026431 * SECOND]
    assert (result.log.rows[0]["code"], result.log.rows[0]["count"]) == ("no_time", 2)


def test_without_times_listings_are_numbered_and_that_is_told(read):
    result = read(HEADER + A + B + HEADER + A + B + A)
    assert result.nanoseconds() == [0, 0, 1, 1, 2]
    assert result.codes == ["no_time"]
    assert result.row("flows")["start"] is None
    assert result.row("inputs")["first_time"] is None
    assert result.metadata()["clock"] == "none: listings are numbered"


@pytest.mark.parametrize(
    ("stamp", "missing"),
    [("Nov 30 08:13:51 ", "year"), ("08:13:51.25 ", "date")],
)
def test_a_time_that_lacks_something_says_so(read, stamp, missing):
    result = read(stamp + A.replace("\n\t", " "))
    assert missing in result.message("clock_not_utc")


def test_a_time_zone_that_is_not_known_is_told(read):
    assert "time zone" in read("Sat Jul 15 12:00:00 IST 2023\n" + A).message("clock_not_utc")


# -- flows


def test_a_log_without_address_lines_is_one_flow_with_the_log_s_name(read):
    result = read("1796026431.5 " + INFO + "1796026432.5 " + INFO)
    assert (result.row("flows")["addr_a"], result.row("flows")["port_a"]) == ("test", None)
    assert result.column("flow") == [0, 0]
    assert "no_addresses" in result.codes


def test_counters_that_fall_tell_reused_ports_apart(read):
    result = read(
        "1796026431\n" + A + "1796026432\n" + A + "1796026433\n" + A.replace("bytes_acked:2251694", "bytes_acked:3")
    )
    assert result.column("flow") == [0, 0, 1]


def test_cookies_tell_reused_ports_apart(read):
    first = ADDRESS.rstrip("\n") + " ino:1 sk:a4 <->\n" + INFO
    result = read("1796026431\n" + first + "1796026432\n" + first.replace("sk:a4", "sk:a5"))
    assert result.column("flow") == [0, 1]


def test_flags_are_facts_of_the_flow(read):
    flow = read(listing(INFO.replace(" cubic", " ts sack ecn cubic"))).row("flows")
    assert (flow["sack_permitted"], flow["timestamps"], flow["ecn"]) == (True, True, True)


def test_a_scope_stays_with_its_address(read):
    flow = read(listing(address="ESTAB 0 0 [fe80::1]%eth0:22 192.0.2.1%eth1:5\n")).row("flows")
    assert (flow["addr_a"], flow["addr_b"]) == ("fe80::1%eth0", "192.0.2.1%eth1")


@pytest.mark.parametrize(
    "socket",
    [
        "LISTEN 0      128               0.0.0.0:22               0.0.0.0:*\n\t skmem:(r0,rb1000000) cubic cwnd:10\n",
        "TIME-WAIT 0      0               192.0.2.1:46065          192.0.2.2:4027   timer:(timewait,25sec,0) ino:0 sk:9496\n\t        \n",
        "SYN-SENT 0      1      192.0.2.1:38770 192.0.2.2:5299\n\t cubic rto:1000 mss:524 cwnd:10 segs_out:1 unacked:1\n",
        "mptcp FIN-WAIT-2 0 0 [2001:db8::2]:10019 [2001:db8::1]:57670\n\t remote_key token:cdf9c645 write_seq:69 snd_una:69 rcv_nxt:54\n",
        "udp   UNCONN 0      0      0.0.0.0:68 0.0.0.0:*\n\t skmem:(r0,rb212992)\n",
        "Failed to find cgroup2 mount\n",
    ],
)
def test_what_is_no_sender_is_passed_over(read, socket):
    result = read("1796026431\n" + socket + A)
    assert len(result.frames["samples"]) == len(result.frames["flows"]) == 1
    assert not result.log.damaged


def test_a_multipath_subflow_is_tcp(read):
    line = (
        INFO.rstrip("\n")
        + " tcp-ulp-mptcp flags:Mec token:0000(id:0)/3a1e0d3c(id:0) seq:c2802f11c5228db6 sfseq:1 ssnoff:49d3c135 maplen:1\n"
    )
    assert read(listing(line)).row()["cwnd_segments"] == 105


# -- damage


@pytest.mark.parametrize(
    "torn",
    ["ESTAB 0      0 192.0.2\n", INFO, "ESTAB 0 0 192.0.2.300:1 192.0.2.9:80\n" + INFO, "ESTAB 0 0 192.0.2.1:1 192.0.2.9:80\n\t cubic wscale:7,7 rto:204\n"],
)  # fmt: skip
def test_a_torn_line_is_told_and_what_is_around_it_kept(read, torn):
    head = "1796026431\n" + A
    result = read(head + torn + B)
    assert [row["code"] for row in result.log.rows if row["severity"] == "error"] == ["torn_line"]
    row = next(row for row in result.log.rows if row["severity"] == "error")
    assert row["line"] in (4, 5)
    assert row["offset_bytes"] >= len(head)
    assert len(result.frames["samples"]) == 2


def test_a_screen_of_watch_is_refused(read):
    with pytest.raises(FormatError, match="watch"):
        read("\x1b[1;1HEvery 0.3s: ss\n" + A, "ss")


def log_of(count: int) -> str:
    random.seed(3)
    lines = []
    for i in range(count):
        lines.append(f"1796026{431 + i}.{random.randrange(10**9):09}\n{HEADER}")
        socket = A.replace("cwnd:105", f"cwnd:{10 + i}").replace("2251694", str(2251694 + i))
        lines.extend(socket.replace(":1 ", f":{port} ") for port in range(1, random.randrange(2, 4)))
        if i % 6 == 5:
            lines.append(INFO[: random.randrange(60, 200)] + "\n")
    return "".join(lines)


@pytest.mark.parametrize("chunk", [1, 13, 500])
def test_any_chunking_gives_the_same_tables(read, chunk):
    text = log_of(25)
    whole, parts = read(text), read(text, chunk=chunk)
    for table, frame in whole.frames.items():
        assert frame.equals(parts.frames[table], null_equal=True), table
    assert len(whole.frames["samples"]) > 25


def test_mutations_raise_nothing_unexpected(survives):
    odd = [b"9" * 30, b"\n", b"\t", b"e+99", b"\x00", b":", b"/", b" ", b"\xff", b"---\n", b"\n1796026431\n"]
    survives(log_of(6).encode(), "ss", odd)
