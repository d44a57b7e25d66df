"""Error and warning classes of `md`. Imports nothing of `md`."""

from __future__ import annotations

import copyreg
import math
from pathlib import Path
from typing import Any, Self


class _Copied(RuntimeError):  # noqa: N818 - the errors below are named for what happened
    """Base of the errors with further attributes, which copies made by `pickle` have too."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The base class would call the constructors with the message, but they take other arguments.
        return copyreg.__newobj__, (type(self), *self.args), dict(self.__dict__)  # type: ignore[attr-defined]  # typeshed


class SimulationFault(_Copied):
    """Fault that ends a run.

    Attributes:
        step: the step of the fault, counted from the simulation's start.
        particle: id of a particle with the fault, one of them if there are several.
        state: `md.simulation.fault_monitor.FaultSnapshot`, the arrays when the fault was read; None without a
            snapshot.
        saved: path of the file with the snapshot; None without one.

    A copy made by `pickle` has the same message and attributes.
    """

    def __init__(self, message: str, step: int, particle: int):
        super().__init__(message)
        self.step, self.particle = step, particle
        self.state: Any = None
        self.saved: Path | None = None

    def keep(self, snapshot: Any, folder: Path | None = None) -> Self:
        """Store a snapshot in `state`, and save it as `fault-<step>.npz` in a folder.

        If the file cannot be written, the message says so, and the fault is the same.

        Args:
            snapshot: with a method `save(path)`.
            folder: for the file; None for no file.

        Returns:
            The fault.
        """
        self.state = snapshot
        if folder is not None:
            path = folder / f"fault-{self.step}.npz"
            try:
                snapshot.save(path)
            except OSError as error:
                outcome = f"the state could not be saved as {path}: {error.strerror or error}"
            else:
                self.saved, outcome = path, f"the state is in {path}"
            self.args = (f"{self}; {outcome}",)
        return self


class HaloOutrun(_Copied):
    """Particles of a rank may have moved farther since ranks last met than ghosts or lists reach.

    Attributes:
        rank: of the particles; None on a rank that has heard of it from another.
    """

    def __init__(self, rank: int, moved: float, allowed: float, since: str = "since the last migration"):
        super().__init__(
            f"rank {rank}: a particle may have moved {moved:.3g} d {since}; allowed: {allowed:.3g}; take a "
            "longer travel in md.Division, a wider skin, or a shorter dt"
        )
        self.rank: int | None = rank

    @classmethod
    def elsewhere(cls) -> Self:
        """Return the error of a rank that has heard of one of another."""
        found = cls(-1, math.nan, math.nan)
        found.args, found.rank = ("another rank has ended: a particle moved too far; see there",), None
        return found


class RankFailedError(RuntimeError):
    """Another rank has ended with an error, which the message has; the communicator is of no use any more."""


class NonFiniteState(SimulationFault):
    """Fault of a position that became NaN or infinite."""

    def __init__(self, step: int, particle: int):
        super().__init__(
            f"step {step}: particle {particle} has a position that is not finite; the time step is too long "
            "for the stiffness, or the start overlaps deeply; allowed: at most contact_time / 50, less for "
            "strong damping; lower dt or relax the start; in a flock lower velocities and rates, whose "
            "squares overflow",
            step,
            particle,
        )


class ParticleEscaped(SimulationFault):
    """Fault of a particle that left the box through a closed side, or moved too far beyond another.

    Too far is more than a box length beyond a side on a periodic axis in one step, and more than 1000 lengths
    beyond a side on an open axis.

    Args:
        step, particle: as for `SimulationFault`.
        farthest: distance allowed beyond an open side, in box lengths.
    """

    def __init__(self, step: int, particle: int, farthest: float = 1000.0):
        super().__init__(
            f"step {step}: particle {particle} is outside the box; allowed in a step: at most one box length "
            f"past a side on a periodic axis, and nothing past a side on a closed one; on an open axis up to "
            f"{farthest:g} box lengths past a side at any time; lower dt, make the axis periodic, or give it "
            "walls that are stiff enough (a shorter contact_time); a particle that moves on beyond an open "
            "side ends the run there: make the box longer along that axis, or leave the particle out",
            step,
            particle,
        )


class OverlappingStart(SimulationFault):
    """Fault of a start with two particles closer than the law's `closest_start`, or one as deep in a wall.

    Attributes:
        other: id of the particle that `particle` overlaps; no two are closer. None for a wall.
        distance: between the centres, or of a centre from the wall, in d. If radii differ, distances are
            compared in units of the sum of two radii, or of the particle's diameter.
        pairs: number of pairs that are closer than allowed, or of particles as deep in a wall.
        allowed: distance in d.
        by_radius: whether radii differ.
    """

    def __init__(
        self,
        particle: int,
        other: int | None,
        distance: float,
        pairs: int,
        allowed: float,
        by_radius: bool = False,
    ):
        subject, others = f"particles {particle} and {other}", "pair"
        finding = "coincide: they have no direction to separate along" if distance == 0 else "overlap deeply"
        if other is None:
            subject, finding, others = f"particle {particle}", "is deep in a wall", "other"
        unit = " for its radii, and every distance is compared in units of its radii" if by_radius else ""
        super().__init__(
            f"step 0: {subject} {finding}, at {distance:.3g} d, and no {others} is closer; "
            f"{pairs} in all are closer than allowed: {allowed:.3g} d{unit}; start from "
            "md.preparation.granular_gas or md.scenes.benchmark_gas, push them apart with "
            "integrator='steepest_descent', or take allow_overlap=True",
            0,
            particle,
        )
        self.other, self.distance = other, distance
        self.pairs, self.allowed, self.by_radius = pairs, allowed, by_radius


class EnergyExploded(SimulationFault):
    """Fault of a kinetic energy above the total energy of the start, the effect of too long a time step.

    Attributes:
        particle: id of the fastest particle.
        energy: kinetic energy per particle when the fault was found, in m d^2 / time^2.
        start: kinetic and contact energy per particle at the start.
        speed: of the fastest particle, in d per step.
    """

    def __init__(self, step: int, particle: int, speed: float, energy: float, start: float, dt: float):
        super().__init__(
            f"step {step}: the energy explodes: kinetic energy of {energy:.3g} per particle, where the start "
            f"had {start:.3g} in all; particle {particle} is the fastest with {speed:.3g} d a step; "
            f"dt = {dt:.6g} is too long; allowed: at most contact_time / 50, less for strong damping; lower "
            "dt, or take dt=None",
            step,
            particle,
        )
        self.energy, self.start, self.speed = energy, start, speed


class ListOverflow(SimulationFault):
    """Fault of neighbour lists, cells or another structure that need more entries than possible.

    Attributes:
        needed: entries needed.
        allowed: largest possible number of entries.
    """

    def __init__(self, particle: int, needed: int, allowed: int, step: int = 0):
        super().__init__(
            f"step {step}: {needed} places are needed in lists, most around particle {particle}; "
            f"allowed: up to {allowed}; take a smaller skin, or relax a start that overlaps deeply",
            step,
            particle,
        )
        self.needed, self.allowed = needed, allowed

    def at(self, step: int) -> Self:
        """Return the fault with a step."""
        return type(self)(self.particle, self.needed, self.allowed, step)


class NonFiniteField(_Copied):
    """Fault of a cavity with a velocity or a pressure that became NaN or infinite.

    Attributes:
        step: the step of the fault, counted from the cavity's start.
        cell: (row, column) of the first such point, row by row from the bottom.
        field: "u", "v" or "p".
        value: of the field there.
        dt, bound: time step of the run, and the largest that is stable for the speeds that the sides
            prescribe.

    A device checks less often than after every step: the fields, `step` and `cell` may be those of a later
    step than the first with such a value. A copy made by `pickle` has the same message and attributes.
    """

    def __init__(self, step: int, cell: tuple[int, int], field: str, value: float, dt: float, bound: float):
        super().__init__(
            f"step {step}: {field} = {value} at row {cell[0]}, column {cell[1]}; dt = {dt:.6g}; allowed: "
            f"finite fields, which need a time step of at most {bound:.6g} for the speeds that the "
            "sides prescribe, and enough sweeps or pressure='converged'; lower dt, or refine the grid; where "
            "fluid is faster, give dt below 2 viscosity / speed^2"
        )
        self.step, self.cell, self.field, self.value = step, cell, field, value
        self.dt, self.bound = dt, bound


class PressureNotConverged(_Copied):
    """Fault of a cavity with an iteration of the pressure that did not reach its tolerance.

    Attributes:
        residual: largest residual left, in units of the largest right-hand side, or of the largest pressure
            at the start where that is 0.
        tolerance: largest residual allowed, in the same units.
        sweeps: sweeps made.
        step: the step of the fault, counted from the cavity's start; None outside of a cavity.

    A copy made by `pickle` has the same message and attributes.
    """

    def __init__(self, residual: float, tolerance: float, sweeps: int, step: int | None = None):
        super().__init__(
            f"{'' if step is None else f'step {step}: '}pressure: residual {residual:.3g} of the largest "
            f"right-hand side (where that is 0, of the first pressure) after {sweeps} sweeps; allowed: "
            f"{tolerance:.3g}; take pressure='converged', or more sweeps or a larger tolerance of "
            "md.cavity.pressure.sor.Sor"
        )
        self.residual, self.tolerance, self.sweeps, self.step = residual, tolerance, sweeps, step

    def at(self, step: int) -> Self:
        """Return the fault with a step."""
        return type(self)(self.residual, self.tolerance, self.sweeps, step)


class NotSteady(_Copied):
    """Error of a cavity that still changes at the end of the time allowed to become steady.

    Attributes:
        change: largest change of a velocity in a unit of time.
        allowed: change allowed.
        time: when it was measured.

    A copy made by `pickle` has the same message and attributes.
    """

    def __init__(self, change: float, allowed: float, time: float):
        super().__init__(
            f"time {time:.4g}: velocities still change by {change:.3g} in a unit of time; allowed: "
            f"{allowed:.3g}; give more time, a larger tolerance, or a lower Reynolds number"
        )
        self.change, self.allowed, self.time = change, allowed, time


class UnstableTimeStep(UserWarning):
    """Warning that the time step of a cavity is above the bound of stability of its scheme."""


class FrozenPrecision(UserWarning):
    """Warning that a typical particle moves by less than 32 units in the last place of the box a step.

    A typical particle has the root mean square speed. The units are those of the run's precision at the
    largest side of the box (`numpy.spacing`). A gas without any motion is at rest, not frozen; nor are slow
    particles frozen that gravity or shaking brings above that bound within 100 steps from rest.
    """


class OverdampedContact(UserWarning):
    """Warning that the dashpot of a law or boundary is so strong that contacts never end.

    With m = 1 two spheres separate if damping^2 < 2 stiffness / d, whatever their radii; a disc and a wing if
    damping^2 < 4 stiffness.
    """


class NotYetReordered(UserWarning):
    """Warning that the accesses of a force kernel were requested before the first reorder."""


class SkippedText(UserWarning):
    """Warning that lines, ends of lines or a column of a file of coordinates were not read.

    The message has the numbers of the lines.
    """


class ConvertedPoints(UserWarning):
    """Warning that points of another unit were divided by a diameter, shifted, or put into an assumed box."""


class CheckpointError(ValueError):
    """Error of a file from which no simulation can resume; the message has the reason and the remedy."""


class BackendUnavailableError(RuntimeError):
    """Error of a backend that cannot run here; the message has the reason and the remedy."""


class DeviceMemoryError(MemoryError):
    """Error of a device without enough free memory; the message has the requested and the free memory."""
