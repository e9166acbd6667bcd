"""Small inputs of each format that mutations and the fuzzer start from: hand-made ones, and heads of the samples."""

from __future__ import annotations

import gzip
import itertools
import json
import struct
from functools import cache
from pathlib import Path

from tests.fuzz import captures
from tests.fuzz.frames import FRAMES, connection
from tests.parsers import (
    test_flent,
    test_iperf3,
    test_nstat,
    test_qlog,
    test_siftr,
    test_tc_qdisc,
    test_tcp_info,
    test_tcp_probe_plus,
)

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
HEAD_RECORDS, HEAD_LINES = 24, 24


def _heads(pattern: str) -> list[bytes]:
    return [gzip.decompress(path.read_bytes()) for path in sorted(SAMPLES.glob(pattern))]


def _pcap_head(data: bytes) -> bytes:
    at = 24
    for _ in range(HEAD_RECORDS):
        at += 16 + struct.unpack_from("<I", data, at + 8)[0]
    return data[:at]


def _text_head(data: bytes, lines: int = HEAD_LINES) -> bytes:
    return b"\n".join(data.split(b"\n")[:lines]) + b"\n"


def _pcap() -> list[bytes]:
    whole = connection()
    made = [captures.pcap(whole), captures.pcap(whole, ">", magic=0xA1B23C4D)]
    made += [captures.pcap(whole, magic=0xA1B2CD34, extra=8), captures.pcap(whole, version=(2, 2))]
    links = itertools.groupby(sorted(FRAMES.values()), lambda item: item[0])
    made += [captures.pcap([frame for _, frame in group] * 2, link=link) for link, group in links]
    return made + [_pcap_head(data) for data in _heads("*.pcap.gz")[:4]]


def _pcapng() -> list[bytes]:
    whole = connection()
    made = [captures.pcapng(whole), captures.pcapng(whole, ">")]
    several = [captures.section()]
    for place, (link, frame) in enumerate(FRAMES.values()):
        several += [
            captures.interface(link, resolution=(6, 9, 12, 0x8A)[place % 4]),
            captures.enhanced(frame, place, place=place),
        ]
    made.append(b"".join(several))
    made.append(captures.pcapng(whole[:4]) + captures.pcapng(whole[4:], ">"))  # two sections
    return made


_TCP_PROBE = b"""# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
     iperf3-2001    [001] ..s2. 1700000000.000100: tcp_probe: family=AF_INET src=192.0.2.1:40000 dest=198.51.100.2:443 \
mark=0x0 data_len=0 snd_nxt=0x1001 snd_una=0x1000 snd_cwnd=10 ssthresh=2147483647 snd_wnd=65535 srtt=40123 \
rcv_wnd=65535 sock_cookie=1
     iperf3-2001    [001] ..s2. 1700000000.010100: tcp_probe: family=AF_INET src=192.0.2.1:40000 dest=198.51.100.2:443 \
mark=0x0 data_len=0 snd_nxt=0x3001 snd_una=0x2000 snd_cwnd=12 ssthresh=9 snd_wnd=65535 srtt=40999 rcv_wnd=65535 \
sock_cookie=1 skbaddr=00000000abcdef01 skaddr=0000000012345678
     iperf3-2001    [001] ..s2. 1700000000.020100: tcp_retransmit_skb: skbaddr=00000000abcdef01 \
skaddr=0000000012345678 family=AF_INET sport=40000 dport=443 saddr=192.0.2.1 daddr=198.51.100.2 \
saddrv6=::ffff:192.0.2.1 daddrv6=::ffff:198.51.100.2 state=TCP_ESTABLISHED
CPU:1 [LOST 12 EVENTS]
iperf3  2001 [001] 12345.678901: tcp:tcp_probe: family=AF_INET6 src=[2001:db8::1]:40000 dest=[2001:db8::2]:443 \
mark=0 data_len=1448 snd_nxt=0x1001 snd_una=0x1000 snd_cwnd=10 ssthresh=10 snd_wnd=65535 srtt=40123 rcv_wnd=65535 \
sock_cookie=0
"""
_PROC = b"""0.000123456 192.0.2.1:40000 198.51.100.2:443 1448 0x1001 0x1000 10 2147483647 65535 40
0.010123456 192.0.2.1:40000 198.51.100.2:443 1448 0x2001 0x1800 12 9 65535 41 65535
0.020123456 192.0.2.1:40000 198.51.100.2:443 1448 0x3001 0x2800 14 9 65535 42 65535
"""
_SS = b"""1700000000.5
State  Recv-Q Send-Q Local Address:Port Peer Address:Port
ESTAB 0 0 192.0.2.1:5000 198.51.100.2:80 users:(("a",pid=1,fd=3)) timer:(on,204ms,0) ino:1 sk:1 <->
\t cubic wscale:7,7 rto:204 backoff:1 rtt:4/2 ato:40 mss:1448 cwnd:10 ssthresh:7 bytes_acked:5 send 28960000bps \
lastsnd:4 pacing_rate 57.9Mbps delivery_rate 20Mbps unacked:2 retrans:0/3 lost:1 sacked:1 rcv_space:14600 minrtt:3.2
---
Time: 1700000001.5
ESTAB 0 0 [2001:db8::1]:5000 [2001:db8::2]:80
\t bbr wscale:7,7 rto:204 rtt:4/2 mss:1448 cwnd:10 bbr:(bw:10Mbps,mrtt:3.2,pacing_gain:2.88672,cwnd_gain:2.88672)
Mon Nov 30 10:11:12 UTC 2026
tcp ESTAB 0 0 192.0.2.1:5000 198.51.100.2:80 cubic wscale:7,7 rto:204 rtt:4/2 mss:1448 cwnd:10 send 1Mbps unacked:2
"""


def _text(hand_made: bytes, pattern: str | None) -> list[bytes]:
    return [hand_made, *map(_text_head, _heads(pattern) if pattern else [])]


_CSV = b"time,snd_cwnd,ssthresh,rtt_us,saddr,sport,daddr,dport\n" + b"".join(
    b"1796026431.%d,1%d,2147483647,40250,192.0.2.1,5000,192.0.2.2,80\n" % (k, k) for k in range(8)
)


def _iperf3() -> list[bytes]:
    report = test_iperf3.report(*(test_iperf3.interval(test_iperf3.stream(k / 2)) for k in (1, 2)))
    events = [{"event": "start", "data": report["start"]}]
    events += [{"event": "interval", "data": interval} for interval in report["intervals"]]
    streamed = "".join(json.dumps(event) + "\n" for event in [*events, {"event": "end", "data": report["end"]}])
    return [json.dumps(report, indent=1).encode(), streamed.encode()]


def _qlog() -> list[bytes]:
    events = [test_qlog.metrics(5 + k, congestion_window=12000 + k, smoothed_rtt=20.5, ssthresh=6000) for k in range(3)]
    old = [[k, "recovery", "metrics_updated", {"cwnd": 12000 + k}] for k in range(3)]
    head = {"qlog_version": "0.4", "trace": {"common_fields": {"reference_time": test_qlog.REFERENCE_MS}}}
    sequence = "".join(f"\x1e{json.dumps(record)}\n" for record in (head, *events))
    return [text.encode() for text in (test_qlog.log(*events), test_qlog.old_log(*old), sequence)]


def _siftr() -> list[bytes]:
    one = test_siftr.V12 + test_siftr.old() + test_siftr.old(cwnd=15928) + test_siftr.END
    return [one.encode(), (test_siftr.V13 + test_siftr.new() + test_siftr.new(kind="o") + test_siftr.END).encode()]


def _nstat() -> list[bytes]:
    loop = "".join(f"179602643{k}\n{test_nstat.listing(7 + k)}" for k in range(3))
    proc = "TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 0 3\nTcp: RtoAlgorithm MaxConn RetransSegs\nTcp: 1 -1 7\n"
    return [test_nstat.listing(7).encode(), loop.encode(), proc.encode()]


_MADE = {
    "pcap": _pcap,
    "pcapng": _pcapng,
    "tcp_probe": lambda: _text(_TCP_PROBE, "*.tcp_probe.txt.gz"),
    "proc_tcpprobe": lambda: _text(_PROC, None),
    "ss": lambda: _text(_SS, "*.ss.txt.gz"),
    "tc_qdisc": lambda: [b"".join(test_tc_qdisc.poll(k, 100 + k, k).encode() for k in range(3))],
    "iperf3": _iperf3,
    "flent": lambda: [test_flent.text(test_flent.data()).encode()],
    "siftr": _siftr,
    "qlog": _qlog,
    "tcp_probe_plus": lambda: [(4 * test_tcp_probe_plus.line()).encode()],
    "nstat": _nstat,
    "tcp_info": lambda: [(2 * test_tcp_info.decoded()).encode(), (2 * test_tcp_info.raw()).encode()],
    "csv_table": lambda: [_CSV, _CSV.replace(b",", b"\t")],
}
BINARY = frozenset({"pcap", "pcapng"})
FORMATS = tuple(_MADE)


@cache
def seeds(name: str) -> tuple[bytes, ...]:
    """Inputs of one format; a new one needs some here."""
    return tuple(_MADE[name]())
