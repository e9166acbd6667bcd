"""Memory is used again when nobody holds it, and not before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from tracetool.reconstruct import memory

SIZE = memory.LEAST_BYTES // 8


def address(array):
    return array.__array_interface__["data"][0]


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch):
    monkeypatch.setattr(memory, "_kept", memory._Kept())


def test_memory_is_used_again_once_an_array_is_gone():
    first = memory.empty(SIZE)
    where = address(first)
    del first
    again = memory.empty((SIZE // 2, 2), np.int64)
    assert (address(again), again.shape, again.dtype) == (where, (SIZE // 2, 2), np.int64)


@pytest.mark.parametrize("hold", [lambda a: a[5:6], lambda a: a.reshape(2, -1).T, pa.py_buffer, pa.array])
def test_memory_that_anything_looks_at_is_not_used_again(hold):
    first = memory.empty(SIZE)
    first[:] = 7
    held = hold(first)
    before = bytes(held) if isinstance(held, pa.Buffer) else np.asarray(held).tolist()
    del first
    memory.empty(SIZE)[:] = 9
    assert (bytes(held) if isinstance(held, pa.Buffer) else np.asarray(held).tolist()) == before


def test_threads_have_memory_of_their_own():
    where = address(memory.empty(SIZE))
    with ThreadPoolExecutor(1) as pool:
        held, other = pool.submit(lambda: (array := memory.empty(SIZE), address(array))).result()
    assert address(memory.empty(SIZE)) == where
    assert other != where
    assert held.size == SIZE


def test_no_more_than_some_blocks_are_kept_and_none_that_are_small_or_large():
    arrays = [memory.empty(SIZE) for _ in range(memory.MOST_BLOCKS + 3)]
    assert len({address(array) for array in arrays}) == len(arrays)
    memory.empty(SIZE - 1)
    memory.empty(memory.MOST_BYTES // 8 + 1)
    assert len(memory._kept.blocks) == memory.MOST_BLOCKS
