"""Kernels: plain functions over NumPy arrays and numbers, compiled by numba once, and then called without it.

The machine code of a kernel is kept in the user's cache folder (`tracetool.kernels._code`), and later processes load
it through LLVM alone: importing numba and waking its types takes longer than to read a million packets. A kernel runs
without the GIL, so that threads can overlap it with reading and writing.

Numbers are 64 bits wide, whatever type of integer they come as; an array is its elements' type, its dimensions, and
whether it is contiguous. Arrays that may not be written to are no type of their own: a kernel writes only to what is
meant to be written.
"""

from __future__ import annotations

import functools
import os
import threading
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from tracetool.kernels._code import Code, load, save

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

_LAYOUT = 0x101  # NumPy's flags for contiguous and for aligned
_KINDS_KEPT = 256  # kinds of arguments of a kernel; there are two or three
_lock = threading.RLock()
#: Numba's own switches for debugging: kernels as Python functions, or as numba's, with every index checked.
PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}
CHECKED = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in {"", "0"}


class Kernel:
    """A function that is compiled, or loaded, when it is first called with arguments of some kind."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.options = options
        self._codes: dict[Any, tuple[Code, list[Any]]] = {}
        self._linked: dict[str, Code] = {}

    def __call__(self, *args: Any) -> Any:
        """Run it."""
        found = self._codes.get(key := tuple(map(_kind, args)))
        return (found[0] if found else self._find(key, args))(args)

    @functools.cached_property
    def dispatcher(self) -> Any:
        """The function as numba has it: compiled once for all numbers, not again for each constant that is passed."""
        import numba
        from numba.core import types

        njit = cast("Any", numba.njit)  # some options are not in its type
        made = njit(nogil=True, no_cpython_wrapper=not CHECKED, no_cfunc_wrapper=True, **self.options)(self.py_func)
        template = made.get_call_template
        made.get_call_template = lambda args, kws: template(tuple(map(types.unliteral, args)), kws)
        return made

    @property
    def _numba_type_(self) -> Any:
        """Its type, for kernels that call it."""
        return self.dispatcher._numba_type_

    def _find(self, key: Any, args: tuple[Any, ...]) -> Code:
        with _lock:
            kinds = ",".join(map(_describe, args))
            code = self._linked.get(kinds) or load(self.py_func, kinds)
            if code is None:
                from tracetool.kernels._compiler import compiled

                code = save(self.py_func, kinds, compiled(self, args))
            self._linked[kinds] = code
            if len(self._codes) >= _KINDS_KEPT:
                self._codes.clear()
            # The elements' types are known by their identities, so they must live on.
            self._codes[key] = code, [arg.dtype for arg in args if isinstance(arg, np.ndarray)]
            return code


def _kind(arg: Any) -> Any:
    if isinstance(arg, np.ndarray):
        return id(arg.dtype), arg.ndim, arg.flags.num & _LAYOUT
    return arg.__class__


def _describe(arg: Any) -> str:
    if isinstance(arg, np.ndarray):
        return f"{arg.dtype.descr if arg.dtype.names else arg.dtype.str}{arg.ndim}{arg.flags.num & _LAYOUT:x}"
    return type(arg).__name__


def kernel(function: F) -> F:
    """Compile a function on its first call (numba, no Python objects, no GIL)."""
    return made(function)


def made(function: F, **options: Any) -> F:
    """Make a kernel with some of numba's options."""
    if PLAIN:
        return function
    compiled = Kernel(function, **options)
    return cast("F", compiled.dispatcher if CHECKED else compiled)


class Intrinsic:
    """Machine instructions that kernels may use; as `numba.extending.intrinsic`, but numba is imported when needed.

    Parameters
    ----------
    define
        Takes the typing context and the argument types; returns a signature and a code generator.
    """

    def __init__(self, define: Callable[..., Any]) -> None:
        self._define = define

    @functools.cached_property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic

        made = intrinsic(self._define)
        context = cpu_target.typing_context
        context.refresh()
        return context.resolve_value_type(made)
