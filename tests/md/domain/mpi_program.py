"""A program of several ranks, as `mpiexec` starts it; see test_mpi.py.

    mpiexec -n 2 python -m tests.md.domain.mpi_program RUN FOLDER

RUN is a name of `RUNS`; FOLDER gets what the first rank has found.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np

import md
from md.communicator import Communicator


def gas(ranks: Communicator | None, n: int = 2000) -> md.Simulation:
    """Make a gas of all ranks."""
    state = md.scenes.benchmark_gas(n, 0.2, seed=3)
    return md.Simulation(
        state, md.scenes.BENCHMARK_LAW, search="verlet", fused=True, dt=md.scenes.BENCHMARK_DT, backend="cpu",
        communicator=ranks,
    )  # fmt: skip


def state_after(ranks: Communicator | None, steps: int = 300) -> md.State:
    """Return the particles of all ranks after some steps."""
    sim = gas(ranks)
    sim.run(steps, phases=False)
    return sim.state


def compare(ranks: Communicator, folder: Path) -> None:
    """Write the particles after some steps."""
    state = state_after(ranks)
    if ranks.rank == 0:
        np.savez(folder / "state.npz", pos=state.pos, vel=state.vel, id=state.id)


def fail(ranks: Communicator, folder: Path) -> None:
    """Raise an error on one rank; the others would wait for ever."""
    sim = gas(ranks)
    sim.run(10)
    if ranks.rank == 1:
        raise RuntimeError("rank 1 has an error of its own")
    sim.run(10)


def endless(ranks: Communicator, folder: Path) -> None:
    """Run until a signal, with a checkpoint now and then; each rank writes the number of its process."""
    (folder / f"{ranks.rank}.pid").write_text(str(os.getpid()))
    sim = gas(ranks)
    while True:
        sim.run(50, phases=False)
        sim.save(folder / "run.npz")
        time.sleep(0.01)


RUNS = {"compare": compare, "fail": fail, "endless": endless}

if __name__ == "__main__":
    RUNS[sys.argv[1]](Communicator.mpi(), Path(sys.argv[2]))
