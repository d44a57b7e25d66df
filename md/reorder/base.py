"""Base classes of the triggers: functions of the step, and triggers that read the run.

Contract. A trigger is called before every step and returns whether to reorder. Any function of the step is a
trigger. A trigger that reads the run is two classes: the configuration (`RunTrigger`), plain parameters, and
the `ActiveTrigger` that its `build(system)` makes, with a method `reordered` called at every reorder. Its
`state_dict` holds all that it decides by besides the step; a checkpoint stores it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from md.particles.capabilities import Capable, TriggerCapabilities
from md.particles.system import System


class Trigger(Protocol):
    """Function of the step that returns whether to reorder."""

    def __call__(self, step: int) -> bool:
        """Return whether to reorder before this step, counted from 0.

        It may be called for later steps, and twice for one step.
        """


class RunTrigger(ABC):
    """Configuration of a trigger that reads the run: plain parameters. It reorders at the first step."""

    @abstractmethod
    def build(self, system: System) -> ActiveTrigger:
        """Make the trigger for a system."""


@dataclass(frozen=True)
class ChosenInterval:
    """Interval between reorders that a trigger has chosen, and the times from which it was chosen.

    Attributes:
        interval: steps between two reorders.
        reorder_ms: time of a reorder; NaN if no choice was made yet.
        wear_ms: growth of a step's time with each step since the last reorder; NaN as above.
        wear_error_ms: standard error of `wear_ms`; NaN as above.
        measured: number of reorders at which the interval was chosen from measured times.
    """

    interval: int
    reorder_ms: float = math.nan
    wear_ms: float = math.nan
    wear_error_ms: float = math.nan
    measured: int = 0

    def __str__(self) -> str:
        if not self.measured:
            return f"interval {self.interval}"
        wear = f"each step {self.wear_ms:.3g} +- {self.wear_error_ms:.1g} ms longer than the one before"
        cost = f"a reorder takes {self.reorder_ms:.3g} ms"
        return f"interval {self.interval}: {cost}, {wear}; chosen {self.measured} times"


class ActiveTrigger(Capable, ABC):
    """Trigger that reads the run of a system.

    Args:
        system: shared state of the simulation.

    Attributes:
        capabilities: whether the trigger needs the times of phases, or of captured steps.
        chosen: the interval that the trigger has chosen by itself, and why; None if it chooses none.
        interval: steps of `chosen`; None without.
    """

    capabilities: TriggerCapabilities = TriggerCapabilities()

    def __init__(self, system: System):
        self._system = system
        self._last: int | None = None

    def __repr__(self) -> str:
        last = "no reorder yet" if self._last is None else f"last reorder before step {self._last}"
        chosen = "" if self.chosen is None else f", {self.chosen}"
        return f"<{type(self).__name__}, {last}{chosen}>"

    @property
    def chosen(self) -> ChosenInterval | None:
        """Interval that the trigger has chosen by itself, and why; None if it chooses none."""
        return None

    @property
    def interval(self) -> int | None:
        """Steps between two reorders that the trigger has chosen by itself; None if it chooses none."""
        return None if self.chosen is None else self.chosen.interval

    def reordered(self, step: int) -> None:
        """Record that the particles were just reordered, before this step."""
        self._last = step

    def __call__(self, step: int) -> bool:
        """Return whether to reorder before this step: at the first, and then if `is_due`."""
        return self._last is None or (step > self._last and self.is_due(step))

    def steps_to_next(self, step: int, most: int) -> int:
        """Return the number of steps, from this one on, after which the trigger has to be called again.

        Args:
            step: the step for which it was just called, or before which the particles were reordered.
            most: upper bound.
        """
        return 1

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return the state that the trigger decides by: name -> host array; empty before any reorder."""
        return {} if self._last is None else {"last": np.array(self._last)}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the state that `state_dict` of another trigger of this class returned.

        Raises:
            ValueError: an entry of another kind.
        """
        last = state.get("last")
        if last is None:
            return
        if last.shape != () or not np.issubdtype(last.dtype, np.integer) or last < 0:
            raise ValueError(f"last reorder before step {last!r}; allowed: an integer of at least 0")
        self._last = int(last)

    @abstractmethod
    def is_due(self, step: int) -> bool:
        """Return whether to reorder before a step that comes after the last reorder."""


def require_trigger(kind: str, name: str, cls: type) -> None:
    """Check that a class can be registered as a trigger; a function cannot: a checkpoint names classes only.

    Raises:
        TypeError: the class is no `RunTrigger`, and its objects cannot be called.
    """
    if not issubclass(cls, RunTrigger) and not any("__call__" in base.__dict__ for base in cls.__mro__):
        raise TypeError(
            f"{kind} {name!r}: class {cls.__qualname__}; allowed: a RunTrigger, or a class with "
            "`__call__(step)`"
        )
