"""Solve the discrete pressure equation of a time step directly, by cosine and sine transforms.

The unknowns of an axis are n values a spacing apart. An end of the axis is "neumann" (zero gradient: the
value one spacing beyond the end is that of the last unknown) or "dirichlet" (the value one spacing beyond the
end is given). Each pair of ends has a basis in which the second difference is diagonal:

    neumann, neumann     cos(pi k (j + 1/2) / n)                        k = 0, 1, .., n - 1
    dirichlet, dirichlet sin(pi (k + 1) (j + 1) / (n + 1))
    neumann, dirichlet   cos(pi (2 k + 1) (j + 1/2) / (2 n + 1))

These are the boundary rules of the Jacobi sweeps on the collocated grid (unknowns: the inner points) and of a
staggered grid (unknowns: the cells), so the solution is that to which the sweeps converge.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy  # its `fft` is loaded when first used
from numpy.typing import DTypeLike

from md import checks
from md.cavity.boundary import EDGE
from md.cavity.scheme import Scheme

LARGEST_MATRIX = 512  # unknowns of an axis up to which a product with its basis is faster than an FFT
KINDS = ("neumann", "dirichlet")
Ends = tuple[str, str]


class PressureSides(NamedTuple):
    """Condition of the pressure on each side: "neumann" (zero gradient) or "dirichlet" (given values)."""

    left: str
    right: str
    bottom: str
    top: str

    @classmethod
    def of(cls, scheme: Scheme) -> PressureSides:
        """Return the conditions of a scheme."""
        fixed = {name: one.p is not None for name, one in scheme.conditions.items()}
        return cls(*(KINDS[fixed[name]] for name in cls._fields))

    @property
    def singular(self) -> bool:
        """Whether the pressure is determined up to a constant only."""
        return "dirichlet" not in self

    def checked(self) -> PressureSides:
        """Check the conditions.

        Raises:
            TypeError, ValueError: a side that is not one of `KINDS`; the message names side and value.
        """
        for side, kind in zip(self._fields, self, strict=True):
            checks.word(f"pressure on the {side} side", kind, KINDS)
        return self


def eigenvalues(n: int, ends: Ends) -> np.ndarray:
    """Compute the eigenvalues of the negative second difference of n unknowns, spacing 1.

    Args:
        n: number of unknowns, at least 1.
        ends: conditions at the low and the high end.

    Returns:
        (n,) float64, in [0, 4], ascending.
    """
    k = np.arange(n)
    if ends == ("neumann", "neumann"):
        angle = np.pi * k / n
    elif ends == ("dirichlet", "dirichlet"):
        angle = np.pi * (k + 1) / (n + 1)
    else:
        angle = np.pi * (2 * k + 1) / (2 * n + 1)
    return 4 * np.sin(angle / 2) ** 2


def transform(values: np.ndarray, axis: int, ends: Ends) -> np.ndarray:
    """Expand an array along one axis in the eigenvectors of the second difference; see `inverse`.

    Args:
        values: real array.
        axis: axis of the expansion.
        ends: conditions at the low and the high end of the axis.

    Returns:
        Coefficients, in the order of `eigenvalues`; of the same shape and precision.
    """
    if ends == ("neumann", "neumann"):
        return scipy.fft.dct(values, 2, axis=axis, norm="ortho")
    if ends == ("dirichlet", "dirichlet"):
        return scipy.fft.dst(values, 1, axis=axis, norm="ortho")
    rows = np.moveaxis(values, axis, -1)
    n = rows.shape[-1]
    if n <= LARGEST_MATRIX:
        return np.moveaxis(rows @ _kept_basis(n, ends, rows.dtype), -1, axis)
    if ends == ("dirichlet", "neumann"):
        rows = rows[..., ::-1]
    # Odd about the Dirichlet end: an even sequence of 2 n + 1 values, which has odd cosines only.
    odd = np.concatenate([rows, np.zeros_like(rows[..., :1]), -rows[..., ::-1]], axis=-1)
    return np.moveaxis(scipy.fft.dct(odd, 2, axis=-1, norm="ortho")[..., 1::2] / math.sqrt(2), -1, axis)


def inverse(coefficients: np.ndarray, axis: int, ends: Ends) -> np.ndarray:
    """Sum the eigenvectors of the second difference along one axis: the inverse of `transform`."""
    if ends == ("neumann", "neumann"):
        return scipy.fft.idct(coefficients, 2, axis=axis, norm="ortho")
    if ends == ("dirichlet", "dirichlet"):
        return scipy.fft.idst(coefficients, 1, axis=axis, norm="ortho")
    rows = np.moveaxis(coefficients, axis, -1)
    n = rows.shape[-1]
    if n <= LARGEST_MATRIX:
        return np.moveaxis(rows @ _kept_basis(n, ends, rows.dtype).T, -1, axis)
    odd = np.zeros((*rows.shape[:-1], 2 * n + 1), rows.dtype)
    odd[..., 1::2] = rows * math.sqrt(2)
    values = scipy.fft.idct(odd, 2, axis=-1, norm="ortho")[..., :n]
    return np.moveaxis(values[..., ::-1] if ends == ("dirichlet", "neumann") else values, -1, axis)


def basis(n: int, ends: Ends, dtype: DTypeLike = np.float64) -> np.ndarray:
    """Return the eigenvectors of the second difference of n unknowns.

    Args:
        n: number of unknowns.
        ends: conditions at the low and the high end.
        dtype: of the result.

    Returns:
        (n, n), an eigenvector of length 1 a column, in the order of `eigenvalues`.
    """
    j, k = np.arange(n)[:, None], np.arange(n)
    # Integers modulo the period keep sine and cosine exact to rounding for every n.
    if ends == ("neumann", "neumann"):
        columns = np.cos((2 * j + 1) * k % (4 * n) * (np.pi / (2 * n))) * math.sqrt(2 / n)
        columns[:, 0] = math.sqrt(1 / n)
    elif ends == ("dirichlet", "dirichlet"):
        columns = np.sin((j + 1) * (k + 1) % (2 * (n + 1)) * (np.pi / (n + 1))) * math.sqrt(2 / (n + 1))
    else:
        angle = (2 * j + 1) * (2 * k + 1) % (4 * (2 * n + 1)) * (np.pi / (2 * (2 * n + 1)))
        columns = np.cos(angle) * (2 / math.sqrt(2 * n + 1))
    return np.ascontiguousarray(columns[::-1] if ends == ("dirichlet", "neumann") else columns, dtype)


_kept_basis = lru_cache(maxsize=8)(basis)


class DirectPoisson:
    """Direct solver of W + E + S + N - 4 C = b for p on a rectangle of points, all equally far apart.

    C is p at a point, and the other letters are p at its neighbours. If all sides are Neumann, the mean of b
    is left out, since no p has a five-point Laplacian with a mean, and p has the mean 0.

    Args:
        shape: (rows, columns) of the unknowns: inner points of a collocated grid, cells of a staggered one.
        sides: conditions of the pressure.
        dtype: float64 or float32.

    Raises:
        TypeError, ValueError: a side with an unknown condition.
    """

    def __init__(self, shape: tuple[int, int], sides: PressureSides, dtype: DTypeLike = np.float64):
        self.shape, self.sides = shape, sides.checked()
        self.ends = (sides.bottom, sides.top), (sides.left, sides.right)
        total = eigenvalues(shape[0], self.ends[0])[:, None] + eigenvalues(shape[1], self.ends[1])
        if sides.singular:
            total[0, 0] = np.inf
        self.factors = (-1 / total).astype(dtype)

    def solve(self, source: np.ndarray) -> np.ndarray:
        """Solve the equation for Dirichlet values of 0.

        Args:
            source: b, of the solver's shape: the right-hand side of the pressure's equation times h^2.

        Returns:
            p, of the same shape and precision.
        """
        rows, columns = self.ends
        if rows == columns == ("neumann", "neumann"):
            return scipy.fft.idctn(self.factors * scipy.fft.dctn(source, 2, norm="ortho"), 2, norm="ortho")
        spectrum = self.factors * transform(transform(source, 1, columns), 0, rows)
        return inverse(inverse(spectrum, 0, rows), 1, columns)

    def solve_inside(self, source: np.ndarray, p: np.ndarray) -> None:
        """Solve the equation at the inner points of a collocated grid, in place.

        Args:
            source: b, (rows, columns).
            p: (rows + 2, columns + 2); the inner points are written. Points on Dirichlet sides are read: they
                hold the given values. Points on Neumann sides are neither read nor written.
        """
        p[1:-1, 1:-1] = self.solve(with_boundary_values(source, p, self.sides))


def with_boundary_values(source: np.ndarray, p: np.ndarray, sides: PressureSides) -> np.ndarray:
    """Move given values on Dirichlet sides to the right-hand side of the equation of the inner points.

    Args:
        source: (rows, columns), b at the inner points.
        p: (rows + 2, columns + 2), the given values on its sides.
        sides: conditions of the pressure.

    Returns:
        (rows, columns), a new array.
    """
    b = source.copy()
    for side, kind in sides._asdict().items():
        if kind == "dirichlet":
            b[EDGE[side]] -= p[EDGE[side]][1:-1]
    return b
