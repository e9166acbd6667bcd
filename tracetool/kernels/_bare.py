"""Kernels that allocate nothing and call one another once per packet.

numba counts references to the arrays that it passes to a function; with atomic operations, that is 20 ns a call, more
than most of these functions take. They hold no array beyond the call and make none, so they are compiled without
reference counting, and inlined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tracetool.kernels._jit import made

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def bare_kernel(function: F) -> F:
    """Compile a function that makes no arrays (numba, no GIL, no reference counts)."""
    return made(function, _nrt=False, forceinline=True)
