"""Kernels are compiled once; later they are loaded without numba, and say the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tracetool.kernels import _code
from tracetool.kernels._jit import kernel

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from tracetool.kernels.sequences import unwrap
print(unwrap(5, 0xFFFFFFF0, 0), "numba" in sys.modules)
"""


def unwrapped(cache: Path) -> str:
    environment = os.environ | {"XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.strip()


def test_what_was_compiled_is_loaded_without_numba(tmp_path):
    assert unwrapped(tmp_path) == "21 True"
    assert unwrapped(tmp_path) == "21 False"
    (kept,) = tmp_path.rglob("sequences.unwrap-*")
    for place in (-1, kept.read_bytes().index(b"symbol") + 15):  # in the code; in the name of the function in it
        content = bytearray(kept.read_bytes())
        content[place] ^= 1
        kept.write_bytes(content)
        assert unwrapped(tmp_path) == "21 True", "damaged machine code must not be run"
    assert unwrapped(tmp_path) == "21 False"


def test_what_all_kernels_need_is_kept_too(tmp_path):
    unwrapped(tmp_path)
    (kept,) = tmp_path.rglob("memory-*")
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert unwrapped(tmp_path) == "21 False"
    assert kept.read_bytes() == whole, "what is damaged is made again"


def test_a_folder_that_cannot_be_made_does_no_harm(tmp_path):
    (tmp_path / "tracetool").write_text("in the way")
    assert unwrapped(tmp_path) == "21 True"
    assert unwrapped(tmp_path) == "21 True"


def test_machine_code_that_others_may_write_to_is_not_run(tmp_path):
    unwrapped(tmp_path)
    (kept,) = tmp_path.rglob("sequences.unwrap-*")
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    kept.chmod(0o620)
    assert unwrapped(tmp_path) == "21 True"
    assert unwrapped(tmp_path) == "21 False", "what was compiled takes its place"


def test_a_user_without_a_home_compiles_each_time(monkeypatch):
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the specification has ignored
    assert _code.load(parts.py_func, "int64") is None
    code = _code.Code("parts", [], False, b"")
    assert _code.save(parts.py_func, "int64", code) is code


@kernel
def parts(numbers, scale, double, most):
    found = np.zeros((2, len(numbers)))
    for k in range(len(numbers)):
        found[0, k] = numbers[k] * scale
        found[1, k] = 2 * numbers[k] if double else numbers[k]
        if numbers[k] > most:
            raise ValueError("more than the most")
    return found, len(numbers), double, scale


def test_numbers_arrays_and_exceptions_come_back():
    numbers = np.arange(6, dtype=np.int32)
    found, count, double, scale = parts(numbers[::2], 0.5, True, np.uint8(9))
    assert found.tolist() == [[0, 1, 2], [0, 4, 8]]
    assert (count, double, scale) == (3, True, 0.5)
    still = numbers.copy()
    still.flags.writeable = False
    assert parts(still, 1.0, False, 9)[0].tolist() == [list(range(6))] * 2
    assert parts(numbers[:0], 1.0, False, 9)[0].shape == (2, 0)
    with pytest.raises(ValueError, match="more than the most"):
        parts(numbers, 1.0, False, 4)
    with pytest.raises(TypeError, match="not str"):
        parts("numbers", 1.0, False, 4)


@kernel
def halves(count):
    numbers = np.arange(count)
    return numbers[: count // 2], numbers[count // 2 :], numbers


def test_arrays_that_share_their_memory_come_back_once_each():
    for _ in range(100):
        first, second, both = halves(1001)
        assert first.tolist() + second.tolist() == both.tolist() == list(range(1001))


def test_a_kernel_is_known_by_its_file_and_those_that_it_imports():
    folder = Path(_code.__file__).parent
    sources = _code._sources(str(folder / "sequences.py")).decode()
    assert {line.split()[0] for line in sources.splitlines()} == {"sequences.py", "_bare.py", "_jit.py", "_code.py"}
    assert "decode.py" not in _code._sources(str(folder / "gather.py")).decode()
    assert "layers.py" in _code._sources(str(folder / "decode.py")).decode()


def test_threads_that_call_a_kernel_at_once_link_it_once(tmp_path):
    program = (
        "import threading; from tracetool.kernels.sequences import unwrap; start = threading.Barrier(8); said = []\n"
        "def call(): start.wait(); said.append(unwrap(5, 0xFFFFFFF0, 0))\n"
        "threads = [threading.Thread(target=call) for _ in range(8)]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]; print(said)"
    )
    unwrapped(tmp_path)  # the machine code is kept from here on
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    for _ in range(3):
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert (done.returncode, done.stdout.strip()) == (0, str([21] * 8))


@kernel
def tail(numbers, count):
    made = np.zeros((len(numbers), 3), np.int64)
    for k in range(len(numbers)):
        made[k] = numbers[k]
    return made[:count]


def test_a_returned_array_lives_as_long_as_what_looks_at_it():
    numbers = np.arange(50_000)
    looks = [tail(numbers, 40_000)[1:, 1] for _ in range(8)]
    looks[0][0] = -1  # it may be written to
    more = [tail(numbers + 1, 40_000) for _ in range(8)]  # takes memory that was given back too early
    assert looks[0][0] == -1
    assert all(np.array_equal(look[1:], numbers[2:40_000]) for look in looks)
    assert all(len(array) == 40_000 for array in more)
    empty = tail(numbers, 0)
    assert empty.shape == (0, 3)
