"""Samples of all cases that are compared, taken in turns.

A round samples every case once, in random order, so that what else the machine does falls on all of them
alike. Compiling and recording come before the first round. Each row tells its round and what the machine did
meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numba
import numpy as np

from experiments.measurement.gpu_clock import GpuClock
from experiments.measurement.host_load import HostLoad
from md.backend import Backend
from sfc import checks
from sfc.compile import kernel_cache

SETTLE_AT_MOST = 12  # untimed rounds before the first, until nothing is compiled or recorded any more
TRIES = 3  # of a sample in which something was compiled or recorded after all


class Entry(NamedTuple):
    """A case that is compared with others.

    Attributes:
        columns: what tells it from the others; column -> value.
        sample: takes the steps of one round and yields a row, or some, with `time_ms` and `sample_ms` (what
            the clock measured, before it was divided by steps).
        at_end: columns of the rows of the last round alone; found when they have been timed.
        threads: threads of the host that the steps keep busy; None for as many as Numba has, or for 1 where
            the steps are a device's work.
        on_device: whether the steps are a device's work, of which its clock tells; None for all of those on a
            backend with a device.
    """

    columns: dict[str, Any]
    sample: Callable[[], Iterable[dict]]
    at_end: Callable[[], dict[str, Any]] = dict
    threads: int | None = None
    on_device: bool | None = None

    def is_on_device(self, backend: Backend) -> bool:
        """Whether the steps are a device's work.

        Args:
            backend: of the rounds.
        """
        return backend.name == "cuda" if self.on_device is None else self.on_device

    def threads_on(self, backend: Backend) -> int:
        """Threads of the host that the steps keep busy.

        Args:
            backend: of the rounds.
        """
        if self.threads is not None:
            return self.threads
        return 1 if self.is_on_device(backend) else numba.get_num_threads()


def take_rounds(
    entries: Sequence[Entry], rounds: int, backend: Backend, *, seed: int, begin: int = 0, settle: int = 1
) -> Iterator[list[dict]]:
    """The rows of each round, in which all entries are sampled in random order.

    Args:
        entries: what is compared.
        rounds: how many.
        backend: where they run.
        seed: of the order within rounds.
        begin: the first round wanted: those before it were taken earlier.
        settle: untimed rounds at least before the first.

    Returns:
        For each round the rows of the entries in turn, with their columns, and besides: `round`; `turn`, the
        place of the sample in the round; `other_load_cores`,
        `spare_cores` (those that the steps leave free), `waited_share`, `involuntary_switches` of the host;
        of steps on a GPU `clock_MHz`, `power_W`, `throttle`; `recorded`, whether something was compiled or
        recorded in the sample for all that.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: no entries, or a number out of range.
    """
    every = checks.sequence("entries", entries, "Entry")
    for k, entry in enumerate(every):
        checks.instance(f"entries[{k}]", entry, Entry, "an Entry")
    if not every:
        raise checks.refuse_value("entries", entries, "one Entry or more")
    checks.instance("backend", backend, Backend, "an md.backend.Backend", "md.backend.get makes one")
    rounds = checks.integer("rounds", rounds, 1)
    begin, settle = checks.integer("begin", begin, 0), checks.integer("settle", settle, 0, SETTLE_AT_MOST)
    return _rounds(every, rounds, backend, checks.integer("seed", seed, 0), begin, settle)


def _rounds(
    every: Sequence[Entry], rounds: int, backend: Backend, seed: int, begin: int, settle: int
) -> Iterator[list[dict]]:
    host = HostLoad()
    if begin >= rounds:
        return
    with ExitStack() as stack:
        gpu = None
        if backend.name == "cuda" and any(entry.is_on_device(backend) for entry in every):
            gpu = stack.enter_context(GpuClock(backend.bus))
        for settled in range(SETTLE_AT_MOST):
            before = _made(backend)
            for entry in every:
                list(entry.sample())
            if settled + 1 >= settle and _made(backend) == before:
                break
        for number in range(begin, rounds):
            found: list[list[dict]] = [[] for _ in every]
            for turn, k in enumerate(np.random.default_rng([seed, number]).permutation(len(every))):
                entry = every[k]
                for _ in range(TRIES):
                    before, at = _made(backend), time.perf_counter()
                    host.start()
                    rows = list(entry.sample())
                    load, end = host.stop(), time.perf_counter()
                    recorded = _made(backend) != before
                    if not recorded:
                        break
                spare = {"spare_cores": host.cores - entry.threads_on(backend)}
                common = {"round": number, "turn": turn, **load._asdict(), **spare, "recorded": recorded}
                if gpu is not None and entry.is_on_device(backend):
                    common |= gpu.between(at, end)._asdict()
                if number == rounds - 1:
                    common |= entry.at_end()
                found[k] = [entry.columns | row | common for row in rows]
            yield [row for rows in found for row in rows]


def _made(backend: Backend) -> tuple[int, int]:
    """How many kernels were compiled or loaded, and graphs recorded, so far."""
    return len(kernel_cache.counts.compiled) + len(kernel_cache.counts.found), backend.recorded
