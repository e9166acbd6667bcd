"""`packets`, `flows` and `stream` agree with tshark on every capture of the corpus and on made-up connections.

Compared are, for each frame with TCP or UDP: number, time to the nanosecond, lengths, stream, relative sequence and
acknowledgement numbers (modulo 2^32: ours do not wrap), payload and flags. tshark runs without reassembly of IP
fragments, so that what a frame holds is shown with that frame.

`JUSTIFIED` is the list of differences, with the reason for each.
"""

from __future__ import annotations

import lzma
import os
import random
import shutil
import struct
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.fuzz import frames as made
from tests.fuzz.captures import START, pcap_header
from tracetool.dataset import Dataset
from tracetool.ingest import ingest_each

SHARED = Path(os.environ.get("TRACETOOL_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))
CORPUS = sorted([*SHARED.glob("corpus/pcap/*"), *SHARED.glob("corpus/pcapng/*")])
FIELDS = (
    "frame.number", "frame.time_epoch", "frame.len", "frame.cap_len", "tcp.stream", "udp.stream", "tcp.seq", "tcp.ack",
    "tcp.len", "tcp.flags", "udp.length", "icmp.type", "icmpv6.type",
)  # fmt: skip
UNREADABLE = ("isn't a capture file", "that TShark doesn't support")

#: (file, kind of difference): why it is right.
JUSTIFIED = {
    ("suricata-verify__tls_DER-incomplete-header", "not in tshark"): "tshark stops at the damage, we go on after it",
    ("gopacket__test901", "not in tshark"): "tshark refuses a section of version 2.0; the blocks in it are as ever",
    ("gopacket__test901", "records"): "the same",
    ("tcpdump__bigtcp-ipv4-vxlan-ipv4", "not in tshark"): "the inner IP length is 0 (BIG TCP): tshark 4.0 gives up",
    ("tcpdump__bigtcp-ipv6", "not in tshark"): "the IPv6 length is 0 without a jumbo option: tshark 4.0 gives up",
    ("tcpdump__timestamp_invalid_nano", "time"): "a sub-second field above 10^9: tshark prints it as it stands",
    ("pcapng-test-generator__le-test010", "time"): "simple packet blocks have no time: we repeat the one before",
    ("pcapng-test-generator__le-test102", "time"): "the same",
}

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


def tshark(path: Path) -> tuple[dict[int, dict[str, str]], str]:
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "occurrence=l", "-E", "separator=;"]
    command += ["-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"]
    for name in FIELDS:
        command += ["-e", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = (dict(zip(FIELDS, line.split(";"), strict=True)) for line in done.stdout.splitlines())
    return {int(row["frame.number"]): row for row in rows}, done.stderr


def nanoseconds(text: str) -> int | None:
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9]) if text else None


def differences(path: Path, folder: Path) -> Counter[str]:
    """Kinds of differences between our tables and tshark's fields."""
    if path.suffix == ".xz":  # tshark does not look through it
        plain = folder / path.stem
        plain.write_bytes(lzma.decompress(path.read_bytes()))
        path = plain
    theirs, errors = tshark(path)
    if any(sign in errors for sign in UNREADABLE) and not theirs:
        pytest.skip(f"tshark does not read it: {errors.strip().splitlines()[-1]}")
    (result,) = ingest_each(path, folder / "out")
    dataset = Dataset.open(folder / "out")
    assert result.input is not None
    streams = dict(dataset.read("flows").select("flow", "stream").iter_rows())
    packets = {
        row["frame"]: row for row in dataset.read("packets").with_columns(pl.col("time").to_physical()).to_dicts()
    }
    found: Counter[str] = Counter()
    for number, row in theirs.items():
        quoted = row["icmp.type"] or row["icmpv6.type"]  # it has a stream in tshark, but is no packet of the flow
        if number not in packets and (row["tcp.stream"] or row["udp.stream"]) and not quoted:
            found["only in tshark"] += 1
    for number, packet in packets.items():
        row = theirs.get(number)
        protocol = packet["protocol"]
        if row is None or not row[f"{protocol}.stream"]:
            found["not in tshark"] += 1
            continue
        expected: dict[str, Any] = {
            "time": (nanoseconds(row["frame.time_epoch"]), packet["time"]),
            "frame length": (int(row["frame.len"]), packet["frame_bytes"]),
            "captured length": (int(row["frame.cap_len"]), packet["captured_bytes"]),
            "stream": (int(row[f"{protocol}.stream"]), streams[packet["flow"]]),
        }
        if protocol == "tcp":
            expected["seq"] = (int(row["tcp.seq"]), packet["seq"] % 2**32)
            expected["payload"] = (int(row["tcp.len"]), packet["payload_bytes"])
            expected["flags"] = (int(row["tcp.flags"], 16) & 0x1FF, packet["flags"])
            if packet["ack"] is not None:
                expected["ack"] = (int(row["tcp.ack"]), packet["ack"] % 2**32)
        else:
            expected["payload"] = (int(row["udp.length"]) - 8, packet["payload_bytes"])
        found.update(kind for kind, (they, we) in expected.items() if they != we)
    if dataset.read("inputs")["records"].item() != len(theirs) and not errors.count("damaged"):
        found["records"] += 1
    return found


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name.split(".")[0])
def test_corpus(path, tmp_path):
    found = differences(path, tmp_path)
    name = path.name.split(".")[0]
    assert {kind for kind in found if (name, kind) not in JUSTIFIED} == set(), found


def test_corpus_is_there():
    if not SHARED.is_dir():
        pytest.skip("the shared corpus is not there")
    assert len(CORPUS) > 70


def random_connections(seed: int, pairs: int = 150) -> bytes:
    """Segments in any order, with few initial sequence numbers: ports used again, half-open and torn connections.

    Left out is what is written down as a difference: a SYN-ACK with another number after its side has sent data.
    """
    rng = random.Random(seed)
    packets = []
    for pair in range(pairs):
        sent: Counter[bool] = Counter()
        for _ in range(rng.randint(2, 12)):
            up = rng.random() < 0.5
            flags = rng.choice([2, 2, 18, 18, 16, 16, 17, 4, 20, 24, 24])
            if flags == 18 and sent[up]:
                continue
            payload = b"x" * 10 if flags & 8 else b""
            sent[up] += bool(flags & 9)
            if flags == 2:
                sent.clear()
            ports = (1000 + pair, 80) if up else (80, 1000 + pair)
            seq = rng.choice([100, 200, 300]) + rng.choice([0, 0, 1])
            ack = rng.choice([101, 201, 301]) if flags & 16 else 0
            ends = (made.A, made.B) if up else (made.B, made.A)
            packets.append(made.ip4(made.tcp(seq, ack, flags, payload, ports=ports), ends=ends))
    records = (
        struct.pack("<IIII", START + number, 0, len(packet), len(packet)) + packet
        for number, packet in enumerate(packets)
    )
    return pcap_header(link=101) + b"".join(records)


@pytest.mark.parametrize("seed", range(3))
def test_streams_of_random_segments(seed, tmp_path):
    path = tmp_path / "random.pcap"
    path.write_bytes(random_connections(seed))
    found = differences(path, tmp_path)
    assert found["stream"] == 0
    assert set(found) <= {"seq", "ack"}
    # Both come only from SYN-ACKs that change their number while data is under way.
    assert found["seq"] + found["ack"] <= 60
