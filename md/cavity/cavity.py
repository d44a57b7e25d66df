"""Class `Cavity`: fluid in a box with sides that move, let fluid in or let fluid out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np

from md import checks
from md.backend.base import Backend
from md.cavity.base import Order, Strategy
from md.cavity.checkpoint import FIELDS, SavedCavity
from md.cavity.config import Problem, chosen
from md.cavity.memory import sweep_accesses
from md.cavity.scheme import Scheme, largest_dt
from md.cavity.sides import Side, Sides
from md.errors import (
    BackendUnavailableError,
    CheckpointError,
    NonFiniteField,
    PressureNotConverged,
    UnstableTimeStep,
)
from md.io.interrupt import defer_sigint
from sfc.cache import AccessStream

LEAST_UPDATES = 2**16  # of points, as which a step counts for the length of a call: small ones mostly wait
ROUNDING = 1 + 1e-6  # of a speed at a side, relative


class Cavity:
    """Incompressible fluid in two dimensions: the lid-driven cavity, and others of four sides.

    Each step takes a tentative velocity from central differences, sweeps over the pressure, and corrects the
    velocity by the gradient of the pressure (`md.cavity.scheme`). The fluid starts at rest.

    Args:
        shape: (ny, nx), points along y and x, boundary included, each at least 3.
        viscosity: kinematic viscosity nu, above 0.
        dt: time step; None for 0.8 min(h^2 / (4 nu), 2 nu / speed^2), h the distance of neighbouring points,
            speed the largest that the sides prescribe. Where fluid is faster, as at a narrow outlet, give dt
            below 2 nu / speed^2 for the speed of the fluid.
        density: above 0.
        lid: speed of the top along +x; 1 if `sides` are given.
        size: width of the cavity; points are equally far apart along x and y.
        sweeps: Jacobi sweeps of a step, at least 1; they continue from the last pressure.
        strategy: how a step is computed: "auto", a name of `md.cavity.STRATEGIES`, or a strategy.
        order: in which the points are stored: a name of `sfc.orderings(2)`, or a curve.
        pressure: "jacobi" for `sweeps`, "converged" for the solution, or "sor" (on the CPU only).
        grid: "collocated", or "staggered" for velocities on the faces of cells, which needs
            pressure="converged" or "sor".
        sides: conditions at the sides, `md.cavity.Sides` or a dict by name ("bottom", "top", "left",
            "right") of `Wall`, `Inlet` and `Outlet`, where those not given are walls at rest; None for the
            lid-driven cavity: the top moves with p = 0, the others are at rest with zero gradient of p. If no
            side fixes p, Jacobi sweeps let its mean drift without bound; velocities depend on differences.
        layout: "arrays" for an array a field, "structs" for an array of records.
        precision: "float64" or "float32"; after 1000 steps of 41 x 41 points with viscosity 0.02 and the
            default sides the two differ by less than 1e-6 of the largest value of a field. Differences
            of up to 1e-5 were found with other sides, and of up to 1e-3 with pressure="sor".
        backend: "auto", "cpu", "cuda", or a `md.backend.Backend`. "auto" is the backend of the strategy; with
            strategy="auto" it is CUDA where there is a device and one of its strategies supports the rest.

    Attributes:
        scheme: all numbers of the discretised problem.
        strategy: the strategy in use.
        layout, order: as given.
        backend: the backend in use.
        step: steps taken.

    Raises:
        TypeError: an argument of another class.
        ValueError: a value that is not allowed, sides that contradict each other, a strategy that does not
            support a choice, or fields that do not fit in memory.
        BackendUnavailableError: a device that is not there.

    Warns:
        UnstableTimeStep: dt is above the bound of stability.

    Source of the default scheme: Vickers, fluid_simulation; Chorin (1968).
    """

    def __init__(
        self,
        shape: tuple[int, int] = (41, 41),
        *,
        viscosity: float,
        dt: float | None = None,
        density: float = 1.0,
        lid: float = 1.0,
        size: float = 1.0,
        sweeps: int = 50,
        strategy: str | Strategy = "auto",
        order: Order = "row",
        pressure: str = "jacobi",
        grid: str = "collocated",
        sides: Sides | Mapping[str, Side] | None = None,
        layout: str = "arrays",
        precision: str = "float64",
        backend: str | Backend = "auto",
    ):
        self._problem = Problem(
            shape, viscosity, dt, density, lid, size, sweeps, pressure, grid, sides, precision
        ).checked()
        self.scheme: Scheme = self._problem.scheme()
        self.strategy, self.layout, self.order, self.backend = chosen(
            strategy, self._problem, layout, order, backend
        )
        needed = self.strategy.needed_bytes(self.scheme, self.layout, self.order, self.backend)
        remedy = "take a smaller shape, precision='float32', layout='arrays', order='row' or strategy='numpy'"
        checks.require_allocatable(
            f"fields of shape {self.scheme.shape}", needed, remedy, self.backend.free_memory
        )
        bound = self.scheme.bound
        self._warned = self.scheme.dt > bound
        if self._warned:
            warnings.warn(
                f"dt = {self.scheme.dt:.6g} is above the bound of stability; allowed: up to {bound:.6g}, "
                "min(h^2 / (4 viscosity), 2 viscosity / speed^2); dt=None takes 0.8 of it",
                UnstableTimeStep,
                stacklevel=2,
            )
        self.step = self._next_check = 0
        self._solver = self.strategy.build(self.scheme, self.layout, self.order, self.backend)

    def __repr__(self) -> str:
        ny, nx = self.scheme.shape
        return (
            f"<Cavity of {ny} x {nx} points, viscosity {self.scheme.viscosity:g}, strategy "
            f"{self.strategy.name!r}, step {self.step}>"
        )

    @property
    def u(self) -> np.ndarray:
        """Velocity along +x: a new (ny, nx) array."""
        return self._solver.fields()[0]

    @property
    def v(self) -> np.ndarray:
        """Velocity along +y: a new (ny, nx) array."""
        return self._solver.fields()[1]

    @property
    def p(self) -> np.ndarray:
        """Pressure: a new (ny, nx) array."""
        return self._solver.fields()[2]

    @property
    def time(self) -> float:
        """Time simulated so far: steps times dt."""
        return self.step * self.scheme.dt

    def run(self, steps: int) -> None:
        """Take steps.

        An interrupt from the keyboard takes effect between two steps, so that the run can continue.

        Args:
            steps: at least 0.

        Raises:
            TypeError: steps that are no integer.
            ValueError: a negative number of steps.
            NonFiniteField: a velocity or the pressure has become NaN or infinite; the fields are kept.
            PressureNotConverged: with pressure="sor"; the velocities are those before the step.
            BackendUnavailableError: with strategy="persistent", blocks waited too long for each other; all
                fields and `step` are 0.

        Warns:
            UnstableTimeStep: once, if dt is above the bound of stability for the speed of the fluid, which is
                checked each time that the number of steps has doubled.
        """
        left = checks.integer("steps", steps, 0)
        ny, nx = self.scheme.shape
        updates = max(LEAST_UPDATES, ny * nx * (self.scheme.sweeps + 1))
        most = max(1, self.strategy.work // updates)
        while left:
            # Up to as many steps as were taken, so that a fast flow is found before its fields overflow.
            taken = self._advance(min(left, most, max(1, self.step)))
            left -= abs(taken)
            if taken < 0:
                raise self._fault()
            self._warn_if_fast()

    def set_fields(
        self, *, u: np.ndarray | None = None, v: np.ndarray | None = None, p: np.ndarray | None = None
    ) -> None:
        """Set fields, as the start of a run; those that are not given are kept, and so is the step.

        Boundary values are those of the sides after the next step.

        Args:
            u: (ny, nx) velocities along +x.
            v: (ny, nx) velocities along +y.
            p: (ny, nx) pressures.

        Raises:
            TypeError: values that form no array of numbers.
            ValueError: another shape, values that are not finite in the precision of the cavity, or a
                pressure without its boundary values, which the strategies "spectral" and "persistent" need.
        """
        given = {"u": u, "v": v, "p": p}
        new = {name: self._checked(name, values) for name, values in given.items() if values is not None}
        self._solver.load(**new)
        self._next_check = 0

    def save(self, path: str | Path) -> None:
        """Save all that a run needs to resume, to the last bit (`md.cavity.checkpoint`).

        Args:
            path: of the file, usually `.npz`. An existing file is replaced once the new one is complete.

        Raises:
            TypeError: a path of another class.
            OSError: the file cannot be written; an existing file is not changed.
        """
        arguments = asdict(self._problem) | {
            "sides": self._problem.sides,
            "dt": self.scheme.dt,
            "strategy": self.strategy,
            "order": self.order,
            "layout": self.layout,
            "backend": self.backend.name,
        }
        state = {name: array for name, array in self._solver.state_dict().items() if name not in FIELDS}
        SavedCavity(arguments, self.step, self._solver.fields(), state, self.strategy.name).write(path)

    @classmethod
    def load(cls, path: str | Path, **instead: Any) -> Self:
        """Load a cavity from a checkpoint, at the step of its save.

        It resumes to the last bit, also with another layout, order, or strategy of the CPU of tolerance 0
        (`Strategy.tolerance`).

        Args:
            path: of the file; reading it runs no code.
            instead: `strategy`, `layout`, `order` and `backend` of the constructor, in place of those of the
                file.

        Raises:
            OSError: the file is missing or cannot be read.
            CheckpointError: the file holds no cavity, or none that can be made here.
            TypeError: another argument of the constructor, or one of another class than it takes.
            ValueError: an unknown name among the arguments.
            BackendUnavailableError: CUDA is not available here; not with backend="cpu".
        """
        for name in instead:
            checks.word("argument of load", name, ("strategy", "layout", "order", "backend"))
        saved = SavedCavity.read(path)
        try:
            cavity = cls(**saved.arguments | instead)
            cavity._restore(saved)
        except (TypeError, ValueError, ArithmeticError, MemoryError) as error:
            if instead and not isinstance(error, MemoryError):
                raise
            raise CheckpointError(f"{path} makes no cavity: {error}") from error
        return cavity

    def stream_function(self) -> np.ndarray:
        """Compute the stream function psi, with u = dpsi/dy and v = -dpsi/dx, by the trapezoidal rule.

        Returns:
            (ny, nx) float64, 0 at the lower left corner.
        """
        u, v, _ = (field.astype(np.float64) for field in self._solver.fields())
        psi = np.zeros_like(u)
        half = self.scheme.h / 2
        psi[0, 1:] = -half * np.cumsum(v[0, 1:] + v[0, :-1])
        psi[1:] = psi[0] + half * np.cumsum(u[1:] + u[:-1], axis=0)
        return psi

    def accesses(self) -> AccessStream:
        """Return the places in memory that a sweep reads, point by point in its order; for `sfc.cache`.

        A place is a number in the array of the pressure. The readers are the points inside, the reads their
        neighbours along -x, +x, -y and +y. A strategy with several sweeps a pass reads the same places in
        another order.
        """
        return sweep_accesses(self.order, self.scheme.shape)

    def _advance(self, steps: int) -> int:
        """Take steps and count them; an interrupt waits until both are done. See `Solver.advance`."""
        with defer_sigint():
            try:
                taken = self._solver.advance(steps)
            except PressureNotConverged as fault:
                self.step += (fault.step or 1) - 1
                raise fault.at(self.step + 1) from None
            except BackendUnavailableError:
                self.step = self._next_check = 0  # the fields are lost
                raise
            self.step += abs(taken)
        return taken

    def _warn_if_fast(self) -> None:
        """Warn once if the time step is above the bound for the speed of the fluid."""
        if self._warned or self.step < self._next_check:
            return
        self._next_check = 2 * self.step
        most = math.hypot(*(max(-float(one.min()), float(one.max())) for one in self._solver.velocities()))
        if self.scheme.dt <= largest_dt(self.scheme.h, self.scheme.viscosity, most):
            return  # no point is faster; on a device, no field was copied
        u, v, _ = self._solver.fields()
        speed = float(np.hypot(u, v, dtype=np.float64).max())
        bound = largest_dt(self.scheme.h, self.scheme.viscosity, speed)
        self._warned = self.scheme.dt > bound * ROUNDING
        if self._warned:
            warnings.warn(
                f"dt = {self.scheme.dt:.6g} is above the bound of stability for the speed of {speed:.6g} at "
                f"step {self.step}; allowed: up to {bound:.6g}, min(h^2 / (4 viscosity), "
                "2 viscosity / speed^2); give dt, as dt=None takes the speeds of the sides only",
                UnstableTimeStep,
                stacklevel=3,
            )

    def _checked(self, name: str, values: np.ndarray) -> np.ndarray:
        """Return the values of a field in the precision of the fields."""
        array = checks.array(name, values, "fiu", "numbers", self.scheme.shape, finite=True)
        with np.errstate(over="ignore"):
            found: np.ndarray = array.astype(self.scheme.dtype)
        bad = ~np.isfinite(found)
        if bad.any():
            row, column = np.unravel_index(bad.argmax(), bad.shape)
            raise ValueError(
                f"{name} = {array[row, column]} at row {row}, column {column}; allowed: up to "
                f"{np.finfo(found.dtype).max:.6g}, the largest {found.dtype}; take precision='float64'"
            )
        return found

    def _restore(self, saved: SavedCavity) -> None:
        """Set fields and step.

        Raises:
            ValueError: the strategy of the file keeps other arrays than the file has.
        """
        state = dict(zip(("u", "v", "p"), saved.fields, strict=True)) | saved.state
        if saved.strategy == self.strategy.name:
            kept = self._solver.state_dict()
            for name in saved.state.keys() - kept.keys():
                allowed = ", ".join(f"state_{one}" for one in kept if one not in FIELDS) or "none"
                raise ValueError(f"array state_{name} of strategy {saved.strategy!r}; allowed: {allowed}")
            for name, array in kept.items():
                found = state.get(name)
                if found is None or (found.shape, found.dtype) != (array.shape, array.dtype):
                    raise checks.refuse_value(f"state_{name}", found, f"{array.dtype} of {array.shape}")
            self._solver.load_state(state)
        else:
            self._solver.load(*saved.fields)
        self.step = saved.step

    def _fault(self) -> NonFiniteField:
        """Return the fault of the first point, row by row, with a value that is not finite."""
        fields = np.stack(self._solver.fields(), axis=-1)
        first = np.isfinite(fields).argmin()
        row, column, k = (int(index) for index in np.unravel_index(first, fields.shape))
        value, scheme = float(fields[row, column, k]), self.scheme
        return NonFiniteField(self.step, (row, column), "uvp"[k], value, scheme.dt, scheme.bound)
