"""What every parser promises for any bytes: tables in their schemas, or an InputError; bounded, and nothing else."""

from __future__ import annotations

import io
from collections import Counter

from tests.fuzz.mutate import MUTATIONS, SEED, mutants
from tests.fuzz.seeds import seeds
from tracetool import parsers, tables
from tracetool.diagnostics import LIMIT, DiagnosticLog
from tracetool.errors import InputError
from tracetool.parsers.options import ParseOptions
from tracetool.sources import Stream

OPTIONS = ParseOptions()
#: No input becomes more rows than it has bytes (and a few that stand for the whole).
ROWS_PER_BYTE, ROWS_EXTRA = 1, 64


def stream_of(data: bytes) -> Stream:
    return Stream("fuzzed", io.BytesIO(data))


def parse(name: str, data: bytes, *, cast: bool = True) -> Counter[str] | None:
    """Rows by table of what a parser makes of some bytes; None where it says that they are not its own.

    With ``cast=False`` tables are not held against their schemas, which takes most of the time.
    """
    parser = parsers.get(name)
    with stream_of(data) as stream:
        if not parser.sniff(stream.head()):
            return None
        log = DiagnosticLog("fuzzed")
        rows: Counter[str] = Counter()
        pieces: Counter[str] = Counter()
        try:
            for table, piece in parser.parse(stream, log, OPTIONS):
                if cast:
                    tables.cast(table, piece)
                rows[table] += piece.num_rows
                pieces[table] += 1
        except InputError as error:
            assert "\n" not in str(error), error
            return rows
    diagnostics = log.table()
    assert pieces["inputs"] == rows["inputs"] == 1
    assert pieces["flows"]
    assert rows.total() <= ROWS_PER_BYTE * len(data) + ROWS_EXTRA
    assert max(Counter(diagnostics["code"].to_pylist()).values(), default=0) <= LIMIT
    assert all(message.isprintable() for message in diagnostics["message"].to_pylist())
    return rows


def survives(name: str) -> None:
    """Assert that a parser takes many damaged copies of its seeds, and did get to work on a good part of them."""
    outcome: Counter[str] = Counter()
    for number, data in enumerate(mutants(name, seeds(name), MUTATIONS, SEED)):
        try:
            rows = parse(name, data, cast=number % 8 == 0)
        except BaseException as error:
            error.add_note(f"mutant {number} of {name}, seed {SEED}: {data[:2000]!r}")
            raise
        outcome["refused" if rows is None else "read" if rows.total() > 1 else "empty"] += 1
    assert outcome["read"] > MUTATIONS // 3, outcome
