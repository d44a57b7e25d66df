"""Work of ranks in turn: time of each by phase, its ghosts, its peers, and what it sends.

Ranks are threads of one process, of which one works at a time (`md.domain.communicator.in_turn`), each with
one thread of Numba. Its work is the CPU time of its thread without the calls of the communicator: neither
waiting nor a network is in it. All ranks share the caches of one core, so that each finds them cold in each
step, which ranks on cores of their own do not.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np

import md
from md.domain.communicator import Communicator, in_turn

CALLS = ("exchange", "reduce", "gather", "all_of")  # of a communicator, within which a rank may wait
Made = Callable[[Communicator], md.Simulation]


class RankWork(NamedTuple):
    """Work of a rank in a step, as a mean over steps.

    Attributes:
        build_ms: build of the structure of the search.
        force_ms: forces and integration, and what else is in the loop.
        exchange_ms: packing and unpacking of ghosts, without sending them.
        migrate_ms: migrations, without the cut of the box.
        cut_ms: cuts of the box, which are not in `work_ms`.
        work_ms: the phases but for the cut.
        owned: particles.
        ghosts: copies of particles of other ranks.
        peers: ranks with ghosts of this one.
        messages: arrays sent.
        bytes: sent.
        migrations: in all steps.
        builds: in all steps.
        diameter: steps until all ranks know what one says.
        motion: sum of the squares of the velocities of owned particles.
    """

    build_ms: float
    force_ms: float
    exchange_ms: float
    migrate_ms: float
    cut_ms: float
    work_ms: float
    owned: int
    ghosts: int
    peers: int
    messages: float
    bytes: float
    migrations: int
    builds: int
    diameter: int
    motion: float


class _Clock:
    """CPU time of calls of methods of a rank, each without the calls within it that are clocked too."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.messages, self.bytes = 0, 0  # sent by `exchange`
        self._inside: list[float] = []  # time of clocked calls within those that have begun

    def add(self, owner: Any, name: str, phase: str) -> None:
        """Clock a method of an object from now on."""
        method = getattr(owner, name)

        def clocked(*arguments: Any, **named: Any) -> Any:
            if name == "exchange":
                self.messages += len(arguments[0])
                self.bytes += sum(one.nbytes for one in arguments[0].values())
            self._inside.append(0.0)
            start = time.thread_time()
            try:
                return method(*arguments, **named)
            finally:
                taken = time.thread_time() - start
                self.seconds[phase] += taken - self._inside.pop()
                if self._inside:
                    self._inside[-1] += taken

        setattr(owner, name, clocked)


def work_of_ranks(ranks: int, make: Made, warmup: int, steps: int) -> list[RankWork]:
    """Measure the work of each rank over steps of one simulation.

    Args:
        ranks: number of ranks.
        make: makes the simulation of a rank, from its communicator.
        warmup: number of steps before.
        steps: number of steps that are measured.
    """

    def work(communicator: Communicator) -> RankWork:
        numba.set_num_threads(1)  # of this thread
        simulation = make(communicator)
        simulation.run(warmup, phases=False)
        return _measured(simulation, communicator, steps)

    return in_turn(ranks, work)


def _measured(simulation: md.Simulation, communicator: Communicator, steps: int) -> RankWork:
    """Measure the work of one rank; its simulation is not used afterwards."""
    system, clock = simulation.system, _Clock()
    domain: Any = system.domain  # None of one rank
    for name in CALLS:
        clock.add(communicator, name, "call")
    clock.add(simulation.search, "rebuild", "build")
    if domain is not None:
        clock.add(domain, "after_step", "exchange")
        clock.add(domain, "migrate", "migrate")
        clock.add(domain.partition, "cut", "cut")
    clock.add(simulation, "run", "force")
    migrated, built = domain.migrations if domain else 0, simulation.builds
    simulation.run(steps, phases=False)
    per_step = {
        phase: 1e3 * clock.seconds[phase] / steps
        for phase in ("build", "force", "exchange", "migrate", "cut")
    }
    columns = {f"{phase}_ms": ms for phase, ms in per_step.items()}
    return RankWork(
        **columns,
        work_ms=sum(per_step.values()) - per_step["cut"],
        owned=system.n_owned,
        ghosts=system.n_rows - system.n_owned,
        peers=len(domain.halo.peers) if domain else 0,
        messages=clock.messages / steps,
        bytes=clock.bytes / steps,
        migrations=domain.migrations - migrated if domain else 0,
        builds=simulation.builds - built,
        diameter=domain.partition.diameter if domain else 0,
        motion=float(np.square(system.particles.vel[: system.n_owned]).sum()),
    )
