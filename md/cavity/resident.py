"""Solver with a resident kernel: a launch takes many steps, and leaves the fields in device memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from md.backend.base import Array, Backend
from md.cavity.base import Solver, Values
from md.cavity.boundary import require_boundary_values
from md.cavity.scheme import Scheme

NEVER = 2**31 - 1  # a step that is not reached


class ResidentSolver(Solver):
    """Fields in device memory, advanced by the kernel `advance` of a strategy; for the default sides.

    Args:
        scheme: the discretised problem.
        backend: of the arrays.
        kernels: of the strategy.
        threads: of a launch.
        shared: bytes of shared memory of a block.

    Attributes:
        _fields: named tuple that the kernel takes, with u, v and p as (ny, nx) arrays of the backend; set by
            the subclass.
    """

    _fields: Any

    def __init__(self, scheme: Scheme, backend: Backend, kernels: Any, threads: int, shared: int):
        super().__init__(scheme)
        self._factors = scheme.coefficients
        self._backend, self._kernels, self._threads, self._shared = backend, kernels, threads, shared

    def load(self, u: Values = None, v: Values = None, p: Values = None) -> None:
        """Set the fields; see `Solver.load`.

        Raises:
            ValueError: a pressure without its boundary values.
        """
        if p is not None:
            require_boundary_values(p, self.scheme, "cuda")
        given = {name: field for name, field in zip("uvp", (u, v, p), strict=True) if field is not None}
        self._fields = self._fields._replace(
            **{name: self._backend.upload(field.astype(self.scheme.dtype)) for name, field in given.items()}
        )

    def fields(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return copies of u, v and p on the host."""
        u, v, p = (self._backend.download(field) for field in self._fields[:3])
        return u, v, p

    def velocities(self) -> tuple[Array, Array]:
        """Return u and v where they are on the device."""
        return self._fields[:2]

    def _launch(self, steps: int, *given: int) -> tuple[int, bool]:
        """Take steps in one launch.

        Args:
            steps: at least 1.
            given: what the kernel takes between the steps and the fields.

        Returns:
            As `Solver.advance`; and whether the kernel gave up.
        """
        status = self._backend.upload(np.array([NEVER, 0], np.int32))
        arguments = *given, self._fields, self._factors, status
        self._kernels.advance(self._threads, self._shared, steps, *arguments)
        fault, gave_up = (int(word) for word in self._backend.download(status))
        return steps if fault == NEVER else -fault, bool(gave_up)


def at_rest(scheme: Scheme, backend: Backend) -> dict[str, Any]:
    """Return what the fields of each resident kernel have: u, v and p, all 0, and the speed of the lid."""
    top = scheme.conditions["top"].u
    assert top is not None
    return {name: backend.zeros(scheme.shape, scheme.dtype) for name in "uvp"} | {
        "lid": scheme.dtype.type(top[1])
    }
