"""Estimate of a value or a gain: the number with its interval, its noise and its warnings."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy  # its `special` is loaded when first used

from experiments.results import reliability
from experiments.results.selection import GAS, RUN

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Spread:
    """Spread of the logarithms of runs: of one case, or pooled over several.

    Args:
        sd: standard deviation.
        freedom: degrees of freedom, 1 or more.
    """

    sd: float
    freedom: int


def logarithms(numbers: np.ndarray, is_part: bool) -> np.ndarray:
    """Return the logarithms of which the mean over runs is taken: of parts, those of x / (1 - x).

    Args:
        numbers: (runs,) numbers.
        is_part: whether they are parts of a whole.
    """
    with np.errstate(all="ignore"):
        return np.log(numbers / (1 - numbers) if is_part else numbers)


def reach(spreads: Sequence[Spread], runs: int, of: int = 1) -> float:
    """Return the half-width of Student's t interval (95 %) of a mean of logarithms: by the widest spread.

    Args:
        spreads: one or more.
        runs: over which the mean is taken.
        of: how many alternatives share the 5 %.
    """
    tail = (1 - CONFIDENCE) / 2 / of
    return max(float(scipy.special.stdtrit(one.freedom, 1 - tail)) * one.sd for one in spreads) / runs**0.5


@dataclass(frozen=True)
class Estimate:
    """Value or gain of some rows.

    Args:
        value: the number.
        low: lower end of the interval.
        high: upper end.
        runs: how many runs, gases or values of another unit it rests on.
        unit: "run", "gas" or the name of a column.
        rounds: the fewest rounds of a run.
        is_range: whether `low` and `high` are a range.
        case: the case that was picked among several; empty for one case.
        noise_floor: factor, at least 1, between two measurements of a case, in the worst of the runs of these
            rows; NaN where no case was measured twice beside them.
        table_noise: the largest noise floor of all cases of the table; NaN for none.
        warnings: of exactly these rows and those of their baseline.
        cases: estimates of all cases, if this one was picked as the lowest or highest of them.
        spreads: of its runs, and pooled over the cases of its table; empty for a range.
    """

    value: float
    low: float
    high: float
    runs: int
    unit: str
    rounds: int
    is_range: bool
    case: str = ""
    noise_floor: float = float("nan")
    table_noise: float = float("nan")
    warnings: tuple[str, ...] = ()
    cases: tuple["Estimate", ...] = field(default=(), repr=False)
    spreads: tuple[Spread, ...] = field(default=(), repr=False)

    def above(self, number: float, of: int = 1) -> bool:
        """Return whether the estimate is above a number, beyond its interval and the noise of its table.

        The lowest of several cases is above if each case is; that it is below is one alternative for each
        case. One run of times is never above, nor below: the range of its rounds is no interval.

        Args:
            number: what it is compared with.
            of: how many alternatives a rule joins by `or`. Each is judged at 1 - 0.05 / of (Bonferroni; for
                "one of them holds" the same as Holm). Conditions joined by `and` need no correction, because
                each must hold (intersection-union test: Berger, Technometrics 24, 295, 1982).
        """
        return self._all_beyond(number, 1, of)

    def below(self, number: float, of: int = 1) -> bool:
        """Return whether the estimate is below a number, see `above`."""
        return self._all_beyond(number, -1, of)

    def _all_beyond(self, number: float, sign: int, of: int) -> bool:
        """Return whether the cases that bound this one are all above a number (sign 1) or below it (-1)."""
        cases = self.cases or (self,)
        bounding = [one for one in cases if sign * one.value >= sign * self.value]
        alternatives = of if len(bounding) == len(cases) else of * len(cases)
        return all(one._is_beyond(number, sign, alternatives) for one in bounding)

    def _is_beyond(self, number: float, sign: int, of: int) -> bool:
        """Return whether this case, one of some alternatives, is above a number (sign 1) or below it (-1)."""
        if self.runs == 1 and self.unit == RUN:
            return False
        end = self.low if sign > 0 else self.high
        if of > 1 and not self.is_range:
            spreads = self.spreads or (Spread(1.0, self.runs - 1),)
            wider = reach(spreads, self.runs, of) / reach(spreads, self.runs)
            end = self.value * (end / self.value) ** wider
        noise = self.table_noise if np.isfinite(self.table_noise) else 1.0
        return bool(sign * end > sign * number and sign * self.value > sign * number * noise**sign)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Words that stand beside the number wherever it is shown: its warnings in short, and "one run"."""
        warned = tuple(reliability.SHORT.get(text, text) for text in self.warnings)
        return (*warned, self.support) if self.runs == 1 else warned

    @property
    def support(self) -> str:
        """How many runs or gases the estimate rests on, such as "one run" or "3 gases"."""
        if self.runs == 1:
            return f"one {self.unit}"
        return f"{self.runs} {'gases' if self.unit == GAS else self.unit + 's'}"

    @property
    def interval(self) -> str:
        """What `low` and `high` are."""
        if self.runs == 1:
            return f"range of {self.rounds} rounds of {self.support}" if self.rounds > 1 else self.support
        return f"{'range' if self.is_range else '95 %'} over {self.support}"
