"""Which numbers of a column are known, as Arrow has it: one bit each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracetool.kernels._jit import kernel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@kernel
def known_bits(values: npt.NDArray[np.signedinteger[Any]], bits: npt.NDArray[np.uint8]) -> int:
    """Set a bit for each number that is not negative; returns how many are negative.

    Parameters
    ----------
    values : signed integers, shape (n,)
    bits : uint8, shape (ceil(n / 8),)
        Out: the least significant bit of a byte stands for its first number.
    """
    unknown = 0
    whole = len(values) // 8
    for k in range(whole):
        byte = 0
        for bit in range(8):
            known = values[8 * k + bit] >= 0
            byte |= known << bit
            unknown += not known
        bits[k] = byte
    if whole < len(bits):
        byte = 0
        for i in range(8 * whole, len(values)):
            known = values[i] >= 0
            byte |= known << (i - 8 * whole)
            unknown += not known
        bits[whole] = byte
    return unknown
