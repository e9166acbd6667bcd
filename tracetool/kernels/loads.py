"""Loads of 8 to 64 bits at any byte of a buffer, in either byte order.

They compile to one machine load (and a byte swap), without the tests for negative indices that NumPy indexing brings.
**Nothing is checked here**: whoever loads has made sure that the bytes are inside the buffer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable


def _loader(bits: int, *, swap: bool) -> Callable[[Any, int], int]:
    def load(_typing: Any, array: Any, index: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            place = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(bits).as_pointer())
            value = builder.load(place, align=1)
            if swap:
                value = builder.bswap(value)
            return value if bits == 64 else builder.zext(value, ir.IntType(64))

        return types.int64(array, types.int64), codegen

    return intrinsic(load)  # type: ignore[no-any-return]


u8 = _loader(8, swap=False)
be16 = _loader(16, swap=True)
be32 = _loader(32, swap=True)
be64 = _loader(64, swap=True)
le16 = _loader(16, swap=False)
le32 = _loader(32, swap=False)
le64 = _loader(64, swap=False)


@intrinsic
def prefetch(_typing: Any, array: Any, index: Any) -> Any:
    """Ask for a record that will be read soon (two cache lines); an index outside does no harm."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), word, word, word])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        for line in (0, 64):
            where = builder.gep(place, [ir.Constant(ir.IntType(64), line)])
            builder.call(fetch, [where, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen
