"""An ordering ranks the cells of any box, by a scan, by a path that fits the box, or by a curve.

Contract. `rank` is unique per cell and increases along the order. An order that fills its box is dense: its
ranks are 0 .. cells - 1 and `cells` inverts them. A curve is embedded in the smallest cube of its own that
holds the box, so its ranks have gaps, unless the box is that cube; `dense_ranks` closes them.
"""

import inspect
import math
from collections.abc import Callable, Iterator

import numpy as np

from sfc import pancake, scans
from sfc.catalogue import curve, curves
from sfc.curve import Curve, require_integers
from sfc.gilbert import gilbert

ANY = range(1, 65)
SCANS: dict[str, tuple[Callable[..., scans.Scan], range]] = {  # with the numbers of axes they are known for
    "gilbert": (gilbert, range(2, 4)),
    "pancake": (pancake.pancake, range(3, 4)),
    "random": (scans.random, ANY),
    "row": (scans.row, ANY),
    "tiled": (scans.tiled, ANY),
    "zigzag": (scans.zigzag, ANY),
}
COVERINGS: dict[str, Callable[[tuple[int, ...]], tuple[int, ...]]] = {"pancake": pancake.covering}
CHUNK = 2**20


class Ordering:
    """A total order of the cells of a box.

    Args:
        name: what to call it in tables and figures.
        shape: cells along each axis.
        rank: (n, dim) int64 cells inside the box -> (n,) uint64, unique per cell.
        cells: (n,) int64 ranks -> (n, dim) int64 cells, where the ranks have no gaps; else None.
        curve: the curve it follows and its order, (Curve, int), where it follows one.

    Attributes:
        size: number of cells, prod(shape).
        dim: number of axes.
        is_dense: whether the ranks are 0 .. size - 1.
    """

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        rank: scans.Rank,
        cells: scans.Cells | None = None,
        curve: tuple[Curve, int] | None = None,
    ):
        self.name, self.shape, self.curve = name, tuple(shape), curve
        self._key, self._cells = rank, cells
        self.dim, self.size, self.is_dense = len(shape), math.prod(shape), cells is not None

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

    def cells(self, ranks) -> np.ndarray:
        """Cell of each rank; the inverse of `rank` where that has no gaps.

        Args:
            ranks: (n,) integers, 0 <= rank < size.

        Returns:
            (n, dim) int64.

        Raises:
            ValueError: an order whose ranks have gaps, a wrong shape or dtype, or a rank past the end.
        """
        if self._cells is None:
            raise ValueError(
                f"the ranks of {self!r} have gaps, so a rank need not be a cell's; take the curve's own "
                f"cube, an ordering that fills the box, or `traversal`"
            )
        ranks = np.asarray(ranks)
        if ranks.ndim != 1:
            raise ValueError(f"ranks of shape {ranks.shape}; allowed: (n,)")
        require_integers("ranks", ranks)
        outside = (ranks < 0) | (ranks >= self.size)
        if outside.any():
            bad = int(outside.argmax())
            raise ValueError(f"rank {ranks[bad]} at {bad}; allowed: 0 <= rank < {self.size}")
        return self._cells(ranks.astype(np.int64))

    def traversal(self) -> np.ndarray:
        """Every cell of the box once, in order: (size, dim) int64."""
        return np.concatenate(list(self.chunks()))

    def chunks(self, length: int = CHUNK) -> Iterator[np.ndarray]:
        """The traversal in pieces, for boxes that do not fit in memory.

        A piece at a time is held, but for an ordering of one's own without `cells`, whose cells must be
        sorted.

        Args:
            length: positions along the order (of the curve's cube, where it is embedded) per piece.

        Yields:
            (m, dim) int64 cells, m <= length.

        Raises:
            ValueError: a length below 1.
        """
        if length < 1:
            raise ValueError(f"length = {length}; allowed: at least 1")
        if self._cells is not None:
            for start in range(0, self.size, length):
                yield self._cells(np.arange(start, min(start + length, self.size)))
        elif self.curve is not None:
            curve, order = self.curve
            for start in range(0, curve.side(order) ** self.dim, length):
                stop = min(start + length, curve.side(order) ** self.dim)
                cells = curve.decode(np.arange(start, stop, dtype=np.uint64), order)
                inside = cells[(cells < np.array(self.shape)).all(axis=1)]
                if len(inside):
                    yield inside
        else:
            numbers = np.argsort(self.ranks())
            for start in range(0, self.size, length):
                yield self._numbered(numbers[start : start + length])

    def dense_ranks(self) -> np.ndarray:
        """Rank of every cell without gaps, addressed by its row-major number (axis 0 fastest).

        Returns:
            (size,) uint32, a permutation of 0 .. size - 1.

        Raises:
            ValueError: more cells than 32 bits count.
        """
        if self.size > 2**32:
            raise ValueError(f"{self.size} cells in {self.shape}; allowed: up to 2**32 in a dense table")
        ranks = self.ranks()
        if self.is_dense:
            return ranks.astype(np.uint32)
        dense = np.empty(self.size, np.uint32)
        dense[np.argsort(ranks)] = np.arange(self.size, dtype=np.uint32)
        return dense

    def ranks(self) -> np.ndarray:
        """Rank of every cell, gaps and all, addressed by its row-major number: (size,) uint64."""
        ranks = np.empty(self.size, np.uint64)
        for start in range(0, self.size, CHUNK):
            stop = min(start + CHUNK, self.size)
            ranks[start:stop] = self._key(self._numbered(np.arange(start, stop)))
        return ranks

    def _numbered(self, numbers: np.ndarray) -> np.ndarray:
        return np.column_stack(np.unravel_index(numbers, self.shape, order="F")).astype(np.int64, copy=False)


def orderings(dim: int | None = None) -> tuple[str, ...]:
    """Names of the orderings, in alphabetical order.

    Only those known for boxes of `dim` axes where it is given.
    """
    known = (name for name, (_, dims) in SCANS.items() if dim is None or dim in dims)
    return tuple(sorted({*known, *curves(dim)}))


def ordering(order: str | Curve, shape, **options) -> Ordering:
    """An ordering of a box.

    Args:
        order: one of `orderings(dim)`, or a curve of your own.
        shape: cells along each axis, each at least 1.
        options: `seed` for `random`, `tile` for `tiled`; nothing for the others.

    Returns:
        The ordering.

    Raises:
        ValueError: an unknown name (lists those known), a bad shape, one that the ordering cannot fill, an
            option the ordering does not take, or a box whose embedding cube needs more than 64 bits.
    """
    shape = _checked_shape(shape)
    if isinstance(order, str) and order not in orderings(len(shape)):
        known = ", ".join(orderings(len(shape)))
        raise ValueError(
            f"unknown ordering {order!r} for a box in {len(shape)}D; known in {len(shape)}D: {known}"
        )
    if isinstance(order, str) and order in SCANS:
        factory = SCANS[order][0]
        taken = list(inspect.signature(factory).parameters)[1:]
        if set(options) - set(taken):
            raise ValueError(
                f"ordering {order!r} does not take {sorted(options)}; allowed: {', '.join(taken) or 'none'}"
            )
        if math.prod(shape) >= 2**63:
            raise ValueError(f"box {shape}: {math.prod(shape)} cells; allowed: less than 2**63")
        return Ordering(order, shape, *factory(shape, **options))
    if options:
        raise ValueError(f"ordering {order!r} does not take {sorted(options)}; allowed: none")
    if isinstance(order, str):
        order = curve(order, len(shape))
    if order.dim != len(shape):
        raise ValueError(f"curve {order.name!r} is {order.dim}D; the box {shape} is {len(shape)}D")
    return _embedded(order, shape)


def covering(order: str | Curve, shape, **options) -> Ordering:
    """An ordering of any box, also of one that the order cannot fill.

    Such a box is ranked as part of the smallest one around it that the order can fill; the ranks then have
    gaps.

    Args:
        order: as for `ordering`.
        shape: cells along each axis, each at least 1.
        options: as for `ordering`.

    Returns:
        The ordering; that of `ordering` where it fills the shape.

    Raises:
        ValueError: as `ordering`, but for the shape it cannot fill.
    """
    shape = _checked_shape(shape)
    if not isinstance(order, str) or order not in COVERINGS or order not in orderings(len(shape)):
        return ordering(order, shape, **options)
    around = COVERINGS[order](shape)
    whole = ordering(order, around, **options)
    return whole if around == shape else Ordering(order, shape, whole.rank)


def _embedded(curve: Curve, shape: tuple[int, ...]) -> Ordering:
    order = 0
    while order <= curve.max_order and curve.base**order < max(shape):
        order += 1
    if order > curve.max_order:
        raise ValueError(
            f"box {shape}: the cube of {curve.name!r} around it needs more than 64 bits; use a scan"
        )
    own = all(side == curve.base**order for side in shape) and math.prod(shape) < 2**63
    return Ordering(
        curve.name,
        shape,
        lambda cells: curve.encode(cells, order),
        (lambda ranks: curve.decode(ranks, order)) if own else None,
        (curve, order),
    )


def _checked_shape(shape) -> tuple[int, ...]:
    sides = tuple(shape)
    for side in sides:
        if isinstance(side, bool) or not isinstance(side, (int, np.integer)) or side < 1:
            raise ValueError(f"shape {sides}: side {side!r}; allowed: integers of at least 1")
    if not sides:
        raise ValueError("shape (): allowed: at least one axis")
    return tuple(int(side) for side in sides)
