"""Kernels as plain Python, so that a fuzzer sees which branches an input takes, and every access is checked.

Call `install` before anything of tracetool is imported.
"""

from __future__ import annotations

import os
import sys
import types


def _wrapped(value: int) -> int:
    """A number as 64 bits hold it."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def _loader(size: int, order: str):
    def load(buffer, at):
        if at < 0 or at + size > len(buffer):
            raise IndexError("a load out of bounds")
        return _wrapped(int.from_bytes(buffer[int(at) : int(at) + size].tobytes(), order))

    return load


def _storer(size: int):
    def store(buffer, at, value) -> None:
        if at < 0 or at + size > len(buffer):
            raise IndexError("a store out of bounds")
        low = int(value) & ((1 << 8 * size) - 1)
        buffer[int(at) : int(at) + size] = list(low.to_bytes(size, "little"))

    return store


def _field(name: str) -> property:
    """A field as compiled kernels know it: a number without overflow when read, cut to its width when written."""

    def read(record):
        return int(record[name])

    def write(record, value) -> None:
        kind = record.dtype.fields[name][0]
        bits, sign = 8 * kind.itemsize, kind.kind == "i"
        half = 1 << (bits - 1) if sign else 0
        record[name] = ((int(value) + half) & ((1 << bits) - 1)) - half

    return property(read, write)


def install() -> None:
    """Switch compilation off, and give kernels what it brought: attributes of records, numbers that wrap."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    import numpy as np

    np.seterr(over="ignore")
    import tracetool.kernels

    loads = types.ModuleType("tracetool.kernels.loads")
    for bits in (8, 16, 32, 64):
        setattr(loads, f"be{bits}", _loader(bits // 8, "big"))
        setattr(loads, f"le{bits}", _loader(bits // 8, "little"))
    for bits in (32, 64):
        setattr(loads, f"put{bits}", _storer(bits // 8))
    loads.u8 = loads.be8
    sys.modules[loads.__name__] = tracetool.kernels.loads = loads

    class Record(np.record):
        """A record with its fields as attributes."""

    from tracetool.kernels import records

    for name, value in list(vars(records).items()):
        if isinstance(value, np.dtype) and value.names:
            for field in value.names:
                setattr(Record, field, _field(field))
            setattr(records, name, np.dtype((Record, value)))

    from tracetool.kernels import flow_table

    mix_a, mix_b = flow_table.MIX_A, flow_table.MIX_B

    def mix(value):
        word = _wrapped(int(value) * mix_a)
        word ^= (word >> 32) & 0xFFFFFFFF
        word = _wrapped(word * mix_b)
        return word ^ ((word >> 29) & 0x7FFFFFFFF)

    flow_table.mix = mix
