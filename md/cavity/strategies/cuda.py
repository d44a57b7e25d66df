"""Strategy "cuda": one CUDA launch for each sweep over the pressure, a step as one CUDA graph.

As the CUDA program of Vickers (fluid_simulation), which has the layout "structs". With pressure="converged"
products of matrices take the place of the sweeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from md.backend import OnDevice
from md.backend.base import Array, Backend
from md.cavity.base import Order, Solver, Strategy, Values
from md.cavity.boundary import BoundaryTable, apply, boundary_table
from md.cavity.memory import Stencil, places, stencil, zeros
from md.cavity.pressure import PressureSides, ProductPoisson
from md.cavity.scheme import Scheme
from md.cavity.sides import Conditions

sweep = OnDevice(registers=(22, 24))  # with tables of places; four less row by row


@dataclass(frozen=True)
class Cuda(Strategy):
    """Configuration of the plain CUDA strategy: a thread a point, and neighbours read from the caches.

    In float32 it differs from the reference by at most 2e-6 of the largest value after 1000 steps of 41 x 41.
    """

    name = "cuda"
    tolerance = 1e-12
    work = 2**31
    backends = ("cuda",)
    layouts = ("arrays", "structs")
    any_order = True
    pressures = ("jacobi", "converged")

    def needed_bytes(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> int:
        """Return the bytes of the fields and tables, and of the matrices; see `Strategy`."""
        ny, nx = scheme.shape
        found = super().needed_bytes(scheme, layout, order, backend)
        if scheme.pressure == "jacobi":
            return found
        gathered = ny * nx * (4 + 3 * scheme.dtype.itemsize)
        return found + gathered + ProductPoisson.needed_bytes((ny - 2, nx - 2))

    def build(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> CudaSolver:
        """Make the solver, with all fields 0."""
        solver = CudaSolver if scheme.pressure == "jacobi" else ConvergedSolver
        return solver(scheme, layout, order, backend)


class CudaSolver(Solver):
    """Fields in device memory, advanced by a graph of launches.

    Args:
        scheme: the discretised problem.
        layout: "arrays" or "structs".
        order: of the points in memory.
        backend: of the arrays.
    """

    def __init__(self, scheme: Scheme, layout: str, order: Order, backend: Backend):
        super().__init__(scheme)
        ny, nx = scheme.shape
        self._backend: Any = backend
        self._inner, self._points = (ny - 2) * (nx - 2), ny * nx  # points inside, and all
        self._factors = scheme.coefficients
        self._place = places(order, scheme.shape)
        self._has_tables = has_tables = order != "row"
        around = stencil(self._place) if has_tables else without_tables(self._place)
        self._of_u, self._of_v, self._of_p = (
            BoundaryTable(*(backend.upload(array) for array in by_place(table, self._place, around)))
            for table in (boundary_table(scheme, name) for name in "uvp")
        )
        self._stencil = Stencil(*(backend.upload(table if has_tables else table[:0]) for table in around))
        self._fields, spacing = zeros(ny * nx, scheme.dtype, layout, backend.zeros)
        self._p, self._next = self._fields.p, self._fields.p_next
        self._constants = {"NX": nx, "NY": ny, "SPACING": spacing, "HAS_TABLES": int(has_tables)}
        self._kernels = backend.kernels("md.cavity.strategies.cuda", constants=self._constants)
        self._status = backend.zeros(2, np.int32)  # first step with a fault, or 0; steps of this call
        self._graphs: dict[bool, Callable[[], None]] = {}
        self._swapped = self._compiled = False

    def load(self, u: Values = None, v: Values = None, p: Values = None) -> None:
        """Set the fields."""
        for to, field in ((self._fields.u, u), (self._fields.v, v), (self._p, p)):
            if field is None:
                continue
            stored = field.astype(self.scheme.dtype).ravel()
            if self._has_tables:
                stored[self._place.ravel()] = field.ravel()
            to[:] = self._backend.upload(stored)

    def velocities(self) -> tuple[Array, Array]:
        """Return u and v where they are on the device; copies on the host for the layout "structs"."""
        return self._fields[:2] if self._constants["SPACING"] == 1 else super().velocities()

    def fields(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return copies of u, v and p on the host."""
        stored = (self._backend.download(field) for field in (self._fields.u, self._fields.v, self._p))
        u, v, p = (one[self._place] if self._has_tables else one.reshape(self.scheme.shape) for one in stored)
        return u, v, p

    def advance(self, steps: int) -> int:
        """Take steps; see `Solver.advance`."""
        self._backend.fill(self._status, 0)
        for _ in range(steps):
            self._take_step()
        fault = int(self._backend.download(self._status)[0])
        return -fault if fault else steps

    def _take_step(self) -> None:
        """Launch the graph of a step; the first step launches its kernels, which compiles them."""
        if not self._compiled:
            self._step()
            self._compiled = True
        else:
            if self._swapped not in self._graphs:
                self._graphs[self._swapped] = self._backend.record(self._step)
            self._graphs[self._swapped]()
        if self.scheme.sweeps % 2:
            self._p, self._next = self._next, self._p
            self._swapped = not self._swapped

    def _step(self) -> None:
        """Launch the kernels of one step. After an odd number of sweeps the pressure is in `_next`."""
        kernels, shared = self._kernels, (self._stencil, self._factors)
        u, v, _, ut, vt, _, source = self._fields
        kernels.tentative(self._points, u, v, ut, vt, self._status, self._of_u, *shared)
        kernels.find_source(self._inner, ut, vt, source, *shared)
        p = self._solve_pressure()
        kernels.correct(self._points, p, ut, vt, u, v, self._status, self._of_u, self._of_v, *shared)

    def _solve_pressure(self) -> Array:
        """Launch the sweeps, and return the array that has the new pressure."""
        p, after = self._p, self._next
        for _ in range(self.scheme.sweeps):
            self._sweep(p, after)
            p, after = after, p
        return p

    def _sweep(self, p: Array, after: Array) -> None:
        """Launch one sweep."""
        source = self._fields.source
        self._kernels.sweep(self._points, p, source, after, self._of_p, self._stencil, self._factors)


class ConvergedSolver(CudaSolver):
    """Fields in device memory; each step solves the equation of the pressure by products of matrices."""

    def __init__(self, scheme: Scheme, layout: str, order: Order, backend: Backend):
        super().__init__(scheme, layout, order, backend)
        ny, nx = scheme.shape
        self._poisson = ProductPoisson((ny - 2, nx - 2), PressureSides.of(scheme), scheme.dtype, backend)
        self._places = backend.upload(self._place)  # (ny, nx)
        given = {side: one.p for side, one in scheme.conditions.items()}
        fixed = {side: backend.upload(p.astype(scheme.dtype)) for side, p in given.items() if p is not None}
        self._conditions = {side: Conditions(None, None, fixed.get(side)) for side in given}

    def _take_step(self) -> None:
        """Launch the kernels of a step one by one: memory that products allocate is in no graph."""
        self._step()

    def _solve_pressure(self) -> Array:
        """Solve the equation, and return the array that has the new pressure."""
        p = self._p[self._places]
        apply(p, "p", self._conditions)  # the given values
        self._poisson.solve_inside(self._fields.source[self._places[1:-1, 1:-1]], p)
        apply(p, "p", self._conditions)
        self._p[self._places] = p
        return self._p


def without_tables(place: np.ndarray) -> Stencil:
    """Return the places of the points inside, stored row by row, with empty tables of neighbours.

    Args:
        place: (ny, nx) of `md.cavity.memory.places`.
    """
    empty = np.empty(0, np.int32)
    return Stencil(place[1:-1, 1:-1].ravel(), empty, empty, empty, empty)


def by_place(table: BoundaryTable, place: np.ndarray, around: Stencil) -> BoundaryTable:
    """Return a boundary table for points in memory.

    Args:
        table: for numbers of points row by row.
        place: (ny, nx) place in memory of each point.
        around: the points inside by increasing place.

    Returns:
        Places for `points`; for `sources` numbers of points inside, by increasing place, or -1.
    """
    inside = np.full(place.size, -1, np.int32)
    inside[around.centre] = np.arange(len(around.centre), dtype=np.int32)
    stored = place.ravel()
    sources = np.where(table.sources < 0, -1, inside[stored[table.sources]]).astype(np.int32)
    return BoundaryTable(stored[table.points], sources, table.values)
