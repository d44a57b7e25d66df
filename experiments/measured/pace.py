"""Memory orders that are no orderings, and the schedule of a measurement."""

from dataclasses import dataclass
from typing import ClassVar

BASELINES = ("shuffled", "lattice")


@dataclass(frozen=True)
class FromStep:
    """A schedule: at every step of the warm-up, then at its end and every `interval` steps after.

    The first reorder of the warm-up is of memory in no order, the others of memory already in order.
    """

    WARM_UP: ClassVar[int] = 3

    interval: int

    def __call__(self, step: int) -> bool:
        """Whether to reorder before this step."""
        return step < self.WARM_UP or (step - self.WARM_UP) % self.interval == 0
