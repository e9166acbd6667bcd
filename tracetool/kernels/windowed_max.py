"""Windowed maximum of three samples (`lib/win_minmax.c`): constant space, and never older than its window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.kernels._bare import bare_kernel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


@bare_kernel
def running_max(w: Ints, at: int, window: int, t: int, value: int) -> None:
    """Windowed maximum from three samples (`minmax_running_max`); each is a time and a value from column `at` on."""
    if value >= w[at + 1] or t - w[at + 4] > window:
        for i in range(3):
            w[at + 2 * i] = t
            w[at + 2 * i + 1] = value
        return
    if value >= w[at + 3]:
        w[at + 2] = t
        w[at + 3] = value
        w[at + 4] = t
        w[at + 5] = value
    elif value >= w[at + 5]:
        w[at + 4] = t
        w[at + 5] = value
    # minmax_subwin_update
    age = t - w[at]
    if age > window:
        w[at] = w[at + 2]
        w[at + 1] = w[at + 3]
        w[at + 2] = w[at + 4]
        w[at + 3] = w[at + 5]
        w[at + 4] = t
        w[at + 5] = value
        if t - w[at] > window:
            w[at] = w[at + 2]
            w[at + 1] = w[at + 3]
            w[at + 2] = w[at + 4]
            w[at + 3] = w[at + 5]
            w[at + 4] = t
            w[at + 5] = value
    elif w[at + 2] == w[at] and age > window // 4:
        w[at + 2] = t
        w[at + 3] = value
        w[at + 4] = t
        w[at + 5] = value
    elif w[at + 4] == w[at + 2] and age > window // 2:
        w[at + 4] = t
        w[at + 5] = value
