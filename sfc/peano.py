"""Peano's curve in any dimension: a serpentine of 3 x 3 (x 3), mirrored so that it joins up."""

import itertools

import numpy as np

from sfc.curve import Curve, Grammar

RULES = {2: {"A": "AFBFA>F>BFAFB<F<AFBFA", "B": "BFAFB<F<AFBFA>F>BFAFB"}}  # the same curve as a grammar


def peano(dim: int) -> Curve:
    """Peano's switch-back curve. Peano, Math. Ann. 36 (1890) 157.

    Digit by digit, his arithmetic definition: a digit is mirrored when the digits of the other axes before it
    have an odd sum. A state is the set of mirrored axes. In 2D it is also a grammar, `RULES`.

    Args:
        dim: 2 (4 states), 3 (8 states) or more.

    Returns:
        A continuous curve of base 3 from the origin's corner to the opposite one; axis 0 runs fastest.
    """
    states, cells = 1 << dim, 3**dim
    grammar = Grammar("A", RULES[dim]) if dim in RULES else None
    rank = np.empty((states, cells), np.int64)
    next = np.empty_like(rank)
    for state, position in itertools.product(range(states), range(cells)):
        digits = [position // 3**axis % 3 for axis in range(dim)]
        digit, inner = 0, state
        for axis in range(dim):
            others_above = sum(digits[axis + 1 :])  # the more significant digits of this level
            mirrored = state >> axis & 1 ^ others_above & 1
            digit += 3**axis * (2 - digits[axis] if mirrored else digits[axis])
            inner ^= (sum(digits) - digits[axis] & 1) << axis
        rank[state, digit] = position
        next[state, digit] = inner
    return Curve("peano", dim, 3, rank, next, grammar=grammar)
