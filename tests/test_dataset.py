"""A dataset is whole or not there; nothing of a killed run is read; names can't leave the folder."""

from __future__ import annotations

import json
import multiprocessing
import os

import polars as pl
import pytest

from tracetool import tables
from tracetool.dataset import Dataset, DatasetWriteError, safe_name
from tracetool.errors import DatasetError

ROWS = [{"input": "x", "key": f"k{i}", "value": str(i)} for i in range(10)]


def add(dataset: Dataset, name: str = "x", commit: bool = True) -> None:
    with dataset.reserve([name]) as writer:
        writer.write("metadata", tables.from_rows("metadata", ROWS))
        if commit:
            writer.commit(sha256="0", size_bytes=1)


def test_round_trip(tmp_path) -> None:
    dataset = Dataset.create(tmp_path / "d")
    add(dataset)
    assert dataset.read("metadata").to_dicts() == ROWS
    assert Dataset.open(tmp_path / "d").inputs == ["x"]
    entry = dataset.manifest()["inputs"]["x"]
    assert entry["stages"]["ingest"]["rows"] == {"metadata": 10}
    assert entry["sha256"] == "0"


def test_a_table_nobody_wrote_is_empty_with_its_columns(tmp_path) -> None:
    dataset = Dataset.create(tmp_path / "d")
    assert dataset.read("samples").columns == list(tables.columns("samples"))
    assert dataset.read("samples").height == 0


def test_a_column_that_a_table_has_gained_since_is_null(tmp_path) -> None:
    dataset = Dataset.create(tmp_path / "d")
    add(dataset)
    (file,) = dataset.files("metadata")
    pl.read_parquet(file).drop("value").write_parquet(file)
    assert dataset.read("metadata").to_dicts() == [row | {"value": None} for row in ROWS]
    assert dataset.scan("metadata").select("value").collect()["value"].null_count() == len(ROWS)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda file: file.write_bytes(file.read_bytes()[:-20]), "Parquet magic bytes not found"),
        (lambda file: file.write_bytes(b""), "Parquet file size is 0 bytes"),
        (lambda file: file.unlink(), "No such file or directory"),
        (
            lambda file: pl.DataFrame(ROWS).with_columns(value=pl.lit(1)).write_parquet(file),
            "its column value is Int32, not String",
        ),
    ],
)
def test_a_damaged_file_is_told_by_its_name(damage, reason, tmp_path) -> None:
    dataset = Dataset.create(tmp_path / "d")
    add(dataset)
    (file,) = dataset.files("metadata")
    damage(file)
    with pytest.raises(DatasetError, match=f"metadata/x.parquet: cannot be read: .*{reason}"), dataset.damage_told():
        dataset.read("metadata")


def test_other_errors_are_no_damage(tmp_path) -> None:
    dataset = Dataset.create(tmp_path / "d")
    add(dataset)
    with pytest.raises(pl.exceptions.ColumnNotFoundError), dataset.damage_told():
        dataset.read("metadata").select("nothing")


def test_without_commit_nothing_is_there(tmp_path) -> None:
    dataset = Dataset.create(tmp_path / "d")
    add(dataset, commit=False)
    assert dataset.inputs == []
    assert dataset.read("metadata").height == 0
    assert not list((tmp_path / "d").rglob("metadata*"))


def test_leftovers_of_a_killed_run_are_not_read(tmp_path) -> None:
    dataset = Dataset.create(tmp_path / "d")
    add(dataset)
    for name in ("y.parquet", ".z.parquet.tmp"):
        (tmp_path / "d" / "metadata" / name).write_bytes((tmp_path / "d" / "metadata" / "x.parquet").read_bytes())
    assert dataset.read("metadata").height == 10


def test_names_are_unique(tmp_path) -> None:
    dataset = Dataset.create(tmp_path / "d")
    add(dataset)
    with dataset.reserve(["x", "y"]) as first, dataset.reserve(["x", "y", "z"]) as second:
        assert (first.name, second.name) == ("y", "z")


def _reserve_and_die(path) -> None:
    writer = Dataset.open(path).reserve(["x"])
    writer.write("metadata", tables.from_rows("metadata", ROWS))
    os._exit(1)


def test_a_name_is_free_again_when_its_process_died(tmp_path) -> None:
    Dataset.create(tmp_path / "d")
    process = multiprocessing.get_context("spawn").Process(target=_reserve_and_die, args=(tmp_path / "d",))
    process.start()
    process.join()
    add(Dataset.open(tmp_path / "d"))
    assert Dataset.open(tmp_path / "d").inputs == ["x"]


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/abs", "a\0b", "..", ".hidden", "-rf", "a\nb\x1b[0m", "", "x" * 5000, "ü/é"]
)
def test_no_name_leaves_the_folder(name) -> None:
    safe = safe_name(name)
    assert safe
    assert not set(safe) & set("/\\\0\n\x1b")
    assert not safe.startswith((".", "-"))
    assert len(safe) <= 100


def test_stages_replace_one_another(tmp_path) -> None:
    dataset = Dataset.create(tmp_path / "d")
    add(dataset)
    for count in (3, 4):
        with dataset.writer("x", "reconstruct") as writer:
            rows = [{"input": "x", "severity": "info", "code": "c", "message": "m", "count": 1}] * count
            writer.write("diagnostics", tables.from_rows("diagnostics", rows))
            writer.commit()
    assert dataset.read("diagnostics").height == 4


def test_opening_what_is_no_dataset(tmp_path) -> None:
    with pytest.raises(DatasetError, match="no dataset there"):
        Dataset.open(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(DatasetError, match="is no dataset, and not empty"):
        Dataset.create(tmp_path)
    (tmp_path / "dataset.json").write_text("[]")
    with pytest.raises(DatasetError, match="cannot be read"):
        Dataset.open(tmp_path)
    (tmp_path / "dataset.json").write_text(json.dumps({"schema_version": 99, "inputs": {}, "commands": []}))
    with pytest.raises(DatasetError, match="newer than this tracetool"):
        Dataset.open(tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DatasetWriteError, match="cannot be written"):
        Dataset.create(tmp_path / "file" / "d")


def test_commands_are_noted_once(tmp_path) -> None:
    dataset = Dataset.create(tmp_path / "d")
    for command in ("a", "a", "b"):
        dataset.note_command(command)
    assert dataset.manifest()["commands"] == ["a", "b"]


def test_what_a_killed_run_left_of_the_manifest_goes(tmp_path):
    Dataset.create(tmp_path / "d")
    left = tmp_path / "d" / ".dataset.json.tmp"
    left.write_text("{")
    Dataset.create(tmp_path / "d")
    assert not left.exists()
    assert Dataset.is_dataset(tmp_path / "d")


def test_an_interrupted_manifest_leaves_nothing(tmp_path, monkeypatch):
    dataset = Dataset.create(tmp_path / "d")
    before = sorted(path.name for path in dataset.path.iterdir())

    def interrupted(_file: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dataset.store.replace("dataset.json", b"{}")
    assert sorted(path.name for path in dataset.path.iterdir()) == before
