"""Numbers of the discretised problem of a cavity: grid, fluid, time step, sides, precision.

The scheme on the collocated grid, with u, v and p at the same (ny, nx) points, h apart in both directions
(Vickers, fluid_simulation, after Ceyron; the projection method of Chorin, 1968). E, W, N, S are the values
at the neighbours along +x, -x, +y, -y, and C is the value at the point itself:

    ut = u + (diffusion (W + S - 4 C + E + N) - advection (u (E - W) + v (N - S)))      of u; vt likewise of v
    b  = source ((E - W of ut) + (N - S of vt))
    p  = (W + E + S + N - b) / 4                                                       `sweeps` times
    u  = ut - gradient (E - W of p),  v = vt - gradient (N - S of p)

for all points inside. `ut` and `vt` on the boundary are the last u and v. After each sweep the pressure gets
its boundary values: right, left, bottom, top, in this order; at the end of a step the velocities get
theirs: bottom, top, left, right. A later side overwrites the corners.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from md.cavity.sides import Conditions, Sides

SAFETY = 0.8  # of the default time step: its fraction of the bound


class Coefficients(NamedTuple):
    """Factors of one step, as scalars of the precision of the fields; see the module for their places.

    Attributes:
        diffusion: dt viscosity / h^2.
        advection: dt / (2 h).
        source: density h / (2 dt).
        gradient: dt / (2 h density).
        quarter: 1 / 4.
        four: 4.
    """

    diffusion: np.floating
    advection: np.floating
    source: np.floating
    gradient: np.floating
    quarter: np.floating
    four: np.floating


@dataclass(frozen=True)
class Scheme:
    """Discretised problem; all arguments have been checked.

    Args:
        shape: (ny, nx), points along y and x, boundary included, each at least 3.
        h: distance of neighbouring points, the same along x and y.
        viscosity: kinematic.
        density: of the fluid.
        dt: time step.
        sweeps: Jacobi sweeps of a step.
        sides: conditions at the boundary.
        precision: "float64" or "float32".
        pressure: "jacobi", "converged" or "sor": how the equation of the pressure is solved.
        grid: "collocated" or "staggered".
    """

    shape: tuple[int, int]
    h: float
    viscosity: float
    density: float
    dt: float
    sweeps: int
    sides: Sides
    precision: str = "float64"
    pressure: str = "jacobi"
    grid: str = "collocated"

    @property
    def dtype(self) -> np.dtype:
        """Numpy dtype of the fields."""
        return np.dtype(self.precision)

    @property
    def coefficients(self) -> Coefficients:
        """Factors of a step, computed in float64 and rounded once to the precision of the fields."""
        with np.errstate(all="ignore"):  # `is_finite` checks them
            dt, h = np.float64(self.dt), np.float64(self.h)
            factors = (
                dt * self.viscosity / h**2,
                dt / (2 * h),
                self.density * h / (2 * dt),
                dt / (2 * h * self.density),
                0.25,
                4.0,
            )
            return Coefficients(*(self.dtype.type(factor) for factor in factors))

    @property
    def conditions(self) -> dict[str, Conditions]:
        """Conditions for u, v and p of each side by name."""
        return self.sides.conditions(self.shape)

    @property
    def bound(self) -> float:
        """Largest time step that is stable for the speeds that the sides prescribe; see `largest_dt`."""
        return largest_dt(self.h, self.viscosity, self.sides.fastest)


def largest_dt(h: float, viscosity: float, speed: float) -> float:
    """Return the largest stable time step of explicit central differences: min(h^2 / (4 nu), 2 nu / speed^2).

    Args:
        h: distance of neighbouring points.
        viscosity: kinematic, nu, above 0.
        speed: largest speed at the boundary; at 0 the first bound holds alone.

    Hirt (1968); for two dimensions Hindmarsh, Gresho and Griffiths (1984).
    """
    diffusive = h * h / (4 * viscosity)
    return min(diffusive, 2 * viscosity / speed / speed) if speed else diffusive


def spacing(shape: tuple[int, int], size: float) -> float:
    """Return the distance of neighbouring points of a cavity of some width: size / (nx - 1).

    Points are equally far apart in both directions, so that the cavity is size (ny - 1) / (nx - 1) high.
    """
    found = size / (shape[1] - 1)
    square = found * found
    if not (0 < square < math.inf and math.isfinite(1 / square)):
        remedy = "a smaller size" if square else "a larger size"
        raise ValueError(
            f"size = {size}: points {found:.3g} apart, whose square has no reciprocal; allowed: {remedy}"
        )
    return found


def is_finite(scheme: Scheme) -> bool:
    """Return whether time step, coefficients and conditions are finite, and the bound of stability above 0.

    Args:
        scheme: the discretised problem; its time step may be 0 or infinite.
    """
    if not (0 < scheme.dt < math.inf and scheme.bound > 0):
        return False
    largest = float(np.finfo(scheme.dtype).max)
    most = largest / 2 if scheme.grid == "staggered" else largest  # that grid has density h / dt
    given = [values for one in scheme.conditions.values() for values in one if values is not None]
    return all(
        bool((np.abs(np.asarray(values, np.float64)) <= most).all())
        for values in (*scheme.coefficients, *given)
    )
