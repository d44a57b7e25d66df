"""What is done at intervals while a simulation runs: looking, writing, saving."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

from md import checks
from md.simulation.interrupt import defer_sigint


class Reporter(Protocol):
    """Something to call at intervals, for `Simulation.run(reporters=[...])`.

    A reporter that holds a file has a method `release()` too, which is called when the run ends.

    Attributes:
        interval: in steps, at least 1.
    """

    interval: int

    def report(self, simulation: Any) -> None:
        """Look at an `md.Simulation` between two steps."""


def checked(reporters: Sequence[Reporter]) -> tuple[Reporter, ...]:
    """The reporters as a tuple.

    Raises:
        TypeError: no sequence, one without `report`, or an interval that is no integer.
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
    """The interval of a reporter as a Python integer, which no step makes wrap.

    It is asked for at each report, so an `int` of at least 1 is returned at once.

    Raises:
        TypeError: it is no integer.
        ValueError: it is below 1.
    """
    if type(interval := reporter.interval) is int and interval > 0:
        return interval
    return checks.integer(f"interval of {type(reporter).__name__}", interval, unit="steps")


def released(reporters: Sequence[Reporter]) -> None:
    """Have the reporters give up what they hold between two runs, such as the claim on a file."""
    for reporter in reporters:
        if callable(release := getattr(reporter, "release", None)):
            release()


def next_report(reporters: Sequence[Reporter], step: int) -> float:
    """The first step after this one at which one of them is due; infinite if there are none."""
    intervals = map(interval_of, reporters)
    return min(((step // interval + 1) * interval for interval in intervals), default=math.inf)


class Reports:
    """The reports of a simulation. Each is made once, one that was interrupted when the run goes on.

    Ctrl-C waits until the reporter at work is done; a second one does not. A reporter that raises an
    exception has not reported.
    """

    def __init__(self):
        self._asked: Sequence[Reporter] = ()  # the reporters of the last run
        self._step, self._made = -1, []  # the last step with reports, and the reporters that made theirs

    def begin(self, reporters: Sequence[Reporter], simulation: Any, steps: int) -> None:
        """Make the reports at the first step of a run that are not made yet.

        At step 0 they are those of all reporters, if steps are to be taken. At another they are those that
        the run before should have made, where the same object is a reporter again.

        Args:
            reporters: of the run.
            simulation: at its first step.
            steps: to be taken.
        """
        step = simulation.step
        waiting = [r for r in reporters if _among(r, self._asked) or (steps and step == 0)]
        self._asked = reporters
        self.make(waiting, simulation)
        if step:
            self._made += [r for r in reporters if not _among(r, self._made)]  # due later for the first time

    def make(self, reporters: Sequence[Reporter], simulation: Any) -> None:
        """Make the reports that are due at this step and not made yet."""
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
                if pressed:
                    break


def _among(reporter: Reporter, others: Sequence[Reporter]) -> bool:
    """Whether it is one of them: the same object, for equal ones may have their own files."""
    return any(reporter is other for other in others)
