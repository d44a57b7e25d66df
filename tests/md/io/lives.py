"""Runs that are killed and resume from their checkpoints; for `test_killed.py`."""

from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

import md

SAVED, FRAMES = 10, 15  # steps from one to the next
TURN = 2 * SAVED  # so that a process that took a turn, however slowly, was saved further on than before
RUNS = {search: {"search": search} for search in md.search.SEARCHES} | {
    "fused": {"search": md.search.Verlet("zigzag", skin=0.2), "fused": True},
    "work": {"search": "scattered", "reorder": md.Reorder("zigzag", md.Moved(0.2), mode="threads")},
}


def repeats(name: str, backend: str) -> bool:
    """Whether a run gives the same bits again."""
    return backend in md.search.search(RUNS[name]["search"]).capabilities.bitwise_on


def started(backend: str, **choices) -> md.Simulation:
    gas = md.scenes.benchmark_gas(300, 0.3)
    return md.Simulation(gas, md.scenes.BENCHMARK_LAW, dt=md.scenes.BENCHMARK_DT, backend=backend, **choices)


def live(backend: str, folder: Path, last: int, pipe: Connection) -> None:
    """Resume all runs from their checkpoints, or start them, and write their last arrays to the folder.

    Takes steps in turns until all runs that repeat on the backend have taken `last`, and reports every turn.
    """
    runs = {}
    for name, choices in RUNS.items():
        path = folder / f"{name}.npz"
        if repeats(name, backend):
            runs[name] = md.Simulation.load(path) if path.exists() else started(backend, **choices)
    reporters = {
        name: [
            md.Trajectory(folder / f"{name}.gsd", FRAMES, append=True),
            md.Checkpoint(folder / f"{name}.npz", SAVED),  # last, or a kill in between would cost a frame
        ]
        for name in runs
    }
    while any(run.step < last for run in runs.values()):
        for name, run in runs.items():
            turn = TURN - run.step % TURN  # killed and other runs are reported at the same steps
            run.run(min(turn, last - run.step), reporters=reporters[name])
        pipe.send("turn")
    for name, run in runs.items():
        particles, down = run.system.particles, run.backend.download
        arrays = {key: down(getattr(particles, key)) for key in ("pos", "vel", "id", "work")}
        np.savez(folder / f"{name}-end.npz", **arrays)
