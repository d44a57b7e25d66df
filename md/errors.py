"""Every error and warning of `md` that has a class of its own. Imports nothing of `md`."""

from __future__ import annotations

import copyreg
from pathlib import Path
from typing import Any, Self


class SimulationFault(RuntimeError):  # noqa: N818 - named, as its kinds are, for what happened
    """A run that cannot go on.

    Attributes:
        step: the step at which it happened, counted from the simulation's start.
        particle: id of a particle concerned, one of them where there are several.
        state: `md.simulation.fault_monitor.FaultSnapshot`, the arrays as they lay when the fault was read; None where nothing was kept.
        saved: path of the file that holds them; None without one.

    A copy made by `pickle` has the same message and attributes.
    """

    def __init__(self, message: str, step: int, particle: int):
        super().__init__(message)
        self.step, self.particle = step, particle
        self.state: Any = None
        self.saved: Path | None = None

    def __reduce__(self):
        # The constructors take other arguments than the message, which is what a base class would give them.
        return copyreg.__newobj__, (type(self), *self.args), dict(self.__dict__)

    def keep(self, remains: Any, folder: Path | None = None) -> Self:
        """Take what is left along, and save it as `fault-<step>.npz` in a folder.

        A file that cannot be written is told in the message and hides no fault.
        """
        self.state = remains
        if folder is not None:
            path = folder / f"fault-{self.step}.npz"
            try:
                remains.save(path)
            except OSError as error:
                told = f"the state could not be saved as {path}: {error.strerror or error}"
            else:
                self.saved, told = path, f"the state is in {path}"
            self.args = (f"{self}; {told}",)
        return self


class NonFiniteState(SimulationFault):
    """A position became NaN or infinite."""

    def __init__(self, step: int, particle: int):
        super().__init__(
            f"step {step}: particle {particle} has a position that is not finite; the time step is too "
            "long for the "
            "stiffness, or the start overlaps deeply; allowed: about contact_time / 50; lower dt or relax "
            "the start",
            step,
            particle,
        )


class ParticleEscaped(SimulationFault):
    """A particle left the box through a closed axis, or went too far past another.

    That is more than a length past a side on a periodic axis in one step, and more than 1000 lengths beyond
    a side on an open one.

    Args:
        step, particle: as of `SimulationFault`.
        farthest: how far it may go beyond an open side, in box lengths.
    """

    def __init__(self, step: int, particle: int, farthest: float):
        super().__init__(
            f"step {step}: particle {particle} is outside the box; allowed in a step: at most one box length "
            f"past a side on a periodic axis, and nothing past a side on a closed one; on an open axis up to "
            f"{farthest:g} box lengths past a side at any time; lower dt, make the axis periodic, or give it "
            "walls that are stiff enough (a shorter contact_time); a particle that flies on out of an open "
            "side ends the run there: make the box longer along that axis, or leave the particle out",
            step,
            particle,
        )


class OverlappingStart(SimulationFault):
    """Two particles of the start are closer than the law's `closest_start`, or one is so deep in a wall.

    Attributes:
        other: id of the particle that `particle` overlaps; no two are closer. None where it is a wall.
        distance: between their centres, or of a centre from the wall, in d. Where radii differ, all that is
            closer or allowed is so in sums of two radii, or of the particle's diameter.
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
        who, none = f"particles {particle} and {other}", "pair"
        there = "coincide: they have no direction to part along" if distance == 0 else "overlap deeply"
        if other is None:
            who, there, none = f"particle {particle}", "is deep in a wall", "other"
        for_it = " for its radii, and all are judged by theirs" if by_radius else ""
        super().__init__(
            f"step 0: {who} {there}, at {distance:.3g} d, and no {none} is closer; "
            f"{pairs} in all are closer than allowed: {allowed:.3g} d{for_it}; start from "
            "md.scenes.granular_gas or md.scenes.shared_gas, push them apart with "
            "integrator='steepest_descent', or take allow_overlap=True",
            0,
            particle,
        )
        self.other, self.distance = other, distance


class EnergyExploded(SimulationFault):
    """The kinetic energy outgrew all the energy of the start, which nothing but too long a time step does.

    Its `particle` is the fastest.

    Attributes:
        energy: kinetic energy per particle when it was seen, in m d^2 / time^2.
        start: kinetic and contact energy per particle at the start.
        speed: of the fastest particle, in d per step.
    """

    def __init__(self, step: int, particle: int, speed: float, energy: float, start: float, dt: float):
        super().__init__(
            f"step {step}: the energy explodes: {energy:.3g} of motion per particle, where the start had "
            f"{start:.3g} in all; particle {particle} is the fastest with {speed:.3g} d a step; "
            f"dt = {dt:.6g} is too long; allowed: about contact_time / 50, which dt=None takes; lower dt",
            step,
            particle,
        )
        self.energy, self.start, self.speed = energy, start, speed


class ListOverflow(SimulationFault):
    """Neighbour lists, cells or another structure need more places than there can be.

    Attributes:
        needed: places needed.
        allowed: places there can be.
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
        """The same, where the step is known."""
        return type(self)(self.particle, self.needed, self.allowed, step)


class FrozenPrecision(UserWarning):
    """The typical particle moves by less than 32 units in the last place of the box's largest side a step.

    The typical particle has the root mean square speed. The units are those of the run's precision, as
    `numpy.spacing` has them at the side. A gas without any motion is at rest, not frozen.
    """


class NotYetReordered(UserWarning):
    """A simulation with a reorder that has not taken place yet was asked what its force kernel reads."""


class CheckpointError(ValueError):
    """A file that no simulation can go on from; the message says why, and what helps."""


class BackendUnavailableError(RuntimeError):
    """A backend that was asked for cannot run here; the message says why and what helps."""


class DeviceMemoryError(MemoryError):
    """A device has not enough free memory; the message says how much was asked for and how much is left."""
