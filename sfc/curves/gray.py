"""Gray-code order: interleaved coordinates read as a reflected Gray code."""

import numpy as np

from sfc import checks
from sfc.automaton.curve import Curve


def gray(dim: int) -> Curve:
    """Build the Gray-code order: successive cells differ in one bit of their interleaved coordinates.

    A step is along one axis, by any power of two. Faloutsos, IEEE Trans. Software Eng. 14 (1988) 1381.

    Args:
        dim: 1 to 16. Axis 0 gives the lowest bit of each group.

    Returns:
        A curve of base 2 with two states (the parity of the more significant bits); it is not continuous.

    Raises:
        TypeError: a dim that is no integer.
        ValueError: one outside this range.
    """
    dim = checks.integer("dim", dim, 1, 16)
    cells = 1 << dim
    number = np.arange(cells)
    rank = np.empty((2, cells), np.int64)
    rank[0, number ^ number >> 1] = number
    rank[1] = cells - 1 - rank[0]
    return Curve("gray", dim, 2, rank, rank & 1)
