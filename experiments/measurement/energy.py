"""Measure the energy of a step, in a pass of its own after the timed rounds.

Samples last milliseconds, and an energy counter of a GPU changes only some 10 to 50 times a second. So each
case repeats its steps for a second or more. Meanwhile a thread notes when the counter changes. Energy and
steps are those between two changes, so that the counter's resolution is no error: the time of a change is
known to some 2 ms. The first part of the repetition is left out, until the power is steady and the counter,
which lags behind, holds this case alone. All cases repeat one after the other, in random order, after the
card has been idle. Its power then is `idle_W`.

The counter is that of the whole board, or of all processors with the work of other processes. A step's
energy is mean power times its time. It holds the idle power of the step's time too, hence
`energy_above_idle_J`.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import md
from experiments.core import TimedSettings
from experiments.measurement.machine_state.energy_counter import EnergyCounter, NoCounterError, counter_of
from md.backend import Backend
from sfc import checks

LEAD_S = 0.3  # of a repetition, left out
SETTLE_S, IDLE_S = 1.0, 1.0  # without work: left out, counted
POLL_S = 2e-3  # between two readings of the counter
LONGEST_TICK_S = 1.0  # a counter that stands still for longer has no energy
LEAST_S = 0.5


class Taken(NamedTuple):
    """Part of the work of a case.

    Attributes:
        steps: that it took.
        age_steps: age of the memory order at its end; None if it has none, or its age is not known.
    """

    steps: int
    age_steps: int | None = None


Work = Callable[[], Taken]


@dataclass(frozen=True)
class EnergySettings(TimedSettings):
    """Base of the Config of an experiment that measures the energy of steps beside their time."""

    energy_seconds: float = 1.5
    """Time in seconds for which each compared case takes steps after the last round, while its energy is
    read: by NVML on a GPU, by RAPL on a CPU where it can be read. 0 for no energy, else 0.5 or more."""

    def __post_init__(self):
        super().__post_init__()
        least = LEAST_S if self.energy_seconds else 0.0
        self.check("energy_seconds", low=least, unit="s", remedy="0 measures no energy")

    @property
    def notes(self) -> tuple[str, ...]:
        """Say how energy is measured, or why it is not; nothing if it is not asked for."""
        if not self.energy_seconds or "energy_seconds" in self.of_scene.without:
            return ()
        try:
            with counter_of(md.backend.get(self.backend)) as counter:
                lasts = f"{self.energy_seconds:g} s, while its energy is read ({counter.name})"
                return (f"after the last round each compared case takes more steps for {lasts}",)
        except NoCounterError as error:
            return (f"the energy of a step is not measured: {error}",)


class Tick(NamedTuple):
    """Change of an energy counter.

    Attributes:
        at: `time.perf_counter` when it was seen.
        joules: the new reading.
    """

    at: float
    joules: float


class Mark(NamedTuple):
    """End of a part of the work.

    Attributes:
        at: `time.perf_counter`.
        steps: taken so far.
        age_steps: of the memory order, see `Taken`.
    """

    at: float
    steps: int
    age_steps: int | None = None


class Use(NamedTuple):
    """Energy between two changes of the counter.

    Attributes:
        joules: used.
        seconds: between the two.
        steps: taken meanwhile.
        age_steps: largest age of the memory order; None if it has none.
    """

    joules: float
    seconds: float
    steps: float
    age_steps: int | None

    @property
    def watts(self) -> float:
        """Mean power."""
        return self.joules / self.seconds


class CounterWatch:
    """Context in which a thread notes each change of a counter.

    Args:
        counter: of energy.

    Attributes:
        ticks: changes so far; the first reading is none. A counter that fails has no more.
    """

    def __init__(self, counter: EnergyCounter):
        self._counter, self._ended = counter, threading.Event()
        self.ticks: list[Tick] = []

    def __enter__(self) -> CounterWatch:
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._reader.join()

    def _read(self) -> None:
        try:
            last = self._counter.joules()
            while not self._ended.wait(POLL_S):
                now = self._counter.joules()
                if now != last:
                    self.ticks.append(Tick(time.perf_counter(), now))
                last = now
        except NoCounterError:
            return


def used(ticks: Sequence[Tick], marks: Sequence[Mark], lead: float) -> Use | None:
    """Compute the energy between the first and the last change of a counter while work was done.

    Args:
        ticks: changes of the counter, in order.
        marks: begin and ends of the parts of the work, in order; the steps of a part take equal times.
        lead: time in s after the begin that is left out.

    Returns:
        Energy, time and steps; None if the counter changed less than twice.
    """
    inside = [tick for tick in list(ticks) if marks[0].at + lead <= tick.at <= marks[-1].at]
    if len(inside) < 2:
        return None
    first, last = inside[0], inside[-1]
    at, steps, ages = zip(*marks, strict=True)
    begin, end = np.interp([first.at, last.at], at, steps)
    age = max((age for age in ages if age is not None), default=None)
    return Use(last.joules - first.joules, last.at - first.at, float(end - begin), age)


def repeated(work: Work, counter: EnergyCounter, seconds: float, lead: float) -> Use | None:
    """Repeat work until a time has passed, and return the energy of that time.

    Args:
        work: takes some steps, and waits for their end.
        counter: of energy.
        seconds: least time between the changes of the counter that count.
        lead: time in s before, left out.

    Returns:
        Energy, time and steps; None if the counter did not change twice in time.

    Raises:
        TypeError: no function, or no number.
        ValueError: a time that is not above 0, or a lead below 0.
    """
    checks.function("work", work, "a function that takes steps and returns `Taken`")
    seconds = checks.number("seconds", seconds, above=0, unit="s")
    lead = checks.number("lead", lead, 0, unit="s")
    marks = [Mark(time.perf_counter(), 0)]
    latest = marks[0].at + lead + seconds + 2 * LONGEST_TICK_S
    with CounterWatch(counter) as watch:
        while True:
            taken = work()
            marks.append(Mark(time.perf_counter(), marks[-1].steps + taken.steps, taken.age_steps))
            use = used(watch.ticks, marks, lead)
            if (use is not None and use.seconds >= seconds) or marks[-1].at > latest:
                return use


def energies(
    works: Mapping[int, Work],
    backend: Backend,
    seconds: float,
    seed: Sequence[int],
    names: Mapping[int, str] | None = None,
) -> dict[int, dict[str, float]]:
    """Measure the energy of a step of several cases, one after the other in random order.

    Where a counter stands still or fails, one line on the standard error names the cases and the reason.

    Args:
        works: number of a case -> its work, see `repeated`.
        backend: of the cases.
        seconds: for which each repeats its work; 0 for no energies.
        seed: of the order.
        names: number of a case -> its name in that line; None for the numbers.

    Returns:
        Number of a case -> columns: `energy_J`, of a step; `energy_above_idle_J`, less that of an idle device
        in as long; `idle_W`; `mean_power_W`; `energy_step_ms`, time of a step while its energy was read;
        `energy_s`, for how long it was; `energy_age_steps`, the largest age of the memory order, if it has
        one. No case without a counter, or of one that stands still.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a negative time.
    """
    seconds = checks.number("seconds", seconds, 0, unit="s")
    found: dict[int, dict[str, float]] = {}
    if not (seconds and works):
        return found
    try:
        with counter_of(backend) as counter:
            idle = repeated(_rest, counter, IDLE_S, SETTLE_S)
            for k in np.random.default_rng(seed).permutation(sorted(works)).tolist():
                if idle and (use := repeated(works[k], counter, seconds, LEAD_S)):
                    found[k] = _columns(use, idle.watts)
            if lacking := [str((names or {}).get(k, k)) for k in sorted(works) if k not in found]:
                when = "in their steps" if idle else "while the device was idle"
                print(
                    f"no energy of a step of {'; '.join(lacking)}: {when} {_fault(counter)}", file=sys.stderr
                )
    except NoCounterError:
        pass  # `EnergySettings.notes` has said so
    return found


def _fault(counter: EnergyCounter) -> str:
    """Say why a counter gave no energy."""
    try:
        counter.joules()
    except NoCounterError as error:
        return f"the counter {counter.name} could not be read: {error}"
    return f"the counter {counter.name} changed less than twice"


def _rest() -> Taken:
    time.sleep(0.02)
    return Taken(0)


def _columns(use: Use, idle: float) -> dict[str, Any]:
    energy, second = use.joules / use.steps, use.seconds / use.steps
    above: dict[str, Any] = {
        "energy_J": energy,
        "energy_above_idle_J": energy - idle * second,
        "idle_W": idle,
    }
    above |= {"mean_power_W": use.watts, "energy_step_ms": 1e3 * second, "energy_s": use.seconds}
    return above if use.age_steps is None else above | {"energy_age_steps": use.age_steps}
