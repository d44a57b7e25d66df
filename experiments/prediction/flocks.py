"""Flocks of boids: their rules, starts, memory orders and structure, and how they age.

Rules are those of [flock], named `source`, or with a weaker separation of shorter range, under which flocks
form, `weak_separation`: 0.02 up to a distance of 1.5 instead of 0.1 up to 3. Cohesion (0.01 up to 5) and
alignment (0.1 up to 5) are the same.
A flock is aged by the search `tensor`. All searches and memory orders that are compared start from the
same aged state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

import md
import sfc
from md.laws import Boids
from md.scenes.flock import SOURCE_BOIDS, SOURCE_DT, SOURCE_SIDE
from sfc import checks

RULES = {
    "source": Boids(),
    "weak_separation": Boids(separation=0.02, separation_radius=1.5),
}
SOURCE_DENSITY = SOURCE_BOIDS / SOURCE_SIDE**3
STARTS = ("uniform", "clusters")
CLUSTER = 1000  # boids of a cluster at the start
CLUSTER_RADIUS = 5.0
MAX_SPEED = 1.0
AGED_BY = "tensor"  # the fastest; on a CPU it computes what coherent does


@dataclass(frozen=True)
class Flock:
    """Start of a flock and its rules, in a periodic cube or square.

    Args:
        n: number of boids.
        start: "uniform", or "clusters" of a thousand boids that fly together.
        rules: a name in `RULES`.
        seed: of all random numbers.
        dim: 2 or 3.
        density: boids per unit of volume (area).
    """

    n: int
    start: str = "uniform"
    rules: str = "source"
    seed: int = 0
    dim: int = 3
    density: float = SOURCE_DENSITY

    @property
    def law(self) -> Boids:
        """The rules."""
        return RULES[self.rules]

    @property
    def side(self) -> float:
        """Side of the box, in units of length."""
        return round(float((self.n / self.density) ** (1 / self.dim)), 9)  # 200, not 199.99999999999997

    def state(self) -> md.State:
        """Make the start, in shuffled memory."""
        clusters = -(-self.n // CLUSTER) if self.start == "clusters" else 0
        box = md.Box((self.side,) * self.dim)
        return md.scenes.flock(
            self.n, box, MAX_SPEED, clusters, min(CLUSTER_RADIUS, 0.49 * self.side), self.seed
        )

    def simulation(
        self, state: md.State, search: str | md.search.SearchConfig, backend: Any, precision: str
    ) -> md.Simulation:
        """Make a simulation of a state under the rules, fused where the search can.

        Args:
            state: of this flock.
            search: a name or a configuration.
            backend: its name, or a backend.
            precision: "float32" or "float64".
        """
        search = md.search.search(search)
        return md.Simulation(
            state,
            self.law,
            search=search,
            integrator=md.integrate.Flight(MAX_SPEED),
            dt=SOURCE_DT,
            backend=backend,
            precision=precision,
            fused=search.capabilities.fusable,
        )


class Aging:
    """A flock that is aged step by step, from the youngest age to the oldest.

    Args:
        flock: to be aged.
        backend: on which it is aged.
        precision: "float32" or "float64".
    """

    def __init__(self, flock: Flock, backend: Any, precision: str):
        self.flock = flock
        self._simulation = flock.simulation(flock.state(), AGED_BY, backend, precision)

    @property
    def age(self) -> int:
        """Number of steps since the start."""
        return self._simulation.step

    def at(self, age: int) -> md.State:
        """Return the state at an age, in the order of the ids, which is random in space.

        Args:
            age: in steps, not below the present one.

        Raises:
            TypeError: an age that is no integer.
            ValueError: an age below the present one.
        """
        age = checks.integer("age", age, self.age, unit="steps", remedy="make another Aging")
        self._simulation.run(age - self.age, phases=False)
        return self._simulation.state.by_id()


def places(
    state: md.State, ordering: str, cutoff: float, seed: int = 0, axes: int | None = None
) -> np.ndarray:
    """Return the memory order along an ordering of the cells: (n,) rows of the state, first slot first.

    Args:
        state: the particles.
        ordering: one of `sfc.orderings`.
        cutoff: least side of a cell, in units of length.
        seed: of the ordering `random`.
        axes: number of axes along which there are cells; None for all.

    Raises:
        ValueError: an unknown ordering.
    """
    shape = cells_along(state.box, cutoff)[:axes]
    options = {"seed": seed} if ordering == "random" else {}
    ranks = sfc.covering(ordering, tuple(map(int, shape)), **options).rank(cells(state, shape))
    return np.argsort(ranks, kind="stable")


def cells_along(box: md.Box, cutoff: float) -> np.ndarray:
    """Return the number of cells along each axis that are at least a cutoff wide: (dim,) int64."""
    return np.maximum(np.floor(np.array(box.lengths) / cutoff), 1).astype(np.int64)


def cells(state: md.State, shape: np.ndarray) -> np.ndarray:
    """Return the cell of each particle: (n, axes) int64.

    Args:
        state: the particles.
        shape: (axes,) number of cells along each of the first axes.
    """
    axes = len(shape)
    found = (state.pos[:, :axes] * (shape / np.array(state.box.lengths[:axes]))).astype(np.int64)
    return np.clip(found, 0, shape - 1)


def densest(state: md.State, cutoff: float) -> np.ndarray:
    """Return the centre of the cell with most particles: (dim,) in units of length.

    Args:
        state: the particles.
        cutoff: least side of a cell.
    """
    shape = cells_along(state.box, cutoff)
    cell = np.ravel_multi_index(tuple(cells(state, shape).T), tuple(shape))
    most = np.unravel_index(int(np.bincount(cell).argmax()), tuple(shape))
    return (np.array(most) + 0.5) * np.array(state.box.lengths) / shape


def random_distance(n: int, box: md.Box) -> float:
    """Return the mean distance to the nearest neighbour of n random positions, without effects of the sides.

    Hertz, Math. Ann. 67 (1909) 387; Clark and Evans, Ecology 35 (1954) 445.
    """
    volume = box.volume / n
    if box.dim == 2:
        return 0.5 * math.sqrt(volume)
    return math.gamma(4 / 3) * (3 * volume / (4 * math.pi)) ** (1 / 3)


class Structure(NamedTuple):
    """Structure of a flock, as columns.

    Attributes:
        neighbours_mean: number of neighbours of a boid within the cutoff, mean over boids.
        neighbours_largest: the largest of these numbers.
        order_parameter: length of the mean of all headings, 0 (none) to 1 (all fly in one direction).
        heading_correlation: mean cosine of the angle between the headings of two boids in the same cell, as
            wide as the cutoff; 0 for independent headings, 1 in a flock.
        clustering: variance over mean of the number of boids in a cell; 1 for random positions, less for
            evenly spaced boids, more for clusters.
        nearest_over_random: mean distance to the nearest neighbour over that of random positions (Clark and
            Evans); 1 for random positions, less where boids lie in pairs and clumps.
        speed_mean: mean speed.
    """

    neighbours_mean: float
    neighbours_largest: int
    order_parameter: float
    heading_correlation: float
    clustering: float
    nearest_over_random: float
    speed_mean: float


def structure(state: md.State, cutoff: float) -> Structure:
    """Measure the structure of a flock, on the host.

    Args:
        state: the boids.
        cutoff: radius within which boids are neighbours, and least side of a cell.
    """
    lengths = np.array(state.box.lengths)
    pos = state.box.wrap(state.pos)
    tree = cKDTree(pos, boxsize=np.where(state.box.periodic, lengths, 0))
    near = tree.query_ball_point(pos, cutoff, workers=-1, return_length=True) - 1
    distances: Any = tree.query(pos, k=2, workers=-1)[0]  # of the boid itself, and of the nearest other
    speed = np.linalg.norm(state.vel, axis=1)
    headings = np.divide(
        state.vel, speed[:, None], out=np.zeros_like(state.vel, dtype=np.float64), where=speed[:, None] > 0
    )
    shape = cells_along(state.box, cutoff)
    cell = np.ravel_multi_index(tuple(cells(state, shape).T), tuple(shape))
    size = int(np.prod(shape))
    count = np.bincount(cell, minlength=size)
    total = np.column_stack([np.bincount(cell, column, minlength=size) for column in headings.T])
    pairs = float((count * (count - 1.0)).sum())
    return Structure(
        neighbours_mean=float(near.mean()),
        neighbours_largest=int(near.max()),
        order_parameter=float(np.linalg.norm(headings.mean(axis=0))),
        heading_correlation=float(((total**2).sum() - (speed > 0).sum()) / pairs) if pairs else np.nan,
        clustering=float(count.var() / count.mean()),
        nearest_over_random=float(distances[:, 1].mean() / random_distance(len(state), state.box)),
        speed_mean=float(speed.mean()),
    )
