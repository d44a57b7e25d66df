"""Butz's generalisation of Hilbert's curve to any dimension.

Butz, IEEE Trans. Computers C-20 (1971) 424; as entry point and direction of each cell, Hamilton, Dalhousie
University report CS-2006-07. Skilling's transposition (AIP Conf. Proc. 707 (2004) 381), often named together
with it, is Butz's curve in 2D but a different one in 3D: no rotation, mirror or reversal maps one to the
other (shown by a test).
"""

import numpy as np

from sfc import checks
from sfc.automaton.curve import Curve

MOST_DIM = 8  # its tables take seconds to compute; each further dimension takes eight times as long


def butz(dim: int, name: str = "butz") -> Curve:
    """Build Butz's curve, which visits sub-cubes in the order of the reflected Gray code.

    A state is the corner where the cube is entered, and the axis along which it is left. Inside, the
    sub-cubes follow the Gray code with that axis first; sub-cube w is entered at corner `entry(w)` and left
    along axis `direction(w)`, both in the frame of the cube.

    Args:
        dim: 2 (Hilbert's curve, 4 states), 3 (12 states), 4 (32 states), up to `MOST_DIM`.
        name: of the curve.

    Returns:
        A continuous curve of base 2 from the origin's corner to the opposite one along axis 0.

    Raises:
        TypeError: a dim that is no integer.
        ValueError: one outside this range.
    """
    dim = checks.integer("dim", dim, 2, MOST_DIM)
    cells = 1 << dim
    rank = np.empty((dim * cells, cells), np.int64)
    next = np.empty_like(rank)
    for corner in range(cells):
        for axis in range(dim):
            state = axis * cells + corner
            for w in range(cells):
                digit = _rotated(w ^ w >> 1, axis + 1, dim) ^ corner
                rank[state, digit] = w
                inner_corner = corner ^ _rotated(_entry(w), axis + 1, dim)
                inner_axis = (axis + _direction(w, dim) + 1) % dim
                next[state, digit] = inner_axis * cells + inner_corner
    states = _reached(next, start=0)
    number = np.empty(len(next), np.int64)
    number[states] = np.arange(len(states))
    return Curve(name, dim, 2, rank[states], number[next[states]])


def _rotated(bits: int, by: int, dim: int) -> int:
    """Rotate the bits of a corner upwards, so that axis k becomes axis k + by."""
    by %= dim
    return (bits << by | bits >> (dim - by)) & ((1 << dim) - 1)


def _entry(w: int) -> int:
    """Return the corner at which sub-cube w is entered: the Gray code of the even number before w."""
    even = max(0, (w - 1) // 2 * 2)
    return even ^ even >> 1


def _direction(w: int, dim: int) -> int:
    """Return the axis along which sub-cube w is left: of the step before an even w, after an odd w."""
    step = w if w % 2 else w - 1
    return _trailing_ones(step) % dim if w else 0


def _trailing_ones(number: int) -> int:
    return (~number & (number + 1)).bit_length() - 1


def _reached(next: np.ndarray, start: int) -> list[int]:
    """List the states that follow from a start, in the order in which they are found."""
    reached = [start]
    for state in reached:  # grows during the loop
        reached += [other for other in dict.fromkeys(next[state].tolist()) if other not in reached]
    return reached
