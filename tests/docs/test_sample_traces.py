"""The sample traces are what their README says, small, and cut by the committed script from the recordings."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_traces"
TRACES = Path(os.environ.get("TRACETOOL_SHARED", ROOT.parent / "shared")) / "traces"


@pytest.fixture(scope="module")
def cut() -> ModuleType:
    """The script that cuts the samples."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("cut", SAMPLES / "cut.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["cut"] = module
    spec.loader.exec_module(module)
    return module


def test_each_capture_is_below_300_kB_and_all_files_below_2_MB():
    sizes = {path.name: path.stat().st_size for path in SAMPLES.iterdir() if path.is_file()}
    assert sum(name.endswith(".pcap.gz") for name in sizes) >= 8
    assert max(sizes.values()) < 300_000
    assert sum(sizes.values()) < 2_000_000


def test_readme_lists_each_sample_with_the_kernels_word(cut):
    text = (SAMPLES / "README.md").read_text(encoding="utf-8")
    shown = text.split("--table -->\n")[1].split("<!-- end -->")[0]
    assert shown == cut.table()


def test_every_file_belongs_to_a_listed_sample_and_every_sample_has_its_files(cut):
    wanted = set()
    for name, sample in cut.SAMPLES.items():
        if sample.packets:
            wanted.add(f"{name}.pcap.gz")
        if sample.logs:
            wanted |= {f"{name}.tcp_probe.txt.gz", f"{name}.ss.txt.gz"}
    assert {path.name for path in SAMPLES.glob("*.gz")} == wanted


def test_gzip_headers_hold_neither_a_time_nor_a_name():
    for path in SAMPLES.glob("*.gz"):
        flags, time = struct.unpack("<BI", path.read_bytes()[3:8])
        assert (flags, time) == (0, 0), path.name


def test_captures_start_with_a_handshake_and_keep_no_payload():
    for path in SAMPLES.glob("*.pcap.gz"):
        data = gzip.decompress(path.read_bytes())
        flags, at = [], 24
        while at < len(data):
            captured = struct.unpack_from("<I", data, at + 8)[0]
            tcp = at + 16 + 14 + (data[at + 30] & 15) * 4
            assert captured == tcp - at - 16 + (data[tcp + 12] >> 4) * 4
            flags.append(data[tcp + 13] & 0x12)
            at += 16 + captured
        assert flags[:3] == [0x02, 0x12, 0x10], path.name  # SYN, SYN and ACK, ACK (ECN's bits left out)


def test_only_the_nanosecond_sample_has_nanoseconds():
    nano = {p.name for p in SAMPLES.glob("*.pcap.gz") if gzip.decompress(p.read_bytes())[:4] == b"\x4d\x3c\xb2\xa1"}
    assert nano == {"reno-nanoseconds.pcap.gz"}


def test_cutting_anew_gives_the_same_content(cut):
    if not TRACES.is_dir():
        pytest.skip(f"no recordings in {TRACES}")
    for name in ("reno-rto", "reno-nanoseconds"):
        for file, data in cut.cut(name, cut.SAMPLES[name], TRACES).items():
            if file != "kernel.json":
                assert gzip.decompress((SAMPLES / f"{file}.gz").read_bytes()) == data, file


def test_without_recordings_the_script_says_so_and_changes_nothing(tmp_path):
    before = {path.name: path.stat().st_mtime_ns for path in SAMPLES.iterdir()}
    missing = tmp_path / "none"
    done = subprocess.run([sys.executable, SAMPLES / "cut.py", missing], capture_output=True, text=True, check=True)
    assert str(missing) in done.stderr
    assert {path.name: path.stat().st_mtime_ns for path in SAMPLES.iterdir()} == before
