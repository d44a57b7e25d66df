"""Program for profilers, which takes the steps of a gas from one rebuild of the search to the next.

`python -m experiments.measurement.cycle_target JOB`, the job as JSON. A profiler started with profiling off
records these steps alone, launched one by one. The last line of the output is a `Cycle` as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

import md
from experiments.measurement.step_times import shared_simulation

LEAST_STEPS = 5  # in the profile, of a search that is rebuilt more often
MOST_STEPS = 500  # without a rebuild: particles are hardly moving


class CycleJob(NamedTuple):
    """Steps to be profiled.

    Attributes:
        n: number of particles.
        filling_fraction: of the gas.
        search: name of the search.
        precision: "float32" or "float64".
        fused: whether the step is part of the force kernel.
        backend: "cpu" or "cuda".
        seed: of the gas.
        warm_up: steps before the profile.
        start: file of `write_start`; empty for the shared gas, in shuffled memory, in which no spheres touch.
    """

    n: int
    filling_fraction: float
    search: str
    precision: str
    fused: bool
    backend: str
    seed: int
    warm_up: int
    start: str = ""


class Cycle(NamedTuple):
    """Content of a profile.

    Attributes:
        steps: number of steps.
        builds: number of builds of the search in them.
    """

    steps: int
    builds: int


def write_start(path: Path, state: md.State) -> None:
    """Write positions, velocities and ids of a shared gas to a file, uncompressed."""
    np.savez(path, pos=state.pos, vel=state.vel, id=state.id)


def read_start(path: Path, job: CycleJob) -> md.State:
    """Read a state of `write_start`, in the box of the job's gas."""
    box = md.scenes.box_for(job.n, job.filling_fraction)
    with np.load(path) as saved:
        return md.State(saved["pos"], saved["vel"], box, id=saved["id"])


def simulation(job: CycleJob, start: md.State | None = None) -> md.Simulation:
    """Make the simulation of a job.

    Args:
        job: steps to be profiled.
        start: None for that of the job; else a state in which spheres may touch.
    """
    if start is None and job.start:
        start = read_start(Path(job.start), job)
    touching = start is not None
    if start is None:
        start = md.scenes.shared_gas(job.n, job.filling_fraction, seed=job.seed, backend=job.backend)
    return shared_simulation(start, job, job.search, fused=job.fused, allow_overlap=touching)


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
    job = CycleJob(**json.loads(sys.argv[1]))
    sim = simulation(job)
    sim.run(job.warm_up)
    print(json.dumps(profile(sim)._asdict()))


if __name__ == "__main__":
    main()
