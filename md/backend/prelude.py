"""Device functions of the Numba kernels of `md`: vectors as tuples, the box and its cells.

Contract. A vector is a tuple of `dim` numbers of the run's precision. `dim` is compile-time: it is the length
of the tuple, or of the field `length` of the grid record. Numba evaluates `len` of a tuple and `ndim` of an
array that are arguments before it infers types, so the branch for the other `dim` is not compiled. Functions
without a body can be called in a kernel only, where Numba compiles the overload for that `dim`.
"""

from typing import Any

import numpy as np
from numba import types

from sfc.compile import chosen_by, inlined, overload


def load(array, i, like):
    """Read row i of an (n, dim) array as a vector; `like` is a grid record or a vector of the same dim."""
    raise NotImplementedError


@inlined
def slot_of(work, item):
    """Return the slot of a work item: work[item], or the item itself for an empty work order.

    The slot is unsigned, because Numba checks a signed index for a negative value at each access, and has the
    32 bits of the slots with which it is compared.
    """
    return np.uint32(work[item]) if len(work) else np.uint32(item)


@inlined
def store(array, i, vector):
    """Write a vector to row i of an (n, dim) array."""
    array[i, 0] = vector[0]
    array[i, 1] = vector[1]
    if len(vector) == 3:
        array[i, 2] = vector[2]


@inlined
def zero(vector):
    """Return the zero vector of the dim and precision of another."""
    none = like(vector, 0)  # a literal 0.0 is float64 and would widen float32 sums
    return (none, none) if len(vector) == 2 else (none, none, none)


def like(vector, number):
    """Convert a number to the precision of a vector: in float32 an integer factor would give float64."""
    raise NotImplementedError


@inlined
def dot(a, b):
    """Compute the inner product of two vectors."""
    plane = a[0] * b[0] + a[1] * b[1]
    return plane if len(a) == 2 else plane + a[2] * b[2]


@inlined
def sub(a, b):
    """Compute the difference a - b."""
    x, y = a[0] - b[0], a[1] - b[1]
    return (x, y) if len(a) == 2 else (x, y, a[2] - b[2])


@inlined
def add_scaled(a, factor, b):
    """Compute the sum a + factor * b."""
    x, y = a[0] + factor * b[0], a[1] + factor * b[1]
    return (x, y) if len(a) == 2 else (x, y, a[2] + factor * b[2])


@inlined
def nearest(difference, half, image):
    """Compute one component of a displacement to the nearest image.

    `image` is the box length on a periodic axis, `half` infinite on another.
    """
    none = image - image  # 0 of the run's precision
    over = image if difference > half else none  # selects, not branches: a naive step is 3.5 times as fast
    under = image if difference < -half else none
    return difference - over + under


@inlined
def displacement(grid, a, b):
    """Compute the difference a - b of the nearest periodic images of two positions inside the box.

    Antisymmetric to the last bit.
    """
    x = nearest(a[0] - b[0], grid.half[0], grid.image[0])
    y = nearest(a[1] - b[1], grid.half[1], grid.image[1])
    return (x, y) if len(a) == 2 else (x, y, nearest(a[2] - b[2], grid.half[2], grid.image[2]))


@inlined
def separation(grid, interior, a, b):
    """Compute the difference a - b: plain where a is in an interior cell, else as `displacement`.

    Only for partners in adjacent cells; for others a plain difference may be longer than that of the nearest
    images, but not shorter than a cell.
    """
    difference = sub(a, b)
    if not interior:
        difference = displacement(grid, a, b)
    return difference


@inlined
def is_inner(grid, axis, x):
    """Check that a cell is neither the first nor the last along an axis."""
    return 0 < x < grid.cells[axis] - 1


@inlined
def is_interior(grid, cell):
    """Check that a cell is at no side of the box, so that no pair from it crosses a periodic side."""
    inner = is_inner(grid, 0, cell[0]) and is_inner(grid, 1, cell[1])
    return inner and (len(grid.length) == 2 or is_inner(grid, 2, cell[2]))


@inlined
def axis_cell(grid, axis, x):
    """Compute the cell of one coordinate; the first or last one for a coordinate beyond an open side."""
    return max(0, min(int(x * grid.per_side[axis]), grid.cells[axis] - 1))


@inlined
def home_cell(grid, r):
    """Compute the cell of a position as (x, y, z) integers, z = 0 in 2D.

    The upper side of the box belongs to the last cell. Positions beyond an open side belong to the first or
    last cell, so that partners are still in adjacent cells.
    """
    return axis_cell(grid, 0, r[0]), axis_cell(grid, 1, r[1]), 0 if len(r) == 2 else axis_cell(grid, 2, r[2])


def _dim(kind: Any) -> int:
    """Return the dim of the Numba type of a grid record or of a vector."""
    if isinstance(kind, types.Record):
        length: Any = kind.fields["length"].type
        return length.shape[0]
    return kind.count


@overload(load)
def _load(array, i, like):
    if _dim(like) == 2:
        return lambda array, i, like: (array[i, 0], array[i, 1])
    return lambda array, i, like: (array[i, 0], array[i, 1], array[i, 2])


def _to_array(out, grid, i, ri, vi, acc):
    """Return the function that stores a result in a plain array; None for another output."""

    def write(out, grid, i, ri, vi, acc):
        if out.ndim == 1:
            out[i] = acc
        else:
            store(out, i, acc)
        return 0.0

    return write if isinstance(out, types.Array) else None


@chosen_by("out", default=_to_array)
def finish(out, grid, i, ri, vi, acc):
    """Store the result of particle i in row i of an array `out`, or pass it to the functor `out`.

    The code of a functor, an `out` of a NamedTuple class, is defined with the class
    (`md.integrate.fused.KickDrift`).

    Args:
        out: (n, dim) array for vectors, (n,) for numbers; or a functor.
        grid: record of the box and its cells.
        i: row.
        ri: position of the particle.
        vi: velocity of the particle.
        acc: result of the law over all partners (`md.laws.pair.result`).

    Returns:
        A float: the square of the speed with which the particle was moved, in d^2 per time unit^2; 0.0 if the
        output moves none.
    """
    raise NotImplementedError


@overload(like)
def _like(vector, number):
    real = vector.dtype
    return lambda vector, number: real(number)


@inlined
def cell_number(grid, cell):
    """Compute the row-major number of a cell, axis 0 fastest."""
    return cell[0] + grid.cells[0] * (cell[1] + grid.cells[1] * cell[2])


@inlined
def axis_neighbours(grid, axis, home):
    """Return the cells to visit along an axis around cell `home`, as three integers; -1 for none.

    There is none beyond the box on an axis that is not periodic. On a periodic axis of one or two cells no
    cell is visited twice.
    """
    count = grid.cells[axis]
    wraps = grid.periodic[axis] != 0
    before, after = home - 1, home + 1
    if before < 0:
        before = count - 1 if wraps else -1
    if after >= count:
        after = 0 if wraps and count > 1 else -1
    if wraps and count < 3:
        before = -1  # the same cell as the one after, or as home
    return before, home, after


def neighbour_rows(grid, home):
    """Return the numbers of the first cells of the rows (along axis 0) around a cell.

    There are 9 rows in 3D and 3 in 2D; the number of a row outside the box is negative.
    """
    raise NotImplementedError


@inlined
def row_number(grid, y, z):
    """Compute the row-major number of cell (0, y, z); negative if y or z is negative."""
    return grid.cells[0] * (y + grid.cells[1] * z) if y >= 0 and z >= 0 else -1


@inlined
def rows_at(grid, y, z):
    """Compute `row_number` of three y, a tuple, at the same z."""
    return row_number(grid, y[0], z), row_number(grid, y[1], z), row_number(grid, y[2], z)


@overload(neighbour_rows)
def _neighbour_rows(grid, home):
    if _dim(grid) == 2:
        return lambda grid, home: rows_at(grid, axis_neighbours(grid, 1, home[1]), 0)

    def rows_3d(grid, home):
        y, z = axis_neighbours(grid, 1, home[1]), axis_neighbours(grid, 2, home[2])
        return rows_at(grid, y, z[0]) + rows_at(grid, y, z[1]) + rows_at(grid, y, z[2])

    return rows_3d
