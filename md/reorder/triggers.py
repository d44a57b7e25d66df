"""Triggers of a reorder. A new one is a function of the step, or a class here or your own; see `base`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from md import checks
from md.backend.prelude import cell_number, home_cell, load
from md.particles.system import System
from md.reorder.base import ActiveTrigger, RunTrigger, Trigger
from sfc.compile import in_parts, kernel


class StepTrigger(ActiveTrigger):
    """Active trigger of a function of the step.

    Args:
        system: shared state of the simulation.
        trigger: the function.
    """

    def __init__(self, system: System, trigger: Trigger):
        super().__init__(system)
        self._trigger = trigger

    def __repr__(self) -> str:
        return f"<StepTrigger of {self._trigger!r}>"

    def __call__(self, step: int) -> bool:
        """Return the value of the function."""
        return self._trigger(step)

    def is_due(self, step: int) -> bool:
        """Return the value of the function."""
        return self._trigger(step)

    def reordered(self, step: int) -> None:
        """Do nothing, because the function depends on the step only."""

    def steps_to_next(self, step: int, most: int) -> int:
        """Return the number of steps until the function is true again, at most `most`."""
        return next((k for k in range(1, most) if self._trigger(step + k)), most)


def active(trigger: Trigger | RunTrigger, system: System) -> ActiveTrigger:
    """Make the active trigger of a configuration or a function, for a system."""
    return trigger.build(system) if isinstance(trigger, RunTrigger) else StepTrigger(system, trigger)


@dataclass(frozen=True)
class Never:
    """Trigger that never reorders."""

    def __call__(self, step: int) -> bool:
        """Return False."""
        return False


@dataclass(frozen=True)
class Every:
    """Trigger that reorders at step 0 and every `interval` steps after.

    Args:
        interval: steps between reorders, at least 1.

    Raises:
        TypeError: an interval that is no integer.
        ValueError: an interval below 1.
    """

    interval: int

    def __post_init__(self):
        interval = checks.integer("interval of Every", self.interval, unit="steps")
        object.__setattr__(self, "interval", interval)

    def __call__(self, step: int) -> bool:
        """Return whether the step is a multiple of the interval."""
        return step % self.interval == 0


@dataclass(frozen=True)
class Moved(RunTrigger):
    """Trigger that reorders when a fraction of the particles has left the cell of the last sort.

    Args:
        fraction: of the particles, 0 < fraction <= 1.
        interval: steps from one check to the next. A check is a pass over the positions; the host waits for
            it.

    Raises:
        TypeError: a fraction that is no number, or an interval that is no integer.
        ValueError: a fraction outside its range, or an interval below 1.
    """

    fraction: float
    interval: int = 10

    def __post_init__(self):
        fraction = checks.number("fraction of Moved", self.fraction, above=0, high=1, unit="of the particles")
        interval = checks.integer("interval of Moved", self.interval, unit="steps")
        object.__setattr__(self, "fraction", fraction)
        object.__setattr__(self, "interval", interval)

    def build(self, system: System) -> MovedTrigger:
        """Make the trigger for a system."""
        return MovedTrigger(self, system)


class MovedTrigger(ActiveTrigger):
    """Active trigger `Moved`: stores the cell in which each particle was at the last reorder."""

    def __init__(self, config: Moved, system: System):
        super().__init__(system)
        self._config, backend = config, system.backend
        self._home = backend.empty(system.n_rows, np.int32)
        self._none = backend.empty(0, np.int32)
        self._away = backend.zeros(1, np.int32)

    def reordered(self, step: int) -> None:
        """Record the cell of every particle."""
        super().reordered(step)
        self._system.grid.keys(self._system.particles.pos, self._none, self._home)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return the step of the last reorder, and the cell of every particle then."""
        if self._last is None:
            return {}
        return super().state_dict() | {"home": self._system.backend.download(self._home)}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the state that `state_dict` of another trigger of this class returned.

        Raises:
            ValueError: an entry of another kind.
        """
        super().load_state(state)
        if self._last is None:
            return
        home = state.get("home")
        if home is None or home.shape != self._home.shape or home.dtype != np.int32:
            raise ValueError(f"home cells {home!r:.100}; allowed: {len(self._home)} of int32, one a particle")
        self._home[...] = self._system.backend.upload(home)

    def is_due(self, step: int) -> bool:
        """Return whether the fraction of particles has left its cell; checked at intervals."""
        assert self._last is not None
        if (step - self._last) % self._config.interval:
            return False
        particles, grid, backend = self._system.particles, self._system.grid, self._system.backend
        backend.fill(self._away, 0)
        backend.kernels(__name__).stray(particles.n, particles.pos, self._home, grid.record, self._away)
        return int(backend.download(self._away)[0]) >= self._config.fraction * max(particles.n, 1)


def stray(n, pos, home, grid, away):
    """Count the particles that are not in cell home[i], a row-major number, in away[0]."""
    away[0] = sum(in_parts(lambda part: _stray(part.start, part.stop, pos, home, grid), n))


@kernel
def _stray(first, last, pos, home, grid):
    """Return the number of particles first .. last - 1 that are not in cell home[i]."""
    found, g = 0, grid[0]
    for i in range(first, last):
        found += cell_number(g, home_cell(g, load(pos, i, g))) != home[i]
    return found
