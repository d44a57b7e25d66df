"""What a program does with its items, in an order of memory: stand-ins for a user's own code.

A use makes, for an order, arrays and a function that works once on arrays like these, wherever they lie. The
arrays of code on a GPU are on it, with the numbers of the host's: float64, and indices of 32 bits (those of a
trace of 64).
Orders are permutations: item `order[i]` lies at place i. Edges and cells are renumbered, and sorted by the
least place of their items; in the order of the file they stay as they are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.spatial import cKDTree

import md
from experiments.advice import kernels
from sfc import checks

CUTOFF, NEIGHBOURS, CELLS, MATRIX, TRACE = "cutoff", "neighbours", "cells", "matrix", "trace"
OWN, YOURS = "own", "your function"
COMPILED, NUMPY, SCIPY, CUDA, CUPY = "compiled", "numpy", "scipy", "cuda", "cupy"
CODES = {  # use -> kinds of code
    CUTOFF: (COMPILED, NUMPY, SCIPY, CUDA), NEIGHBOURS: (COMPILED, NUMPY, SCIPY, CUDA, CUPY),
    CELLS: (COMPILED, NUMPY, CUDA, CUPY), MATRIX: (COMPILED, SCIPY, CUDA, CUPY),
    TRACE: (COMPILED, NUMPY, CUDA, CUPY), OWN: (OWN,),
}  # fmt: skip
ON_GPU = (CUDA, CUPY)
THERE = " on the GPU"
ITEM_BYTES = 64  # of an item that a trace reads
OUTLIERS = 1e-4  # share of points on each side that decide no box of cells
MOST_CELLS = 4  # for each point
MOST_SIDE = 2**20  # cells


class Work(NamedTuple):
    """Code of a use, and its arrays in one memory order.

    Those of all orders of a use have the same shapes and dtypes.

    Attributes:
        arrays: on which it works.
        run: works once on such arrays, and returns what it computed.
        result: returns that for the items in the order of the file.
        search_s: CPU time to make the arrays that is no part of a reorder, such as that of a search for
            pairs.
    """

    arrays: tuple[np.ndarray, ...]
    run: Callable[..., Any]
    result: Callable[[Any], np.ndarray]
    search_s: float = 0.0


class Use:
    """A use of some items in one kind of code.

    Args:
        kind: cutoff, neighbours, cells, matrix, trace, or own.
        code: compiled, numpy or scipy; on a GPU cuda or cupy.
        items: number of items.
        points: (n, 2) or (n, 3) positions; of cutoff and neighbours.
        reach: cutoff, or number of neighbours.
        radii: (n,) of points within a cutoff: two are neighbours within the sum of theirs; None for the
            cutoff. A search in scipy's tree takes the cutoff.
        lengths, periodic: of a periodic box from 0 on, for a cutoff; None for none.
        cells: (m, k) items of each cell or edge.
        matrix: a sparse matrix with as many rows as columns.
        trace: (m,) items that are read in turn.
        item_bytes: of an item that a trace or a cell reads; 0 for `ITEM_BYTES` of a trace, and for the
            coordinates and a number of a mesh.
        function: of the user's, which takes `arrays` in the order that is timed.
        arrays: of n rows each.

    Attributes:
        backend: of the GPU on which it works; None for the host.

    Raises:
        ValueError: a kind or a code that is not known, or not for the kind.
        BackendUnavailableError: code on a GPU, and none is here.
    """

    def __init__(
        self, kind: str, code: str, items: int, *, points: Any = None, reach: float = 0, radii: Any = None,
        lengths: Any = None, periodic: tuple[bool, ...] = (), cells: Any = None,
        matrix: Any = None, trace: Any = None, item_bytes: int = 0,
        function: Any = None, arrays: tuple[np.ndarray, ...] = (),
    ):  # fmt: skip
        self.kind = checks.word("kind", kind, tuple(CODES))
        self.code = checks.word(f"code of {kind}", code, CODES[kind])
        self.items, self.reach = items, reach
        self.cells, self.matrix = cells, matrix
        points = None if points is None else np.asarray(points, np.float64)
        self.points: Any = points
        if not item_bytes:
            item_bytes = ITEM_BYTES if kind == TRACE else 8 * (1 if points is None else 1 + points.shape[1])
        self.item_bytes = checks.integer("item_bytes", item_bytes, 8, unit="bytes")
        if item_bytes % 8:
            raise checks.refuse_value("item_bytes", item_bytes, "multiples of 8 bytes")
        self.trace: Any = None if trace is None else np.asarray(trace, np.int64)
        if kind == CUTOFF and lengths is not None and any(periodic):
            self.points = wrapped(self.points, lengths, periodic)
        self.lengths, self.periodic = lengths, periodic
        self.radii: Any = None if code == SCIPY or radii is None else np.asarray(radii, np.float64)
        self.function, self.arrays = function, arrays
        backend: Any = md.backend.get("cuda") if code in ON_GPU else None
        self.backend = backend
        self._kernels: Any = kernels.DeviceKernels(backend) if code == CUDA else kernels
        random = np.random.default_rng(0)
        self.values: Any = random.random(items) if kind == MATRIX else None
        if kind == CELLS:
            self.values = random.random((items, self.numbers))

    @property
    def numbers(self) -> int:
        """Numbers of an item that a trace or a cell reads."""
        return self.item_bytes // 8

    @property
    def in_words(self) -> str:
        """Return what is timed, for a sentence."""
        within = f"{self.reach:g}" if self.radii is None else "the sum of their radii"
        what = {
            CUTOFF: f"neighbours within {within}", NEIGHBOURS: f"{self.reach:.0f} nearest neighbours",
            CELLS: f"a gather of {self.item_bytes} bytes an item and a scatter over cells or edges",
            MATRIX: "a matrix times a vector",
            TRACE: f"reads of the trace, {self.item_bytes} bytes each", OWN: YOURS,
        }[self.kind]  # fmt: skip
        how = {
            OWN: "",
            COMPILED: "a compiled loop", NUMPY: "numpy",
            SCIPY: "scipy's tree" if self.kind in (CUTOFF, NEIGHBOURS) else "scipy",
            CUDA: f"CUDA kernels{THERE}", CUPY: f"cupy{THERE}",
        }[self.code]  # fmt: skip
        return what if self.kind == OWN else f"{what} in {how}"

    @property
    def is_compiled(self) -> bool:
        """Whether the code is a loop of its own: one of a thread, or of a GPU's."""
        return self.code in (COMPILED, CUDA)

    def clock(self) -> float:
        """Return CPU time in s; of code on a GPU wall time, at the end of all that it was given."""
        if self.backend is None:
            return time.process_time()
        self.backend.between(self.backend.mark(), self.backend.mark())  # waits
        return time.perf_counter()

    def there(self, array: np.ndarray) -> Any:
        """Return an array in the memory in which the code works; the same on the host."""
        is_here = self.backend is None or not isinstance(array, np.ndarray)
        return array if is_here else self.backend.upload(array)

    @cached_property
    def placed(self) -> dict[str, Any]:
        """Arrays of the items in the memory in which the code works, by name."""
        found = {"points": self.points, "radii": self.radii, "values": self.values, "cells": self.cells,
                 "trace": self.trace}  # fmt: skip
        if self.kind == NEIGHBOURS and self.code != SCIPY:
            found["nearest"] = self.nearest
        return {name: self.there(np.ascontiguousarray(one)) for name, one in found.items() if one is not None}

    @cached_property
    def nearest(self) -> np.ndarray:
        """(n, k) nearest neighbours of each point, without the point itself."""
        found = cKDTree(self.points).query(self.points, int(self.reach) + 1, workers=-1)[1]
        return np.asarray(found)[:, 1:].astype(np.int32)

    def arrange(self, order: Any) -> Work:
        """Put the items into an order, in new arrays.

        Args:
            order: (n,) permutation; None for that of the file; its cells and edges stay as they are.
        """
        make = {
            CUTOFF: self._cutoff, NEIGHBOURS: self._neighbours, CELLS: self._cells, MATRIX: self._matrix,
            TRACE: self._trace, OWN: self._own,
        }[self.kind]  # fmt: skip
        is_sorted = order is not None
        order = np.arange(self.items) if order is None else order
        return make(order if self.kind == MATRIX else self.there(order), is_sorted)

    def _cutoff(self, order: Any, _: bool) -> Work:
        points = self.placed["points"][order]
        radii = self.placed["radii"][order] if self.radii is not None else self.there(np.empty(0))
        if self.is_compiled:
            return self._compiled_cutoff(points, radii, order)
        box = None
        if self.lengths is not None and any(self.periodic):
            box = np.where(self.periodic, self.lengths, 0.0)

        def search(points: np.ndarray) -> np.ndarray:
            return cKDTree(points, boxsize=box).query_pairs(self.reach, output_type="ndarray")

        if self.code == SCIPY:
            return Work(
                (points,),
                search,
                lambda pairs: _unsorted(np.bincount(pairs.ravel(), minlength=len(points)), order),
            )
        began = time.process_time()
        first, second = search(points).T.copy()
        search_s = time.process_time() - began

        def run(points, radii, first, second) -> np.ndarray:
            apart: Any = points[second] - points[first]
            if box is not None:
                with np.errstate(divide="ignore", invalid="ignore"):
                    apart -= np.where(box > 0, box * np.round(apart / box), 0.0)
            reach = radii[first] + radii[second] if len(radii) else self.reach
            with np.errstate(divide="ignore", invalid="ignore"):
                weights = 1 - np.linalg.norm(apart, axis=1) / reach
            weights = np.where(weights > 0, weights, 0.0)  # also of two points of radius 0
            return np.bincount(first, weights, len(points)) + np.bincount(second, weights, len(points))

        return Work((points, radii, first, second), run, lambda sums: _unsorted(sums, order), search_s)

    @cached_property
    def _boxes(self) -> tuple[np.ndarray, ...]:
        """Box of the cells of linked lists, which a few stray points do not decide.

        Its lower corner, its sides, along which of them it is periodic, and the cells along each; a plane
        has one cell along z.
        """
        low, high = (np.zeros(3) for _ in range(2))
        axes, periodic = self.points.shape[1], np.zeros(3, bool)
        low[:axes], high[:axes] = np.quantile(self.points, [OUTLIERS, 1 - OUTLIERS], axis=0)
        if self.lengths is not None:
            periodic[: len(self.periodic)] = self.periodic
            size = np.append(self.lengths, 1.0)[:3]
            low, high = np.where(periodic, 0, low), np.where(periodic, size, high)
        lengths = np.maximum(high - low, self.reach)
        shape = np.clip(lengths / self.reach, 1, MOST_SIDE).astype(np.int64)
        while math.prod(shape.tolist()) > MOST_CELLS * self.items + 27:
            shape = np.maximum(shape * 9 // 10, 1)
        return low, lengths, periodic, shape

    def _compiled_cutoff(self, points: Any, radii: Any, order: Any) -> Work:
        """Make arrays for linked lists of cells."""
        if points.shape[1] == 2:
            points = np.column_stack([points, np.zeros_like(points[:, 0])])
        lower, lengths, periodic, shape = self._boxes
        kind = np.int64 if self.backend is None else np.int32
        arrays = (
            points, radii, np.zeros_like(order, kind, shape=int(shape.prod())), np.zeros_like(order, kind),
            np.zeros_like(points[:, 0]),
        )  # fmt: skip

        def run(points, radii, heads, nexts, out) -> Any:
            self._kernels.cutoff_sums(
                points, radii, lower, lengths, periodic, shape, heads, nexts, float(self.reach), out
            )
            return out

        return Work(arrays, run, lambda sums: _unsorted(sums, order))

    def _neighbours(self, order: Any, _: bool) -> Work:
        points = self.placed["points"][order]
        if self.code == SCIPY:

            def search(points) -> np.ndarray:
                far: Any = cKDTree(points).query(points, int(self.reach) + 1)[0]
                return far.sum(axis=1)

            return Work((points,), search, lambda sums: _unsorted(sums, order))
        index = _places(order)[self.placed["nearest"][order]].astype(np.int32)
        if self.is_compiled:
            return Work((points, index, np.zeros_like(points[:, 0])), _called(self._kernels.neighbour_sums),
                        lambda sums: _unsorted(sums, order))  # fmt: skip

        def run(points, index) -> Any:
            apart = points[index] - points[:, None]
            return ((apart * apart).sum(axis=2) ** 0.5).sum(axis=1)

        return Work((points, index), run, lambda sums: _unsorted(sums, order))

    def _cells(self, order: Any, is_sorted: bool) -> Work:
        cells = _places(order)[self.placed["cells"]]
        if is_sorted:
            cells = cells[np.argsort(cells.min(axis=1), kind="stable")]
        cells, values = cells.astype(np.int32), self.placed["values"][order]
        if self.is_compiled:
            return Work((values, cells, np.zeros_like(values[:, 0])), _called(self._kernels.cell_sums),
                        lambda sums: _unsorted(sums, order))  # fmt: skip
        add_at = _add_at if self.backend is None else kernels.add_on_device

        def run(values, cells) -> Any:
            means, out = values[cells].sum(axis=2).mean(axis=1), np.zeros_like(values[:, 0])
            for corner in cells.T:
                add_at(out, corner, means)
            return out

        return Work((values, cells), run, lambda sums: _unsorted(sums, order))

    def _matrix(self, order: np.ndarray, is_sorted: bool) -> Work:
        matrix = scipy.sparse.csr_array(self.matrix, copy=True)
        if is_sorted:
            matrix = scipy.sparse.csr_array(matrix[order][:, order])
            matrix.sort_indices()
        rows, values = (matrix.indptr, matrix.indices), self.values[order]
        if self.backend is not None:  # as many bits in every order, and as the kernels take
            checks.integer("entries of a matrix on a GPU", matrix.nnz, 0, 2**31 - 1)
            rows = rows[0].astype(np.int32), rows[1].astype(np.int32)
        data = matrix.data.astype(float) if self.backend is not None or self.is_compiled else matrix.data
        arrays = tuple(map(self.there, (*rows, data, values)))
        if self.is_compiled:
            return Work((*arrays, np.zeros_like(arrays[3])), _called(self._kernels.matrix_product),
                        lambda sums: _unsorted(sums, self.there(order)))  # fmt: skip

        def product(indptr, indices, data, values) -> np.ndarray:
            return scipy.sparse.csr_array((data, indices, indptr), (len(values),) * 2) @ values

        run = product if self.backend is None else kernels.product_on_device()
        return Work(arrays, run, lambda sums: _unsorted(sums, self.there(order)))

    def _trace(self, order: Any, _: bool) -> Work:
        numbers = self.numbers
        table = order[:, None] * 0.5 + self.there(0.5 * np.arange(numbers))
        trace = _places(order)[self.placed["trace"]]
        if self.is_compiled:
            out = self.there(np.zeros(numbers if self.backend is None else len(trace)))
            return Work((table, trace, out), _called(self._kernels.trace_sums), _copied)
        return Work((table, trace), lambda table, trace: table[trace].sum(axis=0), _copied)

    def _own(self, order: np.ndarray, _: bool) -> Work:
        """Call the function of the user's; what it computes is not known, and not compared."""
        arrays = tuple(np.ascontiguousarray(one[order]) for one in self.arrays)
        return Work(arrays, self.function, lambda _: np.empty(0))


def wrapped(points: np.ndarray, lengths: Any, periodic: Any) -> np.ndarray:
    """Move points across periodic sides into the box, from 0 up to, but not at, its lengths.

    Args:
        points: (n, dim) positions.
        lengths: (dim,) sides of the box from 0 on.
        periodic: (dim,) bools.
    """
    inside = np.mod(points, lengths)
    inside = np.where(inside < lengths, inside, 0.0)  # a small negative number is rounded up
    return np.where(periodic, inside, points)


def _called(code: Callable[..., None]) -> Callable[..., np.ndarray]:
    """Return a function that calls a kernel and returns the last array, which it writes."""

    def run(*arrays: np.ndarray) -> np.ndarray:
        code(*arrays)
        return arrays[-1]

    return run


def _places(order: Any) -> Any:
    """Return the place of each item."""
    found = np.empty_like(order)
    found[order] = np.cumsum(np.ones_like(order)) - 1
    return found


def _unsorted(values: Any, order: Any) -> np.ndarray:
    """Return values of places in the order of the items, on the host."""
    found = np.empty_like(values)
    found[order] = values
    return _copied(found)


def _copied(array: Any) -> np.ndarray:
    """Return a copy on the host."""
    return array.get() if hasattr(array, "get") else array.copy()


def _add_at(out: np.ndarray, items: np.ndarray, numbers: np.ndarray) -> None:
    """Add numbers to those of items, which may be named several times."""
    out += np.bincount(items, numbers, len(out))
