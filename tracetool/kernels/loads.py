"""Loads of 8 to 64 bits at any byte of a buffer, in either byte order, and stores, low byte first.

They compile to one machine load (and a byte swap), without the tests for negative indices that NumPy indexing brings.
**Nothing is checked here**: whoever loads or stores has made sure that the bytes are inside the buffer.
"""

from __future__ import annotations

from typing import Any

from tracetool.kernels._jit import Intrinsic


def _loader(bits: int, *, swap: bool) -> Any:
    def load(_typing: Any, array: Any, index: Any) -> Any:
        from llvmlite import ir
        from numba import types

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            place = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(bits).as_pointer())
            value = builder.load(place, align=1)
            if swap:
                value = builder.bswap(value)
            return value if bits == 64 else builder.zext(value, ir.IntType(64))

        return types.int64(array, types.int64), codegen

    return Intrinsic(load)


def _storer(bits: int) -> Any:
    def store(_typing: Any, array: Any, index: Any, value: Any) -> Any:
        from llvmlite import ir
        from numba import types

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            place = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(bits).as_pointer())
            builder.store(args[2] if bits == 64 else builder.trunc(args[2], ir.IntType(bits)), place, align=1)
            return context.get_dummy_value()

        return types.none(array, types.int64, types.int64), codegen

    return Intrinsic(store)


u8 = _loader(8, swap=False)
be16 = _loader(16, swap=True)
be32 = _loader(32, swap=True)
be64 = _loader(64, swap=True)
le16 = _loader(16, swap=False)
le32 = _loader(32, swap=False)
le64 = _loader(64, swap=False)
put32 = _storer(32)
put64 = _storer(64)
