"""Cells of integer points in a grid over a box, exact in 64-bit arithmetic.

A float64 holds no more than 53 bits, so that points beyond 2**53 would be rounded before the lower corner of
the box is subtracted. The operations are those that arrays of numpy and of cupy share.
"""

from typing import Any, NamedTuple

import numpy as np

MOST_WIDTH = 2**64
EXACT_SIDE = 2**48  # cells, and a base, up to which a float64 is the right quotient to 3/32


class IntegerGrid(NamedTuple):
    """Grid of cells over a box with corners of integers.

    Attributes:
        low: lower corner of the box, one integer for each axis.
        high: upper corner.
        width: distance that all cells along an axis take, 1 to `MOST_WIDTH`.
        base: one integer for each axis: that of a curve, or the cells along the axis for an order of 1.
        order: levels; an axis has base**order cells, up to 2**64.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    width: tuple[int, ...]
    base: tuple[int, ...]
    order: int


def cell_dtype(side: int) -> type[np.unsignedinteger]:
    """Return the narrowest unsigned integer of 16 bits or more that holds the cells of a grid."""
    return np.uint16 if side <= 2**16 else np.uint32 if side <= 2**32 else np.uint64


def integer_grid(
    low: tuple[float, ...], high: tuple[float, ...], base: tuple[int, ...], order: int, stretch: bool
) -> IntegerGrid | None:
    """Make the grid over a box; return None for corners between integers, or too far apart.

    Args:
        low: lower corner, integers or floats.
        high: upper corner.
        base: of `IntegerGrid`.
        order: levels.
        stretch: whether the cells along each axis fill the box, so that they are no cubes.
    """
    if not all(end == int(end) for end in (*low, *high)):
        return None
    lower, upper = tuple(map(int, low)), tuple(map(int, high))
    extent = [last - first for first, last in zip(lower, upper, strict=True)]
    width = extent if stretch else [max(extent)] * len(extent)
    if max(width) > MOST_WIDTH:
        return None
    return IntegerGrid(lower, upper, tuple(max(one, 1) for one in width), base, order)


def is_exact_in_floats(grid: IntegerGrid) -> bool:
    """Return whether the cells of floats are those of integers too, which takes a third of the time.

    A distance over the width is below the next of 2**order parts by 1 / (width * side) at least. Up to a
    product of 2**53 that is more than the rounding of the quotient; its product with a power of 2 is exact.
    """
    is_near = max(map(abs, grid.low + grid.high)) <= 2**52  # no rounded point comes inside
    return is_near and set(grid.base) == {2} and max(grid.width) * 2**grid.order <= 2**53


def cells_of_integers(points: Any, grid: IntegerGrid) -> tuple[Any, Any]:
    """Compute the cell floor((point - low) * side / width) of each point; the upper corner is in the last.

    Args:
        points: (n, dim) integers of any dtype, of numpy or cupy.
        grid: of the box.

    Returns:
        (n, dim) cells of the narrowest unsigned integers of 16 bits or more: of the nearest point in the box
        for a point outside. (n,) bool, whether each point is outside.
    """
    real = points.dtype.type
    cells = points.astype(cell_dtype(max(grid.base) ** grid.order))
    outside = points[:, 0] != points[:, 0]
    least, most = (int(end) for end in (np.iinfo(real).min, np.iinfo(real).max))
    for axis, (low, high, width, base) in enumerate(zip(*grid[:4], strict=True)):
        x, first, last = points[:, axis], min(max(low, least), most), min(max(high, least), most)
        outside |= (x < real(first)) | (x > real(last)) | (low > most or high < least)
        before = min(max(first - low, 0), high - low)
        inside = x.clip(real(first), real(last)).astype(np.uint64)
        offset = inside - np.uint64(first % 2**64) + np.uint64(before % 2**64)
        cell = _scaled(offset, width, base, grid.order)
        if high - low == width and high <= most:  # the offset of the upper corner, the width, may be 2**64
            cell[x >= real(max(high, least))] = np.uint64(base**grid.order - 1)
        cells[:, axis] = cell
    return cells, outside


def _scaled(offset: Any, width: int, base: int, order: int) -> Any:
    """Compute floor(offset * base**order / width) of (n,) uint64 below the width; others give any value."""
    index, rest, left = offset * np.uint64(0), offset, order
    most = max(level for level in range(1, 49) if base**level <= EXACT_SIDE)
    while left:
        levels = min(left, most)
        quotient, rest = _divided(rest, base**levels, width)
        index, left = index * np.uint64(base**levels) + quotient, left - levels
    return index


def _divided(values: Any, side: int, width: int) -> tuple[Any, Any]:
    """Divide values * side by the width: the quotients, rounded down, and the remainders.

    The remainder of the float64 quotient is known modulo 2**64, and is from -1/8 to 9/8 of the width. It
    decides, with the fraction of that quotient, whether the quotient is too large or too small by 1.

    Args:
        values: (n,) uint64; the quotient and the remainder of one that is not below the width are any.
        side: up to `EXACT_SIDE`.
        width: up to `MOST_WIDTH`.
    """
    guess = values.astype(np.float64) * (side / width)
    quotient, modular = guess.astype(np.uint64), np.uint64(width % 2**64)
    rest = values * np.uint64(side) - quotient * modular
    is_low = guess - quotient < 0.5
    over = (is_low & (rest >= np.uint64(width - width // 4))).astype(np.uint64)
    under = (~is_low & ((rest > np.uint64(width - 1)) | (rest < np.uint64(width // 4)))).astype(np.uint64)
    return quotient - over + under, rest + (over - under) * modular
