"""Retransmissions, their trigger, and which were not needed: the kernel's word, and the bottleneck's own record."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest

from tracetool.ingest import ingest
from tracetool.reconstruct import reconstruct

SHARED = Path(os.environ.get("TRACETOOL_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))
TRACES = SHARED / "traces"
NAMES = sorted(path.parent.name for path in TRACES.glob("*/scenario.json"))
AGAIN = ["retransmission", "spurious_retransmission", "tail_loss_probe"]
#: tcp_retransmit_skb within a congestion state (enum tcp_ca_state): loss, recovery and cwr, open and disorder.
TRIGGER = {4: "rto", 3: "fast", 2: "fast", 0: "tlp", 1: "tlp"}
EVENT = re.compile(r" (\d+)\.(\d+): (tcp_retransmit_skb|tcp_cong_state_set):.*?sport=(\d+) dport=(\d+)")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not NAMES, reason="the shared traces are not there"),
]


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    """Sender captures of all scenarios, reconstructed."""
    folder = tmp_path_factory.mktemp("traces")
    return {name: reconstruct(ingest([TRACES / name / "sender.pcap.gz"], folder / name)) for name in NAMES}


def lines(name, file):
    return gzip.decompress((TRACES / name / file).read_bytes()).decode().splitlines()


def counters(name):
    return dict(re.findall(r"^(\S+)\s+(\d+)", (TRACES / name / "nstat.txt").read_text(), re.MULTILINE))


def test_retransmitted_segments_are_the_kernels(datasets):
    found = {name: dataset.read("flow_stats")["retransmitted_segments"].sum() for name, dataset in datasets.items()}
    assert found == {name: int(counters(name)["TcpRetransSegs"]) for name in NAMES}


def test_the_capture_was_taken_at_the_sender(datasets):
    for name, dataset in datasets.items():
        places = dataset.read("flows").filter(pl.col("protocol") == "tcp")["vantage"]
        assert set(places) == {"sender"}, name


def test_the_other_capture_was_taken_at_the_receiver(tmp_path):
    for name in (name for name in NAMES if (TRACES / name / "receiver.pcap.gz").exists()):
        dataset = reconstruct(ingest([TRACES / name / "receiver.pcap.gz"], tmp_path / name))
        assert set(dataset.read("flows")["vantage"]) == {"receiver"}, name
        again = dataset.read("flow_stats")["retransmitted_segments"].sum()
        assert again == pytest.approx(int(counters(name)["TcpRetransSegs"]), rel=0.02), name


def test_triggers_are_the_kernels(datasets):
    right = total = 0
    for name, dataset in datasets.items():
        states, sent = defaultdict(int), defaultdict(list)
        for line in lines(name, "tcp_probe.txt.gz"):
            if event := EVENT.search(line):
                socket = int(event[4]), int(event[5])
                if event[3] == "tcp_retransmit_skb":
                    sent[socket].append(TRIGGER[states[socket]])
                else:
                    states[socket] = int(re.search(r"cong_state=(\d)", line)[1])
        again = dataset.read("events").filter(pl.col("kind").is_in(AGAIN) & (pl.col("direction") == "a2b"))
        for row in dataset.read("flows").filter(pl.col("protocol") == "tcp").to_dicts():
            mine = again.filter(pl.col("flow") == row["flow"]).sort("frame")
            theirs = sent[row["port_a"], row["port_b"]]
            # no event is logged before the socket is established
            mine = mine.tail(len(theirs)) if len(theirs) < mine.height else mine
            right += sum(a == b for a, b in zip(mine["trigger"], theirs, strict=False))
            total += len(theirs)
    assert total > 4000
    assert right >= 0.995 * total


def test_what_was_not_needed_is_what_was_not_dropped(datasets):
    """A retransmission is spurious if a copy of its bytes had already passed the bottleneck."""
    hit = wrong = missed = 0
    for name, dataset in datasets.items():
        spec = json.loads((TRACES / name / "scenario.json").read_text())
        if any(flow.get("udp") for flow in spec["flows"]) or name == "cubic-vs-udp":
            continue
        fates = defaultdict(list)
        for line in lines(name, "path.csv.gz")[1:]:
            _, event, _, _, octet = line.split(",")
            fates[int(octet)].append(event in {"enq", "mark"})
        flows = dataset.read("flows").select("flow", octet=pl.col("addr_a").str.split(".").list.last().cast(pl.Int64))
        packets = dataset.read("packets").filter(pl.col("direction") == "a2b").join(flows, "flow").sort("frame")
        at, passed, needless = defaultdict(int), defaultdict(set), set()
        for row in packets.select("frame", "flow", "octet", "seq", "payload_bytes", "segments").iter_rows():
            frame, flow, octet, seq, payload, segments = row
            count = max(1, segments)
            size = max(1, -(-payload // count))
            fate = fates[octet][at[octet] : at[octet] + count]
            at[octet] += count
            numbers = [seq + size * n for n in range(count)] if payload else []
            needless |= {frame} if passed[flow] & set(numbers) else set()
            passed[flow] |= {number for number, through in zip(numbers, fate, strict=False) if through}
        assert all(at[octet] == len(fate) for octet, fate in fates.items()), name
        kinds = dataset.read("events").filter(pl.col("direction") == "a2b")
        named = set(kinds.filter(pl.col("kind") == "spurious_retransmission")["frame"])
        hit += len(named & needless)
        wrong += len(named - needless)
        missed += len(needless - named)
    assert hit >= 5
    assert hit >= 0.9 * (hit + wrong)
    assert hit >= 0.9 * (hit + missed)
