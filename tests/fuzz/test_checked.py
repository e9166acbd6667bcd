"""No kernel reads or writes outside its arrays, whatever the input."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def checked(tmp_path, code: list[str]) -> subprocess.CompletedProcess:
    """Run something with checked kernels, compiled anew: the cache would give unchecked ones."""
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=1100
    )


@pytest.mark.slow
def test_kernels_stay_inside_their_arrays(tmp_path):
    done = checked(tmp_path, ["-m", "tests.fuzz.checked", "300", "1"])
    assert done.returncode == 0, done.stderr[-4000:]
    assert "pcapng" in done.stdout


def test_the_check_finds_a_read_out_of_bounds(tmp_path):
    """A kernel that reads one byte too far is caught: else the test above would prove nothing."""
    code = """
import numpy as np
from tests.fuzz.checked import install
install()
from tracetool.kernels.loads import be16
be16(np.zeros(4, np.uint8), 2)
be16(np.zeros(4, np.uint8), 3)
"""
    done = checked(tmp_path, ["-c", code])
    assert "a load out of bounds" in done.stderr
    assert "line 7" in done.stderr


@pytest.mark.parametrize("stand_in", ["checked", "interpreted"])
def test_every_load_and_store_has_a_stand_in(tmp_path, stand_in):
    text = (ROOT / "tracetool" / "kernels" / "loads.py").read_text(encoding="utf-8")
    names = re.findall(r"^([a-z]+\d+) = _", text, re.MULTILINE)
    assert {"be16", "put64"} <= set(names)
    code = f"""
from tests.fuzz.{stand_in} import install
install()
from tracetool.kernels import loads
assert not hasattr(loads, "_loader"), "the real ones"
print([name for name in {names} if not hasattr(loads, name)])
"""
    done = checked(tmp_path, ["-c", code])
    assert done.stdout == "[]\n", done.stderr


def test_the_check_finds_a_write_out_of_bounds(tmp_path):
    code = """
import numpy as np
from tests.fuzz.checked import install
install()
from tracetool.kernels.loads import le32, put32
buffer = np.zeros(5, np.uint8)
put32(buffer, 1, 0x89ABCDEF)
assert le32(buffer, 1) == 0x89ABCDEF
put32(buffer, 2, 0)
"""
    done = checked(tmp_path, ["-c", code])
    assert "a store out of bounds" in done.stderr
    assert "line 9" in done.stderr
