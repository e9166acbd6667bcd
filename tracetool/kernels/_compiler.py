"""From a kernel to machine code, by numba: what is needed once for each kernel and kind of arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types
from numba.np import numpy_support

from tracetool import kernels
from tracetool.kernels._code import Code, Returned, links

if TYPE_CHECKING:
    from tracetool.kernels._jit import Kernel


def compiled(kernel: Kernel, args: tuple[Any, ...]) -> Code:
    """Compile a kernel for arguments of these kinds.

    Raises
    ------
    TypeError
        If an argument or the result is of a kind that kernels do not have.
    """
    while kernels.compiling:
        kernels.compiling.pop()()
    signature = tuple(map(_type, args))
    dispatcher = kernel.dispatcher
    dispatcher.compile(signature)
    result = dispatcher.overloads[signature]
    _check(result, args)
    returned: Any = result.signature.return_type
    parts: Any = returned if isinstance(returned, types.BaseTuple) else [returned]
    return Code(
        result.fndesc.llvm_func_name,
        [_returned(part) for part in parts] if returned is not types.none else [],
        isinstance(returned, types.BaseTuple),
        bytes(result.library._get_compiled_object()),  # noqa: SLF001 - what numba keeps in its own cache
    )


def _type(arg: Any) -> Any:
    if isinstance(arg, np.ndarray):
        kind: Any = numpy_support.from_dtype(arg.dtype)
        return types.Array(kind, arg.ndim, "C" if arg.flags.c_contiguous else "A", aligned=arg.flags.aligned)
    for python, number in ((bool | np.bool_, types.boolean), (int | np.integer, types.int64), (float, types.float64)):
        if isinstance(arg, python):
            return number
    raise TypeError(f"a kernel takes arrays and numbers, not {type(arg).__name__}")


def _returned(kind: Any) -> Returned:
    if isinstance(kind, types.Array):
        return Returned(numpy_support.as_dtype(kind.dtype).str, kind.ndim)
    if isinstance(kind, (types.Integer, types.Float, types.Boolean)):
        return Returned(numpy_support.as_dtype(kind).str, 0)
    raise TypeError(f"a kernel returns arrays and numbers, not {kind}")


def _check(result: Any, args: tuple[Any, ...]) -> None:
    """Make sure that the code can be called as `Code` does it, and needs nothing that is not there."""
    module = result.library._final_module  # noqa: SLF001 - there is no other way to see it
    function = module.get_function(result.fndesc.llvm_func_name)
    wanted = 2 + sum(5 + 2 * arg.ndim if isinstance(arg, np.ndarray) else 1 for arg in args)
    if len(list(function.arguments)) != wanted:
        raise TypeError(f"{result.fndesc.qualname}: this version of numba passes arguments in another way")
    for name in (f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")):
        if not links(name):
            raise TypeError(f"{result.fndesc.qualname}: needs {name}")
