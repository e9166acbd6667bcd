"""What fuzzing or a mutation once found stays fixed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.contract import parse
from tracetool.ingest import ingest_each
from tracetool.reconstruct import reconstruct

FOUND = sorted(path for path in (Path(__file__).parent / "found").rglob("*") if path.is_file())


@pytest.mark.parametrize("path", FOUND, ids=[f"{path.parent.name}/{path.name}" for path in FOUND])
def test_found_before(path, tmp_path):
    parse(path.parent.name, path.read_bytes())
    (result,) = ingest_each(path, tmp_path / "d")
    assert result.error is None
    dataset = reconstruct(tmp_path / "d")
    durations = dataset.read("flow_stats")["duration_ns"].drop_nulls()
    assert all(duration >= 0 for duration in durations)
