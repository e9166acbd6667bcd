"""Inputs and datasets in an object store: a real S3 server on loopback."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import tracetool
from tests.fuzz import captures
from tests.fuzz.frames import connection
from tracetool import sources, stores, tables
from tracetool.dataset import Dataset, DatasetWriteError
from tracetool.errors import DatasetError, InputError
from tracetool.ingest import ingest, ingest_each
from tracetool.reconstruct import reconstruct

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_traces"
NAMES = ("reno-rto.pcap.gz", "reno-rto.tcp_probe.txt.gz")


@pytest.fixture(scope="module")
def bucket():
    """URL of a bucket with two samples in ``in/``, without and with what stands behind its ``?``."""
    server = pytest.importorskip("moto.server", reason="moto is not installed").ThreadedMotoServer("127.0.0.1", 0)
    from pyarrow import fs

    server.start()
    _, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        made = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http", allow_bucket_creation=True)
        made.create_dir("campaign")
        for name in NAMES:
            with made.open_output_stream(f"campaign/in/{name}", compression=None) as stream:
                stream.write((SAMPLES / name).read_bytes())
        yield lambda path: f"s3://campaign/{path}?endpoint_override=127.0.0.1:{port}&scheme=http"
    server.stop()


def keys(url: str) -> list[str]:
    from pyarrow import fs

    system, path = stores.filesystem(url)
    found = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    return sorted(info.path for info in found if info.is_file)


def same(there: Dataset, here: Dataset) -> None:
    assert there.inputs == here.inputs
    for table in tables.names():
        assert_frame_equal(there.read(table), here.read(table))


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> Dataset:
    """The same in a folder."""
    return reconstruct(ingest([SAMPLES / name for name in NAMES], tmp_path_factory.mktemp("here") / "d"))


def test_from_store_to_store(bucket, here):
    """Every table is that of a dataset in a folder; nothing but it is left in the store."""
    dataset = ingest(bucket("in/"), bucket("alone"))
    assert Dataset.is_dataset(bucket("alone"))
    reconstruct(dataset)
    same(Dataset.open(bucket("alone")), here)
    below = {key.removeprefix("campaign/alone/") for key in keys(bucket("alone"))}
    listed = {f"{table}/{Path(str(file)).name}" for table in tables.names() for file in here.files(table)}
    assert below == listed | {"dataset.json"}
    assert [each.status for each in ingest_each(bucket("in/*.gz"), bucket("alone"))] == ["present", "present"]


def test_threads_and_one_after_the_other_agree(bucket, here):
    with ThreadPoolExecutor(2) as pool:
        reconstruct(ingest(bucket("in/"), bucket("shared"), executor=pool), executor=pool)
    same(Dataset.open(bucket("shared")), here)


def test_one_flow_is_found_without_reading_all(bucket, here):
    """A filter on columns gives the rows of the dataset in the folder."""
    dataset = ingest(bucket("in/"), bucket("filtered"))
    wanted = (pl.col("flow") == 0) & (pl.col("payload_bytes") > 0)
    query = [each.scan("packets").filter(wanted).select("frame", "time", "seq") for each in (dataset, here)]
    assert_frame_equal(query[0].collect(), query[1].collect())
    assert query[0].collect().height > 100


def test_the_manifest_comes_last_and_what_it_does_not_list_is_not_read(bucket, here, monkeypatch):
    """A run that ends before the manifest is written leaves the previous state, and is completed by the next."""
    url = bucket("cut")
    ingest(bucket(f"in/{NAMES[0]}"), url)

    def refuse(*_args):
        raise OSError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(stores.Bucket, "replace", refuse)
        with pytest.raises(DatasetWriteError, match=r"^s3://campaign/cut.*: cannot be written: gone"):
            ingest(bucket(f"in/{NAMES[1]}"), url)
    assert any("tcp_probe" in key for key in keys(url))
    assert Dataset.open(url).inputs == ["reno-rto"]
    assert set(Dataset.open(url).read("samples")["input"]) == set()
    same(reconstruct(ingest(bucket("in/"), url)), here)


def test_a_put_that_fails_leaves_no_input(bucket, monkeypatch):
    url = bucket("full")
    Dataset.create(url)

    def refuse(*_args):
        raise OSError("quota exceeded")

    monkeypatch.setattr(stores.Bucket, "put", refuse)
    with pytest.raises(DatasetWriteError, match="quota exceeded"):
        ingest(bucket("in/"), url)
    assert Dataset.open(url).inputs == []


def test_parts_of_a_capture_are_joined(bucket, tmp_path):
    frames = connection(40, 100)
    system, path = stores.filesystem(bucket("parts"))
    for number, part in enumerate((range(25), range(25, 40))):
        records = b"".join(captures.record(frames[k], k) for k in part)
        with system.open_output_stream(f"{path}/a{number}.pcap.gz", compression=None) as stream:
            stream.write(gzip.compress(captures.pcap_header() + records))
    (tmp_path / "a0.pcap").write_bytes(captures.pcap(frames[:40]))
    joined = ingest(bucket("parts/"), bucket("joined"), join=True)
    expected = ingest(tmp_path / "a0.pcap", tmp_path / "d")
    for table in ("packets", "flows", "inputs"):
        assert_frame_equal(joined.read(table), expected.read(table))


def test_commands(bucket, here, tmp_path):
    """ingest, reconstruct and flows, by URL."""

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "tracetool", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("ingest", bucket("in/"), "--out", bucket("commands"), "-q")
    run("reconstruct", bucket("commands"), "-q")
    assert run("flows", bucket("commands"), "--csv") == run("flows", str(here.path), "--csv")


def test_what_is_not_there(bucket):
    with pytest.raises(DatasetError, match="no dataset there"):
        tracetool.open(bucket("nothing"))
    with pytest.raises(InputError, match="no file there"):
        sources.expand(bucket("nothing/"))
    (result,) = ingest_each(bucket("in/nothing.pcap"), bucket("nothing-found"))
    assert result.status == "failed"
    assert str(result.error).startswith("s3://campaign/in/nothing.pcap")


def test_urls(bucket):
    found = sources.expand(bucket("in/*.pcap.gz"))
    assert [source.stem for source in found] == ["reno-rto"]
    assert found[0].size_bytes == (SAMPLES / NAMES[0]).stat().st_size
    assert sources.expand(bucket(f"in/{NAMES[0]}"))[0].size_bytes == found[0].size_bytes


@pytest.mark.parametrize(
    ("url", "kind", "path"),
    [
        ("s3://key:secret@bucket/a/b%20c.pcap?region=eu-north-1", "s3", "bucket/a/b c.pcap"),
        ("gs://anonymous@bucket/a.pcap", "gcs", "bucket/a.pcap"),
        ("abfs://container@account.dfs.core.windows.net/a.pcap", "abfs", "container/a.pcap"),
        ("file:///data/a.pcap", "local", "/data/a.pcap"),
    ],
)
def test_each_kind_of_store_is_known(url, kind, path):
    system, found = stores.filesystem(url)
    assert (system.type_name, found) == (kind, path)
    with pytest.raises(InputError, match=r"^nosuch://bucket/"):
        stores.filesystem("nosuch://me:secret@bucket/a")


def test_passwords_are_not_kept(tmp_path):
    dataset = Dataset.create(tmp_path / "d")
    dataset.note_command("tracetool ingest s3://key:secret@bucket/a.pcap --out d")
    assert dataset.manifest()["commands"] == ["tracetool ingest s3://bucket/a.pcap --out d"]
    assert sources.Source("s3://key:secret@bucket/a.pcap").label == "s3://bucket/a.pcap"
