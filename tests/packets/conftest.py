"""Reading captures made by hand, in pieces of any size."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from tracetool import parsers, tables
from tracetool.diagnostics import DiagnosticLog
from tracetool.parsers.options import ParseOptions


class Chunked(io.RawIOBase):
    """Bytes that come in pieces of given sizes, over and over."""

    def __init__(self, content: bytes, sizes: list[int]) -> None:
        self.content = content
        self.sizes = sizes
        self.turn = 0

    def readable(self) -> bool:
        return True

    def head(self) -> bytes:
        return self.content[:65536]

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), self.sizes[self.turn % len(self.sizes)], len(self.content))
        self.turn += 1
        buffer[:count] = self.content[:count]
        self.content = self.content[count:]
        return count


@dataclass
class Tables:
    """What a capture became."""

    packets: pl.DataFrame
    flows: pl.DataFrame
    inputs: pl.DataFrame
    diagnostics: list[dict[str, Any]]

    @property
    def codes(self) -> list[str]:
        return [row["code"] for row in self.diagnostics]

    def flow(self, number: int = 0) -> dict[str, Any]:
        return self.flows.row(number, named=True)


def read_capture(content: bytes, sizes: list[int] | None = None) -> Tables:
    stream = Chunked(content, sizes or [1 << 20])
    parser = parsers.detect(stream.head(), "test")
    log = DiagnosticLog("test")
    found: dict[str, list[pa.Table]] = {name: [] for name in ("packets", "flows", "inputs")}
    for name, rows in parser.parse(stream, log, ParseOptions()):
        found[name].append(tables.cast(name, rows))
    frames = {
        name: pl.from_arrow(pa.concat_tables(parts) if parts else tables.empty(name)) for name, parts in found.items()
    }
    return Tables(frames["packets"].sort("frame"), frames["flows"], frames["inputs"], log.rows)


@pytest.fixture
def capture():
    """``capture(bytes, sizes=None)``: the tables of a capture."""
    return read_capture
