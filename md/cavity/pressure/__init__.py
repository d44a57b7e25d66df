"""Solvers of the pressure's equation by name, for `pressure="converged"` and `pressure="sor"`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from md.cavity.boundary import apply
from md.cavity.pressure.poisson import DirectPoisson, PressureSides
from md.cavity.pressure.products import ProductPoisson
from md.cavity.pressure.sor import Sor
from md.cavity.scheme import Scheme

__all__ = ["SOLVERS", "DirectPoisson", "PressureSides", "ProductPoisson", "Sor", "pressure_solver"]

SOLVERS: dict[str, type[DirectPoisson] | type[Sor]] = {"converged": DirectPoisson, "sor": Sor}


def pressure_solver(scheme: Scheme) -> Callable[[np.ndarray, np.ndarray], None] | None:
    """Make the function that solves the pressure's equation of a step on the collocated grid.

    Args:
        scheme: the discretised problem.

    Returns:
        Function of the right-hand side times h^2, (ny - 2, nx - 2), and of the (ny, nx) pressure, which it
        changes in place, boundary included; None if the scheme takes Jacobi sweeps. It raises
        `md.errors.PressureNotConverged`.
    """
    if scheme.pressure not in SOLVERS:
        return None
    inside = scheme.shape[0] - 2, scheme.shape[1] - 2
    solver = SOLVERS[scheme.pressure](inside, PressureSides.of(scheme), scheme.dtype)
    conditions = scheme.conditions

    def solve(source: np.ndarray, p: np.ndarray) -> None:
        apply(p, "p", conditions)  # the given values
        solver.solve_inside(source, p)
        apply(p, "p", conditions)

    return solve
