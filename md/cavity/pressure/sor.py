"""Solve the discrete pressure equation of a time step by over-relaxation, to a stated tolerance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from md import checks
from md.cavity.boundary import EDGE
from md.cavity.pressure.poisson import DirectPoisson, PressureSides, with_boundary_values
from md.errors import PressureNotConverged
from sfc.compile import kernel

TOLERANCE = 1e-8
CHECK_EVERY = 8  # sweeps between two checks of the residual
POWER_STEPS = 30  # inverse iterations for the lowest mode


class Sor:
    """Red-black successive over-relaxation of W + E + S + N - 4 C = b at the inner points of a grid.

    The sweeps end when no residual is larger than `tolerance` times the largest right-hand side, or than what
    over-relaxation makes of rounding: 4 eps max|p| / (2 - relaxation), about three times the floor that is
    measured for grids of 39 to 511 unknowns a side; p is the pressure now or at the start. The boundary rules
    are part of the equation: a Neumann side takes one neighbour and its weight from the points next to it, so
    that the solution is that of `DirectPoisson`.

    Args:
        shape: (rows, columns) of the inner points.
        sides: conditions of the pressure.
        dtype: float64 or float32.
        tolerance: largest residual, in units of the largest right-hand side; in (0, 1).
        relaxation: over-relaxation factor in (0, 2); None for the optimal one (`optimal_relaxation`).
        most_sweeps: sweeps allowed in a solution, at least 1; None for 100, and 4 times as many as the
            tolerance needs by theory (`spectral_radius`).

    Raises:
        TypeError, ValueError: an argument out of range.

    Young (1954), Trans. Amer. Math. Soc. 76, 92.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        sides: PressureSides,
        dtype: DTypeLike = np.float64,
        *,
        tolerance: float = TOLERANCE,
        relaxation: float | None = None,
        most_sweeps: int | None = None,
    ):
        self.shape, self.sides = shape, sides
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.tolerance = checks.number("tolerance", tolerance, above=0, below=1)
        jacobi = jacobi_radius(shape, sides)
        chosen = optimal_relaxation(jacobi) if relaxation is None else relaxation
        self.relaxation = checks.number("relaxation", chosen, above=0, below=2)
        if most_sweeps is None:
            rate = -math.log(max(spectral_radius(self.relaxation, jacobi), 0.1))
            self.most_sweeps = 100 + math.ceil(4 * math.log(1 / self.tolerance) / rate)
        else:
            self.most_sweeps = checks.integer("most_sweeps", most_sweeps, 1)

    def solve_inside(self, source: np.ndarray, p: np.ndarray) -> int:
        """Solve the equation on the inner points, in place, starting from their values.

        Args:
            source: b, (rows, columns): the right-hand side of the pressure's equation times h^2. If all sides
                are Neumann, its mean is left out.
            p: (rows + 2, columns + 2); the inner points are written. Points on Dirichlet sides are read: they
                hold the given values. Points on Neumann sides are neither read nor written. If all sides are
                Neumann, the mean of the solution is 0. All become NaN if a value of the equation is not
                finite.

        Returns:
            Sweeps made.

        Raises:
            PressureNotConverged: the residual is above the tolerance after `most_sweeps`.
        """
        b = with_boundary_values(source, p, self.sides)
        inner = p[1:-1, 1:-1]
        if self.sides.singular:
            b -= b.mean()
        largest = float(np.abs(b).max())
        if not math.isfinite(largest):
            inner[...] = math.nan
            return 0
        omega, closed = self.dtype.type(self.relaxation), tuple(s == "neumann" for s in self.sides)
        unit = 4 * float(np.finfo(self.dtype).eps) / (2 - self.relaxation)
        start = float(np.abs(inner).max())
        residual, made = math.inf, 0
        while made < self.most_sweeps:
            count = min(CHECK_EVERY, self.most_sweeps - made)
            residual = float(relax(inner, b, omega, *closed, count))
            made += count
            if self.sides.singular:
                inner -= inner.mean()
            if residual <= max(self.tolerance * largest, unit * max(start, float(np.abs(inner).max()))):
                return made
        raise PressureNotConverged(residual / (largest or start), self.tolerance, made)


def optimal_relaxation(jacobi: float) -> float:
    """Compute the over-relaxation factor of the fewest sweeps: 2 / (1 + sqrt(1 - jacobi^2)), in [1, 2).

    Args:
        jacobi: spectral radius of Jacobi's iteration, in [0, 1).

    Young (1954), Trans. Amer. Math. Soc. 76, 92.
    """
    return 2 / (1 + math.sqrt(1 - jacobi * jacobi))


def spectral_radius(relaxation: float, jacobi: float) -> float:
    """Compute by what factor a sweep reduces the error in the end, in (0, 1).

    Args:
        relaxation: over-relaxation factor, in (0, 2).
        jacobi: spectral radius of Jacobi's iteration, in [0, 1).

    Young (1954), Trans. Amer. Math. Soc. 76, 92.
    """
    if relaxation >= optimal_relaxation(jacobi):
        return relaxation - 1
    root = relaxation * jacobi
    return ((root + math.sqrt(root * root - 4 * (relaxation - 1))) / 2) ** 2


def jacobi_radius(shape: tuple[int, int], sides: PressureSides) -> float:
    """Compute the spectral radius of Jacobi's iteration with the diagonal D of the equation.

    It is 1 less the smallest eigenvalue of A x = lambda D x that is not 0, which inverse iteration with the
    direct solver finds. Constant fields, which closed sides neither create nor remove, do not count.

    Args:
        shape: (rows, columns) of the inner points.
        sides: conditions of the pressure.

    Returns:
        The radius, in [0, 1).
    """
    diagonal = np.full(shape, 4.0)
    for side, kind in sides._asdict().items():
        diagonal[EDGE[side]] -= kind == "neumann"
    if not diagonal.any():  # a single point between closed sides has no equation
        return 0.0
    solver = DirectPoisson(shape, sides)
    # An uneven start: the lowest mode may be odd about either centre line.
    x = np.arange(1.0, shape[0] + 1)[:, None] ** 2 + 0.7 * np.arange(1.0, shape[1] + 1) ** 2
    lowest = 1.0
    for _ in range(POWER_STEPS):
        if sides.singular:
            x = x - (diagonal * x).sum() / diagonal.sum()
        x = x / math.sqrt((diagonal * x * x).sum())
        solved = -solver.solve(diagonal * x)
        lowest = 1 / float((x * diagonal * solved).sum())
        x = solved
    return max(1 - lowest, 0.0)


@kernel
def relax(p, b, omega, left, right, bottom, top, sweeps):
    """Make red-black sweeps over (rows, columns) unknowns, in place; return the last one's largest residual.

    `left`, `right`, `bottom` and `top` say whether the pressure of that side is Neumann.
    """
    rows, columns = p.shape
    largest = abs(b[0, 0]) * 0
    for s in range(2 * sweeps):
        if s == 2 * sweeps - 2:
            largest *= 0
        for j in range(rows):
            for i in range((j + s) % 2, columns, 2):
                weight, total = 4, -b[j, i]
                if i > 0:
                    total += p[j, i - 1]
                elif left:
                    weight -= 1
                if i < columns - 1:
                    total += p[j, i + 1]
                elif right:
                    weight -= 1
                if j > 0:
                    total += p[j - 1, i]
                elif bottom:
                    weight -= 1
                if j < rows - 1:
                    total += p[j + 1, i]
                elif top:
                    weight -= 1
                if weight > 0:  # a single cell between closed sides has no equation
                    residual = total - weight * p[j, i]
                    p[j, i] += omega * residual / weight
                    largest = max(largest, abs(residual))
    return largest
