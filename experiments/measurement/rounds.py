"""Sample all compared cases in rounds.

A round samples every case once, in random order, so that other work on the machine affects all cases alike.
Kernels are compiled and graphs recorded before the first round. Each row holds its round and the load of the
machine during the sample.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from experiments.measurement.energy import Work, energies
from experiments.measurement.machine_state.gpu_clock import GpuClock
from experiments.measurement.machine_state.host_load import HostLoad
from md.backend import Backend
from sfc import checks
from sfc.compile import kernel_cache, thread_count

SETTLE_AT_MOST = 12  # untimed rounds, until nothing is compiled or recorded
TRIES = 3  # of a sample that compiles or records


class Entry(NamedTuple):
    """Case that is compared with others.

    Attributes:
        columns: that identify the case; column -> value.
        sample: runs the steps of one round and yields one or more rows with `time_ms` and `sample_ms` (the
            measured time, before it is divided by steps).
        at_end: computes columns that only the rows of the last round get, after their times.
        threads: host threads that the steps use; None for all of Numba's, or for 1 if the steps run on a
            device.
        on_device: whether the steps run on a device with a clock to be read; None for all steps on a backend
            with a device.
        work: takes some steps without times of its own, and waits for their end; it is repeated after the
            last round, while the energy is read. None for no energy.
    """

    columns: dict[str, Any]
    sample: Callable[[], Iterable[dict]]
    at_end: Callable[[], dict[str, Any]] = dict
    threads: int | None = None
    on_device: bool | None = None
    work: Work | None = None

    def is_on_device(self, backend: Backend) -> bool:
        """Return whether the steps run on a device.

        Args:
            backend: of the rounds.
        """
        return backend.name == "cuda" if self.on_device is None else self.on_device

    def threads_on(self, backend: Backend) -> int:
        """Return the number of host threads that the steps use.

        Args:
            backend: of the rounds.
        """
        if self.threads is not None:
            return self.threads
        return 1 if self.is_on_device(backend) else thread_count()


def take_rounds(
    entries: Sequence[Entry],
    rounds: int,
    backend: Backend,
    *,
    seed: int,
    begin: int = 0,
    settle: int = 1,
    energy_seconds: float = 0.0,
) -> Iterator[list[dict]]:
    """Yield the rows of each round, in which all entries are sampled in random order.

    Args:
        entries: cases that are compared.
        rounds: number of rounds.
        backend: of the simulations.
        seed: of the order within rounds.
        begin: first round that is missing: the rounds before it are already recorded.
        settle: smallest number of untimed rounds before the first; 0 for none, where nothing is compiled.
        energy_seconds: for which each entry with `work` repeats it after the last round; 0 for no energies.

    Returns:
        For each round the rows of the entries in turn, with their columns, and: `round`; `turn`, the position
        of the sample in the round; `other_load_cores`, `spare_cores` (cores that the steps do not use),
        `waited_share`, `involuntary_switches` of the host; of steps on a GPU `clock_MHz`, `power_W`,
        `chip_celsius`, `throttle`; `recorded`, whether the sample compiled or recorded after all tries;
        in the last round the columns of `energy.energies`.

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
    energy_seconds = checks.number("energy_seconds", energy_seconds, 0, unit="s")
    return _rounds(every, rounds, backend, checks.integer("seed", seed, 0), begin, settle, energy_seconds)


def _rounds(
    every: Sequence[Entry],
    rounds: int,
    backend: Backend,
    seed: int,
    begin: int,
    settle: int,
    energy_seconds: float,
) -> Iterator[list[dict]]:
    host = HostLoad()
    if begin >= rounds:
        return
    with ExitStack() as stack:
        gpu = None
        if backend.name == "cuda" and any(entry.is_on_device(backend) for entry in every):
            device: Any = backend  # a CUDA backend has the PCI bus id
            gpu = stack.enter_context(GpuClock(device.bus))
        for settled in range(SETTLE_AT_MOST if settle else 0):
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
            if number == rounds - 1:
                works = {k: entry.work for k, entry in enumerate(every) if entry.work is not None}
                names = {k: ", ".join(map(str, every[k].columns.values())) for k in works}
                for k, columns in energies(works, backend, energy_seconds, [seed, rounds], names).items():
                    found[k] = [row | columns for row in found[k]]
            yield [row for rows in found for row in rows]


def _made(backend: Backend) -> tuple[int, int]:
    """Count the kernels compiled or loaded, and the graphs recorded, so far."""
    return len(kernel_cache.counts.compiled) + len(kernel_cache.counts.found), backend.recorded
