"""An ordering ranks the cells of any box, by a scan or by a curve.

Contract. `rank` is unique per cell and increases along the order. A scan ranks densely, 0 .. cells - 1; a
curve is embedded in the smallest cube of its own that holds the box, so its ranks have gaps that
`dense_ranks` closes.
"""

import math
from collections.abc import Callable

import numpy as np

from sfc import scans
from sfc.catalogue import CURVES, curve, curves
from sfc.curve import Curve, require_integers

SCANS: dict[str, Callable[..., scans.Key]] = {
    "random": scans.random,
    "row": scans.row,
    "zigzag": scans.zigzag,
}


class Ordering:
    """A total order of the cells of a box.

    Args:
        name: what to call it in tables and figures.
        shape: cells along each axis.
        key: (n, dim) int64 cells inside the box -> (n,) uint64, unique per cell.

    Attributes:
        size: number of cells, prod(shape).
        dim: number of axes.
    """

    def __init__(self, name: str, shape: tuple[int, ...], key: scans.Key):
        self.name, self.shape, self._key = name, shape, key
        self.dim, self.size = len(shape), math.prod(shape)

    def __repr__(self) -> str:
        return f"<Ordering {self.name} of {' x '.join(map(str, self.shape))} cells>"

    def rank(self, cells) -> np.ndarray:
        """Rank of each cell.

        Args:
            cells: (n, dim) integers, 0 <= cell < shape.

        Returns:
            (n,) uint64, unique per cell, increasing along the order.

        Raises:
            ValueError: wrong shape or dtype, or a cell outside the box.
        """
        cells = np.asarray(cells)
        if cells.ndim != 2 or cells.shape[1] != self.dim:
            raise ValueError(
                f"cells of shape {cells.shape}; an ordering of {self.shape} takes (n, {self.dim})"
            )
        require_integers("cells", cells)
        outside = ((cells < 0) | (cells >= np.array(self.shape))).any(axis=1)
        if outside.any():
            bad = int(outside.argmax())
            raise ValueError(
                f"cell {cells[bad].tolist()} in row {bad} is outside the box; allowed: 0 <= cell < "
                f"{self.shape}"
            )
        return self._key(cells.astype(np.int64))

    def traversal(self) -> np.ndarray:
        """Every cell of the box once, in order: (size, dim) int64."""
        cells = self._all_cells()
        return cells[np.argsort(self._key(cells))]

    def dense_ranks(self) -> np.ndarray:
        """Rank of every cell without gaps, addressed by its row-major number (axis 0 fastest).

        Returns:
            (size,) uint32, a permutation of 0 .. size - 1.

        Raises:
            ValueError: more cells than 32 bits count.
        """
        if self.size > 2**32:
            raise ValueError(f"{self.size} cells in {self.shape}; allowed: up to 2**32 in a dense table")
        order = np.argsort(self._key(self._all_cells()))
        ranks = np.empty(self.size, np.uint32)
        ranks[order] = np.arange(self.size, dtype=np.uint32)
        return ranks

    def _all_cells(self) -> np.ndarray:
        number = np.arange(self.size)
        return np.column_stack(np.unravel_index(number, self.shape, order="F"))


def orderings(dim: int | None = None) -> tuple[str, ...]:
    """Names of the orderings, in alphabetical order.

    Only those known for boxes of `dim` axes where it is given.
    """
    return tuple(sorted({*SCANS, *curves(dim)}))


def ordering(order: str | Curve, shape, **options) -> Ordering:
    """An ordering of a box.

    Args:
        order: one of `orderings(dim)`, or a curve of your own.
        shape: cells along each axis, each at least 1.
        options: `seed` for `random`; nothing for the others.

    Returns:
        The ordering.

    Raises:
        ValueError: an unknown name (lists those known), a bad shape, an option the ordering does not take,
            or a box whose embedding cube needs more than 64 bits.
    """
    shape = _checked_shape(shape)
    if isinstance(order, str) and order in SCANS:
        if (options and order != "random") or set(options) - {"seed"}:
            raise ValueError(
                f"ordering {order!r} does not take {sorted(options)}; allowed: seed, for 'random' only"
            )
        return Ordering(order, shape, SCANS[order](shape, **options))
    if options:
        raise ValueError(f"ordering {order!r} does not take {sorted(options)}; allowed: no options")
    if isinstance(order, str):
        if order not in CURVES or order not in curves(len(shape)):
            known = ", ".join(orderings(len(shape)))
            raise ValueError(
                f"unknown ordering {order!r} for a box in {len(shape)}D; known in {len(shape)}D: {known}"
            )
        order = curve(order, len(shape))
    if order.dim != len(shape):
        raise ValueError(f"curve {order.name!r} is {order.dim}D; the box {shape} is {len(shape)}D")
    depth = 0
    while order.base**depth < max(shape):
        depth += 1
    if depth > order.max_order:
        raise ValueError(
            f"box {shape}: the cube of {order.name!r} around it needs more than 64 bits; use a scan"
        )
    return Ordering(order.name, shape, lambda cells: order.encode(cells, depth))


def _checked_shape(shape) -> tuple[int, ...]:
    sides = tuple(shape)
    for side in sides:
        if isinstance(side, bool) or not isinstance(side, (int, np.integer)) or side < 1:
            raise ValueError(f"shape {sides}: side {side!r}; allowed: integers of at least 1")
    if not sides:
        raise ValueError("shape (): allowed: at least one axis")
    return tuple(int(side) for side in sides)
