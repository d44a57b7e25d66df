"""Morton order (Z order): the bits of the coordinates, interleaved."""

import numpy as np

from sfc import checks
from sfc.automaton.curve import Curve


def morton(dim: int) -> Curve:
    """Build Morton's order, also called Z or Lebesgue order. Morton, IBM technical report (1966).

    Args:
        dim: 1 to 16. Axis 0 gives the lowest bit of each group.

    Returns:
        A curve of base 2 with one state; it is not continuous.

    Raises:
        TypeError: a dim that is no integer.
        ValueError: one outside this range.
    """
    dim = checks.integer("dim", dim, 1, 16)
    return Curve("morton", dim, 2, np.arange(2**dim)[None], np.zeros((1, 2**dim), np.int64))
