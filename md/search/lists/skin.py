"""Width of the skin of neighbour lists: given, chosen by a model of the costs, or tuned during the run.

A wide skin makes lists longer, and rebuilds rarer.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from md.particles.cell_grid import CellGrid
from md.search.lists.step_costs import StepCosts

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
        """Drop the measured times, so that the search starts again at the best value."""
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
        """Return the value to measure next: the best one times or divided by `RATIO`, or the best one."""
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


USUAL = 0.3  # in d, on the CPU, if it fits the box
WIDE, INNER = 0.4, 0.1  # in d, on the CPU if lists can be pruned
THINNEST, WIDEST = 0.02, 1.5  # range of tuning, in d
SETTLE, TRIAL = 100, 200  # steps after a change that are not timed, and steps that are


class Skin:
    """Skin of the neighbour lists of a run, and its tuning.

    Args:
        choice: in d; "auto" to tune it; None for the width that `StepCosts` finds fastest on a device, and
            on the CPU for `WIDE` if lists are pruned, else `USUAL`, or less in a periodic box too narrow.
        grid: cells of the box, with the cutoff of the law.
        n: number of particles.
        inner: width of the skin of pruned lists, in d; None for the fastest by `StepCosts`, or `INNER`.
        on_device: whether the widths are those of a device; None for the backend of the grid.

    Attributes:
        width: in d.
        inner: width of the skin of pruned lists in d, at most `width`, which is without pruned lists.
        rounding: largest error of the distance of two particles, in d.
        tunes: whether the width is tuned by the times of steps.

    Raises:
        ValueError: a skin too wide for the box.
    """

    def __init__(
        self, choice: float | Literal["auto"] | None, grid: CellGrid, n: int = 0, inner: float | None = None,
        on_device: bool | None = None,
    ):  # fmt: skip
        box = grid.box
        periodic = [length for length, wraps in zip(box.lengths, box.periodic, strict=True) if wraps]
        widest = self._widest = min(periodic, default=np.inf) / 2 - grid.cutoff
        self.tunes = choice == "auto" and widest > THINNEST
        if isinstance(choice, (int, float)) and choice > widest:
            raise ValueError(
                f"skin = {choice} in a box of {box.lengths}; allowed: up to {widest:g}, half the shortest "
                f"periodic axis less the cutoff {grid.cutoff}; enlarge the box or take skin=None"
            )
        self._choice, self._inner = choice, inner
        self._costs: StepCosts | None = None
        self._dim = box.dim
        on_device = grid.backend.runs_ahead if on_device is None else on_device
        self._n = n if on_device else 0
        self.describe(n / math.prod(box.lengths), grid.cutoff)
        self.rounding = 8 * float(np.finfo(grid.precision).eps) * max(box.lengths)
        self.choose(0.0, prunes=False)

    def limit_to(self, width: float) -> None:
        """Choose no wider skin than this, in d, if none was given."""
        self._widest = min(self._widest, width)

    def describe(self, density: float, cutoff: float) -> None:
        """Describe the particles to the model of the costs.

        Args:
            density: particles in a unit of volume, in 1 / d^dim.
            cutoff: in d.
        """
        if self._n:
            self._costs = StepCosts(self._n, density, cutoff, self._dim)

    def choose(self, stride: float, prunes: bool) -> None:
        """Choose the widths that were not given.

        Args:
            stride: largest displacement of a particle in a step, in d.
            prunes: whether lists can be pruned.
        """
        self._stride, self._prunes = stride, prunes
        self._set(self._choice if isinstance(self._choice, (int, float)) else None)
        if self.tunes:
            most = max(self.width, min(WIDEST, self._widest))
            self._tuner = HillClimb(self.width, min(self.width, THINNEST), most)
            self._ms, self._steps = 0.0, -SETTLE

    def _set(self, width: float | None) -> None:
        """Set the width to a given one, or to the fastest for None, and the inner width that suits it."""
        if self._costs is None:
            usual = WIDE if self._prunes else USUAL
            self.width = self.inner = min(usual, self._widest) if width is None else width
            if self._prunes:
                self.inner = min(INNER if self._inner is None else self._inner, self.width)
        else:
            inner = self._inner if self._prunes else math.inf
            self.width, self.inner = self._costs.fastest(self._stride, width, inner, self._widest)

    @property
    def limit(self) -> float:
        """Displacement of a particle up to which lists are complete, in d."""
        return (self.width - self.rounding) / 2

    @property
    def inner_limit(self) -> float:
        """Displacement of a particle since the pruning up to which pruned lists are complete, in d."""
        return (self.inner - self.rounding) / 2

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
        self._set(self._tuner.value)
        self._ms, self._steps = 0.0, -SETTLE

    def refuse(self, width: float) -> None:
        """Return to a width, because lists of the present one have no room; that is not tried again soon."""
        self._tuner.measured(math.inf)
        self._set(width)
        self._ms, self._steps = 0.0, -SETTLE
