"""Units of the one-byte coordinates by which a device rejects most candidates, of lists and of wide trees.

`byte_coordinates.cuh` has the coordinates themselves, and the test.
"""

from __future__ import annotations

import math

import numpy as np

from md.particles.cell_grid import CellGrid

UNITS = 80  # of the reach: an offset of two cells, up to 1.08 reaches wide, is more than a reach modulo 256


def units_of(grid: CellGrid, reach: float, units: int = UNITS) -> np.ndarray:
    """Make the record of the units of byte coordinates.

    Args:
        grid: cells of the box.
        reach: distance in d up to which partners are listed, at most half a periodic axis.
        units: of the reach, about. More of them resolve distances better; with fewer, distant particles
            rarely have equal bytes.

    Returns:
        (1,) record with `per_unit`, units per d along each axis, and `most`, the largest sum of squares of
        the differences of the bytes of two particles within reach.
    """
    box, lengths = grid.box, np.array(grid.box.lengths)
    rounds = np.maximum(1, np.floor(lengths * units / (256 * reach)))  # of 256 units along a periodic axis
    per_unit = np.where(box.periodic, 256 * rounds / lengths, units / reach)
    longest = reach * per_unit.max() * (1 + 1e-5)  # in units, with the rounding of the test by positions
    wrong = distance_error(box.dim)
    most = (longest + wrong) ** 2 + (4 - box.dim)  # bytes of no axis are 0 or -1
    dtype = np.dtype([("per_unit", np.float64, (box.dim,)), ("most", np.int32)], align=True)
    return np.array([(per_unit, math.ceil(most))], dtype)


def distance_error(dim: int) -> float:
    """Return the largest error of a distance by bytes, in units; of each axis 1, with a borrow 2."""
    return math.sqrt(1 + 4 * (dim - 1))
