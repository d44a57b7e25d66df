"""Strategy "numpy": the scheme in whole-array operations; the reference for all others.

The program of Vickers (fluid_simulation, Python), after Ceyron (lid_driven_cavity_python_simple), for any
sides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from md.backend.base import Backend
from md.cavity.base import Order, Solver, Strategy, Values
from md.cavity.boundary import apply
from md.cavity.memory import around
from md.cavity.pressure import pressure_solver
from md.cavity.scheme import Coefficients, Scheme
from md.errors import PressureNotConverged


@dataclass(frozen=True)
class Numpy(Strategy):
    """Configuration of the reference: whole-array operations of numpy, on one thread."""

    name = "numpy"
    work = 2**24
    pressures = ("jacobi", "converged", "sor")

    def build(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> NumpySolver:
        """Make the solver, with all fields 0."""
        return NumpySolver(scheme)


class NumpySolver(Solver):
    """Fields as (ny, nx) arrays, advanced by numpy."""

    def __init__(self, scheme: Scheme):
        super().__init__(scheme)
        self._u, self._v, self._p = np.zeros((3, *scheme.shape), scheme.dtype)
        self._factors, self._conditions = scheme.coefficients, scheme.conditions
        self._poisson = pressure_solver(scheme)

    def load(self, u: Values = None, v: Values = None, p: Values = None) -> None:
        """Set the fields."""
        kept = self._u, self._v, self._p
        self._u, self._v, self._p = (
            field if values is None else values.copy() for field, values in zip(kept, (u, v, p), strict=True)
        )

    def fields(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return copies of u, v and p."""
        return self._u.copy(), self._v.copy(), self._p.copy()

    def advance(self, steps: int) -> int:
        """Take steps, until a field is not finite; see `Solver.advance`."""
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(1, steps + 1):
                try:
                    self._step()
                except PressureNotConverged as fault:
                    raise fault.at(k) from None
                if not all(np.isfinite(field).all() for field in (self._u, self._v, self._p)):
                    return -k
        return steps

    def _step(self) -> None:
        factors = self._factors
        u = self._u + _change(self._u, self._u, self._v, factors)
        v = self._v + _change(self._v, self._u, self._v, factors)
        at_u, at_v = around(u), around(v)
        source = factors.source * ((at_u.east - at_u.west) + (at_v.north - at_v.south))
        self._solve_pressure(source)
        at_p = around(self._p)
        u[1:-1, 1:-1] -= factors.gradient * (at_p.east - at_p.west)
        v[1:-1, 1:-1] -= factors.gradient * (at_p.north - at_p.south)
        apply(u, "u", self._conditions)
        apply(v, "v", self._conditions)
        self._u, self._v = u, v

    def _solve_pressure(self, source: np.ndarray) -> None:
        """Take the Jacobi sweeps, from the last pressure on, or solve the equation to which they converge.

        Args:
            source: (ny - 2, nx - 2) right-hand side times h^2.
        """
        p = self._p
        if self._poisson is not None:
            self._poisson(source, p)
            return
        for _ in range(self.scheme.sweeps):
            at = around(p)
            at.centre[...] = (at.west + at.east + at.south + at.north - source) * self._factors.quarter
            apply(p, "p", self._conditions)


def _change(field: np.ndarray, u: np.ndarray, v: np.ndarray, factors: Coefficients) -> np.ndarray:
    """Return what diffusion and advection add to a velocity in a step: (ny, nx), 0 on the boundary."""
    at, change = around(field), np.zeros_like(field)
    laplacian = at.west + at.south - factors.four * at.centre + at.east + at.north
    along_x, along_y = at.east - at.west, at.north - at.south
    carried = u[1:-1, 1:-1] * along_x + v[1:-1, 1:-1] * along_y
    change[1:-1, 1:-1] = factors.diffusion * laplacian - factors.advection * carried
    return change
