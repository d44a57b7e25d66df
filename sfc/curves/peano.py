"""Peano's curve in any dimension: a serpentine of 3 x 3 (x 3), mirrored so that it is continuous."""

import itertools

import numpy as np

from sfc import checks
from sfc.automaton.curve import Curve, Grammar
from sfc.curves.grammars import PEANO

MOST_DIM = 7  # its tables take seconds to compute


def peano(dim: int) -> Curve:
    """Build Peano's switch-back curve. Peano, Math. Ann. 36 (1890) 157.

    Its arithmetic definition, digit by digit: a digit is mirrored if the digits of the other axes before it
    have an odd sum. A state is the set of mirrored axes; in an odd dimension only sets of even size occur. In
    2D the curve also has a grammar, `PEANO`.

    Args:
        dim: 2 or 3 (4 states each), up to `MOST_DIM`.

    Returns:
        A continuous curve of base 3 from the origin's corner to the opposite one; axis 0 runs fastest.

    Raises:
        TypeError: a dim that is no integer.
        ValueError: one outside this range.
    """
    dim = checks.integer("dim", dim, 2, MOST_DIM)
    mirrors = [axes for axes in range(1 << dim) if dim % 2 == 0 or axes.bit_count() % 2 == 0]
    number = {axes: state for state, axes in enumerate(mirrors)}
    rank = np.empty((len(mirrors), 3**dim), np.int64)
    next = np.empty_like(rank)
    for (state, axes), position in itertools.product(enumerate(mirrors), range(3**dim)):
        digits = [position // 3**axis % 3 for axis in range(dim)]
        digit, inner = 0, axes
        for axis in range(dim):
            others_above = sum(digits[axis + 1 :])  # the more significant digits of this level
            mirrored = axes >> axis & 1 ^ others_above & 1
            digit += 3**axis * (2 - digits[axis] if mirrored else digits[axis])
            inner ^= (sum(digits) - digits[axis] & 1) << axis
        rank[state, digit] = position
        next[state, digit] = number[inner]
    grammar = Grammar("A", PEANO[dim]) if dim in PEANO else None
    return Curve("peano", dim, 3, rank, next, grammar=grammar)
