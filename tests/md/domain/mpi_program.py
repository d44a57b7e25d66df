"""A program of several ranks, as `mpiexec` starts it; see test_mpi.py.

    mpiexec -n 2 python -m tests.md.domain.mpi_program RUN FOLDER

RUN is a name of `RUNS`; FOLDER gets what the first rank has found.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import md
from md.domain.communicator import Communicator


def gas(ranks: Communicator | None, state: md.State | None = None, backend: str = "cpu") -> md.Simulation:
    """Make a gas of all ranks."""
    state = state or md.scenes.benchmark_gas(2000, 0.2, seed=3)
    return md.Simulation(
        state, md.scenes.BENCHMARK_LAW, search="verlet", fused=True, dt=md.scenes.BENCHMARK_DT,
        backend=backend, communicator=ranks, division=md.Division(shares_device=True),
    )  # fmt: skip


def state_after(ranks: Communicator | None, steps: int = 300, backend: str = "cpu") -> md.State:
    """Return the particles of all ranks after some steps."""
    sim = gas(ranks, backend=backend)
    sim.run(steps, phases=False)
    return sim.state


def compare_on_devices(ranks: Communicator, folder: Path) -> None:
    """Write the particles after some steps on devices, of which there may be one."""
    compare(ranks, folder, "cuda")


def compare(ranks: Communicator, folder: Path, backend: str = "cpu") -> None:
    """Write the particles after some steps."""
    state = state_after(ranks, backend=backend)
    if ranks.rank == 0:
        np.savez(folder / "state.npz", pos=state.pos, vel=state.vel, id=state.id)


def fail(ranks: Communicator, folder: Path) -> None:
    """Raise an error on one rank; the others would wait for ever."""
    sim = gas(ranks)
    sim.run(10)
    if ranks.rank == 1:
        raise RuntimeError("rank 1 has an error of its own")
    sim.run(10)


class Full:
    """Reporter that fails on rank 1 alone."""

    interval = 20

    def report(self, simulation: md.Simulation) -> None:
        if simulation.system.domain.communicator.rank == 1 and simulation.step == 40:
            raise MemoryError("rank 1 is full")


def go_on(ranks: Communicator, folder: Path) -> None:
    """Catch errors, of all ranks and of one, and go on; write what each rank has caught."""
    caught: list[str] = []

    def note(work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:
            caught.append(f"{type(error).__name__}: {error}")

    start = md.scenes.benchmark_gas(2000, 0.2, seed=3)
    fast = md.State(start.pos, 1e3 * start.vel, start.box)
    for _ in range(2):  # ranks agree on the fault, and go on with the same communicator
        note(lambda: gas(ranks, state=fast).run(100))
    note(lambda: gas(ranks).run(100, reporters=[Full()]))
    note(lambda: gas(ranks))
    sim = gas(Communicator.mpi())
    sim.run(20)
    caught.append(str(sim.step))
    (folder / f"{ranks.rank}.txt").write_text("\n".join(caught))


def tear(ranks: Communicator, folder: Path) -> None:
    """Raise an error on rank 1 while the other one waits for its rows, many or few; write what is caught."""
    caught = []
    for count in (64, 4):
        apart = Communicator.mpi()
        others = {rank: np.full(count, 7.0) for rank in range(apart.size) if rank != apart.rank}
        try:
            with apart.together():
                apart.exchange(others, {rank: np.empty(count) for rank in others})
                if apart.rank == 1:
                    raise MemoryError("full")
                apart.exchange(others, {rank: np.empty(count) for rank in others})
        except Exception as error:
            caught.append(f"{type(error).__name__}: {error}")
    (folder / f"{ranks.rank}.txt").write_text("\n".join(caught))


def endless(ranks: Communicator, folder: Path) -> None:
    """Run until a signal, with a checkpoint now and then; each rank writes the number of its process."""
    (folder / f"{ranks.rank}.pid").write_text(str(os.getpid()))
    sim = gas(ranks)
    while True:
        sim.run(50, phases=False)
        sim.save(folder / "run.npz")
        time.sleep(0.01)


RUNS = {
    "compare": compare,
    "compare_on_devices": compare_on_devices,
    "fail": fail,
    "go_on": go_on,
    "tear": tear,
    "endless": endless,
}

if __name__ == "__main__":
    RUNS[sys.argv[1]](Communicator.mpi(), Path(sys.argv[2]))
