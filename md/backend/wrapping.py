"""Periodic wrapping and box checks of positions, for Numba kernels."""

import numpy as np

from sfc.compile import inlined


@inlined
def wrapped(x, length, periodic):
    """Wrap a coordinate by at most one length into [0, length); unchanged on an axis that is not periodic."""
    if periodic != 0:
        if x >= length:
            return x - length
        if x < 0:
            x = x + length
            if x >= length:  # a tiny negative coordinate rounds up to the length
                return x - length
    return x


@inlined
def inside(grid, axis, x):
    """Check that a wrapped coordinate is within the bounds of an axis; false for NaN."""
    highest = grid.highest[axis]
    return x >= grid.lowest[axis] and (x < highest or (x == highest and grid.periodic[axis] == 0))


@inlined
def well_inside(grid, r):
    """Check that a position is in [0, length) along each axis; false for NaN."""
    plane = 0 <= r[0] < grid.length[0] and 0 <= r[1] < grid.length[1]
    return plane if len(r) == 2 else plane and 0 <= r[2] < grid.length[2]


@inlined
def folded(grid, r):
    """Wrap a position along the periodic axes."""
    x = wrapped(r[0], grid.length[0], grid.periodic[0])
    y = wrapped(r[1], grid.length[1], grid.periodic[1])
    return (x, y) if len(r) == 2 else (x, y, wrapped(r[2], grid.length[2], grid.periodic[2]))


@inlined
def in_box(grid, r):
    """Check that a wrapped position is in the box or beyond an open side; false for NaN."""
    plane = inside(grid, 0, r[0]) and inside(grid, 1, r[1])
    return plane if len(r) == 2 else plane and inside(grid, 2, r[2])


@inlined
def is_finite(r):
    """Check that every component of a vector is finite."""
    plane = np.isfinite(r[0]) and np.isfinite(r[1])
    return plane if len(r) == 2 else plane and np.isfinite(r[2])
