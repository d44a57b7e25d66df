"""Looking at a run from the host: faults that kernels reported, energy, steps that were halted.

A look waits for nothing. On a device what it shows is heeded at the next one, when it is surely there, so
that the device always has work.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from md import checks
from md.backend import NO_FAULT, Backend, Timings
from md.backend.base import Array
from md.errors import EnergyExploded, ListOverflow, NonFiniteState, ParticleEscaped, SimulationFault
from md.io.atomic_write import write_atomically
from md.particles.arrays import ParticleArrays
from md.particles.box import FARTHEST, Box
from md.search.base import Search
from md.simulation.energy_monitor import EnergyMonitor

STEPS = 2**31  # a word counts them up to here, and from 0 again


class FaultSnapshot(NamedTuple):
    """The arrays of a simulation that cannot go on, as they lay in memory.

    Attributes:
        pos: (n, dim) positions in d, each in the box: a particle that could not be placed stays where it was.
        vel: (n, dim) velocities in d per time unit, finite or not; those of `velocity_verlet` stand half a
            step behind the positions.
        id: (n,) int32 names of the particles, in the same order.
        box: the box.
        step: steps given out when the fault was read; on a device some of them came after the fault.
        dt: time step in time units.
        radius: (n,) in d, in the same order; None where all are a half.
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

        The box is there as `lengths`, `periodic` and `open`, a `radius` only where particles differ. The file
        takes its place in one move, once it is whole.

        Raises:
            OSError: a path that cannot be written.
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
    """The folder that faults are saved in, made if it is not there; None for none.

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
        told = getattr(error, "strerror", None) or error
        raise ValueError(
            f"post_mortem = {str(folder)!r}: {told}; allowed: a folder that is there or can be made"
        ) from error
    return folder


class FaultSample(NamedTuple):
    """What was looked at.

    Attributes:
        word: waits for the fault word.
        signs: waits for those of the search.
        exploded: waits for the fault of the energy, None if there is none.
        mark: the moment.
        step: number of the next step then.
    """

    word: Callable[[], np.ndarray]
    status: Callable[[], np.ndarray]
    exploded: Callable[[], EnergyExploded | None]
    mark: Any
    step: int


class FaultMonitor:
    """What is seen of a run.

    Args:
        particles: of the run.
        search: of the run.
        watch: of its energy.
        dt: time step in time units.
        backend: where it runs.
        timings: of the run; known times are taken at every look.
        folder: for what a fault leaves, or None.

    Attributes:
        fault: (1,) uint64 fault word (`md.integrate`).
        failed: the fault the run has ended with, or None.
    """

    def __init__(
        self,
        particles: ParticleArrays,
        search: Search,
        watch: EnergyMonitor,
        dt: float,
        backend: Backend,
        timings: Timings,
        folder: Path | None,
    ):
        self._particles, self._search, self._watch = particles, search, watch
        self._dt, self._backend = dt, backend
        self._timings, self._folder = timings, folder
        self.fault: Array = backend.upload(np.array([NO_FAULT]))
        self.failed: SimulationFault | None = None
        self._before: FaultSample | None = None  # the last one heeded

    def look(self, step: int, now: bool = False) -> FaultSample:
        """Look, before a step; with `now` at the energy too in any case."""
        return FaultSample(
            self._backend.look(self.fault),
            self._backend.look(self._search.status),
            self._watch.look(step, now),
            self._backend.mark(),
            step,
        )

    def process(self, look: FaultSample, step: int) -> int:
        """Act on what was seen.

        Args:
            look: by `look`.
            step: number of the next step.

        Returns:
            Steps that were halted and have to be taken again.

        Raises:
            SimulationFault: one that was seen, now or earlier.
        """
        if self.failed is not None:
            raise self.failed.with_traceback(None)
        self._raise(look, step)
        self._timings.resolve(look.step)  # those are done, so this waits for nothing
        before, self._before = self._before, look
        if not self._search.process(look.status(), self._dt):
            if self._search.tunes and before is not None and before.step < look.step:
                self._search.timed(self._backend.between(before.mark, look.mark), look.step - before.step)
            return 0
        look, self._before = self.look(step), None
        self._raise(look, step)
        halted = self._search.process(look.status(), self._dt)
        with self.overflows(step):
            self._search.resume()
        return halted

    @contextmanager
    def overflows(self, step: int):
        """Around what may find too little room for a search's structure, before a step or soon after it."""
        try:
            yield
        except ListOverflow as fault:
            self.fail(fault.at(step), step)

    def fail(self, fault: SimulationFault, step: int) -> None:
        """End the run with a fault, after steps given out so far."""
        self.failed = self.keep(fault, step)
        raise self.failed

    def keep(self, fault: SimulationFault, step: int) -> SimulationFault:
        """A fault with what is left of the run."""
        p, down = self._particles, self._backend.download
        arrays = down(p.pos), down(p.vel), down(p.id)
        return fault.keep(FaultSnapshot(*arrays, p.box, step, self._dt, p.radii()), self._folder)

    def _raise(self, look: FaultSample, step: int) -> None:
        word, exploded = int(look.word()[0]), look.exploded()
        if word == NO_FAULT and exploded is None:
            return
        self._timings.resolve()
        at, reported = step, None
        if word != NO_FAULT:
            at, escaped, particle = word >> 33, word >> 32 & 1, word & 0xFFFFFFFF
            at = step - (step - at) % STEPS  # of the steps of which a word tells, the last
            reported = ParticleEscaped(at, particle, FARTHEST) if escaped else NonFiniteState(at, particle)
        # The energy may have been the reason; and a device has gone on since it was looked.
        self.fail(self._watch.look(at, now=True)() or exploded or reported, step)
