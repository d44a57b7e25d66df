"""What does a reorder cost: on one thread, all threads, a GPU, through the host; from memory in order or not?

A reorder ranks the cell of each particle, sorts by rank, and moves position, velocity and id (`md.Reorder` in
mode "data"). Before it, `shuffled` memory is in no order, `fresh` memory has just been reordered, and `aged`
memory was reordered before the particles moved by a tenth of a diameter. `one thread` and `all threads` are
on the CPU. `device` is on the GPU. `host and back` copies the particles to the CPU, reorders them there on
all threads, and copies them back, as the program of [thesis] does. All places and memories of a case are
sampled once a round, in random order. The first place is sampled twice in each memory (`one thread again`):
the difference of the two is noise. Every reorder of a case starts from the same particles in the same memory,
which is restored before each. Before the reorders are timed, their order is compared with a sort of the
cells' ranks by numpy.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numba
import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, TimedSettings, main
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_order
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.results.answers import Comparison
from experiments.results.baselines import AGED, FRESH, SHUFFLED, again, aged_by, original
from experiments.results.charts import LINES, PARTICLES, Chart, Points, Scale, Summary
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.particles.system import System
from md.scenes import BENCHMARK_LAW
from md.simulation import PRECISIONS

THREADS = ("one thread", "all threads")
GPU = ("device", "host and back")
BASELINES = ("one thread", "host and back")  # baselines of the gains
MEMORY = (SHUFFLED, AGED, FRESH)
AGE = 0.1  # d that particles have moved in aged memory


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of reorders."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("memory", "place")

    n: Axis[int] = (2**14, 2**16, 2**18, 2**20)
    """Number of particles."""
    memory: tuple[str, ...] = MEMORY
    """Memory before the reorder: in no order, reordered 0.1 d flown ago, or just reordered."""
    place: tuple[str, ...] = (*THREADS, *GPU)
    """Places of the reorder: one thread, all threads (of the CPU); device, host and back (only with a GPU).
    For each memory the particles of each place, twice those of the first, are in memory at once, with a copy
    that is restored before each reorder."""
    ordering: Axis[str] = ("hilbert",)
    """Memory orders: 3D orderings of `sfc`."""
    precision: Axis[str] = ("float64",)
    """Precision of positions, velocities and forces."""
    filling_fraction: float = 0.2
    """Volume of the spheres over that of the box."""

    def __post_init__(self):
        super().__post_init__()
        words = {"place": (*THREADS, *GPU), "memory": MEMORY}
        self.check_known(words | {"ordering": sfc.orderings(3), "precision": PRECISIONS})
        self.check_least({"n": 64})
        self.check_above_zero({"filling_fraction": 0.45})
        places = [place for place in self.place if place in THREADS or self.backend == "cuda"]
        self.check_particles(2 * len(self.memory) * (len(places) + 1))


QUICK = {"n": (2**12, 2**14, 2**16), "runs": 1}
MINUTES = 1  # CPU time of one of three runs, extrapolated


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on, with a row for each available place and each memory before."""
    backend = md.backend.get(case.backend)
    places = [place for place in case.place if place in THREADS or backend.name == "cuda"]
    if not places:
        return
    entries = [_entry(case, place, memory) for memory in case.memory for place in (*places, again(places[0]))]
    yield from take_rounds(entries, case.rounds, backend, seed=case.seed, begin=begin)


def _entry(case: Config, name: str, memory: str) -> Entry:
    """Create particles in a memory order, check a reorder of them, and return it ready to be timed."""
    place, state, precision = original(name), _gas(case, memory), np.dtype(case.precision)
    backend = md.backend.get(case.backend if place in GPU else "cpu")
    particles = ParticleArrays(state, precision, backend)
    before = particles.on(backend)
    grid = CellGrid(state.box, BENCHMARK_LAW.cutoff, precision, backend)
    system = System(particles, grid, dt=md.scenes.BENCHMARK_DT)
    via = "host" if place == "host and back" else "device"
    reorder, timings = md.Reorder(case.ordering, md.Never(), via=via).build(system), system.timings
    every: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]  # set when numba is imported
    threads = 1 if place in ("one thread", "device") else every

    def sample() -> Iterator[dict]:
        """Restore the memory, and time its reorder."""
        given = numba.get_num_threads()
        numba.set_num_threads(threads)
        try:
            particles.take_from(before)
            timings.clear()
            with backend.phase(timings, "reorder", 0):
                reorder.apply(0)
            (ms,) = timings.milliseconds["reorder"]
        finally:
            numba.set_num_threads(given)
        yield {"time_ms": ms, "sample_ms": ms, "time_ns_per_particle": 1e6 * ms / case.n}

    list(sample())
    _check(case, state, particles.to_state())
    columns = {"memory": memory, "place": name, "threads": threads}
    columns |= working_set(case.n, 3, case.precision, backend)
    return Entry(columns, sample, threads=threads, on_device=place == "device")


@lru_cache(maxsize=4)
def _gas(case: Config, memory: str) -> md.State:
    state = md.scenes.benchmark_gas(case.n, case.filling_fraction, seed=case.seed, backend="cpu")
    if memory != SHUFFLED:
        state = state.take(np.argsort(_ranks(state.pos, state.box, case.ordering), kind="stable"))
    if memory == AGED:
        way = np.random.default_rng([case.seed, 2]).normal(size=state.pos.shape)
        way *= AGE / np.linalg.norm(way, axis=1, keepdims=True)
        state = md.State(state.box.wrap(state.pos + way), state.vel, state.box, state.id)
    return state


def _ranks(pos: np.ndarray, box: md.Box, ordering: str) -> np.ndarray:
    """Return the rank of each particle's cell, on the grid of a law of diameter 1."""
    shape = np.maximum(1, np.floor(box.lengths)).astype(int)
    cells = np.minimum((pos * (shape / box.lengths)).astype(np.int64), shape - 1)
    return sfc.covering(ordering, tuple(shape.tolist())).rank(cells)


def _check(case: Config, before: md.State, after: md.State) -> None:
    """Compare the memory order after a reorder with numpy's sort."""
    rounded = before.box.wrap(before.pos.astype(case.precision)).astype(float)
    place = np.empty(case.n, np.int64)
    place[before.id] = _ranks(rounded, before.box, case.ordering)
    check_order(case.ordering, place[after.id], case.precision)


VIEWS = (
    Chart(
        "cost",
        "A reorder of {n} particles in {memory} memory takes {value} ms ({best}), {of_worst} ms ({worst})",
        LINES, Points("time_ms"), PARTICLES, Scale("time of a reorder (ms)", log=10), "place", "where",
        panels="memory", heading="memory before: {memory}", files=("ordering", "precision"),
        order=(*THREADS, *GPU), words={AGED: aged_by(AGE)}, note="{ordering}, {precision}",
    ),
    Summary(("ordering", "precision", "n", "memory"), "place", BASELINES),
)  # fmt: skip


def _baseline(rows: pd.DataFrame) -> list[str]:
    """Return the last of the baselines that was measured."""
    return [name for name in reversed(BASELINES) if name in set(rows["place"])][:1]


answer = Comparison(
    "place", _baseline, "memory", "In a reorder of {n} particles in {memory} memory along {ordering}",
    fixed=("ordering", "precision", "n"), heading="{} memory".format,
    prepare=lambda table: table.sort_values("memory", key=lambda names: names != AGED, kind="stable"),
)  # fmt: skip


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
