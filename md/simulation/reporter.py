"""Reporters, which are called at intervals during a run: to observe, to write or to save."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from md import checks
from md.io.interrupt import defer_sigint


class Reporter(Protocol):
    """Object that is called at intervals, for `Simulation.run(reporters=[...])`.

    A reporter that holds a file also has a method `release()`, which is called when the run ends.

    Attributes:
        interval: in steps, at least 1.
    """

    interval: int

    def report(self, simulation: Any) -> None:
        """Report on an `md.Simulation` between two steps."""


def checked(reporters: Sequence[Reporter]) -> tuple[Reporter, ...]:
    """Check reporters and return them as a tuple.

    Raises:
        TypeError: no sequence, an object without `report`, or an interval that is no integer.
        ValueError: an interval below 1.
    """
    found = checks.sequence("reporters", reporters, "reporters", remedy="give one as [reporter]")
    for k, reporter in enumerate(found):
        name, remedy = f"reporters[{k}]", "such as md.Observer(interval=100)"
        if not (hasattr(reporter, "interval") and callable(getattr(reporter, "report", None))):
            raise checks.refuse_class(name, reporter, "an object with `interval` and `report`", remedy)
        interval_of(reporter)
    return found


def interval_of(reporter: Reporter) -> int:
    """Return the interval of a reporter as a Python integer, which does not overflow.

    It is read at each report, so an `int` of at least 1 is returned without further checks.

    Raises:
        TypeError: an interval that is no integer.
        ValueError: an interval below 1.
    """
    if type(interval := reporter.interval) is int and interval > 0:
        return interval
    return checks.integer(f"interval of {type(reporter).__name__}", interval, unit="steps")


def released(reporters: Sequence[Reporter]) -> None:
    """Call `release` of the reporters, which frees what they hold between two runs, such as a file lock."""
    for reporter in reporters:
        if callable(release := getattr(reporter, "release", None)):
            release()


def next_report(reporters: Sequence[Reporter], step: int) -> float:
    """Return the first step after this one at which a reporter is due; infinity without reporters."""
    intervals = map(interval_of, reporters)
    return min(((step // interval + 1) * interval for interval in intervals), default=math.inf)


class Reports:
    """Reports of a simulation: each is made once, and an interrupted one is made when the run continues.

    Ctrl-C is deferred until the active reporter is done; a second one is not. A reporter that raises an
    exception has not reported.

    Args:
        is_ended: returns whether Ctrl-C was pressed, on any rank, given what was pressed on this one.
    """

    def __init__(self, is_ended: Callable[[Sequence], bool]) -> None:
        self._is_ended = is_ended
        self._reporters: Sequence[Reporter] = ()  # of the last run
        self._step = -1  # the last step with reports
        self._made: list[Reporter] = []  # the reporters that were called at that step

    def begin(self, reporters: Sequence[Reporter], simulation: Any, steps: int) -> None:
        """Make the reports at the first step of a run that were not made yet.

        At step 0 these are the reports of all reporters, if steps are to be taken. At another step they are
        those that the run before should have made, if the same object is a reporter again.

        Args:
            reporters: of the run.
            simulation: at its first step.
            steps: number of steps to be taken.
        """
        step = simulation.step
        waiting = [r for r in reporters if _among(r, self._reporters) or (steps and step == 0)]
        self._reporters = reporters
        self.make(waiting, simulation)
        if step:
            self._made += [r for r in reporters if not _among(r, self._made)]  # due later for the first time

    def make(self, reporters: Sequence[Reporter], simulation: Any) -> None:
        """Make the reports that are due at this step and were not made yet."""
        step = simulation.step
        if step != self._step:
            self._step, self._made = step, []
        due: list[Reporter] = []
        for reporter in reporters:
            made = _among(reporter, self._made) or _among(reporter, due)
            if not made and step % interval_of(reporter) == 0:
                due.append(reporter)
        if not due:
            return
        with defer_sigint(presses=1) as pressed:
            for reporter in due:
                reporter.report(simulation)
                self._made.append(reporter)
                if self._is_ended(pressed):
                    break


def _among(reporter: Reporter, others: Sequence[Reporter]) -> bool:
    """Return whether a reporter is one of others, by identity, because equal ones may have separate files."""
    return any(reporter is other for other in others)
