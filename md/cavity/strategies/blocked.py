"""Strategy "blocked": several sweeps in one pass over memory, while the rows are in a core's cache."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from md import checks
from md.backend.base import Backend
from md.cavity.base import Order, Solver, Strategy
from md.cavity.compiled import CompiledSolver
from md.cavity.row_kernels import (
    copy_edges,
    correct_rows,
    edges,
    rows_of,
    set_velocity_edges,
    source_rows,
    tentative_rows,
)
from md.cavity.scheme import Scheme
from md.cavity.vector_rows import sweep_row
from sfc.compile import inlined, kernel

CACHE = 2**20  # bytes of a core's cache that the pressure and its right-hand side may take
DEEPEST = 10  # sweeps of a pass: with more of them, the rate of memory no longer limits a sweep
HALO = 8  # rows of a block for each sweep of a pass: a block computes an eighth of its rows twice at most


@dataclass(frozen=True)
class Blocked(Strategy):
    """Configuration of sweeps by temporal blocking.

    A pass takes up to `depth` sweeps: sweep s computes row r - s right after sweep s - 1 has computed row
    r - s + 1, and three rows of each sweep are kept in a ring. Each thread has a block of rows, and computes
    the rows of its neighbours again where it needs them (overlapped halos), so that threads wait for each
    other once a pass. A grid that fits into a core's cache is one block, swept as a whole.

    Args:
        depth: most sweeps of a pass; None for up to ten, as many as fit into the cache of a core.

    Raises:
        TypeError: a depth that is neither an integer nor None.
        ValueError: a depth below 1.

    Time skewing: Wonnacott (2000); overlapped tiles: Krishnamoorthy et al. (2007).
    """

    depth: int | None = None
    name = "blocked"

    def __post_init__(self) -> None:
        if self.depth is not None:
            object.__setattr__(self, "depth", checks.integer("depth", self.depth, 1, unit="sweeps a pass"))

    def needed_bytes(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> int:
        """Return the bytes of the fields and of the rings of the blocks; see `Strategy`."""
        depth, parts = self._plan(scheme, backend)
        ring = 3 * depth * scheme.shape[1] * scheme.dtype.itemsize
        return super().needed_bytes(scheme, layout, order, backend) + parts * ring

    def build(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> Solver:
        """Make the solver, with all fields 0."""
        depth, parts = self._plan(scheme, backend)
        if not depth:
            return CompiledSolver(scheme, layout, order, parts=1)
        return BlockedSolver(scheme, depth, parts)

    def _plan(self, scheme: Scheme, backend: Backend) -> tuple[int, int]:
        """Return the most sweeps of a pass, 0 for a grid swept as a whole, and the number of blocks."""
        ny, nx = scheme.shape
        if self.depth is None and 3 * ny * nx * scheme.dtype.itemsize <= CACHE:
            return 0, 1
        parts = max(1, min(backend.workers, ny - 2))
        return min(self.depth or _depth(scheme, parts), scheme.sweeps), parts


class BlockedSolver(Solver):
    """Fields as (ny, nx) arrays, with several sweeps of the pressure a pass.

    Args:
        scheme: the discretised problem.
        depth: most sweeps of a pass.
        parts: blocks of rows, at most one for each thread, with a row or more each.
    """

    def __init__(self, scheme: Scheme, depth: int, parts: int):
        super().__init__(scheme)
        ny, nx = scheme.shape
        self._depth, self._parts = depth, parts
        self._velocities = np.zeros((4, ny, nx), scheme.dtype)
        self._source = np.zeros((ny, nx), scheme.dtype)
        # Both pressures, and the ring of each block, are rows of one array.
        self._rows = np.zeros((2 * ny + self._parts * 3 * depth, nx), scheme.dtype)
        self._at = 0  # row of the pressure: 0 or ny
        self._edges = tuple(edges(scheme, name) for name in "uvp")

    @property
    def _pressure(self) -> np.ndarray:
        return self._rows[self._at : self._at + self.scheme.shape[0]]

    def load(
        self, u: np.ndarray | None = None, v: np.ndarray | None = None, p: np.ndarray | None = None
    ) -> None:
        """Set the fields; see `Solver.load`."""
        fields = self._velocities[0], self._velocities[1], self._pressure
        for field, values in zip(fields, (u, v, p), strict=True):
            if values is not None:
                field[...] = values

    def fields(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return copies of u, v and p."""
        return self._velocities[0].copy(), self._velocities[1].copy(), self._pressure.copy()

    def advance(self, steps: int) -> int:
        """Take steps, until a field is not finite; see `Solver.advance`."""
        ny, sweeps = self.scheme.shape[0], self.scheme.sweeps
        taken: int = advance(
            steps, sweeps, self._depth, self._parts, self._velocities, self._rows, self._at, self._source,
            self.scheme.coefficients, *self._edges,
        )  # fmt: skip
        if abs(taken) * -(-sweeps // self._depth) % 2:
            self._at = ny - self._at
        return taken


def _depth(scheme: Scheme, parts: int) -> int:
    """Return the sweeps of a pass: up to `DEEPEST`, as the cache of a core and the halos of blocks allow."""
    (ny, nx), sweeps = scheme.shape, scheme.sweeps
    # Of each sweep three rows, and one of the right-hand side.
    most = min(DEEPEST, CACHE // (4 * nx * scheme.dtype.itemsize))
    if parts > 1:
        most = min(most, (ny - 2) // parts // HALO)
    passes = -(-sweeps // max(1, most))
    return -(-sweeps // passes)


@kernel(parallel=True)
def advance(steps, sweeps, depth, parts, velocities, rows, at, b, factors, u_edges, v_edges, p_edges):
    """Take steps, until a field is not finite.

    `velocities` are u, v and the tentative ones, (4, ny, nx). `rows` holds the pressure from row `at` on, 0
    or ny, the pressure of every other pass in the other one, and then the rings of the blocks. `b` is the
    right-hand side. The others are as in `md.cavity.row_kernels.advance`.
    """
    u, v, ut, vt = velocities[0], velocities[1], velocities[2], velocities[3]
    ny = len(u)
    inner = ny - 2
    for step in range(steps):
        for k in numba.prange(parts):
            first, last = rows_of(k, parts, inner)
            tentative_rows(first, last, u, v, ut, vt, factors)
        copy_edges(u, ut)
        copy_edges(v, vt)
        for k in numba.prange(parts):
            first, last = rows_of(k, parts, inner)
            source_rows(first, last, ut, vt, b, factors.source)
        left = sweeps
        while left > 0:
            count = min(depth, left)
            for k in numba.prange(parts):
                first, last = rows_of(k, parts, inner)
                sweep_block(
                    (first, last, 2 * ny + 3 * depth * k), count, rows, at, b, factors.quarter, p_edges
                )
            at = ny - at
            left -= count
        p = rows[at : at + ny]
        bad = 0
        for k in numba.prange(parts):
            first, last = rows_of(k, parts, inner)
            bad += correct_rows(first, last, u, v, ut, vt, p, factors.gradient)
        set_velocity_edges(u, u_edges)
        set_velocity_edges(v, v_edges)
        if bad > 0:
            return -(step + 1)
    return steps


@inlined
def sweep_block(block, count, rows, at, b, quarter, given):
    """Take sweeps of one block of rows.

    Args:
        block: first row of the block, the row after its last, and the first row of its ring in `rows`.
        count: number of sweeps.
        rows: both pressures and the rings.
        at: row of the pressure before the sweeps; after them it is in the other one.
        b: (ny, nx) right-hand side.
        quarter: 1 / 4.
        given: conditions for the pressure.
    """
    first, last, ring = block
    ny, nx = b.shape
    end = ny if last == ny - 1 else last
    for front in range(max(1, first - count + 1) + 1, end + count):
        for s in range(1, count + 1):
            r = front - s
            if max(1, first - count + s) <= r < min(ny, end + count - s):
                # Rows r - 1, r, r + 1 of the sweep before, and rows 0, r - 1, r of this one.
                place = ring + 3 * (s - 1)
                south, centre, north = place - 3 + (r + 2) % 3, place - 3 + r % 3, place - 3 + (r + 1) % 3
                if s == 1:
                    south, centre, north = at + r - 1, at + r, at + r + 1
                bottom, below, out = place, place + (r + 2) % 3, place + r % 3
                if s == count:
                    bottom, below, out = ny - at, ny - at + r - 1, ny - at + r
                if r == ny - 1:
                    set_row(rows, out, below, given.copies_top, given.top)
                else:
                    sweep_row(rows, (south, centre, north, out), rows, b, r, quarter)
                    rows[out, nx - 1] = rows[out, nx - 2] if given.copies_right else given.right[r]
                    rows[out, 0] = rows[out, 1] if given.copies_left else given.left[r]
                if r == 1:
                    set_row(rows, bottom, out, given.copies_bottom, given.bottom)


@inlined
def set_row(rows, out, beside, copies, fixed):
    """Set a boundary row: a copy of the row beside it, or fixed values."""
    for c in range(rows.shape[1]):
        rows[out, c] = rows[beside, c] if copies else fixed[c]
