"""When to reorder: a boolean function of the step."""

from dataclasses import dataclass
from typing import Protocol


class Schedule(Protocol):
    """Anything that can say, at each step, whether to reorder."""

    def __call__(self, step: int) -> bool:
        """Whether to reorder before this step, counted from 0."""


@dataclass(frozen=True)
class Never:
    """At no step."""

    def __call__(self, step: int) -> bool:
        """False."""
        return False


@dataclass(frozen=True)
class Every:
    """At step 0 and every `interval` steps after.

    Args:
        interval: steps between reorders, at least 1.

    Raises:
        ValueError: an interval below 1 or not an integer.
    """

    interval: int

    def __post_init__(self):
        if isinstance(self.interval, bool) or not isinstance(self.interval, int) or self.interval < 1:
            raise ValueError(f"Every({self.interval!r}); allowed: an integer of at least 1 step")

    def __call__(self, step: int) -> bool:
        """Whether the step is a multiple of the interval."""
        return step % self.interval == 0
