"""Measure other work on the machine while a sample is taken: load of other processes, waiting for cores.

The load is the difference of Linux's counters; None if the system has no such counter.
"""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]  # a module, or None on Windows

_THREADS = Path("/proc/self/task")


class Load(NamedTuple):
    """Load of the host between two times.

    Attributes:
        other_load_cores: average number of cores that other processes used, of those this process may use. It
            may be below 0 for a short sample, because the system's counters tick every 10 ms.
        waited_share: time that ready threads of this process waited for a core, over the wall time of all
            threads that ran.
        involuntary_switches: number of times that a thread of this process lost its core to another.
    """

    other_load_cores: float | None
    waited_share: float | None
    involuntary_switches: int | None


class _Counters(NamedTuple):
    wall: float
    busy: float
    own: float
    waited: float
    switches: float


class HostLoad:
    """Counters of the host since `start`.

    The system's counters tick every 10 ms: the load of one sample below 0.1 s is inaccurate, the mean over
    many samples is not.
    """

    def __init__(self):
        self._cores = _own_cores()
        self.start()

    @property
    def cores(self) -> int:
        """Return the number of cores that this process may use."""
        return len(self._cores)

    def start(self) -> None:
        """Start a sample."""
        self._before = self._counters()

    def stop(self) -> Load:
        """Return the load since the start of the sample."""
        pairs = zip(self._before, self._counters(), strict=True)
        spent = _Counters(*(last - first for first, last in pairs))  # NaN without a counter
        wall = max(spent.wall, 1e-9)
        other = min((spent.busy - spent.own) / wall, float(self.cores))
        found: tuple[Any, ...] = other, spent.waited / max(spent.own, wall), spent.switches
        return Load(*(None if math.isnan(one) else one for one in found))

    def _counters(self) -> _Counters:
        try:
            each = psutil.cpu_times(percpu=True)
            busy = sum(sum(each[k][:]) - each[k].idle - getattr(each[k], "iowait", 0.0) for k in self._cores)
        except (OSError, IndexError, AttributeError):
            busy = math.nan
        switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw if resource else math.nan
        return _Counters(time.perf_counter(), busy, _own_seconds(), _waited_seconds(), switches)


def _own_cores() -> tuple[int, ...]:
    try:
        return tuple(sorted(os.sched_getaffinity(0)))
    except AttributeError:  # not on macOS, Windows
        return tuple(range(psutil.cpu_count() or 1))


def _own_seconds() -> float:
    """Return the CPU time of this process and of its ended children, in s."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _waited_seconds() -> float:
    """Return the time that ready threads of this process waited for a core, in s; NaN without a counter."""
    try:
        parts = [(thread / "schedstat").read_text("ascii").split() for thread in _THREADS.iterdir()]
    except OSError:  # no such system, or a thread that has ended meanwhile
        return math.nan
    return 1e-9 * sum(int(part[1]) for part in parts if len(part) > 1)
