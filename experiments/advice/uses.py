"""What a program does with its items, in an order of memory: stand-ins for a user's own code.

A use makes, for an order, the arrays in memory of their own and a function that works on them once. Orders
are permutations: item `order[i]` lies at place i. Edges and cells are renumbered, and sorted by their first
items; in the order of the file they stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.spatial import cKDTree

from experiments.advice import kernels
from sfc import checks

CUTOFF, NEIGHBOURS, CELLS, MATRIX, TRACE = "cutoff", "neighbours", "cells", "matrix", "trace"
OWN, YOURS = "own", "your function"
COMPILED, NUMPY, SCIPY = "compiled", "numpy", "scipy"
CODES = {  # use -> kinds of code
    CUTOFF: (COMPILED, NUMPY, SCIPY), NEIGHBOURS: (COMPILED, NUMPY, SCIPY), CELLS: (COMPILED, NUMPY),
    MATRIX: (COMPILED, SCIPY), TRACE: (COMPILED, NUMPY), OWN: (OWN,),
}  # fmt: skip
ITEM_BYTES = 64  # of an item that a trace reads
OUTLIERS = 1e-4  # share of points on each side that decide no box of cells
MOST_CELLS = 4  # for each point


class Work(NamedTuple):
    """Code of a use on arrays in one memory order.

    Attributes:
        run: works once.
        result: returns what the last call computed, for the items in the order of the file.
    """

    run: Callable[[], Any]
    result: Callable[[], np.ndarray]


class Use:
    """A use of some items in one kind of code.

    Args:
        kind: cutoff, neighbours, cells, matrix or trace.
        code: compiled, numpy or scipy.
        items: number of items.
        points: (n, 2) or (n, 3) positions; of cutoff and neighbours.
        reach: cutoff, or number of neighbours.
        lengths, periodic: of a periodic box from 0 on, for a cutoff; None for none.
        cells: (m, k) items of each cell or edge.
        matrix: a sparse matrix with as many rows as columns.
        trace: (m,) items that are read in turn.
        item_bytes: of an item that a trace reads.
        function: of the user's, which takes `arrays` in the order that is timed.
        arrays: of n rows each.

    Raises:
        ValueError: a kind or a code that is not known, or not for the kind.
    """

    def __init__(
        self, kind: str, code: str, items: int, *, points: Any = None, reach: float = 0,
        lengths: Any = None, periodic: tuple[bool, ...] = (), cells: Any = None,
        matrix: Any = None, trace: Any = None, item_bytes: int = ITEM_BYTES,
        function: Any = None, arrays: tuple[np.ndarray, ...] = (),
    ):  # fmt: skip
        self.kind = checks.word("kind", kind, tuple(CODES))
        self.code = checks.word(f"code of {kind}", code, CODES[kind])
        self.items, self.reach, self.item_bytes = items, reach, item_bytes
        self.points, self.cells, self.matrix, self.trace = points, cells, matrix, trace
        self.lengths, self.periodic = lengths, periodic
        self.function, self.arrays = function, arrays
        self.values: Any = np.random.default_rng(0).random(items) if kind in (CELLS, MATRIX) else None

    @property
    def in_words(self) -> str:
        """Return what is timed, for a sentence."""
        what = {
            CUTOFF: f"neighbours within {self.reach:g}", NEIGHBOURS: f"{self.reach:.0f} nearest neighbours",
            CELLS: "a gather and a scatter over cells or edges", MATRIX: "a matrix times a vector",
            TRACE: f"reads of the trace, {self.item_bytes} bytes each", OWN: YOURS,
        }[self.kind]  # fmt: skip
        how = {
            OWN: "",
            COMPILED: "a compiled loop", NUMPY: "numpy",
            SCIPY: "scipy's tree" if self.kind in (CUTOFF, NEIGHBOURS) else "scipy",
        }[self.code]  # fmt: skip
        return what if self.kind == OWN else f"{what} in {how}"

    @cached_property
    def nearest(self) -> np.ndarray:
        """(n, k) nearest neighbours of each point, without the point itself."""
        found = cKDTree(self.points).query(self.points, int(self.reach) + 1, workers=-1)[1]
        return np.asarray(found)[:, 1:].astype(np.int32)

    def arrange(self, order: np.ndarray | None) -> Work:
        """Put the items into an order, in memory of their own.

        Args:
            order: (n,) permutation; None for that of the file; its cells and edges stay as they are.
        """
        make = {
            CUTOFF: self._cutoff, NEIGHBOURS: self._neighbours, CELLS: self._cells, MATRIX: self._matrix,
            TRACE: self._trace, OWN: self._own,
        }[self.kind]  # fmt: skip
        return make(np.arange(self.items) if order is None else order, order is not None)

    def _cutoff(self, order: np.ndarray, _: bool) -> Work:
        points = np.ascontiguousarray(self.points[order])
        if self.code == COMPILED:
            return self._compiled_cutoff(points, order)
        box = None
        if self.lengths is not None and any(self.periodic):
            box = np.where(self.periodic, self.lengths, 0.0)
            points = np.where(self.periodic, np.mod(points, self.lengths), points)
        if self.code == SCIPY:
            found: list[Any] = []

            def search() -> None:
                found[:] = [cKDTree(points, boxsize=box).query_pairs(self.reach, output_type="ndarray")]

            return Work(
                search, lambda: _unsorted(np.bincount(found[0].ravel(), minlength=len(points)), order)
            )
        first, second = cKDTree(points, boxsize=box).query_pairs(self.reach, output_type="ndarray").T.copy()
        out = np.empty(len(points))

        def run() -> None:
            apart: Any = points[second] - points[first]
            if box is not None:
                with np.errstate(divide="ignore", invalid="ignore"):
                    apart -= np.where(box > 0, box * np.round(apart / box), 0.0)
            weights = 1 - np.linalg.norm(apart, axis=1) / self.reach
            out[:] = np.bincount(first, weights, len(points))
            out[:] += np.bincount(second, weights, len(points))

        return Work(run, lambda: _unsorted(out, order))

    def _compiled_cutoff(self, points: np.ndarray, order: np.ndarray) -> Work:
        """Make linked lists of cells; a few stray points do not decide their box."""
        if points.shape[1] == 2:
            points = np.column_stack([points, np.zeros(len(points))])
        periodic = np.zeros(3, bool)
        low, high = np.quantile(points, [OUTLIERS, 1 - OUTLIERS], axis=0)
        if self.lengths is not None:
            periodic[: len(self.periodic)] = self.periodic
            size = np.append(self.lengths, 1.0)[:3]
            low, high = np.where(periodic, 0, low), np.where(periodic, size, high)
        lengths = np.maximum(high - low, self.reach)
        shape = np.maximum((lengths / self.reach).astype(np.int64), 1)
        while shape.prod() > MOST_CELLS * len(points) + 27:
            shape = np.maximum(shape * 9 // 10, 1)
        heads, nexts = np.empty(shape.prod(), np.int64), np.empty(len(points), np.int64)
        out = np.empty(len(points))

        def run() -> None:
            kernels.cutoff_sums(points, low, lengths, periodic, shape, heads, nexts, float(self.reach), out)

        return Work(run, lambda: _unsorted(out, order))

    def _neighbours(self, order: np.ndarray, _: bool) -> Work:
        points = np.ascontiguousarray(self.points[order])
        out = np.empty(len(points))
        if self.code == SCIPY:

            def search() -> None:
                far: Any = cKDTree(points).query(points, int(self.reach) + 1)[0]
                out[:] = far.sum(axis=1)

            return Work(search, lambda: _unsorted(out, order))
        index = _places(order)[self.nearest[order]].astype(np.int32)
        if self.code == COMPILED:
            return Work(lambda: kernels.neighbour_sums(points, index, out), lambda: _unsorted(out, order))

        def run() -> None:
            apart: Any = points[index] - points[:, None]
            out[:] = np.sqrt((apart * apart).sum(axis=2)).sum(axis=1)

        return Work(run, lambda: _unsorted(out, order))

    def _cells(self, order: np.ndarray, is_sorted: bool) -> Work:
        cells = _places(order)[self.cells]
        if is_sorted:
            cells = cells[np.argsort(cells.min(axis=1), kind="stable")]
        cells, values = np.ascontiguousarray(cells.astype(np.int32)), self.values[order]
        out = np.empty(self.items)
        if self.code == COMPILED:
            return Work(lambda: kernels.cell_sums(values, cells, out), lambda: _unsorted(out, order))

        def run() -> None:
            means = values[cells].mean(axis=1)
            out[:] = 0
            for corner in cells.T:
                out[:] += np.bincount(corner, means, len(out))

        return Work(run, lambda: _unsorted(out, order))

    def _matrix(self, order: np.ndarray, is_sorted: bool) -> Work:
        matrix = scipy.sparse.csr_array(self.matrix, copy=True)
        if is_sorted:
            matrix = scipy.sparse.csr_array(matrix[order][:, order])
            matrix.sort_indices()
        values, out = self.values[order], np.empty(self.items)
        if self.code == COMPILED:
            arrays = matrix.indptr, matrix.indices, matrix.data.astype(float)
            return Work(lambda: kernels.matrix_product(*arrays, values, out), lambda: _unsorted(out, order))

        def run() -> None:
            out[:] = matrix @ values

        return Work(run, lambda: _unsorted(out, order))

    def _trace(self, order: np.ndarray, _: bool) -> Work:
        numbers = max(1, self.item_bytes // 8)
        table = (np.arange(self.items)[order, None] + np.arange(numbers)) * 0.5
        trace, out = _places(order)[self.trace], np.empty(numbers)
        if self.code == COMPILED:
            return Work(lambda: kernels.trace_sums(table, trace, out), out.copy)

        def run() -> None:
            out[:] = table[trace].sum(axis=0)

        return Work(run, out.copy)

    def _own(self, order: np.ndarray, _: bool) -> Work:
        """Call the function of the user's; what it computes is not known, and not compared."""
        arrays = tuple(np.ascontiguousarray(one[order]) for one in self.arrays)
        return Work(lambda: self.function(*arrays), lambda: np.empty(0))


def _places(order: np.ndarray) -> np.ndarray:
    """Return the place of each item."""
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order))
    return found


def _unsorted(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return values of places in the order of the items."""
    found = np.empty_like(values)
    found[order] = values
    return found
