"""Rows of cells that are smaller than the cutoff: those within reach of a position, far ones left out.

The cells around a position are visited row by row along axis 0. A row whose nearest point is farther away
than the reach is left out, and of another only the cells within the sphere of the reach are visited. Cells
that are contiguous in memory are one range of particles.

Contract. Positions are in units of cells, with the same rounding as in `home_cell`, so that the integer part
of a coordinate is the cell. A position beyond an open side is replaced by the nearest one in the box, which
makes no pair more distant. `reach` is longer than the cutoff by more than all rounding (`reach_of`), so that
every pair within the cutoff is in the cells visited. On a periodic axis of up to 2 * division cells all are
visited, each once.
"""

import numpy as np

from md import checks
from md.backend.prelude import dot, home_cell, like, load, row_number, separation, slot_of
from md.particles.cell_grid import CellGrid
from sfc.compile import inlined

FINEST = 4  # cells per cutoff: with more, most cells are empty at the densities of interest
WIDTH = 16  # slots written at once
at = np.uint64  # unsigned index: Numba tests a signed one for being negative at each access


def checked(name: str, division: int | None) -> int | None:
    """Check a number of cells per cutoff; None for whole cells.

    Raises:
        TypeError: no integer.
        ValueError: outside its range.
    """
    if division is None:
        return None
    remedy = "None for cells of the cutoff, all visited"
    return checks.integer(name, division, 1, FINEST, unit="cells per cutoff", remedy=remedy)


def divided(grid: CellGrid, division: int | None) -> CellGrid:
    """Make the grid of so many cells per cutoff; None for the same grid."""
    if division is None:
        return grid
    return CellGrid(grid.box, grid.cutoff, grid.precision, grid.backend, division)


def reach_of(grid: CellGrid) -> np.floating:
    """Return the distance up to which cells are visited, in the precision of a grid.

    The margin beyond the cutoff is several times the rounding of the coordinates of two particles.
    """
    margin = 32 * float(np.finfo(grid.precision).eps) * (max(grid.box.lengths) + grid.cutoff)
    return grid.precision.type(grid.cutoff + margin)


@inlined
def in_cells(grid, r, axis):
    """Compute a coordinate in units of cells, moved to the nearest in the box; 0 along z in 2D."""
    if axis >= len(r):
        return like(r, 0)
    return min(max(r[axis] * grid.per_side[axis], like(r, 0)), like(r, grid.cells[axis]))


@inlined
def is_narrow(grid, axis, division):
    """Check that a periodic axis has so few cells that one may be within reach on both sides of another."""
    return grid.periodic[axis] != 0 and grid.cells[axis] <= 2 * division


@inlined
def axis_span(grid, axis, division, home, x, within2):
    """Return the first and the last cell to visit along an axis; on a periodic axis they may be outside.

    Args:
        grid: record of the box and its cells.
        axis: 0, 1 or 2.
        division: cells per cutoff.
        home: cell of the position.
        x: coordinate of the position in units of cells.
        within2: square of the largest distance, in units of cells.
    """
    first, last = home, home
    for k in range(division):
        before, after = x - (home - k), home + k + 1 - x
        first -= before * before <= within2
        last += after * after <= within2
    if grid.periodic[axis] == 0 or is_narrow(grid, axis, division):
        first, last = max(first, 0), min(last, grid.cells[axis] - 1)
    if is_narrow(grid, axis, division):
        first, last = 0, grid.cells[axis] - 1
    return first, last


@inlined
def gap(r, cell, x, narrow):
    """Compute the distance along an axis from a coordinate to a cell, in cells; 0 on a narrow axis."""
    return like(r, 0) if narrow else max(like(r, 0), max(like(r, cell) - x, x - like(r, cell + 1)))


@inlined
def wrapped_cell(cell, count):
    """Return the number along an axis of a cell at most one box length outside."""
    if cell < 0:
        return cell + count
    return cell - count if cell >= count else cell


@inlined
def contiguous(rank, row, first, last):
    """Find the cells of a row that follow cell `first` in memory without a gap, up to cell `last`.

    Args:
        rank: (cells,) rank of each cell; (0,) if it is the number of the cell.
        row: number of the first cell of the row.
        first: along the row.
        last: along the row.

    Returns:
        Rank of the first cell, and how many cells follow each other.
    """
    if len(rank) == 0:
        return row + first, last - first + 1
    begin = rank[at(row + first)]
    count = 1
    while first + count <= last and rank[at(row + first + count)] == begin + count:
        count += 1
    return begin, count


@inlined
def slots_within(grid, division, reach, keep2, i, ri, pos, start, rank, order, near):
    """List the slots in the cells within reach of a particle that are close enough; return their number.

    Args:
        grid: record of the box and its cells.
        division: cells per cutoff.
        reach: `reach_of` the grid.
        keep2: square of the distance from which on a slot is left out; infinite to list all.
        i: slot of the particle, which is left out.
        ri: position of the particle.
        pos: (n, dim) positions.
        start: (cells + 1,) first entry of each cell, by rank.
        rank: (cells,) rank of each cell; (0,) if it is the number of the cell.
        order: (n,) slot of each entry; (0,) if it is the number of the entry.
        near: array with room for all rows and `WIDTH` more, filled.
    """
    home = home_cell(grid, ri)
    x = in_cells(grid, ri, 0), in_cells(grid, ri, 1), in_cells(grid, ri, 2)
    per_side = grid.per_side[0], grid.per_side[1], grid.per_side[2 % len(ri)]  # any number along z in 2D
    side = like(ri, 1) / per_side[0], like(ri, 1) / per_side[1], like(ri, 1) / per_side[2]
    narrow_x, narrow_y = is_narrow(grid, 0, division), is_narrow(grid, 1, division)
    narrow_z = is_narrow(grid, 2, division)
    plain = not (narrow_x or narrow_y or narrow_z)
    count = grid.cells[0]
    around = 0
    first_z, last_z = axis_span(grid, 2, division, home[2], x[2], reach * reach * per_side[2] * per_side[2])
    for z in range(first_z, last_z + 1):
        gap_z = gap(ri, z, x[2], narrow_z) * side[2]
        left_z = reach * reach - gap_z * gap_z
        plane = wrapped_cell(z, grid.cells[2])
        first_y, last_y = axis_span(grid, 1, division, home[1], x[1], left_z * per_side[1] * per_side[1])
        for y in range(first_y, last_y + 1):
            gap_y = gap(ri, y, x[1], narrow_y) * side[1]
            left = left_z - gap_y * gap_y
            line = wrapped_cell(y, grid.cells[1])
            row = row_number(grid, line, plane)
            c, last = axis_span(grid, 0, division, home[0], x[0], left * per_side[0] * per_side[0])
            plain = plain and y == line and z == plane and c >= 0 and last < count
            while c <= last:
                cell = wrapped_cell(c, count)
                end = min(last, -1) if c < 0 else min(last, count - 1) if c < count else last
                begin, cells = contiguous(rank, row, cell, cell + end - c)
                k = start[at(begin)]
                length = start[at(begin + cells)] - k
                for b in range(WIDTH):  # most ranges are shorter; the excess is overwritten
                    near[at(around + b)] = k + b
                for b in range(WIDTH, length):
                    near[at(around + b)] = k + b
                around += length
                c += cells
    # No branch, which would be mispredicted: a slot that is left out is overwritten by the next.
    found = 0
    for k in range(around):
        j = slot_of(order, near[at(k)])
        dr = separation(grid, plain, ri, load(pos, at(j), ri))
        near[at(found)] = j
        found += (dot(dr, dr) < keep2) & (j != i)
    return found, plain
