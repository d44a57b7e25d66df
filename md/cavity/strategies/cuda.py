"""Strategy "cuda": one CUDA launch for each sweep over the pressure, a step as one CUDA graph.

As the CUDA program of Vickers (fluid_simulation), on arrays of fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from md.backend.base import Array, Backend
from md.cavity.base import Order, Solver, Strategy
from md.cavity.boundary import BoundaryTable, boundary_table
from md.cavity.scheme import Scheme


@dataclass(frozen=True)
class Cuda(Strategy):
    """Configuration of the plain CUDA strategy: a thread a point, and neighbours read from the caches.

    In float32 it differs from the reference by at most 2e-6 of the largest value after 1000 steps of 41 x 41.
    """

    name = "cuda"
    tolerance = 1e-12
    work = 2**31
    backends = ("cuda",)

    def build(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> CudaSolver:
        """Make the solver, with all fields 0."""
        return CudaSolver(scheme, backend)


class CudaSolver(Solver):
    """Fields in device memory, advanced by a graph of launches.

    Args:
        scheme: the discretised problem.
        backend: of the arrays.
    """

    def __init__(self, scheme: Scheme, backend: Backend):
        super().__init__(scheme)
        ny, nx = scheme.shape
        self._backend: Any = backend
        self._inner, self._factors = (ny - 2) * (nx - 2), scheme.coefficients
        self._u, self._v, self._p, self._ut, self._vt, self._next, self._source = (
            backend.zeros(ny * nx, scheme.dtype) for _ in range(7)
        )
        self._of_u, self._of_v, self._of_p = (
            BoundaryTable(*(backend.upload(array) for array in boundary_table(scheme, name)))
            for name in "uvp"
        )
        self._edge = 2 * (nx + ny) - 4  # boundary points
        self._constants = {"NX": nx, "NY": ny}
        self._kernels = backend.kernels("md.cavity.strategies.cuda", constants=self._constants)
        self._status = backend.zeros(2, np.int32)  # first step with a fault, or 0; steps of this call
        self._graphs: dict[bool, Callable[[], None]] = {}
        self._swapped = self._compiled = False

    def load(self, u: np.ndarray, v: np.ndarray, p: np.ndarray) -> None:
        """Set the fields."""
        for name, field in (("_u", u), ("_v", v), ("_p", p)):
            setattr(self, name, self._backend.upload(field.astype(self.scheme.dtype).reshape(-1)))
        self._graphs.clear()

    def fields(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return copies of u, v and p on the host."""
        u, v, p = (
            self._backend.download(field).reshape(self.scheme.shape) for field in (self._u, self._v, self._p)
        )
        return u, v, p

    def advance(self, steps: int) -> int:
        """Take steps; see `Solver.advance`."""
        self._backend.fill(self._status, 0)
        for _ in range(steps):
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
        fault = int(self._backend.download(self._status)[0])
        return -fault if fault else steps

    def _step(self) -> None:
        """Launch the kernels of one step. After an odd number of sweeps the pressure is in `_next`."""
        points, kernels, factors = self._inner + self._edge, self._kernels, self._factors
        kernels.tentative(points, self._u, self._v, self._ut, self._vt, self._status, factors)
        kernels.find_source(self._inner, self._ut, self._vt, self._source, factors)
        p, after = self._p, self._next
        for _ in range(self.scheme.sweeps):
            self._sweep(p, after)
            p, after = after, p
        kernels.correct(
            points, p, self._ut, self._vt, self._u, self._v, self._status, self._of_u, self._of_v, factors
        )

    def _sweep(self, p: Array, after: Array) -> None:
        """Launch one sweep."""
        self._kernels.sweep(self._inner + self._edge, p, self._source, after, self._of_p, self._factors)
