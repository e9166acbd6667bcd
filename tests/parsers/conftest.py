"""Reading text and files with one parser, as ingest does."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from tracetool import parsers, sources, tables
from tracetool.diagnostics import DiagnosticLog
from tracetool.parsers.options import ParseOptions

SHARED = Path(os.environ.get("TRACETOOL_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))


@dataclass
class Result:
    """What a parser made of an input."""

    parser: str
    frames: dict[str, pl.DataFrame]
    log: DiagnosticLog
    pieces: list[int] = field(default_factory=list)

    def rows(self, table: str) -> list[dict[str, Any]]:
        return self.frames[table].to_dicts()

    def row(self, table: str = "samples", index: int = 0) -> dict[str, Any]:
        return self.frames[table].row(index, named=True)

    def column(self, name: str, table: str = "samples") -> list[Any]:
        return self.frames[table][name].to_list()

    def nanoseconds(self, name: str = "time", table: str = "samples") -> list[int]:
        return self.frames[table][name].to_physical().to_list()

    @property
    def codes(self) -> list[str]:
        return [row["code"] for row in self.log.rows]

    def message(self, code: str) -> str:
        return next(row["message"] for row in self.log.rows if row["code"] == code)

    def metadata(self) -> dict[str, str]:
        return dict(self.frames["metadata"].select("key", "value").iter_rows())


class Chunked(io.RawIOBase):
    """Bytes that come in pieces of given sizes."""

    def __init__(self, content: bytes, size: int) -> None:
        self.content = content
        self.size = size

    def readable(self) -> bool:
        return True

    def head(self) -> bytes:
        return self.content[: sources.HEAD_BYTES]

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), self.size, len(self.content))
        buffer[:count] = self.content[:count]
        self.content = self.content[count:]
        return count


def read_stream(stream: Any, head: bytes, name: str | None, options: ParseOptions) -> Result:
    parser = parsers.get(name) if name else parsers.detect(head, "test")
    log = DiagnosticLog("test")
    found: dict[str, list[pa.Table]] = {table: [tables.empty(table)] for table in tables.names()}
    pieces = []
    for table, rows in parser.parse(stream, log, options):
        found[table].append(tables.cast(table, rows))
        pieces.append(rows.num_rows)
    frames = {table: pl.from_arrow(pa.concat_tables(parts)) for table, parts in found.items()}
    frames["diagnostics"] = pl.from_arrow(log.table())
    return Result(parser.__name__.rpartition(".")[2], frames, log, pieces)  # type: ignore[arg-type]


@pytest.fixture
def read():
    """Read text (or bytes): ``read(text, parser=None, chunk=None, **options)``."""

    def reading(content: str | bytes, parser: str | None = None, *, chunk: int | None = None, **options: Any) -> Result:
        raw = content.encode() if isinstance(content, str) else content
        stream = Chunked(raw, chunk) if chunk else io.BytesIO(raw)
        return read_stream(stream, raw[: sources.HEAD_BYTES], parser, ParseOptions(**options))

    return reading


@pytest.fixture
def read_file():
    """Read a file below the shared folder; skips where it is missing."""

    def reading(path: str, parser: str | None = None, **options: Any) -> Result:
        if not (SHARED / path).is_file():
            pytest.skip(f"no {path}: the shared traces are not there")
        with sources.Source(str(SHARED / path)).open() as stream:
            return read_stream(stream, stream.head(), parser, ParseOptions(**options))

    return reading


@pytest.fixture
def shared() -> Path:
    """The shared folder; skips where it is missing."""
    if not SHARED.is_dir():
        pytest.skip("the shared traces are not there")
    return SHARED
