"""Ask the memory for a record before it is needed."""

from __future__ import annotations

from typing import Any

from tracetool.kernels._jit import PLAIN, Intrinsic


def _lowered(_typing: Any, array: Any, index: Any) -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), byte)
        for line in (0, 64):
            where = builder.gep(place, [ir.Constant(ir.IntType(64), line)])
            builder.call(fetch, [where, word(0), word(3), word(1)])  # to read, and to keep in all caches
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


def _nothing(array: Any, index: int) -> None:
    """Stand in where kernels are not compiled."""


#: ``prefetch(array, index)``: ask for a record (two cache lines); an index outside does no harm.
prefetch: Any = _nothing if PLAIN else Intrinsic(_lowered)
