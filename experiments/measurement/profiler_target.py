"""Program for profilers: the forces of a gas in one memory order after the other, or the steps of a cycle.

`python -m experiments.measurement.profiler_target JOB`, a `Job` or a `CycleJob` as JSON. On a device, a
profiler started with profiling off records the forces alone, or the steps from one rebuild of the search to
the next, launched one by one. Of these steps the last line of the output is a `Cycle` as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import NamedTuple

import md
from experiments.measurement.step_times import benchmark_simulation
from experiments.results.baselines import BASELINES, LATTICE

WARM_UP = 3  # steps before the reorder
SETTLE = 20  # steps before a cycle, of a gas that is warm: rebuilds are planned by the fastest particle
LEAST_STEPS = 5  # of a cycle, of a search that is rebuilt more often
MOST_STEPS = 500  # without a rebuild: particles are hardly moving


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


class CycleJob(NamedTuple):
    """Steps to be profiled, from one rebuild of the search to the next.

    Attributes:
        checkpoint: file of the simulation that takes them.
    """

    checkpoint: str


class Cycle(NamedTuple):
    """Content of a profile.

    Attributes:
        steps: number of steps.
        builds: number of builds of the search in them.
    """

    steps: int
    builds: int


def gas(job: Job) -> md.State:
    """Create the gas, in shuffled memory."""
    box = md.scenes.box_for(job.n, job.filling_fraction)
    return md.preparation.granular_gas(
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
    simulation = benchmark_simulation(start, job, job.search, reorder=reorder)
    if reorder is not None:
        simulation.reorder()  # first from shuffled memory, below from memory in order
    simulation.run(WARM_UP)
    if reorder is not None:
        simulation.reorder()
    return simulation


def profile(simulation: md.Simulation) -> Cycle:
    """Take as many steps as a cycle has, from after one build up to the next, under a profiler.

    Args:
        simulation: after its warm-up.
    """
    _take_to_build(simulation)
    cycle = _take_to_build(simulation)
    first, built = simulation.step, simulation.builds
    with simulation.backend.profiled():
        simulation.run(cycle * -(-LEAST_STEPS // cycle))
        if simulation.builds == built:
            _take_to_build(simulation)
    return Cycle(simulation.step - first, simulation.builds - built)


def _take_to_build(simulation: md.Simulation) -> int:
    """Take steps up to one that has a build, and return their number."""
    first, built = simulation.step, simulation.builds
    while simulation.builds == built and simulation.step < first + MOST_STEPS:
        simulation.run(1)
    return simulation.step - first


def main() -> None:
    """Run the job of the command line."""
    given = json.loads(sys.argv[1])
    if "checkpoint" in given:
        simulation = md.Simulation.load(CycleJob(**given).checkpoint)
        simulation.run(SETTLE)
        print(json.dumps(profile(simulation)._asdict()))
        return
    job = Job(**given)
    state = gas(job)
    for ordering in job.orderings:
        simulation = ordered(job, state, ordering)
        with simulation.backend.profiled():
            for _ in range(job.times):
                simulation.forces()


if __name__ == "__main__":
    main()
