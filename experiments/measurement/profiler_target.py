"""Program for profilers, which computes the forces of a gas in one memory order after the other.

`python -m experiments.measurement.profiler_target JOB`, the job as JSON. On a device, a profiler started with
profiling off records the forces alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import NamedTuple

import md
from experiments.measurement.step_times import shared_simulation
from experiments.results.baselines import BASELINES, LATTICE

WARM_UP = 3  # steps before the reorder


class Job(NamedTuple):
    """Forces to be computed.

    Attributes:
        n: number of particles.
        filling_fraction: of the gas.
        search: name of the search.
        precision: "float32" or "float64".
        backend: "cpu" or "cuda".
        seed: of the gas.
        orderings: memory orders.
        times: how often the forces are computed, 1 or more.
    """

    n: int
    filling_fraction: float
    search: str
    precision: str
    backend: str
    seed: int
    orderings: Sequence[str]
    times: int = 1


def gas(job: Job) -> md.State:
    """Create the gas, in shuffled memory."""
    box = md.scenes.box_for(job.n, job.filling_fraction)
    return md.scenes.granular_gas(
        job.filling_fraction, box, seed=job.seed, memory_order="shuffled", backend=job.backend
    )


def ordered(job: Job, state: md.State, ordering: str) -> md.Simulation:
    """Create the gas after some steps, just reordered, or in shuffled or lattice memory.

    Args:
        job: forces to be computed.
        state: of `gas`.
        ordering: "shuffled", "lattice", or a 3D ordering of `sfc`.
    """
    reorder = None if ordering in BASELINES else md.Reorder(ordering, md.Never())
    start = state.by_id() if ordering == LATTICE else state
    simulation = shared_simulation(start, job, job.search, reorder=reorder)
    if reorder is not None:
        simulation.reorder()  # first from shuffled memory, below from memory in order
    simulation.run(WARM_UP)
    if reorder is not None:
        simulation.reorder()
    return simulation


def main() -> None:
    """Run the job of the command line."""
    job = Job(**json.loads(sys.argv[1]))
    state = gas(job)
    for ordering in job.orderings:
        simulation = ordered(job, state, ordering)
        with md.backend.get(job.backend).profiled():
            for _ in range(job.times):
                simulation.forces()


if __name__ == "__main__":
    main()
