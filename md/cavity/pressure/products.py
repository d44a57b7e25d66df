"""Solve the discrete pressure equation of a time step by products with matrices, on any backend."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from md.backend.base import Array, Backend
from md.cavity.pressure.poisson import DirectPoisson, PressureSides, basis


class ProductPoisson(DirectPoisson):
    """As `DirectPoisson`, with each transform as the product with its matrix: four products a solution.

    Products take more operations than fast transforms, but run at the full rate of a GPU. They are computed
    in float64, since in float32 their rounding is several times that of fast transforms.

    Args:
        shape: (rows, columns) of the unknowns.
        sides: conditions of the pressure.
        dtype: float64 or float32.
        backend: of the arrays of `solve` and `solve_inside`.

    Raises:
        TypeError, ValueError: a side with an unknown condition.

    Lynch, Rice and Thomas (1964), Numer. Math. 6, 185.
    """

    def __init__(self, shape: tuple[int, int], sides: PressureSides, dtype: DTypeLike, backend: Backend):
        super().__init__(shape, sides, dtype)
        self.factors = backend.upload(self.factors.astype(np.float64))
        self._of_rows, self._of_columns = (
            backend.upload(basis(n, ends)) for n, ends in zip(shape, self.ends, strict=True)
        )

    def solve(self, source: Array) -> Array:
        """Solve the equation for Dirichlet values of 0; see `DirectPoisson.solve`.

        Args:
            source: b, of the solver's shape, an array of the backend.

        Returns:
            p, of the same shape and precision, an array of the backend.
        """
        spectrum = self.factors * (self._of_rows.T @ source.astype(np.float64) @ self._of_columns)
        return (self._of_rows @ spectrum @ self._of_columns.T).astype(source.dtype)

    @staticmethod
    def needed_bytes(shape: tuple[int, int]) -> int:
        """Return the bytes of the matrices and of the arrays of a solution.

        Args:
            shape: (rows, columns) of the unknowns.
        """
        rows, columns = shape
        return 8 * (rows * rows + columns * columns + 5 * rows * columns)
