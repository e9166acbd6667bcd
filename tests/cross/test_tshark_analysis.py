"""`events` against tshark's TCP analysis, frame by frame; docs/agreement.md says where they differ, and why."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest

from tracetool.errors import InputError
from tracetool.ingest import ingest
from tracetool.reconstruct import reconstruct

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("TRACETOOL_SHARED", ROOT.parent / "shared"))
SAMPLES = sorted((ROOT / "sample_traces").glob("*.pcap.gz"))
CORPUS = [
    path for kind in ("pcap", "pcapng") for path in sorted((SHARED / "corpus" / kind).glob("*")) if path.is_file()
]

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

#: What Wireshark calls by three names, and "out of order" by a time limit, are one question: was the byte sent before?
SENT_BEFORE = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
OURS_BEFORE = ("retransmission", "spurious_retransmission", "tail_loss_probe", "out_of_order")
SAME_NAME = {
    "duplicate_ack": "duplicate_ack", "zero_window": "zero_window", "window_update": "window_update",
    "window_full": "window_full", "keep_alive_ack": "keep_alive_ack", "zero_window_probe_ack": "window_probe_ack",
}  # fmt: skip
PROBES = {"keep_alive": "keep_alive", "zero_window_probe": "window_probe"}
#: File and what differs in it; the reasons are in docs/agreement.md.
JUSTIFIED = {
    "5g-tcp__2021-03-31T14-54-54-l3.pcap": {"sent before": 1, "probes": 1},
    "suricata-verify__syn_retransmit_with_ts.pcap": {"duplicate_ack": 49, "window_update": 13},
    "suricata-verify__tls_DER-incomplete-header.pcap": {"duplicate_ack": 1, "sent before": 1},
    "tcptrace__urgent.dmp.gz": {"probes": 16},
    "zeek__nflog-http.pcap": {"sent before": 2},
    "zeek__vlan-collisions.pcap": {"duplicate_ack": 1, "sent before": 18, "probes": 4},
    "ndpi__tls_multiple_synack_different_seq.pcapng": {"sent before": 5},
}
OPENERS = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def tshark(path):
    """Frames by the name of what tshark says of them."""
    names = [*SENT_BEFORE, *SAME_NAME, *PROBES]
    fields = [word for name in names for word in ("-e", f"tcp.analysis.{name}")]
    done = subprocess.run(
        ["tshark", "-n", "-r", str(path), "-Y", "tcp.analysis.flags", "-T", "fields", "-e", "frame.number", *fields],
        capture_output=True,
        text=True,
        check=False,
    )
    found = defaultdict(set)
    for line in done.stdout.splitlines():
        frame, *values = line.split("\t")
        for name, value in zip(names, values, strict=True):
            if value:
                found[name].add(int(frame))
    return found


def differences(path, folder):
    """``{question: number of frames on which the two differ}``, without those that agree."""
    plain = folder / "plain.pcap"
    opener = OPENERS.get(path.suffix, open)
    with opener(path, "rb") as stream:
        plain.write_bytes(stream.read())
    try:
        dataset = reconstruct(ingest([plain], folder / "dataset"))
    except InputError:
        return None
    ours = defaultdict(set)
    for kind, frame in dataset.read("events").select("kind", "frame").iter_rows():
        ours[kind].add(frame)
    theirs = tshark(plain)
    copies = ours["duplicate_frame"]

    def union(found, names):
        return set().union(*(found[name] for name in names))

    pairs = {
        "sent before": (union(theirs, SENT_BEFORE), union(ours, OURS_BEFORE)),
        "probes": (union(theirs, PROBES), union(ours, PROBES.values())),
        **{name: (theirs[name], ours[mine]) for name, mine in SAME_NAME.items()},
    }
    counts = {name: len((a ^ b) - copies if name == "duplicate_ack" else a ^ b) for name, (a, b) in pairs.items()}
    return {name: count for name, count in counts.items() if count}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_samples(path, tmp_path):
    assert differences(path, tmp_path) == {}


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS, reason="the shared corpus is not there")
def test_corpus(tmp_path):
    found = {}
    for number, path in enumerate(CORPUS):
        folder = tmp_path / str(number)
        folder.mkdir()
        if different := differences(path, folder):
            found[path.name] = different
        shutil.rmtree(folder)
    assert found == JUSTIFIED


def test_late_originals_are_told_from_retransmissions(tmp_path):
    """Where Wireshark goes by time, the IP identification tells what was sent first: the kernel's counter decides."""
    trace = SHARED / "traces" / "cubic-reorder"
    if not trace.is_dir():
        pytest.skip("the shared traces are not there")
    counter = next(
        line.split()[1] for line in (trace / "nstat.txt").read_text().splitlines() if line.startswith("TcpRetransSegs")
    )
    dataset = reconstruct(ingest([trace / "receiver.pcap.gz"], tmp_path / "dataset"))
    assert dataset.read("flow_stats")["retransmitted_segments"].sum() == int(counter)
    assert dataset.read("events").filter(pl.col("kind") == "out_of_order").height > 50
