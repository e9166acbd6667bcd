"""Kernels with every access checked: a program that turns reads and writes out of bounds into errors.

Compiled kernels trust their loads and stores. Here each of them, and each index (``NUMBA_BOUNDSCHECK=1``), is checked,
and each frame stands in a buffer of its own that ends where its captured bytes end. Takes the number of mutants; prints
how many were read.
"""

from __future__ import annotations

import os
import sys
import tempfile
import types
from collections import Counter
from pathlib import Path

import numba
import numpy as np


def loader(size: int, swap: bool):
    @numba.njit(nogil=True)
    def load(buffer, at):
        if at < 0 or at + size > len(buffer):
            raise IndexError("a load out of bounds")
        value = 0
        for k in range(size):
            value = (value << 8) | np.int64(buffer[at + (k if swap else size - 1 - k)])
        return value

    return load


def storer(size: int):
    @numba.njit(nogil=True)
    def store(buffer, at, value):
        if at < 0 or at + size > len(buffer):
            raise IndexError("a store out of bounds")
        for k in range(size):
            buffer[at + k] = (np.int64(value) >> (8 * k)) & 255

    return store


def install() -> None:
    """Put checked loads and stores in the place of the unchecked ones, and cut every buffer to its contents."""
    import tracetool.kernels

    loads = types.ModuleType("tracetool.kernels.loads")
    for bits in (8, 16, 32, 64):
        setattr(loads, f"be{bits}", loader(bits // 8, swap=True))
        setattr(loads, f"le{bits}", loader(bits // 8, swap=False))
    for bits in (32, 64):
        setattr(loads, f"put{bits}", storer(bits // 8))
    loads.u8 = loads.be8
    sys.modules[loads.__name__] = tracetool.kernels.loads = loads

    from tracetool.kernels import pcap_frames, pcapng_frames
    from tracetool.packets.decoder import Decoder

    for module in (pcap_frames, pcapng_frames):
        for name in ("walk", "resynchronise"):
            setattr(module, name, exact(getattr(module, name)))
    feed = Decoder.feed

    def feed_one_by_one(self, buffer, frames, count):
        for k in range(count):
            frame = frames[k : k + 1].copy()
            start, size = int(frame["offset"][0]), int(frame["captured"][0])
            frame["offset"] = 0
            yield from feed(self, buffer[start : start + size].copy(), frame, 1)

    Decoder.feed = feed_one_by_one


def exact(function):
    def call(buffer, at, used, *rest):
        return function(buffer[:used], at, used, *rest)

    return call


def main() -> int:
    assert os.environ["NUMBA_BOUNDSCHECK"] == "1"
    install()
    from tests.fuzz.contract import parse
    from tests.fuzz.mutate import mutants
    from tests.fuzz.seeds import BINARY, seeds
    from tracetool.errors import InputError
    from tracetool.ingest import ingest
    from tracetool.reconstruct import reconstruct

    count, seed = int(sys.argv[1]), int(sys.argv[2])
    done: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(BINARY):
            some = list(mutants(name, seeds(name), count, seed))
            for data in (*seeds(name), *some):
                done[name] += parse(name, data) is not None
            for number, data in enumerate((*seeds(name), *some[: count // 10])):
                file = Path(folder) / f"{name}-{number}.bin"
                file.write_bytes(data)
                try:
                    ingest(file, Path(folder) / "dataset")
                except InputError:
                    continue
        reconstruct(Path(folder) / "dataset")
    print(dict(done))
    return 0


if __name__ == "__main__":
    sys.exit(main())
