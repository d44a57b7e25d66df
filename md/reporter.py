"""What is done at intervals while a simulation runs: looking, writing, saving."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np


class Reporter(Protocol):
    """Something to call at intervals, for `Simulation.run(reporters=[...])`.

    Attributes:
        interval: in steps, at least 1.
    """

    interval: int

    def report(self, simulation: Any) -> None:
        """Look at an `md.Simulation` between two steps."""


def checked(reporters: Sequence[Reporter]) -> None:
    """Look at their intervals.

    Raises:
        ValueError: one that is no whole number of at least 1.
    """
    for reporter in reporters:
        interval = reporter.interval
        if isinstance(interval, bool) or not isinstance(interval, (int, np.integer)) or interval < 1:
            raise ValueError(
                f"interval = {interval!r} of {type(reporter).__name__}; allowed: an integer of at least 1, "
                "in steps"
            )


def next_report(reporters: Sequence[Reporter], step: int) -> float:
    """The first step after this one at which one of them is due; infinite if there are none."""
    return min(((step // r.interval + 1) * r.interval for r in reporters), default=math.inf)


def report(reporters: Sequence[Reporter], simulation: Any) -> None:
    """Call those that are due."""
    for reporter in reporters:
        if simulation.step % reporter.interval == 0:
            reporter.report(simulation)
