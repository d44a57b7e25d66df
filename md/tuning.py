"""Finding the value of a parameter at which a run is fastest, while it runs."""

from __future__ import annotations

import math

RATIO = 1.25  # from one value tried to the next
GAIN = 0.99  # what is not this much faster is not better


class Tuner:
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
