"""Inputs made to break a reader: bombs, endless nesting, impossible numbers, names that want out of the folder."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from tests.fuzz import captures
from tests.fuzz.contract import parse
from tests.fuzz.frames import ACK, FRAME, PACKET, connection, ether, gre, ip4, mpls, sack, tcp, vlan, vxlan
from tracetool import parsers
from tracetool.dataset import Dataset
from tracetool.errors import FormatError, InputError
from tracetool.ingest import ingest, ingest_each
from tracetool.reconstruct import reconstruct

ROOT = Path(__file__).resolve().parents[2]
#: What reading a small capture takes (Python, numba, pyarrow, polars) and 150 MB: nowhere near the gigabyte of a bomb.
MOST_MB = 600
GIGABYTE = 1 << 30
_MEASURED = """
import re, sys
from tracetool.ingest import ingest_each
for result in ingest_each(sys.argv[1], sys.argv[2]):
    print(result.status, result.format, result.damaged, " ".join(str(result.error or "").split()))
print(int(re.search("VmHWM:[^0-9]*([0-9]+)", open("/proc/self/status").read())[1]) // 1024)
"""


def measured(path: Path, folder: Path) -> tuple[str, int]:
    """What became of an input, and the most memory it took in a process of its own, in MB."""
    command = [sys.executable, "-c", _MEASURED, str(path), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1100)
    assert done.returncode == 0, done.stderr
    outcome, memory = done.stdout.splitlines()
    return outcome, int(memory)


def _zstd(pieces) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        for piece in pieces:
            out.write(piece)
    return sink.getvalue().to_pybytes()


def _bomb(kind: str, start: bytes, size: int) -> bytes:
    """``size`` bytes of zeros after a start, in a few kilobytes or megabytes."""
    zeros = bytes(1 << 22)
    pieces = (start, *[zeros] * (size // len(zeros)))
    if kind == "zstd":
        return _zstd(pieces)
    if kind == "gzip in gzip":
        return gzip.compress(_bomb("gzip", start, size), 1)
    compressor = {"xz": lambda: lzma.LZMACompressor(preset=0), "bzip2": lambda: bz2.BZ2Compressor(1)}.get(kind)
    if compressor is not None:
        one = compressor()
        return b"".join([*map(one.compress, pieces), one.flush()])
    return b"".join(gzip.compress(piece, 1) for piece in pieces)  # a member for each piece: decompressed as one


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gzip", "xz", "zstd"])
def test_a_decompression_bomb_takes_no_memory(kind, tmp_path):
    """A gigabyte of zeros is 67 million records of no bytes at the start of 1970: read on, but never held."""
    bomb = tmp_path / "bomb"
    bomb.write_bytes(_bomb(kind, captures.pcap(connection()), GIGABYTE // 4))
    assert bomb.stat().st_size < GIGABYTE // 64
    outcome, memory = measured(bomb, tmp_path / "d")
    assert outcome.startswith("added pcap")
    assert memory < MOST_MB, outcome


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gzip", "xz", "zstd", "bzip2"])
def test_a_bomb_of_no_known_format_is_refused_at_its_start(kind, tmp_path):
    bomb = tmp_path / "bomb"
    bomb.write_bytes(_bomb(kind, b"", GIGABYTE))
    outcome, memory = measured(bomb, tmp_path / "d")
    assert "unknown format" in outcome
    assert memory < MOST_MB


def test_only_one_layer_of_compression_is_looked_through(tmp_path):
    bomb = tmp_path / "bomb"
    bomb.write_bytes(_bomb("gzip in gzip", captures.pcap(connection()), 1 << 24))
    with pytest.raises(FormatError, match="unknown format"):
        ingest(bomb, tmp_path / "d")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tcp_probe", "ss", "proc_tcpprobe"])
def test_lines_of_100_MB(name, tmp_path):
    from tests.fuzz.seeds import seeds

    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(seeds(name)[0])
        for filling in (b"x", b" ", b"1", b"\0", b"a=", b"\xff"):
            for _ in range(100):
                file.write(filling * ((1 << 20) // len(filling)))
            file.write(b"\n")
        file.write(seeds(name)[0])
    outcome, memory = measured(path, tmp_path / "d")
    assert outcome.startswith(f"added {parsers.get(name).NAME} ")
    assert memory < MOST_MB


def test_tunnels_and_tags_without_end():
    """64 layers are more than are looked through: the frame is left out and told, in bounded time."""
    frames = []
    for around in (lambda f: ether(vlan(f[12:], 1, 0x8100), 0x8100), lambda f: ether(mpls(f, bottom=False), 0x8847)):
        frame = FRAME
        for _ in range(1000):
            frame = around(frame)
        frames.append(frame)
    inside = PACKET
    for _ in range(500):
        inside = ip4(gre(inside), 47)
    frames += [ether(inside), ether(ip4(inside, 4))]
    inside = FRAME
    for _ in range(200):
        inside = ether(ip4(vxlan(inside), 17))
    frames.append(inside)
    rows = parse("pcap", captures.pcap(frames))
    assert rows is not None
    assert rows["packets"] <= 1


def test_sack_lists_that_cannot_be():
    """A list longer than the option, the option longer than the header, edges in no order: no number from outside."""
    long = tcp(1, 1, ACK, b"", b"\x05\xff" + b"\1" * 38)
    odd = tcp(1, 1, ACK, b"", b"\x05\x0b" + b"\1" * 9)
    empty = tcp(1, 1, ACK, b"", b"\x05\x02\x05\x00\x05\x01")
    wild = tcp(1, 1, ACK, b"", sack(0xFFFFFFFF, 0, 0x80000000, 1, 5, 5, 7, 3))
    rows = parse("pcap", captures.pcap([ether(ip4(segment)) for segment in (long, odd, empty, wild)]))
    assert rows == {"packets": 4, "flows": 1, "inputs": 1}


@pytest.mark.parametrize("length", [0, 4, 8, 11, 13, 0x7FFFFFFF, 0xFFFFFFFC, 0xFFFFFFFF])
@pytest.mark.parametrize("order", "<>")
def test_blocks_of_impossible_length(length, order, tmp_path):
    """What follows a block of length zero, or of four gigabytes, is found again."""
    bad = struct.pack(f"{order}III", 6, length, 0)
    path = tmp_path / "c.pcapng"
    whole = captures.pcapng(connection(), order)
    path.write_bytes(whole + bad + whole)
    (result,) = ingest_each(path, tmp_path / "d")
    assert result.damaged
    assert result.rows["packets"] == 2 * (len(connection()) + 2)
    assert "bad_length" in {row["code"] for row in result.diagnostics}


@pytest.mark.parametrize("length", [262_145, 0x7FFFFFFF, 0xFFFFFFFF])
def test_records_of_impossible_length(length, tmp_path):
    frames = [captures.record(frame, number) for number, frame in enumerate(connection())]
    bad = struct.pack("<IIII", captures.START, 0, length, length)
    path = tmp_path / "c.pcap"
    path.write_bytes(captures.pcap_header() + b"".join([*frames[:8], bad, *frames[8:]]))
    (result,) = ingest_each(path, tmp_path / "d")
    assert result.rows["packets"] == len(frames)
    assert [row["code"] for row in result.diagnostics if row["severity"] == "error"] == ["bad_length"]


@pytest.mark.parametrize("resolution", [0, 6, 9, 12, 18, 127, 0x80, 0x8A, 0xA0, 0xFF])
@pytest.mark.parametrize("offset", [0, -(1 << 63), (1 << 63) - 1, 1_000_000_000])
def test_times_at_the_limits(resolution, offset, tmp_path):
    """Every 64-bit time stamp in every unit: years beyond 2262 do not fit, and must not end in the past."""
    stamps = (0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1_700_000_000 * 10**9)
    blocks = [captures.enhanced(frame, time=stamp) for frame, stamp in zip(connection(), stamps, strict=False)]
    path = tmp_path / "c.pcapng"
    path.write_bytes(captures.section() + captures.interface(resolution=resolution, offset=offset) + b"".join(blocks))
    dataset = reconstruct(ingest(path, tmp_path / "d"))
    times = dataset.read("packets")["time"].to_physical()
    assert times.len() == len(stamps)
    assert times.min() >= 0
    assert all(0 <= duration < 1 << 63 for duration in dataset.read("flow_stats")["duration_ns"].drop_nulls())


def test_text_that_is_no_text(tmp_path):
    from tests.fuzz.seeds import seeds

    for name in ("tcp_probe", "ss", "proc_tcpprobe"):
        good = seeds(name)[0]
        for odd in (
            b"\0" * 5000,
            b"\xff\xfe\xc3\x28" * 50,
            b"\xed\xa0\x80",
            "\u202e\u2066".encode(),
            b"\x1b[2J\x1b]0;x\x07",
        ):
            rows = parse(name, good + odd + b"\n" + good)
            assert rows is not None
            if name == "ss" and odd.startswith(b"\x1b["):
                assert not rows  # what `watch` leaves: changed cells only, refused with what to do
            else:
                assert rows["samples"] >= 2


@pytest.mark.slow
def test_a_million_flows(tmp_path):
    """A scan of everything: one SYN each. Numbered by a salted hash, in bounded time and memory."""
    path = tmp_path / "scan.pcap"
    head = bytearray(captures.record(ether(ip4(tcp(1, 0, 2)))))
    with path.open("wb") as file:
        file.write(captures.pcap_header())
        for number in range(1_050_000):
            struct.pack_into("!I", head, 16 + 14 + 12, 0x0A000000 + number)
            file.write(head)
    outcome, memory = measured(path, tmp_path / "d")
    assert outcome == "added pcap False "
    assert memory < 3 * MOST_MB  # what a flow takes: some hundred bytes
    assert Dataset.open(tmp_path / "d").scan("flows").select("flow").collect().height == 1_050_000


NAMES = [
    "..", "a/../../b", "..\\..\\b", "x\x1b[31mred\x07", "<script>alert(1)<", "a\nb", "~root", "-rf", "$(touch x)",
    "%2e%2e", "name with  blanks", "\u202egpj.pcap", "CON", "*?[a]", "'; drop table", "." * 200, "\u00e9" * 120,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_stay_inside_the_folder_and_off_the_terminal(name, tmp_path):
    """Whatever a file is called: its tables stand in the dataset, and no control character comes out."""
    made = tmp_path / "in" / Path(name.replace("/", "\u2215").strip(".") or "dots").name
    made.parent.mkdir()
    made.write_bytes(captures.pcap(connection()) + b"cut")
    target = tmp_path / "out" / "d"
    command = [sys.executable, "-m", "tracetool", "ingest", str(made.parent), "-o", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 4, done.stderr
    text = done.stderr.decode("utf-8", "surrogateescape")
    assert all(part.isprintable() for part in text.splitlines())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["d"]
    (short,) = Dataset.open(target).inputs
    assert short.isascii()
    assert not set(short) & set("/\\<>\"'$`\n\x1b *?;|&")
    assert Dataset.open(target).read("packets").height == len(connection())


def test_names_inside_captures_are_not_believed(tmp_path):
    """Comments and interface names of a pcapng go nowhere; an ss log's names come out escaped."""
    log = b"1700000000.5\nESTAB 0 0 \x1b[31mevil<b>:80 192.0.2.1:5000\n\t cubic rtt:4/2 mss:1448 cwnd:10\n"
    path = tmp_path / "log"
    path.write_bytes(log)
    (result,) = ingest_each(path, tmp_path / "d")
    shown = "".join(row["message"] for row in result.diagnostics) + str(result.error or "")
    assert shown.isprintable()


def test_special_files(tmp_path):
    """A named pipe is read as it is written to, which is what a shell's <(...) gives; nothing is no capture."""
    os.mkfifo(tmp_path / "pipe")
    content = (ROOT / "sample_traces" / "reno-nanoseconds.pcap.gz").read_bytes()
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,), daemon=True)
    writer.start()
    assert ingest(tmp_path / "pipe", tmp_path / "d").inputs == ["pipe"]
    writer.join()
    with pytest.raises(InputError, match="it is empty"):
        ingest("/dev/null", tmp_path / "d")
