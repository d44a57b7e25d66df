"""What else the machine did while a sample was taken: other processes' work, waiting for a core.

Read from Linux's counters before and after; None where the system has no such counter.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

import psutil

try:
    import resource
except ImportError:  # not on Windows
    resource = None

_THREADS = Path("/proc/self/task")


class Load(NamedTuple):
    """Between two moments.

    Attributes:
        other_load_cores: cores that other processes kept busy, on average, of those this process may use; of
            a short sample it may be below 0, for the system's counters tick every 10 ms.
        waited_share: the time that threads of this process were ready and had no core, over the wall time of
            all of them that ran.
        involuntary_switches: how often a thread of this process was made to give its core to another.
    """

    other_load_cores: float | None
    waited_share: float | None
    involuntary_switches: int | None


class _Counters(NamedTuple):
    wall: float
    busy: float | None
    own: float
    waited: float | None
    switches: int | None


class HostLoad:
    """What the host did since `start`.

    Counters of the system tick every 10 ms, so a sample of less than some 0.1 s tells little by itself, and
    the mean over many tells much.
    """

    def __init__(self):
        self._cores = _own_cores()
        self.start()

    @property
    def cores(self) -> int:
        """Cores that this process may use."""
        return len(self._cores)

    def start(self) -> None:
        """Begin a sample."""
        self._before = self._counters()

    def stop(self) -> Load:
        """What happened since the sample began."""
        first, last = self._before, self._counters()
        wall = max(last.wall - first.wall, 1e-9)
        own = last.own - first.own
        other = None
        if first.busy is not None:
            other = min((last.busy - first.busy - own) / wall, float(self.cores))
        waited = None if first.waited is None else (last.waited - first.waited) / max(own, wall)
        switches = None if first.switches is None else last.switches - first.switches
        return Load(other, waited, switches)

    def _counters(self) -> _Counters:
        try:
            each = psutil.cpu_times(percpu=True)
            busy = sum(sum(each[k][:]) - each[k].idle - getattr(each[k], "iowait", 0.0) for k in self._cores)
        except (OSError, IndexError, AttributeError):
            busy = None
        switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw if resource else None
        return _Counters(time.perf_counter(), busy, _own_seconds(), _waited_seconds(), switches)


def _own_cores() -> tuple[int, ...]:
    try:
        return tuple(sorted(os.sched_getaffinity(0)))
    except AttributeError:  # not on macOS, Windows
        return tuple(range(psutil.cpu_count() or 1))


def _own_seconds() -> float:
    """CPU time of this process and of its children that have ended."""
    told = os.times()
    return time.process_time() + told.children_user + told.children_system


def _waited_seconds() -> float | None:
    """Time that threads of this process were ready and waited for a core; None without such a counter."""
    try:
        parts = [(thread / "schedstat").read_text().split() for thread in _THREADS.iterdir()]
    except OSError:  # no such system, or a thread that has ended meanwhile
        return None
    return 1e-9 * sum(int(part[1]) for part in parts if len(part) > 1)
