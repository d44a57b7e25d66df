"""Rows of a Jacobi sweep in vectors as wide as a cache line, for arrays without gaps.

The compiler's own vectors leave a remainder of single numbers at the end of each row, and are of half the
width that the chip has. Here the last vector of a row overlaps the one before. A chip with narrower vectors
gets several for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sfc.compile import inlined, overload
from sfc.compile.numba_internals import cgutils

LINE = 64  # bytes of a cache line


def sweep_row(p, places, q, b, r, quarter):
    """Compute the points inside of a row of q, the pressure p after a sweep; only kernels can call it.

    Args:
        p: (m, nx) array with the rows of the last pressure.
        places: numbers of the rows to the south, of this row and to the north in `p`, and of this row in `q`.
            The row that is written is none of those that are read.
        q: (n, nx) array; may be `p`.
        b: (ny, nx) right-hand side.
        r: number of this row in `b`.
        quarter: 1 / 4.
    """
    raise NotImplementedError("for kernels only")


@overload(sweep_row)
def _code_of_sweep_row(p, places, q, b, r, quarter):
    def in_vectors(p, places, q, b, r, quarter):
        if p.shape[1] - 2 >= lanes:
            jacobi_vectors(p, places, q, b, r, quarter)
        else:
            one_by_one(p, places, q, b, r, quarter)

    lanes = lanes_of(quarter)
    if all(array.layout == "C" and array.dtype == quarter for array in (p, q, b)):
        return in_vectors
    return lambda p, places, q, b, r, quarter: one_by_one(p, places, q, b, r, quarter)


@inlined
def one_by_one(p, places, q, b, r, quarter):
    """Compute a row as `sweep_row` does, point by point."""
    south, centre, north = np.uintp(places[0]), np.uintp(places[1]), np.uintp(places[2])
    out, row = np.uintp(places[3]), np.uintp(r)
    for c in range(1, p.shape[1] - 1):
        around = p[centre, c - 1] + p[centre, c + 1] + p[south, c] + p[north, c]
        q[out, c] = (around - b[row, c]) * quarter


def lanes_of(kind: types.Float) -> int:
    """Return how many numbers of a Numba type are in a vector."""
    return LINE // (kind.bitwidth // 8)


@intrinsic
def jacobi_vectors(context, p, places, q, b, r, quarter):
    """Compute a row as `sweep_row` does, in vectors; the row has a vector of points inside or more."""
    lanes = lanes_of(quarter)

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        views = [
            context.make_array(kind)(context, builder, value)
            for kind, value in ((signature.args[k], arguments[k]) for k in (0, 2, 3))
        ]
        number, vector = arguments[5].type, ir.VectorType(arguments[5].type, lanes)
        nx = builder.extract_value(views[0].shape, 1)

        def row(view: Any, place: Any) -> Any:
            return builder.gep(view.data, [builder.mul(place, nx)])

        south, centre, north = (row(views[0], builder.extract_value(arguments[1], k)) for k in range(3))
        out = row(views[1], builder.extract_value(arguments[1], 3))
        source = row(views[2], arguments[4])

        def at(start: Any, column: Any) -> Any:
            return builder.bitcast(builder.gep(start, [column]), vector.as_pointer())

        def load(start: Any, column: Any) -> Any:
            loaded = builder.load(at(start, column))
            loaded.align = context.get_abi_sizeof(number)
            return loaded

        def integer(value: int) -> Any:
            return ir.Constant(nx.type, value)

        undefined, zeros = ir.Constant(vector, ir.Undefined), ir.VectorType(ir.IntType(32), lanes)
        first = builder.insert_element(undefined, arguments[5], ir.Constant(ir.IntType(32), 0))
        quarters = builder.shuffle_vector(first, undefined, ir.Constant(zeros, [0] * lanes))
        last = builder.sub(nx, integer(lanes + 1))
        count = builder.udiv(builder.add(builder.sub(nx, integer(2)), integer(lanes - 1)), integer(lanes))
        with cgutils.for_range(builder, count) as loop:
            column = builder.add(builder.mul(loop.index, integer(lanes)), integer(1))
            column = builder.select(builder.icmp_signed("<", column, last), column, last)
            total = load(centre, builder.sub(column, integer(1)))
            total = builder.fadd(total, load(centre, builder.add(column, integer(1))))
            total = builder.fadd(total, load(south, column))
            total = builder.fadd(total, load(north, column))
            total = builder.fsub(total, load(source, column))
            stored = builder.store(builder.fmul(total, quarters), at(out, column))
            stored.align = context.get_abi_sizeof(number)
        return context.get_dummy_value()

    return types.void(p, places, q, b, r, quarter), build
