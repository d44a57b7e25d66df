"""Fault monitor: polls a run from the host for faults reported by kernels, the energy, and halted steps.

A poll does not block. On a device its result is processed at the next poll, when the copy has arrived, so
that the device always has work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from md import checks
from md.backend import NO_FAULT
from md.errors import ListOverflow, NonFiniteState, ParticleEscaped, SimulationFault
from md.io.atomic_write import write_atomically
from md.particles.box import FARTHEST, Box
from md.particles.system import StatusCopy, System
from md.search.policy import RebuildPolicy
from md.simulation.energy_monitor import EnergyMonitor

STEPS = 2**31  # a fault word counts steps modulo this
NOTHING = int(NO_FAULT)  # Python compares its own integers faster


class FaultSnapshot(NamedTuple):
    """Particle arrays of a simulation that ended with a fault, in memory order.

    Attributes:
        pos: (n, dim) positions in d, each in the box: a particle that could not be placed keeps its position.
        vel: (n, dim) velocities in d per time unit, finite or not; those of `velocity_verlet` are half a step
            behind the positions.
        id: (n,) int32 ids of the particles, in the same order.
        box: the box.
        step: steps launched when the fault was read; on a device some of them were after the fault.
        dt: time step in time units.
        radius: (n,) in d, in the same order; None if all are 0.5.
    """

    pos: np.ndarray
    vel: np.ndarray
    id: np.ndarray
    box: Box
    step: int
    dt: float
    radius: np.ndarray | None = None

    def save(self, path: Path) -> None:
        """Write the arrays exactly, for `numpy.load` without pickle.

        The box is stored as `lengths`, `periodic` and `open`; `radius` only if radii are given. The file is
        complete or not there (`md.io.atomic_write`).

        Raises:
            OSError: the file cannot be written.
        """
        arrays = self._asdict() | {
            "lengths": self.box.lengths,
            "periodic": self.box.periodic,
            "open": self.box.open,
        }
        del arrays["box"]
        if self.radius is None:
            del arrays["radius"]
        write_atomically(path, lambda file: np.savez(file, allow_pickle=False, **arrays))


def post_mortem_folder(folder: str | Path | None) -> Path | None:
    """Make the folder in which faults are saved, and return its path; None for none.

    Raises:
        TypeError: neither a path nor None.
        ValueError: a folder that cannot be made.
    """
    if folder is None:
        return None
    folder = checks.path("post_mortem", folder, "take None for none")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise ValueError(
            f"post_mortem = {str(folder)!r}: {cause}; allowed: a folder that is there or can be made"
        ) from error
    return folder


class FaultSample(NamedTuple):
    """Result of one poll of a run: step, status block, and whether the energy is new.

    Attributes:
        status: function that waits for the copy of the status block and returns it.
        energy_is_new: whether the energy in the copy was summed for this poll.
        mark: event of the backend's clock at the poll.
        step: number of the next step at the poll.
    """

    status: Callable[[], StatusCopy]
    energy_is_new: bool
    mark: Any
    step: int


class FaultMonitor:
    """Monitor that polls a run without blocking (status block) and raises its faults.

    Args:
        system: shared state of the simulation.
        policy: rebuild policy of the search; reads the displacement guard.
        energy: monitor of the kinetic energy.
        folder: for the arrays that a fault saves, or None.

    Attributes:
        failed: the fault with which the run has ended, or None.
    """

    def __init__(self, system: System, policy: RebuildPolicy, energy: EnergyMonitor, folder: Path | None):
        self._system, self._policy, self._energy, self._folder = system, policy, energy, folder
        self.failed: SimulationFault | None = None
        self._before: FaultSample | None = None  # the last sample that was processed

    def steps_to_next(self, step: int) -> int:
        """Return the steps until the next poll that sums the energy, at least 1."""
        return self._energy.steps_to_next(step)

    def was_polled(self, step: int) -> bool:
        """Return whether the last poll was before this step, and the next one may be some steps later.

        It is false after a fault, and while steps are timed, from poll to poll. The poll need not have summed
        the energy.
        """
        return not (self.failed or self._policy.tunes) and getattr(self._before, "step", -1) == step

    def sample(self, step: int, now: bool = False) -> FaultSample:
        """Poll the run before a step; with `now` sum the energy in any case."""
        is_new = self._energy.measure(step, now)
        return FaultSample(self._system.status.poll(), is_new, self._system.backend.mark(), step)

    def process(self, sample: FaultSample, step: int) -> int:
        """Raise the fault that a poll shows, resolve the times known by then, and plan by the guard.

        Args:
            sample: from `sample`.
            step: number of the next step.

        Returns:
            Number of steps that were halted and have to be taken again.

        Raises:
            SimulationFault: the poll shows a fault, or the run has ended with one.
        """
        if self.failed is not None:
            raise self.failed.with_traceback(None)
        status, dt = self._raise(sample, step), self._system.dt
        self._system.timings.resolve(sample.step)  # these steps are done, so this does not wait
        before, self._before = self._before, sample
        if not self._policy.process(status.guard, dt):
            if self._policy.tunes and before is not None and before.step < sample.step:
                ms = self._system.backend.between(before.mark, sample.mark)
                self._policy.observe_steps(ms, sample.step - before.step)
            return 0
        sample, self._before = self.sample(step), None
        halted = self._policy.process(self._raise(sample, step).guard, dt)
        with self.overflows(step):
            self._policy.retry()
        return halted

    @contextmanager
    def overflows(self, step: int) -> Iterator[None]:
        """End the run with a `ListOverflow` that the block raises before or after a step."""
        try:
            yield
        except ListOverflow as fault:
            self.fail(fault.at(step), step)

    def fail(self, fault: SimulationFault, step: int) -> NoReturn:
        """End the run with a fault, after the steps launched so far."""
        self.failed = self.keep(fault, step)
        raise self.failed

    def keep(self, fault: SimulationFault, step: int) -> SimulationFault:
        """Add a copy of the particle arrays to a fault, save it if there is a folder; return the fault."""
        self._system.settle()
        p, down = self._system.particles, self._system.backend.download
        pos, vel, id = (down(array)[: p.n] for array in (p.pos, p.vel, p.id))
        radii, domain = p.radii(), self._system.domain
        own = None if radii is None else radii[: p.n]
        snapshot = FaultSnapshot(pos, vel, id, p.box, step, self._system.dt, own)
        folder = self._folder
        if folder is not None and domain is not None:  # each rank has its own particles
            folder = folder / f"rank-{domain.communicator.rank}"
            folder.mkdir(exist_ok=True)
        return fault.keep(snapshot, folder)

    def _raise(self, sample: FaultSample, step: int) -> StatusCopy:
        """Return the copy of the status block, or end the run with the fault that it shows."""
        status = self._system.across(sample.status())
        if self._system.domain is not None and self._policy.halted(status.guard):
            return status  # of ranks that have halted at different steps, which return to their copies
        word, exploded = status.fault, None
        if sample.energy_is_new:
            exploded = self._energy.judge(sample.step, status)
        if word == NOTHING and exploded is None:
            return status
        self._system.timings.resolve()
        at: int = step
        reported: SimulationFault | None = None
        if word != NOTHING:
            at, escaped, particle = word >> 33, word >> 32 & 1, word & 0xFFFFFFFF
            at = step - (step - at) % STEPS  # the latest step that the word can stand for
            reported = ParticleEscaped(at, particle, FARTHEST) if escaped else NonFiniteState(at, particle)
        # The energy may be the cause; and a device has taken more steps since the poll.
        is_new = self._energy.measure(at, now=True)
        latest = self._energy.judge(at, self._system.across(self._system.status.poll()())) if is_new else None
        fault = latest or exploded or reported
        assert fault is not None
        return self.fail(fault, step)
