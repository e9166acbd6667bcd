"""Each parser says yes to its own samples only: every file of the corpus and the traces is asked of every parser."""

from __future__ import annotations

import pytest

from tracetool import parsers, sources
from tracetool.errors import FormatError

#: Folder of the corpus, or name of a file in the traces -> formats that may claim it.
OWN = {
    "tcpprobe": {"tcp_probe", "proc_tcpprobe", "tcp_probe_plus"},
    "ss": {"ss"},
    "pcap": {"pcap"},
    "pcapng": {"pcapng"},
    "iperf3": {"iperf3"},
    "flent": {"flent"},
    "siftr": {"siftr"},
    "qlog": {"qlog"},
    "tcp_probe.txt.gz": {"tcp_probe"},
    "ss.txt.gz": {"ss"},
    "sender.pcap.gz": {"pcap"},
    "receiver.pcap.gz": {"pcap"},
    "iperf3-0.json": {"iperf3"},
    "nstat.txt": {"nstat"},
    "scenario.json": set(),
    "path.csv.gz": {"csv_table"},
}
#: Single files that are not what their folder says.
ODD = {
    "tcptrace__README.pcap": set(),
    "tcp_tso_rtt_log__nstat_client_bad.log": {"nstat"},
}


#: A file that is refused: a list of frames for a test of another program.
NOT_READ = {"picoquic__qlog_frames_test_ref.txt"}


def claims(head: bytes) -> set[str]:
    return {name for name in parsers.FORMATS if parsers.get(name).sniff(head)}


def files(shared):
    yield from (path for path in sorted((shared / "corpus").rglob("*")) if path.is_file())
    for name in ("cubic-base", "bbr-gso"):
        yield from sorted((shared / "traces" / name).iterdir())


def test_no_parser_claims_what_is_another_s(shared):
    wrong = {}
    for path in files(shared):
        allowed = ODD.get(path.name, OWN.get(path.name, OWN.get(path.parent.name)))
        with sources.Source(str(path)).open() as stream:
            claimed = claims(stream.head())
        if len(claimed) > 1 or (allowed is not None and not claimed <= allowed):
            wrong[path.name] = claimed
    assert wrong == {}


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("tcpprobe", {"tcp_probe", "proc_tcpprobe", "tcp_probe_plus"}),
        ("ss", {"ss"}),
        ("iperf3", {"iperf3"}),
        ("flent", {"flent"}),
        ("siftr", {"siftr"}),
        ("qlog", {"qlog"}),
    ],
)
def test_each_log_of_the_corpus_is_claimed(shared, folder, names):
    unclaimed = []
    for path in sorted((shared / "corpus" / folder).iterdir()):
        with sources.Source(str(path)).open() as stream:
            if not claims(stream.head()) & names:
                unclaimed.append(path.name)
    assert set(unclaimed) <= NOT_READ


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"\x00" * 100,
        bytes(range(256)),
        b"# Traces\n\n`ss.txt` holds `ss -tin` output, `tcp_probe.txt` the tracepoint's: src, dest, snd_cwnd.\n",
        b"Set cwnd: 10 and ssthresh: 20, rtt: 5 ms.\n",
        b"State of the art: TCP's Recv-Q and Send-Q\n",
        b'{"a": [1, 2]}\n',
        b"time,bytes\n1,2\n3,4\n",
        b"time,event,bytes,queue_bytes,src_octet\n1796030815.369916714,enq,74,0,10\n",
        b"Nov 30 08:13:51 host kernel: tcp_probe: module loaded\n",
        b"Linux version 6.1 (gcc) #1 SMP\n",
        b"tcpdump -i eth0 -w x.pcap\n",
        b'10.0.0.1 - - [30/Nov/2026:08:13:51 +0000] "GET / HTTP/1.1" 200 512\n',
    ],
)
def test_plain_text_is_nobody_s(text):
    assert claims(text) == set()


def test_a_cut_head_raises_nothing(shared):
    for path in (
        sorted((shared / "corpus" / "ss").iterdir())[:3] + sorted((shared / "corpus" / "tcpprobe").iterdir())[:3]
    ):
        head = path.read_bytes()[:3000]
        for length in range(0, len(head), 97):
            claims(head[:length])


@pytest.mark.parametrize(
    ("head", "right"),
    [
        (b"Connecting to host h, port 1\n[  5] local a port 1\n[ ID] Interval  Transfer\n", "--json"),
        (b"snoop\x00\x00\x00\x00\x00\x00\x02", "editcap"),
        (b"#!/usr/bin/env bpftrace\nBEGIN {}\n", "--columns"),
    ],
)
def test_what_is_known_and_cannot_be_read_is_told_what_would_be_right(head, right):
    with pytest.raises(FormatError, match=f"unknown format: .*{right}"):
        parsers.detect(head, "log")


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (b"time,event,bytes,queue\n1,enq,2,3\n", r"it starts with 'time,event,bytes'"),
        (b"# notes\r\n\r\n", r"it starts with '# notes'"),
        (bytes(range(1, 20)), "it starts with 01 02 03 04 05 06 07 08"),
        ("héron".encode(), "it starts with 68 c3 a9 72 6f 6e"),
        (b"\n\n", "it starts with 0a 0a"),
        (b"", "it is empty"),
    ],
)
def test_an_unknown_input_is_told_by_how_it_begins(head, told):
    with pytest.raises(FormatError, match=rf"^log: unknown format \({told}\); .*ingest --help") as error:
        parsers.detect(head, "log")
    assert len(str(error.value)) <= 130
