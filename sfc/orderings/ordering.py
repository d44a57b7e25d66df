"""Class `Ordering`: a total order of the cells of a box, by a scan, a path that fits the box, or a curve.

Contract. `rank` is unique per cell and increases along the order. An order that fills its box is dense: its
ranks are 0 .. cells - 1 and `cells` inverts them. A curve orders the smallest of its cubes that contains the
box, so its ranks have gaps, unless the box is that cube; `dense_ranks` removes them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sfc import checks
from sfc.any_curve import AnyCurve
from sfc.automaton.curve import Curve
from sfc.automaton.descent import cells_in_box
from sfc.compile import in_threads
from sfc.points import as_words, cells_of, first_outside, numbers_of, refuse_cell
from sfc.registry import Cells, Rank

CHUNK = 2**20
MOST_AXES = 64  # of an array of numpy
FEW_GAPS = 4  # most numbers up to the last rank, over the cells, for which ranks are counted and not sorted


class Ordering:
    """Total order of the cells of a box.

    Args:
        name: its name in tables and figures.
        shape: cells along each axis.
        rank: (n, dim) int64 cells inside the box -> (n,) uint64, unique per cell; it may be called on several
            threads at once.
        cells: (n,) int64 ranks -> (n, dim) int64 cells, if the ranks have no gaps; else None.
        curve: (Curve, order) if the ranks are the indices of a curve; else None.
        around: the ordering of a larger box that ranks this one, if the box is to be listed by filtering the
            larger one; else None, and the cells are sorted by rank.

    Attributes:
        size: number of cells, prod(shape).
        dim: number of axes.
        is_dense: whether the ranks are 0 .. size - 1.
        remake: function that makes an equal ordering, for pickling if `rank` and `cells` cannot be pickled;
            else None.

    Raises:
        TypeError: a name, shape, function, curve or ordering of another class.
        ValueError: a bad shape, or a curve or a larger box that does not contain this one.

    An ordering made by `ordering` or `covering` can be pickled; another if `rank` and `cells` can.
    """

    def __init__(
        self,
        name: str,
        shape: Sequence[int] | np.ndarray,
        rank: Rank,
        cells: Cells | None = None,
        curve: tuple[AnyCurve, int] | None = None,
        around: "Ordering | None" = None,
    ):
        self.name, self.shape = checks.text("name", name), checked_shape(shape)
        self.curve = None if curve is None else _cube_around(self.shape, curve)
        self._key = checks.function("rank", rank, "a function of (n, dim) cells")
        self._cells, self._around = cells, around
        if cells is not None:
            checks.function("cells", cells, "None, or a function of ranks")
        if around is not None:
            checks.instance("around", around, Ordering, "None, or the sfc.Ordering of a larger box")
            _require_inside("around", self.shape, around.shape)
        self.dim, self.size, self.is_dense = len(self.shape), math.prod(self.shape), cells is not None
        self._sides = tuple(np.uint64(side) for side in self.shape)
        is_cube = self.curve is not None and set(self.shape) == {self.curve[0].side(self.curve[1])}
        self._cube = self.curve if is_cube else None
        self.remake: Callable[[], Ordering] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        if self.remake is not None:
            return self.remake, ()
        return Ordering, (self.name, self.shape, self._key, self._cells, self.curve, self._around)

    def __repr__(self) -> str:
        return f"<Ordering {self.name} of {' x '.join(map(str, self.shape))} cells>"

    def rank(self, cells: ArrayLike) -> np.ndarray:
        """Compute the rank of each cell.

        Args:
            cells: (n, dim) integers, 0 <= cell < shape.

        Returns:
            (n,) uint64, unique per cell, increasing along the order.

        Raises:
            TypeError: cells that make no array.
            ValueError: wrong shape or dtype, or a cell outside the box.
        """
        cells = cells_of(cells, self.shape)
        if self._cube is not None:  # `encode_to` also finds the cells outside
            curve, order = self._cube
            ranks = np.empty(len(cells), np.uint64)
            bad = curve.encode_to(cells, order, ranks)
        else:
            words = as_words(cells)
            bad = first_outside(words, self._sides)
            ranks = self._key(words.view(np.int64)) if bad == len(words) else np.empty(0, np.uint64)
        if bad < len(cells):
            raise refuse_cell(cells, bad, "the box", self.shape, "take a larger box")
        return ranks

    def cells(self, ranks: ArrayLike) -> np.ndarray:
        """Compute the cell of each rank; the inverse of `rank`, for an ordering without gaps.

        Args:
            ranks: (n,) integers, 0 <= rank < size.

        Returns:
            (n, dim) int64.

        Raises:
            TypeError: ranks that make no array.
            ValueError: an order with gaps in its ranks, a wrong shape or dtype, or a rank past the end.
        """
        if self._cells is None and self.size >= 2**63:
            raise ValueError(
                f"{self!r} has {self.size} cells; allowed: less than 2**63, as a rank is a signed 64-bit "
                f"number here; take a smaller box, or `Curve.decode`"
            )
        if self._cells is None:
            raise ValueError(
                f"the ranks of {self!r} have gaps, so a rank need not be a cell's; take the curve's own "
                f"cube, an ordering that fills the box, or `traversal`"
            )
        ranks = numbers_of("ranks", ranks, self.size)
        words = as_words(ranks)
        if len(words) and words.max() >= self.size:
            bad = int((words >= self.size).argmax())
            raise ValueError(
                f"rank {ranks[bad]} at {bad}; allowed: 0 <= rank < {self.size}; take a larger box or check "
                f"the ranks"
            )
        return self._cells(words.view(np.int64))

    def traversal(self) -> np.ndarray:
        """List every cell of the box, in order: (size, dim) int64.

        Raises:
            ValueError: more cells than fit in memory.
        """
        checks.require_allocatable(
            f"traversal of {self!r}, {self.size} cells", 8 * self.dim * self.size, "stream them with `chunks`"
        )
        cells, done = np.empty((self.size, self.dim), np.int64), 0
        for piece in self.chunks():
            cells[done : done + len(piece)] = piece
            done += len(piece)
        return cells

    def chunks(self, length: int = CHUNK) -> Iterator[np.ndarray]:
        """Iterate over the traversal in pieces, for boxes that do not fit in memory.

        One piece at a time is in memory. Three kinds of orderings store the ranks of all cells instead, to
        sort them: a user's ordering without `cells`, a curve without tables in a box other than its cube, and
        a `covering` by a much larger box.

        Args:
            length: cells per piece, at most.

        Returns:
            Iterator over (m, dim) int64 cells, 1 <= m <= length.

        Raises:
            TypeError: a length that is no integer.
            ValueError: a length below 1, or a piece that does not fit in memory.
        """
        length = min(checks.integer("length", length, 1, unit="cells"), self.size)
        checks.require_allocatable(f"a piece of {length} cells", 8 * self.dim * length, "take shorter pieces")
        return self._pieces(length)

    def _pieces(self, length: int) -> Iterator[np.ndarray]:
        if self._cells is not None:
            for start in range(0, self.size, length):
                yield self._cells(np.arange(start, min(start + length, self.size)))
        elif self.curve is not None and isinstance(self.curve[0], Curve):
            yield from cells_in_box(self.curve[0], self.curve[1], self.shape, length)
        elif self._around is not None:
            for piece in self._around.chunks(length):
                inside = piece[(piece < np.array(self.shape)).all(axis=1)]
                if len(inside):
                    yield inside
        else:
            numbers = np.argsort(self.ranks())
            for start in range(0, self.size, length):
                yield self._numbered(numbers[start : start + length])

    def dense_ranks(self) -> np.ndarray:
        """Rank every cell without gaps, addressed by its row-major number (axis 0 fastest).

        Returns:
            (size,) uint32, a permutation of 0 .. size - 1.

        Raises:
            ValueError: more cells than 32 bits count.
        """
        if self.size > 2**32:
            raise ValueError(
                f"{self.size} cells in {self.shape}; allowed: up to 2**32 in a dense table; rank the cells "
                f"you need with `rank`, or take a smaller box"
            )
        size = (12 if self.is_dense else 12 + 4 * FEW_GAPS) * self.size  # ranks, table, and counts
        checks.require_allocatable(f"dense ranks of {self!r}", size, "rank the cells you need with `rank`")
        ranks = self.ranks()
        if self.is_dense:
            return ranks.astype(np.uint32)
        last = int(ranks.max())
        if last < FEW_GAPS * self.size:  # to count the ranks is several times faster than to sort them
            ranks = ranks.view(np.int64)  # which numpy takes as an index without a copy
            count = np.zeros(last + 1, np.uint32)
            count[ranks] = 1
            np.cumsum(count, out=count)
            dense = count[ranks]
            dense -= np.uint32(1)
            return dense
        dense = np.empty(self.size, np.uint32)
        dense[np.argsort(ranks)] = np.arange(self.size, dtype=np.uint32)
        return dense

    def ranks(self) -> np.ndarray:
        """Rank every cell, addressed by its row-major number: (size,) uint64, with the gaps that `rank` has.

        Raises:
            ValueError: more cells than fit in memory.
        """
        checks.require_allocatable(
            f"ranks of {self!r}, {self.size} cells", 8 * self.size, "rank the cells you need with `rank`"
        )
        ranks = np.empty(self.size, np.uint64)

        def fill(start: int) -> None:
            stop = min(start + CHUNK, self.size)
            ranks[start:stop] = self._key(self._numbered(np.arange(start, stop)))

        in_threads(fill, range(0, self.size, CHUNK))
        return ranks

    def _numbered(self, numbers: np.ndarray) -> np.ndarray:
        return np.column_stack(np.unravel_index(numbers, self.shape, order="F")).astype(np.int64, copy=False)


def checked_shape(shape: object) -> tuple[int, ...]:
    """Check the shape of a box; return it as Python integers.

    Raises:
        TypeError: no sequence of integers.
        ValueError: a side below 1 or of 2**63 and more, no axis, or more than `MOST_AXES`.
    """
    sides = checks.integers("shape", shape, 1, 2**63 - 1, unit="cells", remedy="one for each axis")
    if not 1 <= len(sides) <= MOST_AXES:
        raise ValueError(f"shape of {len(sides)} axes; allowed: 1 to {MOST_AXES} axes")
    return sides


def _cube_around(shape: tuple[int, ...], curve: object) -> tuple[AnyCurve, int]:
    """Check that the cube of a (curve, order) pair contains a box; return the pair."""
    allowed = "None, or a pair of an sfc.AnyCurve and its order"
    if not isinstance(curve, tuple) or len(curve) != 2:
        raise checks.refuse_class("curve", curve, allowed)
    side = checks.instance("curve[0]", curve[0], AnyCurve, "an sfc.AnyCurve").side(curve[1])
    _require_inside("curve", shape, (side,) * curve[0].dim)
    return curve[0], int(curve[1])


def _require_inside(name: str, shape: tuple[int, ...], larger: tuple[int, ...]) -> None:
    if len(larger) != len(shape) or any(side > most for side, most in zip(shape, larger, strict=True)):
        raise ValueError(f"{name} of a box {larger}; allowed: one that holds the box {shape}")
