"""Launches that were foreseen: timed in turns, and counted by Nsight Compute.

`python -m experiments.forecasts.measured JOB` takes a step of each case of a job, as JSON, under a profiler.
A case is a gas of `experiments.prediction.drawn_gases` in one of its memory orders.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import md
from experiments.measurement.correctness import check_forces, check_temperature, require_forces
from experiments.measurement.hardware_counters import NSIGHT, CannotCountError, read_launches, run_under
from experiments.measurement.kernels.index_kernels import Gather, IndexKernel, Scatter, Spmv
from experiments.measurement.step_times import phases_of
from experiments.prediction.drawn_gases import Gas, reads_of
from experiments.prediction.foreseen_systems import BOIDS, TAKEN, simulations
from experiments.prediction.index_cases import KINDS, index_case
from md.backend import Backend
from md.simulation.config import SimulationConfig

TOUCHING = 20  # steps after which spheres touch; a gas is made without contacts, so that it has no forces
STEPS = 4  # in a sample
ROUNDS = 3
COUNTERS = {
    "time_us": "gpu__time_duration.sum",
    "l1_loads": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1_hits": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
    "l2_reads": "lts__t_sectors_srcunit_tex_op_read.sum",
    "dram_read": "dram__bytes_read.sum",
    "dram_written": "dram__bytes_write.sum",
}
FORCE = "force", "force_and_prune", "many_steps"  # kernels of which a step has one that computes the forces


class Job(NamedTuple):
    """Gases to be counted.

    Attributes:
        gases: fields of each `Gas`.
        seed: of their particles.
    """

    gases: list[list[Any]]
    seed: int


def timed(gas: Gas, seed: int) -> Iterator[dict[str, Any]]:
    """Time the force kernel of each memory order of a gas in turns, on a device.

    Before that its forces are compared with those of another search, and a sample is not kept.

    Args:
        gas: kernel, size and orders.
        seed: of the particles.

    Returns:
        A row for each order and round: `ordering`, `round`, and `time_us`, the median of some launches.
    """
    prepared: dict[str, Callable[[], float]] = {}
    for name, one in index_kernels(gas, seed) if gas.kernel in KINDS else simulations(gas, "cuda", seed):
        if isinstance(one, md.Simulation):
            _check(one, gas, name)
            prepared[name] = partial(_time_of_force, one.config, one.state)
        else:
            prepared[name] = partial(one.time, STEPS)  # its results are checked by it
    for sample in prepared.values():
        sample()  # the first ones take up to five times as long
    generator = np.random.default_rng(seed)
    for turn in range(ROUNDS):
        for k in generator.permutation(len(prepared)):
            name = [*prepared][k]
            yield {"ordering": name, "round": turn, "time_us": 1e3 * prepared[name]()}


def _time_of_force(config: SimulationConfig, start: md.State) -> float:
    """Time the forces of the steps after the first `TAKEN` from a start, in ms; return their median."""
    run = _like(config, start, config.search)
    run.run(TAKEN)
    return float(np.median(phases_of(run, STEPS)["force"]))


def index_kernels(gas: Gas, seed: int) -> Iterator[tuple[str, IndexKernel]]:
    """Make the kernels that take elements by an index on a device, for each memory order."""
    for name in gas.orderings:
        found = index_case(gas.kernel, gas.n, reads_of(gas.filling_fraction), name, seed)
        yield name, index_kernel(gas.kernel, found, gas.precision, md.backend.get("cuda"))


def index_kernel(kind: str, found: Any, precision: str, device: Backend) -> IndexKernel:
    """Make a kernel of an index or a matrix (`index_case`) on a device."""
    if kind == "spmv":
        return Spmv(device, found.astype(precision))
    make = Gather if kind == "gather" else Scatter
    return make(device, found, np.dtype(precision).itemsize)


def _check(simulation: md.Simulation, gas: Gas, ordering: str) -> None:
    """Compare the forces of a simulation with those of another search; no step of it is taken.

    A gas is made without contacts, and so without forces: two others take steps from the same start, by
    either search, until spheres touch. Their temperatures are compared, and the forces in that state.

    Raises:
        WrongResultError: they differ by more than rounding, or there are no forces.
    """
    other = "scattered" if gas.kernel in ("linked", BOIDS) else "linked"
    found, expected = _by_both(simulation, simulation.state, other)
    if gas.kernel != BOIDS:
        for one in (found, expected):
            one.run(TOUCHING, phases=False)
        ours, theirs = (md.observe.temperature(one.state) for one in (found, expected))
        check_temperature(ordering, ours, theirs, gas.precision)
        found, expected = _by_both(simulation, expected.state, other)
    check_forces(found, require_forces(expected.forces(), gas.kernel), gas.precision)


def _by_both(simulation: md.Simulation, state: md.State, other: str) -> tuple[md.Simulation, md.Simulation]:
    """Make two simulations of a state that are like another one: by its search, and by the other."""
    config = simulation.config
    return _like(config, state, config.search), _like(config, state, other)


def _like(config: SimulationConfig, state: md.State, search: Any) -> md.Simulation:
    """Make a simulation of a state, of spheres that may overlap, with a configuration but for the search."""
    return md.Simulation(
        state, config.law, search=search, integrator=config.integrator, dt=config.dt,
        precision=config.precision, backend=config.backend, fused=True, allow_overlap=True,
    )  # fmt: skip


def counted(gases: list[Gas], seed: int) -> Iterator[dict[str, Any]]:
    """Count a launch of the force kernel of each memory order of some gases, in another process.

    Returns:
        A row for each order of each gas: its place in `gases`, `ordering`, the columns of `COUNTERS`, and the
        name of the kernel as `launched`.

    Raises:
        CannotCountError: the profiler is missing or fails, or has seen other launches.
    """
    cases = [(place, name) for place, gas in enumerate(gases) for name in gas.orderings]
    job = Job([[*gas] for gas in gases], seed)
    names = {name for gas in gases for name in ((gas.kernel,) if gas.kernel in KINDS else FORCE)}
    kernels = ["--kernel-name", f"regex:^({'|'.join(sorted(names))})$"]
    flags = [*NSIGHT, *kernels, "--metrics", ",".join(COUNTERS.values())]
    launches = read_launches(run_under("ncu", flags, job).stdout, COUNTERS)
    if len(launches) != len(cases):
        raise CannotCountError(f"ncu profiled {len(launches)} force kernels; allowed: {len(cases)}")
    for (place, name), row in zip(cases, launches.to_dict("records"), strict=True):
        row["launched"] = row.pop("kernel")
        yield {"place": place, "ordering": name} | {str(key): value for key, value in row.items()}


def main() -> None:
    """Take a step of each case of the job on the command line, under a profiler."""
    job = Job(**json.loads(sys.argv[1]))
    for fields in job.gases:
        gas = Gas(*fields)._replace(orderings=tuple(fields[4]))
        if gas.kernel in KINDS:
            for _, one in index_kernels(gas, job.seed):
                one.launch()
                with one.backend.profiled():
                    one.launch()
            continue
        for _, simulation in simulations(gas, "cuda", job.seed):
            simulation.run(TAKEN)
            with simulation.backend.profiled():
                simulation.run(1)


if __name__ == "__main__":
    main()
