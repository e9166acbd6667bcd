"""Bytes come out the same, however they are stored; damage is told and what came before it is kept."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetool import sources
from tracetool.errors import InputError, UsageError
from tracetool.ingest import ingest

SAMPLES = Path(__file__).parent.parent / "sample_traces"
PLAIN = b"".join(b"line %d\n" % i for i in range(50_000))


def _closed(data: bytes, codec: str) -> bytes:
    buffer = pa.BufferOutputStream()
    with pa.CompressedOutputStream(buffer, codec) as out:
        out.write(data)
    return buffer.getvalue().to_pybytes()


CODECS = {
    None: bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda data: _closed(data, "zstd"),
    "lz4": lambda data: _closed(data, "lz4"),
}


@pytest.mark.parametrize("codec", list(CODECS), ids=str)
@pytest.mark.parametrize("members", [1, 3])
def test_compression_is_looked_through(tmp_path, codec, members) -> None:
    path = tmp_path / "misleading.pcap"  # the suffix says nothing
    part = len(PLAIN) // members + 1
    stored = b"".join(CODECS[codec](PLAIN[i : i + part]) for i in range(0, len(PLAIN), part))
    path.write_bytes(stored)
    with sources.Source(str(path)).open() as stream:
        assert stream.compression == codec
        assert stream.head() == PLAIN[: sources.HEAD_BYTES]
        assert stream.read() == PLAIN
        assert stream.damage is None
        assert stream.digest() == (hashlib.sha256(stored).hexdigest(), len(stored))


@pytest.mark.parametrize(
    ("codec", "decompressor"),
    [
        ("gzip", lambda: zlib.decompressobj(wbits=31)),
        ("bzip2", bz2.BZ2Decompressor),
        ("xz", lzma.LZMADecompressor),
    ],
)
def test_of_a_truncated_container_nothing_is_lost_that_it_holds(tmp_path, codec, decompressor) -> None:
    path = tmp_path / "cut"
    path.write_bytes(cut := CODECS[codec](PLAIN)[:-1000])
    held = decompressor().decompress(cut)
    found, block = b"", bytearray(1 << 20)  # as captures are read
    with sources.Source(str(path)).open() as stream:
        assert stream.head() == held[: sources.HEAD_BYTES]
        while count := stream.readinto(block):
            found += block[:count]
        assert "ends early" in (stream.damage or "")
    assert found == held
    assert PLAIN.startswith(found)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_of_other_truncated_containers_little_is_lost(tmp_path, codec) -> None:
    path = tmp_path / "cut"
    data = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(20_000))  # less than is read at once
    stored = CODECS[codec](data)
    path.write_bytes(stored[: len(stored) // 2])
    found, block = 0, bytearray(1 << 20)
    with sources.Source(str(path)).open() as stream:
        while count := stream.readinto(block):
            assert block[:count] == data[found : found + count]
            found += count
        assert "ends early" in (stream.damage or "")
    assert found > len(data) // 3  # whole blocks of the container


@pytest.mark.parametrize("codec", [c for c in CODECS if c], ids=str)
def test_truncated_container_keeps_what_came_before(tmp_path, codec) -> None:
    path = tmp_path / "cut"
    data = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(100_000))  # does not compress
    stored = CODECS[codec](data)
    path.write_bytes(stored[: len(stored) // 2])
    with sources.Source(str(path)).open() as stream:
        got = stream.read()
        assert data.startswith(got)
        assert len(got) > len(data) // 4
        assert "ends early" in (stream.damage or "")
        assert stream.read() == b""


def test_garbage_in_gzip_is_damage_not_an_exception(tmp_path) -> None:
    path = tmp_path / "x.gz"
    stored = bytearray(gzip.compress(PLAIN))
    stored[len(stored) // 2 :] = b"\xff" * (len(stored) - len(stored) // 2)
    path.write_bytes(stored)
    with sources.Source(str(path)).open() as stream:
        assert (
            stream.read()[: len(PLAIN) // 3] == PLAIN[: len(PLAIN) // 3]
        )  # noise may decode to noise, up to the damage
        assert stream.damage


def test_head_does_not_move_the_position(tmp_path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    with sources.Source(str(path)).open() as stream:
        assert stream.head() == b"abc"
        assert stream.head() == b"abc"
        assert stream.position == 0
        assert stream.read() == b"abc"
        assert stream.position == 3


@given(st.lists(st.integers(1, 7000), min_size=1, max_size=20))
def test_any_split_into_reads_gives_the_same_bytes(sizes) -> None:
    stream = sources.Stream("memory", io.BytesIO(gzip.compress(PLAIN[:20_000])))
    stream.head()
    got = b""
    while piece := stream.read(sizes[len(got) % len(sizes)]):
        got += piece
    assert got == PLAIN[:20_000]


def test_missing_file_and_folder(tmp_path) -> None:
    with pytest.raises(InputError, match="No such file"):
        sources.Source(str(tmp_path / "nosuch")).open()
    with pytest.raises(InputError, match="is a folder"):
        sources.Source(str(tmp_path)).open()


def test_names_and_files_that_the_system_refuses_are_told_in_one_line(monkeypatch) -> None:
    with pytest.raises(InputError, match=r"^a+: File name too long$"):
        sources.expand("a" * 5000)
    assert sources.Source("a" * 5000).size_bytes is None

    class Broken(io.RawIOBase):
        def readinto(self, _buffer):
            raise OSError(5, "Input/output error")

        def readable(self):
            return True

    disk = Broken()
    monkeypatch.setattr(sources, "_open_raw", lambda _name, _folder: disk)
    with pytest.raises(InputError, match=r"^on a broken disk: Input/output error$"):
        sources.Source("on a broken disk").open()
    assert disk.closed


def test_expand(tmp_path) -> None:
    for name in ("b.pcap", "a.pcap", ".hidden", "sub/c.pcap"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    names = [source.name.removeprefix(str(tmp_path)) for source in sources.expand(tmp_path)]
    assert names == ["/a.pcap", "/b.pcap", "/sub/c.pcap"]
    assert len(sources.expand([tmp_path / "*.pcap", tmp_path / "a.pcap"])) == 2
    assert sources.expand("-")[0].stem == "stdin"
    with pytest.raises(InputError, match="no file there"):
        sources.expand(str(tmp_path / "*.nosuch"))
    with pytest.raises(UsageError, match="no input given"):
        sources.expand([])


def test_a_dataset_in_a_folder_is_none_of_its_inputs(tmp_path) -> None:
    capture = SAMPLES / "reno-sawtooth.pcap.gz"
    (tmp_path / "run" / "other").mkdir(parents=True)
    (tmp_path / "run" / "a.pcap.gz").write_bytes(capture.read_bytes())
    (tmp_path / "run" / "other" / "dataset.json").write_text("{}")  # somebody else's
    ingest(tmp_path / "run" / "a.pcap.gz", tmp_path / "run" / "dataset")
    names = [source.name.removeprefix(str(tmp_path)) for source in sources.expand(tmp_path)]
    assert names == ["/run/a.pcap.gz", "/run/other/dataset.json"]


def test_a_file_whose_name_is_a_glob(tmp_path) -> None:
    (tmp_path / "x[1].pcap").write_bytes(b"x")
    assert [source.stem for source in sources.expand(tmp_path / "x[1].pcap")] == ["x[1]"]


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("sender.pcap.gz", "sender"),
        ("a/b.txt", "b"),
        ("s3://bucket/x.pcapng.zst", "x"),
        (".pcap", ".pcap"),
        ("v1.2.3", "v1.2.3"),
    ],
)
def test_stem(name, stem) -> None:
    assert sources.Source(name).stem == stem


def test_lines_know_where_they_are() -> None:
    got = list(sources.lines(io.BytesIO(b"one\r\ntwo\n\nfour \xff\nfive")))
    assert [(line.number, line.offset_bytes, line.text) for line in got] == [
        (1, 0, "one"),
        (2, 5, "two"),
        (3, 9, ""),
        (4, 10, "four \ufffd"),
        (5, 17, "five"),
    ]
    assert [line.whole for line in got] == [True, True, True, True, False]


def test_an_endless_line_is_cut(monkeypatch) -> None:
    monkeypatch.setattr(sources, "LINE_BYTES", 10)
    got = list(sources.lines(io.BytesIO(b"x" * 95 + b"\nshort\n")))
    assert [(len(line.text), line.whole, line.offset_bytes) for line in got] == [(10, False, 0), (5, True, 96)]


def test_reading_lines_leaves_the_stream_open() -> None:
    stream = io.BytesIO(b"a\nb\n")
    assert [line.text for line in sources.lines(stream)] == ["a", "b"]
    assert not stream.closed
