"""Every parser takes whatever comes: thousands of damaged inputs give tables or a clear refusal, never a crash."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.fuzz import captures
from tests.fuzz.contract import parse
from tests.fuzz.frames import FRAMES
from tests.fuzz.mutate import mutants
from tests.fuzz.seeds import seeds
from tracetool import parsers
from tracetool.dataset import Dataset
from tracetool.errors import InputError
from tracetool.ingest import ingest
from tracetool.reconstruct import reconstruct

#: Of each parser; continuous integration makes 10,000.
MUTATIONS = int(os.environ.get("TRACETOOL_MUTATIONS", "2000"))
SEED = int(os.environ.get("TRACETOOL_SEED", "1"))


@pytest.mark.parametrize("name", parsers.FORMATS)
def test_seeds_are_read(name):
    """Else the mutations of nothing would prove nothing."""
    found = [parse(name, data) for data in seeds(name)]
    assert None not in found
    assert all(rows["inputs"] for rows in found)
    assert sum(rows.total() > 1 for rows in found) >= len(found) - 1  # one is of an unknown link type


@pytest.mark.parametrize("what", FRAMES)
def test_frames_made_by_hand_hold_a_packet(what):
    link, frame = FRAMES[what]
    rows = parse("pcap", captures.pcap([frame], link=link))
    assert rows["packets"] == (what not in {"arp", "later fragment", "unknown link"})


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", parsers.FORMATS)
def test_damaged_inputs_give_tables_or_a_refusal(name):
    outcome: Counter[str] = Counter()
    for number, data in enumerate(mutants(name, seeds(name), MUTATIONS, SEED)):
        try:
            rows = parse(name, data, cast=number % 8 == 0)
        except BaseException as error:
            error.add_note(f"mutant {number} of {name}, seed {SEED}: {data[:2000]!r}")
            raise
        outcome["refused" if rows is None else "read" if rows.total() > 1 else "empty"] += 1
    assert outcome["read"] > MUTATIONS // 3, outcome  # the parsers did get to work


@pytest.mark.parametrize("name", parsers.FORMATS)
def test_no_parser_chokes_on_the_start_of_another_format(name):
    sniff = parsers.get(name).sniff
    for other in parsers.FORMATS:
        for data in mutants(other, seeds(other), 200, SEED + 1):
            assert sniff(data) in (True, False)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", parsers.FORMATS)
def test_damaged_inputs_pass_through_to_the_inferred_tables(name, tmp_path):
    """The whole way, with fewer: a dataset that can be read, or an InputError."""
    files = []
    for number, data in enumerate(mutants(name, seeds(name), 60, SEED + 2)):
        files.append(tmp_path / f"{number}.bin")
        files[-1].write_bytes(data)
    read = 0
    for file in files:
        try:
            ingest(file, tmp_path / "dataset")
            read += 1
        except InputError:
            continue
    reconstruct(tmp_path / "dataset")
    dataset = Dataset.open(tmp_path / "dataset")
    assert read > 20
    for table in ("packets", "flows", "samples", "events", "flow_stats", "diagnostics", "inputs"):
        dataset.read(table)
