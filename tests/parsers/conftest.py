"""Reading text and files with one parser, as ingest does."""

from __future__ import annotations

import contextlib
import io
import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from tracetool import parsers, sources, tables
from tracetool.diagnostics import DiagnosticLog
from tracetool.errors import TracetoolError
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
def survives(read):
    """Check that damaged forms of an input are read or refused: ``survives(good, parser, what may be put in)``."""

    def checking(good: bytes, parser: str, odd: list[bytes], count: int = 300) -> None:
        for seed in range(count):
            chance = random.Random(seed)
            bad = bytearray(good)
            for _ in range(chance.randrange(1, 12)):
                at = chance.randrange(len(bad))
                kind = chance.randrange(4)
                if kind == 0:
                    bad[at] = chance.randrange(256)
                elif kind == 1:
                    del bad[at : at + chance.randrange(1, 60)]
                elif kind == 2:
                    bad[at:at] = bad[chance.randrange(len(bad)) :][: chance.randrange(40)]
                else:
                    bad[at:at] = chance.choice(odd)
                bad = bad or bytearray(good)
            with contextlib.suppress(TracetoolError):
                read(bytes(bad), parser)

    return checking


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
