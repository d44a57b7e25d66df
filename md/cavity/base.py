"""Base classes of the strategies: the configuration, and the solver that holds the fields.

Contract. A strategy is two classes in one file: the configuration (`Strategy`), a frozen dataclass with a
`name` and attributes for what it supports, and the `Solver` that its `build` makes. `md.Cavity` refuses by
name what a strategy does not support, before `build`. All solvers but that of "staggered", which has a grid
of its own, take the steps of `md.cavity.scheme`. The strategy "numpy" is the reference: the others on the CPU
give its bits, or state a `tolerance`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from md.backend.base import Array, Backend
from md.cavity.memory import Order, needed_bytes
from md.cavity.scheme import Scheme

__all__ = ["Order", "Solver", "Strategy", "Values"]

Values = np.ndarray | None  # a field that is given; None keeps the one that a solver has


class Strategy(ABC):
    """Configuration of a strategy.

    Attributes:
        name: as in `md.Cavity(strategy=name)`.
        backends: names of the backends on which it runs.
        layouts: memory layouts: "arrays" (an array a field), "structs" (an array of records).
        any_order: whether points can be stored along any `sfc.ordering`; else row by row only.
        any_sides: whether it takes all sides; else those of `md.cavity.sides.driven` only.
        pressures: how it solves the equation of the pressure: "jacobi", "converged", "sor".
        grids: "collocated", "staggered".
        tolerance: largest difference from the reference after 1000 steps of 41 x 41 points in float64, in
            units of the largest value of each field; 0 for the bits of the reference.
        work: most updates of points, over all sweeps, in one call of `Solver.advance` of a run; an interrupt
            from the keyboard waits for the end of the call.
    """

    name: ClassVar[str]
    backends: ClassVar[tuple[str, ...]] = ("cpu",)
    layouts: ClassVar[tuple[str, ...]] = ("arrays",)
    any_order: ClassVar[bool] = False
    any_sides: ClassVar[bool] = True
    pressures: ClassVar[tuple[str, ...]] = ("jacobi",)
    grids: ClassVar[tuple[str, ...]] = ("collocated",)
    tolerance: ClassVar[float] = 0.0
    work: ClassVar[int] = 2**28

    @classmethod
    def allowed_shapes(cls, shape: tuple[int, int], backend: Backend) -> str:
        """Describe the shapes that the strategy can compute on a backend, if `shape` is none of them.

        Args:
            shape: (ny, nx), boundary included.
            backend: one of `backends`.

        Returns:
            The shapes that are allowed; empty if `shape` is, as for most strategies any is.
        """
        return ""

    def needed_bytes(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> int:
        """Return the bytes that `build` allocates; arguments as those of `build`."""
        return needed_bytes(scheme.shape, scheme.dtype, layout, order)

    @abstractmethod
    def build(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> Solver:
        """Make the solver, with all fields 0.

        Args:
            scheme: the discretised problem.
            layout: one of `layouts`.
            order: in which points are stored: a name of `sfc.orderings(2)`, or a curve.
            backend: one of `backends`.
        """


class Solver(ABC):
    """Fields of a cavity in memory, and the steps that change them.

    Args:
        scheme: the discretised problem.
    """

    def __init__(self, scheme: Scheme):
        self.scheme = scheme

    @abstractmethod
    def load(self, u: Values = None, v: Values = None, p: Values = None) -> None:
        """Set fields: (ny, nx) arrays of the precision of the scheme, copied; None keeps a field as it is."""

    @abstractmethod
    def advance(self, steps: int) -> int:
        """Take steps.

        Args:
            steps: at least 1.

        Returns:
            The number of steps taken, 1 to `steps`; or -k if a field is not finite after k of these steps.
            On the CPU k is exact; a device may check less often, and
            the fields are those of a later step.

        Raises:
            PressureNotConverged: an iteration of the pressure; `step - 1` of these steps were taken.
            BackendUnavailableError: the fields are lost; they are 0.
        """

    @abstractmethod
    def fields(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return u, v and p: new (ny, nx) arrays on the host, in the precision of the scheme."""

    def velocities(self) -> tuple[Array, Array]:
        """Return u and v as arrays of the backend, in any order of the points; not to be changed."""
        return self.fields()[:2]

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return all arrays that a solver needs to resume to the last bit; the fields, if nothing else."""
        return dict(zip("uvp", self.fields(), strict=True))

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore what `state_dict` of a solver of this class returned, for a scheme of the same shape."""
        self.load(state["u"], state["v"], state["p"])
