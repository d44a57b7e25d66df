"""Traversal of a box by a curve of a larger cube, skipping the sub-cubes outside the box."""

import math
from collections.abc import Iterator

import numpy as np

from sfc.automaton.curve import Curve
from sfc.compile import kernel


def cells_in_box(curve: Curve, order: int, shape: tuple[int, ...], length: int) -> Iterator[np.ndarray]:
    """List the cells of a box in the order of a curve, by descending its automaton.

    Sub-cubes outside the box are skipped whole.

    Args:
        curve: the curve.
        order: of the cube that contains the box.
        shape: cells along each axis of the box, at the cube's origin.
        length: cells per piece.

    Yields:
        (m, dim) int64 cells; m is length but for the last piece.
    """
    if order == 0:
        yield np.zeros((1, curve.dim), np.int64)
        return
    state, position = np.zeros((2, order), np.int64)  # of each level from the top
    corner = np.zeros((order, curve.dim), np.int64)
    width = curve.base ** np.arange(order - 1, -1, -1, dtype=np.int64)
    state[0], level, left = curve.start, 0, math.prod(shape)
    tables = curve.cell, curve.succ, curve.base
    while left:
        cells = np.empty((min(length, left), curve.dim), np.int64)
        level = _descend(*tables, shape, width, level, state, position, corner, cells)
        left -= len(cells)
        yield cells


@kernel
def _descend(cell, succ, base, shape, width, level, state, position, corner, cells):
    """Fill `cells`, continuing at `level` with the states, positions and corners stored; return the level."""
    order, dim = len(state), len(shape)
    count = 0
    while count < len(cells):
        at, here = position[level], state[level]
        if at == cell.shape[1]:
            level -= 1
            continue
        position[level] = at + 1
        digit, inside = np.int64(cell[here, at]), True
        for k in range(dim):
            cells[count, k] = corner[level, k] + digit % base * width[level]
            digit //= base
            inside &= cells[count, k] < shape[k]
        if inside and level == order - 1:
            count += 1
        elif inside:
            level += 1
            for k in range(dim):
                corner[level, k] = cells[count, k]
            state[level], position[level] = succ[here, at], 0
    return level
