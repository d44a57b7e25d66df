"""Width of the skin of neighbour lists: given, or tuned during the run.

A wide skin makes lists longer, and rebuilds rarer.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from md import checks
from md.particles.cell_grid import CellGrid

RATIO = 1.25  # between two values tried in turn
GAIN = 0.99  # a time above this share of the best one is no improvement


class HillClimb:
    """Local search for the fastest value of one positive parameter, from measured times.

    After the first value the next larger is tried; if that is no faster, the next smaller. A direction is
    followed while the time falls. Then the best value is used for a while, and the search starts again,
    because the run may have changed.

    Args:
        first: value to start with.
        least, most: range of the values that are tried.
        stay: number of times measured at the best value before the search starts again.

    Attributes:
        value: to be used now.
        best: the fastest value so far.
    """

    def __init__(self, first: float, least: float, most: float, stay: int = 100):
        if not 0 < least <= first <= most < math.inf:
            raise ValueError(f"first = {first}; allowed: {least} .. {most}, all positive and finite")
        self.value = self.best = first
        self._least, self._most, self._stay = least, most, stay
        self._begin()

    def _begin(self) -> None:
        self._time, self._left = math.inf, 0
        self._tried: list[float] = []  # ratios that did not gain
        self._ratio: float | None = None

    def measured(self, time: float) -> bool:
        """Record a time measured at `value`, in any unit, and choose the next value.

        Returns:
            Whether `value` has changed.
        """
        if self._left:
            self._left -= 1
            if not self._left:
                self._begin()
            return False
        if time < GAIN * self._time:
            self.best, self._time = self.value, time
            if self._ratio is not None:
                self._tried.append(1 / self._ratio)  # leads back to the value before
        elif self._ratio is not None:
            self._tried.append(self._ratio)
            self._ratio = None
        before = self.value
        self.value = self._next()
        return self.value != before

    def _next(self) -> float:
        for ratio in [self._ratio] if self._ratio else [RATIO, 1 / RATIO]:
            value = min(max(self.best * ratio, self._least), self._most)
            if ratio not in self._tried and value != self.best:
                self._ratio = ratio
                return value
        if self._ratio is not None:  # at an end of the range
            self._tried.append(self._ratio)
            self._ratio = None
            return self._next()
        self._left = self._stay
        return self.best


USUAL = 0.3  # in d, if it fits the box
OF_SPACING, LEAST_SPACING = 0.16, 0.9  # see usual_width
NARROWEST, MOST_USUAL = 0.2, 0.75  # in d
THINNEST, WIDEST = 0.02, 1.5  # range of tuning, in d
SETTLE, TRIAL = 100, 200  # steps after a change that are not timed, and steps that are


def usual_width(grid: CellGrid, n: int) -> float:
    """Return the default width of the skin in d, before it is limited by the box.

    A wide skin pays in a dilute gas, whose lists are short. On an H200 the fastest width was 0.2 d at 40 %
    filling, 0.3 d at 20 % and 0.75 d at 5 % (2^21 spheres of diameter d), near 0.16 a^2 / c for a mean
    spacing a and a cutoff c. That is the default on a device, from 0.2 to 0.75 d, unless partners are so many
    that a < 0.9 c. On the CPU it is 0.3 d.

    Args:
        grid: cells of the box, with the cutoff of the law.
        n: number of particles.
    """
    if not grid.backend.runs_ahead or n == 0:
        return USUAL
    spacing = (math.prod(grid.box.lengths) / n) ** (1 / grid.box.dim) / grid.cutoff
    if spacing < LEAST_SPACING:
        return USUAL
    return min(max(OF_SPACING * spacing**2 * grid.cutoff, NARROWEST), MOST_USUAL)


def checked(choice: float | Literal["auto"] | None) -> float | Literal["auto"] | None:
    """Check a choice of the skin and return it.

    Raises:
        TypeError: neither a number nor a word nor None.
        ValueError: a number that is negative or not finite, or another word than "auto".
    """
    if choice is None:
        return None
    remedy = "None for a width that suits the box; 'auto' to tune it during the run"
    return checks.number_or_word(  # type: ignore[return-value]  # "auto" is the only word
        "skin of Verlet", choice, ("auto",), 0, unit="d", remedy=remedy
    )


class Skin:
    """Skin of the neighbour lists of a run, and its tuning.

    Args:
        choice: in d; "auto" to tune it; None for `usual_width`, or less in a periodic box too narrow for it.
        grid: cells of the box, with the cutoff of the law.
        n: number of particles.

    Attributes:
        width: in d.
        rounding: largest error of the distance of two particles, in d.
        tunes: whether the width is tuned by the times of steps.

    Raises:
        ValueError: a skin too wide for the box.
    """

    def __init__(self, choice: float | Literal["auto"] | None, grid: CellGrid, n: int = 0):
        box = grid.box
        periodic = [length for length, wraps in zip(box.lengths, box.periodic, strict=True) if wraps]
        widest = min(periodic, default=np.inf) / 2 - grid.cutoff
        self.tunes = choice == "auto" and widest > THINNEST
        if choice is None or choice == "auto":
            choice = min(usual_width(grid, n), widest)
        elif choice > widest:
            raise ValueError(
                f"skin = {choice} in a box of {box.lengths}; allowed: up to {widest:g}, half the shortest "
                f"periodic axis less the cutoff {grid.cutoff}; enlarge the box or take skin=None"
            )
        self.width, self._dim = choice, box.dim
        self.rounding = 8 * float(np.finfo(grid.precision).eps) * max(box.lengths)
        if self.tunes:
            self._tuner = HillClimb(choice, THINNEST, min(WIDEST, widest))
            self._ms, self._steps = 0.0, -SETTLE

    @property
    def limit(self) -> float:
        """Displacement of a particle up to which lists are complete, in d."""
        return (self.width - self.rounding) / 2

    @property
    def step_rounding(self) -> float:
        """Largest displacement of a step beyond speed times time, by the rounding of positions, in d."""
        return np.sqrt(self._dim) * self.rounding / 8

    def timed(self, ms: float, steps: int) -> None:
        """Record the time of several steps at the present width, in ms."""
        if self._steps < 0:  # not settled yet
            self._steps = min(self._steps + steps, 0)
            return
        self._ms, self._steps = self._ms + ms, self._steps + steps
        if self._steps >= TRIAL:
            self._tuner.measured(self._ms / self._steps)
            self._ms, self._steps = 0.0, 0

    @property
    def proposed(self) -> float | None:
        """Width to try next; None if it is the present one."""
        return self._tuner.value if self.tunes and self._tuner.value != self.width else None

    def change(self) -> None:
        """Set the width to the proposed one."""
        self.width = self._tuner.value
        self._ms, self._steps = 0.0, -SETTLE

    def refuse(self, width: float) -> None:
        """Return to a width, because lists of the present one have no room; that is not tried again soon."""
        self._tuner.measured(math.inf)
        self.width = width
        self._ms, self._steps = 0.0, -SETTLE
