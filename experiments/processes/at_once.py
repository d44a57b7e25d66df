"""Time of a step of one gas on several ranks at once, each a process that mpiexec starts.

This module is their program: it checks a small gas on these ranks beside one of them alone, and then times
the gas of its settings. The first rank prints what was found, as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import md
from experiments.processes.lifetime import run_program

CHECKED, CHECKED_STEPS, NEAR = 5_000, 60, 1e-9  # particles, steps, and error of a position in d


class Gas(NamedTuple):
    """What the ranks time.

    Attributes:
        n: particles of all ranks.
        filling_fraction: volume of the spheres over that of the box.
        seed: of the gas.
        backend: "cuda" or "cpu".
        precision: of positions.
        order: of `md.Division`; empty for the usual one.
        travel: of `md.Division`, in d; 0 for the usual one.
        transport: of `md.Division`; empty for the fastest.
        warmup: steps before the first sample.
        steps: of a sample.
        samples: number of samples.
    """

    n: int
    filling_fraction: float
    seed: int
    backend: str
    precision: str
    order: str
    travel: float
    transport: str
    warmup: int
    steps: int
    samples: int


def time_at_once(ranks: int, gas: Gas) -> dict[str, Any]:
    """Start ranks, and return what they found.

    Args:
        ranks: number of processes; on devices each has one of its own.
        gas: what they time.

    Returns:
        `times_ms` of a step, one of each sample; `time` reached, in time units; `devices`; and of all ranks
        `ghosts` and `migrations`.

    Raises:
        FileNotFoundError: no mpiexec.
        RuntimeError: ranks that end with an error, or find a wrong position; with what they wrote last.
    """
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        raise FileNotFoundError(
            "mpiexec, which starts processes at once, is not here; install it: pip install '.[mpi]'"
        )
    command = [found, "-n", str(ranks), sys.executable, "-m", __name__, json.dumps(gas._asdict())]
    if ranks == 1:  # without the start of MPI
        command = command[3:]
    threads = {"NUMBA_NUM_THREADS": "1"} if gas.backend == "cpu" else {}
    ended = run_program(command, env=os.environ | threads)
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    if ended.returncode or not lines:
        last = " ".join(ended.stderr.split())[-600:] or "nothing"
        raise RuntimeError(f"{ranks} ranks ended with status {ended.returncode}, and wrote: {last}")
    return json.loads(lines[-1])


def _simulation(gas: Gas, ranks: md.Communicator | None, state: Any, is_part: bool) -> md.Simulation:
    options: dict[str, Any] = {}
    if ranks is not None:
        order, travel, transport = gas.order or None, gas.travel or None, gas.transport or None
        division = md.Division(order, travel, is_part, transport=transport)
        options = {"communicator": ranks, "division": division}
    return md.Simulation(
        state, md.scenes.BENCHMARK_LAW, search="verlet", dt=md.scenes.BENCHMARK_DT, backend=gas.backend,
        precision=gas.precision, fused=True, **options,
    )  # fmt: skip


def _check(gas: Gas, ranks: md.Communicator) -> None:
    """Compare a small gas in float64 on all ranks with that of the first one alone.

    Raises:
        RuntimeError: on the first rank, a particle is elsewhere.
    """
    small = gas._replace(precision="float64")
    state = md.scenes.benchmark_gas(CHECKED, gas.filling_fraction, seed=gas.seed, backend="cpu")

    def after(communicator: md.Communicator | None) -> np.ndarray:
        sim = _simulation(small, communicator, state, False)
        sim.run(CHECKED_STEPS, phases=False)
        end = sim.state
        return end.pos[np.argsort(end.id)]

    found = after(ranks)
    if ranks.rank:
        return
    apart = np.abs(found - after(None))
    lengths = np.array(state.box.lengths)
    error = float(np.minimum(apart, lengths - apart).max())
    if not error <= NEAR:
        raise RuntimeError(f"a particle on {ranks.size} ranks is {error:g} d from where one rank has it")


def _timed(gas: Gas, ranks: md.Communicator) -> dict[str, Any]:
    """Time the gas on all ranks."""
    recipe: Any = md.scenes.benchmark_gas(gas.n, gas.filling_fraction, seed=gas.seed, backend=gas.backend)
    is_divided = ranks.size > 1
    state = recipe.part(ranks.rank, ranks.size) if is_divided else recipe
    sim = _simulation(gas, ranks if is_divided else None, state, True)
    sim.run(gas.warmup, phases=False)
    times = []
    for _ in range(gas.samples):
        ranks.reduce(np.zeros(1), "max")
        start = time.perf_counter()
        sim.run(gas.steps, phases=False)
        ranks.reduce(np.zeros(1), "max")
        times.append(1e3 * (time.perf_counter() - start) / gas.steps)
    reached, domain = sim.time, sim.system.domain
    sim.device_view()  # after it rows are those of particles and ghosts
    devices = ranks.all_of(str(sim.backend.describe().get("device", "CPU")))
    ghosts = ranks.reduce(np.array([sim.system.n_rows - sim.system.n_owned]), "sum")
    return {
        "times_ms": times, "time": reached, "devices": devices, "ghosts": int(ghosts[0]),
        "migrations": domain.migrations if domain is not None else 0,
    }  # fmt: skip


def _main() -> None:
    gas = Gas(**json.loads(sys.argv[1]))
    ranks = md.Communicator.mpi()
    if ranks.size > 1:
        _check(gas, ranks)
    found = _timed(gas, ranks)
    if ranks.rank == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    _main()
