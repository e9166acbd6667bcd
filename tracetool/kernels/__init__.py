"""Per-packet loops: numba over NumPy arrays. Each kernel has a slow, obvious twin in ``tests/naive/``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Called once, before the first kernel that has to be compiled: that takes a while, once per installed version.
compiling: list[Callable[[], None]] = []
