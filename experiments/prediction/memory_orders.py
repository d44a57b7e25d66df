"""Memory orders of a gas, by name: what is foreseen on a CPU and measured on a GPU is put in order alike.

- an ordering of `sfc` in 3D, as "hilbert" or "row": of the cells of the search, just sorted.
- "window 1024": Hilbert's order, with each 1024 particles in a row shuffled among themselves.
- "aged 1000": Hilbert's order of 1000 steps ago.
- "strided", "tiled_strided": orders of points (`sfc.argsort`), by the cells of the search.
- "str": Sort-Tile-Recursive, an order of points by their positions, in tiles of its default capacity.
- "lattice": of the sites of the lattice on which the gas was started. "shuffled": none.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

import md
import sfc
from experiments.results.baselines import LATTICE, SHUFFLED
from md.particles.cell_grid import CellGrid
from sfc import checks
from sfc.radix_sort import argsort_of_keys

CURVE = "hilbert"  # that is shuffled in windows, or aged
IN_TILES = "str"
POINTS = ("strided", "tiled_strided", IN_TILES)
WINDOW, AGED = "window", "aged"
LEAST_COPY = 2**15  # particles of a copy of an aged gas


class Order(NamedTuple):
    """Memory order, taken apart.

    Attributes:
        name: of the order of the cells or points, or a baseline.
        window: particles in a row that are shuffled among themselves; 1 for none.
        steps: taken since the particles were put in order.
    """

    name: str
    window: int = 1
    steps: int = 0


def order_of(name: str) -> Order:
    """Take the name of a memory order apart.

    Raises:
        TypeError: no text.
        ValueError: an unknown name, or a number that is no positive integer.
    """
    checks.text("ordering", name)
    kind, _, number = name.partition(" ")
    if kind in (WINDOW, AGED) and number.isdecimal() and int(number):
        return Order(CURVE, int(number)) if kind == WINDOW else Order(CURVE, steps=int(number))
    known = (*sfc.orderings(3), *POINTS, LATTICE, SHUFFLED)
    if name in known:
        return Order(name)
    raise ValueError(
        f"ordering {name!r}; allowed: {', '.join(known)}, 'window W' of W particles, or 'aged S' of S steps"
    )


def slots(order: Order, pos: np.ndarray, id: np.ndarray, grid: CellGrid, seed: int) -> np.ndarray:
    """Sort particles into a memory order.

    Args:
        order: of which `steps` are not taken here.
        pos: (n, 3) positions in d, inside the box.
        id: (n,) lattice sites.
        grid: cells of the search.
        seed: of what is shuffled.

    Returns:
        (n,) int64: particle at each slot.
    """
    if order.name == SHUFFLED:
        return np.random.default_rng(seed).permutation(len(pos))
    if order.name == LATTICE:
        return np.argsort(id, kind="stable")
    if order.name == IN_TILES:
        return sfc.argsort(pos, IN_TILES)
    if order.name in POINTS:
        return sfc.argsort(_cells(pos, grid), order.name, cells=grid.shape)
    numbers = _cells(pos, grid) @ np.cumprod([1, *grid.shape[:-1]])
    found = argsort_of_keys(_ranks(order.name, grid.shape)[numbers], 32)
    return in_windows(found, order.window, seed)


def in_windows(found: np.ndarray, window: int, seed: int) -> np.ndarray:
    """Shuffle each `window` entries in a row of a (n,) permutation among themselves; 1 for none."""
    if window > 1:
        generator = np.random.default_rng(seed)
        whole = len(found) // window * window
        for part in (found[:whole].reshape(-1, window), found[None, whole:]):
            part[:] = generator.permuted(part, axis=1)
    return found


@lru_cache(maxsize=4)
def _ranks(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Rank of each cell by its row-major number, axis 0 fastest."""
    return sfc.covering(name, shape).dense_ranks().astype(np.uint64)


def _cells(pos: np.ndarray, grid: CellGrid) -> np.ndarray:
    """Cell of each particle: (n, 3) int64."""
    shape = np.array(grid.shape)
    return np.minimum((pos * (shape / grid.box.lengths)).astype(np.int64), shape - 1)


class Aged:
    """A gas that was in order some steps ago, made of copies of a small one.

    Args:
        n: number of particles.
        filling_fraction: of the box.
        backend: on which the small gas takes its steps.
        seed: of the small gas.
    """

    def __init__(self, n: int, filling_fraction: float, backend: str, seed: int):
        self.copies = md.preparation.copies_for(n, least=LEAST_COPY)
        self._filling, self._backend, self._seed = filling_fraction, backend, seed
        self._small = md.scenes.box_for(n // self.copies**3, filling_fraction)

    def after(self, steps: Sequence[int]) -> dict[int, md.State]:
        """Return the gas after numbers of steps, each by id; 0 for the start."""
        start = md.preparation.granular_gas(
            self._filling, self._small, seed=self._seed, backend=self._backend
        )
        simulation = md.Simulation(
            start, md.scenes.BENCHMARK_LAW, search="verlet", dt=md.scenes.BENCHMARK_DT, fused=True,
            precision="float32", backend=self._backend,
        )  # fmt: skip
        found = {}
        for count in sorted({0, *steps}):
            simulation.run(count - simulation.step, phases=False)
            found[count] = repeated(simulation.state.by_id(), (self.copies,) * 3, start)
        return found


def repeated(small: md.State, copies: Sequence[int], start: md.State) -> md.State:
    """Repeat a gas along axes that are periodic; the particles of a copy follow each other.

    A particle that has left its copy is beside it, not at the other side of the copy.

    Args:
        small: the gas, by id.
        copies: number of copies along each axis.
        start: the gas some time ago, by id; since then particles have moved by less than half a side along
            axes with several copies, which is not checked here.
    """
    lengths = np.array(small.box.lengths)
    corners = np.array(list(itertools.product(*map(range, copies)))) * lengths
    box = md.Box(tuple(lengths * copies), small.box.periodic)
    pos = start.pos + small.box.nearest(small.pos - start.pos)
    every = (corners[:, None] + pos).reshape(-1, len(lengths))
    return md.State(box.wrap(every), np.tile(small.vel, (len(corners), 1)), box)
