"""Memory orders that are no orderings, and the schedule of a measurement."""

from dataclasses import dataclass
from typing import ClassVar

import md
from experiments.core.baselines import BASELINES
from md import checks

__all__ = ["BASELINES", "FromStep", "phases_of"]

STEPS_AHEAD = 25  # that a host gives a device before it begins
HEAD_START = 0.01  # seconds in which it does; launching them takes half of that


def phases_of(simulation: md.Simulation, steps: int) -> dict[str, list[float]]:
    """Times of the phases of the next steps: on a device, of its work alone, for it never waits for the host.

    Args:
        simulation: takes them; its times are cleared before.
        steps: how many.

    Returns:
        Phase -> ms of each time that it ran.
    """
    simulation.timings.clear()
    with simulation.backend.host_ahead(HEAD_START):
        for taken in range(0, steps, STEPS_AHEAD):
            simulation.run(min(STEPS_AHEAD, steps - taken))
    return simulation.timings.milliseconds


@dataclass(frozen=True)
class FromStep:
    """A schedule: at every step of the warm-up, then at its end and every `interval` steps after.

    The first reorder of the warm-up is of memory in no order, the others of memory already in order.

    Args:
        interval: steps, at least 1.
        warm_up: steps.

    Raises:
        TypeError: what is no integer.
        ValueError: an interval below 1, or a warm-up below 0.
    """

    WARM_UP: ClassVar[int] = 3

    interval: int
    warm_up: int = WARM_UP

    def __post_init__(self):
        object.__setattr__(self, "interval", checks.integer("interval", self.interval, unit="steps"))
        object.__setattr__(self, "warm_up", checks.integer("warm_up", self.warm_up, 0, unit="steps"))

    def __call__(self, step: int) -> bool:
        """Whether to reorder before this step."""
        return step < self.warm_up or (step - self.warm_up) % self.interval == 0
