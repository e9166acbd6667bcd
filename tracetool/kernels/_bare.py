"""Kernels that allocate nothing and call one another once per packet.

numba counts references to the arrays that it passes to a function; with atomic operations, that is 20 ns a call, more
than most of these functions take. They hold no array beyond the call and make none, so they are compiled without
reference counting, and inlined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba

from tracetool.kernels._jit import CACHED

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def bare_kernel(function: F) -> F:
    """Compile a function that makes no arrays (numba, no GIL, no reference counts)."""
    njit = cast("Any", numba.njit)  # _nrt is not in its type
    return cast("F", njit(cache=CACHED, nogil=True, _nrt=False, forceinline=True)(function))
