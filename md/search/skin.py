"""How wide the skin of neighbour lists is: as given, or found while the run goes on.

A wide skin makes lists longer, and lets them hold for longer.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from md import checks
from md.particles.cell_grid import CellGrid

RATIO = 1.25  # from one value tried to the next
GAIN = 0.99  # what is not this much faster is not better


class HillClimb:
    """Climbs downhill over the values of one positive parameter, from the times that others measure.

    From the first value it tries the next larger; where that is no faster, the next smaller; and goes on in a
    direction while it gains. Then it stays, and begins anew after a while, for the run may have changed.

    Args:
        first: value to begin with.
        least, most: no value outside of these is tried.
        stay: times measured at the best value before it tries anew.

    Attributes:
        value: to run with now.
        best: the fastest so far.
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
        """Take note of the time at `value`, in any unit.

        Returns:
            Whether `value` is another now.
        """
        if self._left:
            self._left -= 1
            if not self._left:
                self._begin()
            return False
        if time < GAIN * self._time:
            self.best, self._time = self.value, time
            if self._ratio is not None:
                self._tried.append(1 / self._ratio)  # where it comes from
        else:
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


USUAL = 0.3  # in d, where the box has room for it
THINNEST, WIDEST = 0.02, 1.5  # tried by tuning
SETTLE, TRIAL = 100, 200  # steps after a change that are not timed, and steps that are


def checked(choice: float | Literal["auto"] | None) -> float | Literal["auto"] | None:
    """A choice of the skin.

    Raises:
        TypeError: neither a number nor a word nor None.
        ValueError: a number that is negative or not finite, or another word than "auto".
    """
    remedy = "None for what suits the box; 'auto' for one that is tuned as the run goes on"
    return (
        None
        if choice is None
        else checks.number_or_word("skin of Verlet", choice, ("auto",), 0, unit="d", remedy=remedy)
    )


class Skin:
    """The skin of a run.

    Args:
        choice: in d; "auto" for one that is tuned; None for 0.3, or less in a periodic box too narrow for
            that.
        grid: of the box, its cutoff that of the law.

    Attributes:
        width: in d.
        rounding: by how much the distance of two particles is misjudged at most, in d.
        tunes: whether it wants to know how long steps take.

    Raises:
        ValueError: too wide for the box.
    """

    def __init__(self, choice: float | Literal["auto"] | None, grid: CellGrid):
        box = grid.box
        periodic = [length for length, wraps in zip(box.lengths, box.periodic, strict=True) if wraps]
        widest = min(periodic, default=np.inf) / 2 - grid.cutoff
        self.tunes = choice == "auto" and widest > THINNEST
        if choice is None or choice == "auto":
            choice = min(USUAL, widest)
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
        """How far a particle may go before lists are too old, in d."""
        return (self.width - self.rounding) / 2

    @property
    def step_rounding(self) -> float:
        """How much farther than its speed says a step may take a particle, for its position is rounded."""
        return np.sqrt(self._dim) * self.rounding / 8

    def timed(self, ms: float, steps: int) -> None:
        """Take note of how long some steps took at this width."""
        if self._steps < 0:  # not settled yet
            self._steps = min(self._steps + steps, 0)
            return
        self._ms, self._steps = self._ms + ms, self._steps + steps
        if self._steps >= TRIAL:
            self._tuner.measured(self._ms / self._steps)
            self._ms, self._steps = 0.0, 0

    @property
    def proposed(self) -> float | None:
        """Another width to change to, if one is to be tried."""
        return self._tuner.value if self.tunes and self._tuner.value != self.width else None

    def change(self) -> None:
        """Take the width that is wanted."""
        self.width = self._tuner.value
        self._ms, self._steps = 0.0, -SETTLE
