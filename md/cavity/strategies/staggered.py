"""Strategy "staggered": velocities on the faces of cells, pressure at their centres (marker-and-cell grid).

The (ny, nx) points of the cavity are the corners of (ny - 1) x (nx - 1) square cells. A step is that of
`md.cavity.scheme` on this grid: tentative velocities by central differences, the solution of the pressure's
equation with zero gradient at all sides, correction. Divergence and gradient are each the other's transpose,
so that the new velocities have a divergence of 0 to rounding, and a steady state does not depend on dt.

Harlow and Welch (1965), Phys. Fluids 8, 2182.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from md.backend.base import Backend
from md.cavity.base import Order, Solver, Strategy, Values
from md.cavity.pressure import SOLVERS, PressureSides
from md.cavity.scheme import Scheme
from md.cavity.sides import NAMES, Wall, driven
from md.errors import PressureNotConverged
from sfc.compile import kernel

STATE = ("u_faces", "v_faces", "differences")  # arrays of a solver


@dataclass(frozen=True)
class Staggered(Strategy):
    """Configuration of the staggered grid: walls at all sides, at rest or moving along themselves.

    The pressure has zero gradient at all sides and the mean 0; the p = 0 at the lid of the default sides
    belongs to the collocated grid and is not used.
    """

    name = "staggered"
    work = 2**24
    grids = ("staggered",)
    pressures = ("converged", "sor")

    def build(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> StaggeredSolver:
        """Make the solver, with all fields 0.

        Raises:
            ValueError: a side that is no wall, or has a given pressure.
        """
        sides = {name: getattr(scheme.sides, name) for name in NAMES}
        remedy = "or take grid='collocated'"
        for name, side in sides.items():
            if not isinstance(side, Wall):
                raise ValueError(
                    f"sides[{name!r}] = {side} with grid='staggered'; allowed: md.cavity.Wall on all "
                    f"sides; {remedy}"
                )
        for name, side in sides.items():
            if side.pressure != "neumann" and scheme.sides != driven(sides["top"].speed):
                raise ValueError(
                    f"sides[{name!r}] = {side} with grid='staggered'; allowed: pressure='neumann'; leave it "
                    f"out, {remedy}"
                )
        return StaggeredSolver(scheme)


class StaggeredSolver(Solver):
    """Velocities on faces and pressures in cells, with a rim for the walls.

    Attributes:
        u_faces: (ny + 1, nx), velocities along +x. Column i is at x = i h, row j at y = (j - 1/2) h; the rows
            0 and ny are beyond the walls, with values that give the mean on the wall its speed.
        v_faces: (ny, nx + 1), velocities along +y. Row j is at y = j h, column i at x = (i - 1/2) h; the
            columns 0 and nx are beyond the walls.
        differences: (ny + 1, nx + 1), dt / (density h) times the pressure, which is what velocities change by
            across a face. The pressure of the cells is inside; the rim is not used.
    """

    def __init__(self, scheme: Scheme):
        super().__init__(scheme)
        ny, nx = scheme.shape
        dtype = scheme.dtype
        self.u_faces, self.v_faces = np.zeros((ny + 1, nx), dtype), np.zeros((ny, nx + 1), dtype)
        self.differences = np.zeros((ny + 1, nx + 1), dtype)
        closed = PressureSides("neumann", "neumann", "neumann", "neumann")
        self._poisson = SOLVERS[scheme.pressure]((ny - 1, nx - 1), closed, dtype)
        self._new_u, self._new_v = self.u_faces.copy(), self.v_faces.copy()
        self._source = np.empty((ny - 1, nx - 1), dtype)
        self._diffusion = dtype.type(scheme.dt * scheme.viscosity / scheme.h**2)
        self._advection = dtype.type(scheme.dt / (4 * scheme.h))
        self._unit = dtype.type(scheme.density * scheme.h / scheme.dt)
        conditions = scheme.conditions
        self._bottom, self._top = (_speeds(conditions[name].u, dtype) for name in ("bottom", "top"))
        self._left, self._right = (_speeds(conditions[name].v, dtype) for name in ("left", "right"))

    def load(self, u: Values = None, v: Values = None, p: Values = None) -> None:
        """Set the fields that are given from values at the points: means of neighbouring points.

        Their divergence is not 0; the next step makes it so.
        """
        if u is not None:
            self.u_faces[1:-1] = (u[1:] + u[:-1]) / 2
            self.u_faces[:, [0, -1]] = 0
        if v is not None:
            self.v_faces[:, 1:-1] = (v[:, 1:] + v[:, :-1]) / 2
            self.v_faces[[0, -1]] = 0
        if p is not None:
            around = p[1:, 1:] + p[1:, :-1] + p[:-1, 1:] + p[:-1, :-1]
            self.differences[1:-1, 1:-1] = around / (4 * self._unit)
        if u is not None or v is not None:
            self._move_walls(self.u_faces, self.v_faces)

    def fields(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return u, v and p at the points: means of the neighbouring faces and cells.

        On a wall u and v are those of the wall, and p is the mean of the cells beside the wall.
        """
        u, v = (self.u_faces[1:] + self.u_faces[:-1]) / 2, (self.v_faces[:, 1:] + self.v_faces[:, :-1]) / 2
        u[:, [0, -1]] = 0
        p = np.pad(self._unit * self.differences[1:-1, 1:-1], 1, mode="edge")
        return u, v, (p[1:, 1:] + p[1:, :-1] + p[:-1, 1:] + p[:-1, :-1]) / 4

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return copies of the face velocities and the pressure differences."""
        return {name: getattr(self, name).copy() for name in STATE}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore what `state_dict` returned; see `Solver.load_state`."""
        for name in STATE:
            getattr(self, name)[...] = state[name]

    def advance(self, steps: int) -> int:
        """Take steps, until a field is not finite; see `Solver.advance`."""
        inside = self.differences[1:-1, 1:-1]
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(1, steps + 1):
                u, v = self._new_u, self._new_v
                predict(self.u_faces, self.v_faces, u, v, self._diffusion, self._advection)
                diverge(u, v, self._source)
                try:
                    self._poisson.solve_inside(self._source, self.differences)
                except PressureNotConverged as fault:
                    raise fault.at(k) from None
                correct(u, v, inside)
                self._move_walls(u, v)
                self._new_u, self._new_v, self.u_faces, self.v_faces = self.u_faces, self.v_faces, u, v
                if not all(np.isfinite(field).all() for field in (u, v, inside)):
                    return -k
        return steps

    def divergence(self) -> np.ndarray:
        """Compute the divergence of each cell: (ny - 1, nx - 1)."""
        along_x = self.u_faces[1:-1, 1:] - self.u_faces[1:-1, :-1]
        along_y = self.v_faces[1:, 1:-1] - self.v_faces[:-1, 1:-1]
        return (along_x + along_y) / self.scheme.dtype.type(self.scheme.h)

    def _move_walls(self, u: np.ndarray, v: np.ndarray) -> None:
        """Set the rims, so that the means on the walls are the speeds of the walls."""
        u[0], u[-1] = 2 * self._bottom - u[1], 2 * self._top - u[-2]
        v[:, 0], v[:, -1] = 2 * self._left - v[:, 1], 2 * self._right - v[:, -2]


def _speeds(values: np.ndarray | None, dtype: np.dtype) -> np.ndarray:
    """Return the speeds of a wall along itself in a precision."""
    assert values is not None  # walls only
    return values.astype(dtype)


@kernel
def predict(u, v, new_u, new_v, diffusion, advection):
    """Take the tentative velocities of inner faces, advection in divergence form.

    Args:
        u: (ny + 1, nx) velocities on faces with their rims; see `StaggeredSolver`.
        v: (ny, nx + 1) velocities on faces with their rims.
        new_u: (ny + 1, nx); inner faces are written.
        new_v: (ny, nx + 1); inner faces are written.
        diffusion: dt viscosity / h^2.
        advection: dt / (4 h); products of sums of two velocities stand for those of means.
    """
    rows, columns = u.shape[0] - 2, v.shape[1] - 2
    for j in range(1, rows + 1):
        for i in range(1, columns):
            here = u[j, i]
            around = (u[j, i - 1] + u[j, i + 1]) + (u[j - 1, i] + u[j + 1, i])
            east, west = here + u[j, i + 1], here + u[j, i - 1]
            north = (here + u[j + 1, i]) * (v[j, i] + v[j, i + 1])
            south = (here + u[j - 1, i]) * (v[j - 1, i] + v[j - 1, i + 1])
            carried = (east * east - west * west) + (north - south)
            new_u[j, i] = here + diffusion * (around - (here + here + here + here)) - advection * carried
    for j in range(1, rows):
        for i in range(1, columns + 1):
            here = v[j, i]
            around = (v[j, i - 1] + v[j, i + 1]) + (v[j - 1, i] + v[j + 1, i])
            north, south = here + v[j + 1, i], here + v[j - 1, i]
            east = (here + v[j, i + 1]) * (u[j, i] + u[j + 1, i])
            west = (here + v[j, i - 1]) * (u[j, i - 1] + u[j + 1, i - 1])
            carried = (east - west) + (north * north - south * south)
            new_v[j, i] = here + diffusion * (around - (here + here + here + here)) - advection * carried


@kernel
def diverge(u, v, source):
    """Sum the flow out of each cell through its faces: (ny - 1, nx - 1) divergence times h."""
    for j in range(source.shape[0]):
        for i in range(source.shape[1]):
            source[j, i] = (u[j + 1, i + 1] - u[j + 1, i]) + (v[j + 1, i + 1] - v[j, i + 1])


@kernel
def correct(u, v, p):
    """Subtract the differences of neighbouring cells' pressures, (ny - 1, nx - 1), from inner faces."""
    rows, columns = p.shape
    for j in range(rows):
        for i in range(1, columns):
            u[j + 1, i] -= p[j, i] - p[j, i - 1]
    for j in range(1, rows):
        for i in range(columns):
            v[j, i + 1] -= p[j, i] - p[j - 1, i]
