"""Prefetch of rows on the CPU: a load that does not wait, for rows that are needed soon."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sfc.compile.numba_internals import cgutils


@intrinsic
def prefetch(typing_context: Any, rows: Any, row: Any) -> Any:
    """Load the line with the first number of a row into the nearest cache, without waiting for it.

    Args:
        typing_context: of Numba; not an argument of the call.
        rows: (n, dim) array.
        row: its number, of any integer type; not checked.
    """
    if not (isinstance(rows, types.Array) and rows.ndim == 2 and isinstance(row, types.Integer)):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(rows)(context, builder, arguments[0])
        word = context.get_value_type(types.intp)
        number = builder.sext if getattr(row, "signed", True) else builder.zext
        index = arguments[1] if arguments[1].type == word else number(arguments[1], word)
        place = cgutils.get_item_pointer(context, builder, rows, array, [index, word(0)])
        pointer, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [builder.bitcast(place, pointer), flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.none(rows, row), generate
