"""Parts of a rotated capture, in any order, give the tables of the merged file, byte for byte."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tests.fuzz import captures
from tests.fuzz.frames import connection
from tracetool import tables
from tracetool.dataset import Dataset
from tracetool.errors import FormatError, InputError, UsageError
from tracetool.ingest import ingest, ingest_each
from tracetool.reconstruct import reconstruct

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_traces"
PLAIN = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


def stored(dataset: Dataset) -> dict[str, bytes]:
    """Content of every Parquet file of a dataset with one input."""
    return {table: file.read_bytes() for table in tables.names() for file in dataset.files(table)}


def records(capture: bytes) -> tuple[bytes, list[bytes]]:
    """Header and records of a little-endian pcap file."""
    at, found = 24, []
    while at < len(capture):
        (length,) = struct.unpack_from("<I", capture, at + 8)
        found.append(capture[at : at + 16 + length])
        at += 16 + length
    return capture[:24], found


def cut(found: list[bytes], pieces: int, seed: int) -> list[list[bytes]]:
    """Cut a list at random places."""
    places = sorted(random.Random(seed).sample(range(1, len(found)), pieces - 1))
    return [found[a:b] for a, b in zip([0, *places], [*places, len(found)], strict=True)]


@pytest.mark.parametrize("suffix", PLAIN)
@pytest.mark.parametrize("sample", ["two-reno", "reno-nanoseconds"])
def test_parts_of_a_pcap_file(tmp_path, sample, suffix):
    """As tcpdump -C names them, ring buffer and all: the first of them is not the one with the shortest name."""
    whole = gzip.decompress((SAMPLES / f"{sample}.pcap.gz").read_bytes())
    header, found = records(whole)
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "trace.pcap").write_bytes(whole)
    parts = tmp_path / "parts"
    parts.mkdir()
    for number, part in enumerate(cut(found, 4, seed=3)):
        name = "trace.pcap" if number == 0 else f"trace.pcap{(number + 1) % 4 + 1}"
        (parts / f"{name}{suffix}").write_bytes(PLAIN[suffix](header + b"".join(part)))
    (parts / f"trace.pcap9{suffix}").write_bytes(PLAIN[suffix](header))  # begun when the capture was ended
    (parts / "trace.pcap8").write_bytes(b"")  # the same, killed before the header was written
    expected = reconstruct(ingest(tmp_path / "whole", tmp_path / "expected"))
    shuffled = list(parts.iterdir())
    random.Random(5).shuffle(shuffled)
    dataset = reconstruct(ingest(shuffled, tmp_path / "joined", join=True))
    assert dataset.inputs == ["trace"]
    made, wanted = stored(dataset), stored(expected)
    empty = dataset.read("diagnostics").filter(code="empty_part")
    assert empty["message"].to_list() == [f"{parts / 'trace.pcap8'}: is empty: a capture that ended as it was begun"]
    rest = dataset.read("diagnostics").filter(~(dataset.read("diagnostics")["code"] == "empty_part"))
    assert rest.equals(expected.read("diagnostics"))
    made.pop("diagnostics"), wanted.pop("diagnostics")
    assert made == wanted
    entry = dataset.entries["trace"]
    assert [Path(part["source"]).name.removesuffix(suffix) for part in entry["parts"][:4]] == [
        "trace.pcap", "trace.pcap3", "trace.pcap4", "trace.pcap1",
    ]  # fmt: skip
    assert [each.status for each in ingest_each(shuffled[::-1], tmp_path / "joined", join=True)] == ["present"]


@pytest.mark.parametrize("order", "<>")
def test_parts_of_a_pcapng_file(tmp_path, order):
    """As dumpcap -b writes them: each with its own section and interfaces."""
    frames = connection(60, 100)
    packets = [captures.enhanced(frame, number, order) for number, frame in enumerate(frames)]
    start = captures.section(order) + captures.interface(1, order)
    for folder, pieces in (("whole", [packets]), ("parts", cut(packets, 3, seed=1))):
        (tmp_path / folder).mkdir()
        for number, part in enumerate(pieces):
            path = tmp_path / folder / f"trace{'' if number == 0 else number}.pcapng"
            path.write_bytes(start + b"".join(part))
    expected = reconstruct(ingest(tmp_path / "whole", tmp_path / "expected"))
    dataset = reconstruct(ingest(tmp_path / "parts", tmp_path / "joined", join=True))
    assert stored(dataset) == stored(expected)
    assert dataset.read("flows").height == 1


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
@pytest.mark.parametrize("compress", [False, True])
def test_mergecap(tmp_path, form, compress):
    """editcap and mergecap agree, several flows in each part."""
    for tool in ("editcap", "mergecap"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    (tmp_path / "parts").mkdir()
    (tmp_path / "whole").mkdir()
    sample = SAMPLES / "two-reno.pcap.gz"
    subprocess.run(
        ["editcap", "-F", form, "-c", "5000", sample, str(tmp_path / "parts" / f"trace.{form}")],
        check=True, capture_output=True,
    )  # fmt: skip
    parts = sorted((tmp_path / "parts").iterdir())
    assert len(parts) > 2
    parts[0] = parts[0].rename(tmp_path / "parts" / f"trace.{form}")
    merged = tmp_path / "whole" / f"trace.{form}"
    subprocess.run(["mergecap", "-F", form, "-w", merged, *parts], check=True, capture_output=True)
    if compress:
        for number, part in enumerate(parts):
            parts[number] = part.with_name(f"{part.name}.gz")
            parts[number].write_bytes(gzip.compress(part.read_bytes()))
    expected = ingest(merged, tmp_path / "expected")
    dataset = ingest(parts[::-1], tmp_path / "joined", join=True)
    made, wanted = stored(dataset), stored(expected)
    if form == "pcap":  # there, mergecap writes 262144, whatever the snap length of the parts
        made.pop("inputs"), wanted.pop("inputs")
        assert dataset.read("inputs").drop("snaplen_bytes").equals(expected.read("inputs").drop("snaplen_bytes"))
    assert made == wanted


def test_drops_of_all_parts_are_added_up(tmp_path):
    frames = connection(20, 100)
    start = captures.section() + captures.interface()
    for number, part in enumerate((range(10), range(10, 20))):
        packets = b"".join(captures.enhanced(frames[k], k).replace(struct.pack("<Q", 3), bytes(8)) for k in part)
        (tmp_path / f"trace{number}.pcapng").write_bytes(start + packets + captures.statistics(drops=5 + number))
    dataset = ingest(tmp_path, tmp_path / ".joined", join=True)
    assert dataset.read("inputs")["capture_drops"].to_list() == [10 + 12]
    assert dataset.read("diagnostics").filter(code="capture_drops").height == 1


def test_what_is_odd_names_its_part(tmp_path):
    """A part that is cut, and one that begins before the one before it ends."""
    frames = connection(40, 100)
    records = [captures.record(frame, 500 * number) for number, frame in enumerate(frames)]
    (tmp_path / "a.pcap").write_bytes(captures.pcap_header() + b"".join(records[:20]) + b"cut")
    (tmp_path / "b.pcap").write_bytes(captures.pcap_header() + b"".join(records[15:]))
    (result,) = ingest_each(tmp_path, tmp_path / ".joined", join=True)
    assert result.damaged
    noted = {row["code"]: row for row in result.diagnostics}
    assert noted["cut_record"]["message"].startswith(f"{tmp_path / 'a.pcap'}: ")
    assert noted["parts_overlap"]["message"].startswith(f"{tmp_path / 'b.pcap'}: begins 2.000 s before")
    assert noted["parts_overlap"]["frame"] == 21


def test_a_part_that_is_given_twice_is_read_once(tmp_path):
    """Under two names, as `cp` leaves them; parts without frames are all alike, and no repetition."""
    frames = connection(40, 100)
    records = [captures.record(frame, 10 * number) for number, frame in enumerate(frames)]
    folder = tmp_path / "parts"
    folder.mkdir()
    for name, part in (("a", records[:20]), ("b", records[20:]), ("copy", records[:20]), ("x", []), ("y", [])):
        (folder / f"{name}.pcap").write_bytes(captures.pcap_header() + b"".join(part))
    (result,) = ingest_each(folder, tmp_path / "d", join=True)
    assert result.rows["packets"] == len(frames)
    assert [(row["code"], row["message"]) for row in result.diagnostics] == [
        ("repeated_part", f"{folder / 'copy.pcap'}: left out: its content is that of {folder / 'a.pcap'}")
    ]
    assert [each.status for each in ingest_each(folder, tmp_path / "d", join=True)] == ["present"]


def test_parts_that_were_only_begun(tmp_path):
    """A header that was cut off loses no other part; where no part has frames, one with a header is enough."""
    whole = captures.pcap(connection())
    (tmp_path / "a.pcap").write_bytes(b"")
    (tmp_path / "b.pcap").write_bytes(whole[:10])
    (tmp_path / "c.pcap").write_bytes(captures.pcap_header())
    (result,) = ingest_each(tmp_path, tmp_path / ".without", join=True)
    assert (result.status, result.input, result.damaged) == ("added", "c", True)
    assert [row["code"] for row in result.diagnostics] == ["empty_part", "cut_record"]
    (tmp_path / "d.pcap").write_bytes(whole)
    (result,) = ingest_each(tmp_path, tmp_path / ".with", join=True)
    assert (result.input, result.rows["packets"]) == ("d", len(connection()))
    assert result.diagnostics[1]["message"] == (
        f"{tmp_path / 'b.pcap'}: the input ends inside its header: 10 bytes are no capture"
    )


def test_what_cannot_be_joined(tmp_path):
    (tmp_path / "a.pcap").write_bytes(captures.pcap(connection()))
    log = SAMPLES / "reno-rto.tcp_probe.txt.gz"
    with pytest.raises(FormatError, match=r"is no capture .*only parts of a capture can be joined"):
        ingest([tmp_path / "a.pcap", log], tmp_path / "d", join=True)
    with pytest.raises(InputError, match="No such file"):
        ingest([tmp_path / "a.pcap", tmp_path / "b.pcap"], tmp_path / "d", join=True)
    with pytest.raises(UsageError, match="standard input cannot be joined"):
        ingest([tmp_path / "a.pcap", "-"], tmp_path / "d", join=True)
    assert Dataset.open(tmp_path / "d").inputs == []
