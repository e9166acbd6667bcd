"""The inputs that are damaged in these tests, and what becomes of damaged ones beyond their parser."""

from __future__ import annotations

import pytest

from tests.fuzz import captures
from tests.fuzz.contract import parse
from tests.fuzz.frames import FRAMES
from tests.fuzz.mutate import SEED, mutants
from tests.fuzz.seeds import seeds
from tracetool import parsers
from tracetool.dataset import Dataset
from tracetool.errors import InputError
from tracetool.ingest import ingest
from tracetool.reconstruct import reconstruct


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


@pytest.mark.parametrize("name", parsers.FORMATS)
def test_no_parser_chokes_on_the_start_of_another_format(name):
    sniff = parsers.get(name).sniff
    for other in parsers.FORMATS:
        for data in mutants(other, seeds(other), 200, SEED + 1):
            assert sniff(data) in (True, False)


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
