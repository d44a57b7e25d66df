"""What every Numba kernel of `md` is written in: vectors as tuples, the box, the cells.

Contract. A vector is a tuple of `dim` numbers of the run's precision. `dim` is compile-time: it is read
from the type of the grid record (its field `length` has one entry an axis) or of another vector. Functions
without a body work inside a kernel only, where Numba puts the overload of the right `dim` in their place.
"""

import numpy as np
from numba import types

from sfc.compile import chosen_by, inlined, overload


def load(array, i, like):
    """Row i of an (n, dim) array as a vector; `like` is a grid record or a vector of the same dim."""
    raise NotImplementedError


@inlined
def slot_of(work, item):
    """The slot that a work item is about: work[item], or for an empty work order the slot of that number.

    It has no sign, for Numba would ask for it at every row, and the 32 bits of the slots it is compared with.
    """
    return np.uint32(work[item]) if len(work) else np.uint32(item)


def store(array, i, vector):
    """Write a vector to row i of an (n, dim) array."""
    raise NotImplementedError


def zero(vector):
    """The zero vector of the dim and precision of another."""
    raise NotImplementedError


def dot(a, b):
    """Inner product of two vectors."""
    raise NotImplementedError


def sub(a, b):
    """The difference a - b."""
    raise NotImplementedError


def add_scaled(a, factor, b):
    """The sum a + factor * b."""
    raise NotImplementedError


def displacement(grid, a, b):
    """The difference a - b between the nearest periodic images, for positions inside the box.

    Antisymmetric to the last bit.
    """
    raise NotImplementedError


def separation(grid, interior, a, b):
    """The difference a - b: plain where a is known to stand in an inner cell, else as `displacement`.

    Only for partners in adjacent cells; for others a plain difference may be longer than that between the
    nearest images, but not shorter than a cell.
    """
    raise NotImplementedError


def is_interior(grid, cell):
    """Whether a cell lies at no side of the box: nobody in it meets anybody across one."""
    raise NotImplementedError


def home_cell(grid, r):
    """Cell of a position as (x, y, z) integers, z = 0 in 2D; the box's far side belongs to the last cell.

    So does all that is out of it at an open side, and what is out at the other to the first: partners are in
    adjacent cells still.
    """
    raise NotImplementedError


def _dim(kind) -> int:
    if isinstance(kind, types.Record):
        return kind.fields["length"].type.shape[0]
    return kind.count


@overload(load)
def _load(array, i, like):
    if _dim(like) == 2:
        return lambda array, i, like: (array[i, 0], array[i, 1])
    return lambda array, i, like: (array[i, 0], array[i, 1], array[i, 2])


@overload(store)
def _store(array, i, vector):
    if _dim(vector) == 2:

        def store_2d(array, i, vector):
            array[i, 0] = vector[0]
            array[i, 1] = vector[1]

        return store_2d

    def store_3d(array, i, vector):
        array[i, 0] = vector[0]
        array[i, 1] = vector[1]
        array[i, 2] = vector[2]

    return store_3d


def _to_array(out, grid, i, ri, vi, acc):
    if not isinstance(out, types.Array):
        return None
    if out.ndim == 1:

        def write_number(out, grid, i, ri, vi, acc):
            out[i] = acc

        return write_number
    return lambda out, grid, i, ri, vi, acc: store(out, i, acc)


@chosen_by("out", default=_to_array)
def finish(out, grid, i, ri, vi, acc):
    """What becomes of the result of particle i: written to row i of an array `out`.

    An `out` of a NamedTuple class may do more: its code stands where the class is defined
    (`md.integrate.fused.KickDrift`).

    Args:
        out: (n, dim) array for vectors, (n,) for numbers; or an object of such a class.
        grid: record of the box and its cells.
        i: row.
        ri: position of the particle.
        vi: velocity of the particle.
        acc: what the law makes of all partners (`md.laws.pair.result`).
    """
    raise NotImplementedError


@overload(zero)
def _zero(vector):
    nought = vector.dtype  # a literal 0.0 is float64 and would widen float32 sums
    if _dim(vector) == 2:
        return lambda vector: (nought(0), nought(0))
    return lambda vector: (nought(0), nought(0), nought(0))


@overload(dot)
def _dot(a, b):
    if _dim(a) == 2:
        return lambda a, b: a[0] * b[0] + a[1] * b[1]
    return lambda a, b: a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@overload(sub)
def _sub(a, b):
    if _dim(a) == 2:
        return lambda a, b: (a[0] - b[0], a[1] - b[1])
    return lambda a, b: (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@overload(add_scaled)
def _add_scaled(a, factor, b):
    if _dim(a) == 2:
        return lambda a, factor, b: (a[0] + factor * b[0], a[1] + factor * b[1])
    return lambda a, factor, b: (a[0] + factor * b[0], a[1] + factor * b[1], a[2] + factor * b[2])


@inlined
def nearest(difference, half, image):
    """One component of a displacement, to the nearest image.

    `image` is the box length on a periodic axis, `half` infinite on another.
    """
    nought = image - image  # of the run's precision
    over = image if difference > half else nought  # selects, not branches: a naive step is 3.5 times as fast
    under = image if difference < -half else nought
    return difference - over + under


@overload(displacement)
def _displacement(grid, a, b):
    if _dim(grid) == 2:
        return lambda grid, a, b: (
            nearest(a[0] - b[0], grid.half[0], grid.image[0]),
            nearest(a[1] - b[1], grid.half[1], grid.image[1]),
        )
    return lambda grid, a, b: (
        nearest(a[0] - b[0], grid.half[0], grid.image[0]),
        nearest(a[1] - b[1], grid.half[1], grid.image[1]),
        nearest(a[2] - b[2], grid.half[2], grid.image[2]),
    )


@overload(separation)
def _separation(grid, interior, a, b):
    def separated(grid, interior, a, b):
        apart = sub(a, b)
        if not interior:
            apart = displacement(grid, a, b)
        return apart

    return separated


@inlined
def axis_cell(grid, axis, x):
    """Cell of one coordinate; the first or last one of what is out of an open side."""
    return max(0, min(int(x * grid.per_side[axis]), grid.cells[axis] - 1))


@overload(home_cell)
def _home_cell(grid, r):
    if _dim(grid) == 2:
        return lambda grid, r: (axis_cell(grid, 0, r[0]), axis_cell(grid, 1, r[1]), 0)
    return lambda grid, r: (axis_cell(grid, 0, r[0]), axis_cell(grid, 1, r[1]), axis_cell(grid, 2, r[2]))


@overload(is_interior)
def _is_interior(grid, cell):
    if _dim(grid) == 2:
        return lambda grid, cell: is_inner(grid, 0, cell[0]) and is_inner(grid, 1, cell[1])
    return lambda grid, cell: (
        is_inner(grid, 0, cell[0]) and is_inner(grid, 1, cell[1]) and is_inner(grid, 2, cell[2])
    )


@inlined
def is_inner(grid, axis, x):
    """Whether a cell is neither the first nor the last along an axis."""
    return 0 < x < grid.cells[axis] - 1


@inlined
def cell_number(grid, cell):
    """Row-major number of a cell, axis 0 fastest."""
    return cell[0] + grid.cells[0] * (cell[1] + grid.cells[1] * cell[2])


@inlined
def axis_neighbours(grid, axis, home):
    """Cells to visit along an axis from cell `home`, as three integers; -1 for one that is not there.

    A box ends where an axis is not periodic, and on a periodic axis of one or two cells none is visited
    twice.
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
    """Numbers of the first cells of the rows (along axis 0) around a cell.

    There are 9 in 3D and 3 in 2D; a row outside the box is negative.
    """
    raise NotImplementedError


@inlined
def row_number(grid, y, z):
    """Row-major number of cell (0, y, z); negative where y or z is."""
    return grid.cells[0] * (y + grid.cells[1] * z) if y >= 0 and z >= 0 else -1


@overload(neighbour_rows)
def _neighbour_rows(grid, home):
    if _dim(grid) == 2:

        def rows_2d(grid, home):
            y0, y1, y2 = axis_neighbours(grid, 1, home[1])
            return row_number(grid, y0, 0), row_number(grid, y1, 0), row_number(grid, y2, 0)

        return rows_2d

    def rows_3d(grid, home):
        y0, y1, y2 = axis_neighbours(grid, 1, home[1])
        z0, z1, z2 = axis_neighbours(grid, 2, home[2])
        return (
            row_number(grid, y0, z0),
            row_number(grid, y1, z0),
            row_number(grid, y2, z0),
            row_number(grid, y0, z1),
            row_number(grid, y1, z1),
            row_number(grid, y2, z1),
            row_number(grid, y0, z2),
            row_number(grid, y1, z2),
            row_number(grid, y2, z2),
        )

    return rows_3d
