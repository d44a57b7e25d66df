"""Systems of chapter 5 of [thesis], with their particles in a memory order.

As read here, boxes have a base of 1 d x 1 d, and partners are the particles of the same and of adjacent
boxes. `squares` are N x N boxes 1 d high, with the centres of the spheres in a plane: discs. `cuboids` are
N x N boxes of a height, with a three-dimensional gas and an order of the boxes along a curve in the plane.
`cubes` are N x N x N boxes. The filling fraction is that of volume in all geometries. All axes are periodic.

Cuboids and cubes differ in three properties: the shape, the boxes that are read (a whole column, or boxes of
1 d), and the curve (in the plane or in space). Four more geometries separate them on the same gas:
`cuboids_boxes` and `cubes_boxes` are ordered in the plane and read boxes of 1 d, `cuboids_space` is ordered
in space and reads boxes of 1 d, and `cubes_columns` is ordered in the plane and reads columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import md
import sfc
from experiments.core import Settings, values
from experiments.prediction.flocks import places
from experiments.results.baselines import BASELINES
from md.particles.state import sphere_volume

GASES = ("granular", "ideal")
UNORDERED = BASELINES


@dataclass(frozen=True)
class Geometry:
    """Kind of system.

    Attributes:
        dim: of the gas.
        ordered: axes along which the boxes are ordered.
        densest: largest filling fraction of volume at which a granular gas can be made.
        read: axes along which the search has boxes; along the others it reads whole columns.
        shape: name of the geometry with the same gas that [thesis] has.
    """

    dim: int
    ordered: int
    densest: float
    read: int
    shape: str

    def _upright(self, side: int, height: int) -> int:
        """Return the number of boxes of 1 d in a column, of `side` boxes a side; `height` is of cuboids."""
        return {"squares": 1, "cuboids": height, "cubes": side}[self.shape]

    def own_fraction(self, filling_fraction: float) -> float:
        """Convert a filling fraction of volume to the gas's own: in 2D to that of area."""
        return filling_fraction * sphere_volume(self.dim) / sphere_volume(3)

    def particles(self, side: int, height: int, filling_fraction: float) -> float:
        """Return the number of particles of a gas that is not made yet, for sides of any size.

        Args:
            side: boxes a side.
            height: of the cuboids, in d.
            filling_fraction: of volume.
        """
        return min(side * side * self._upright(side, height), 10**200) * filling_fraction / sphere_volume(3)

    def gas(
        self, side: int, height: int, filling_fraction: float, kind: str, temperature: float, seed: int,
        backend: str,
    ) -> md.State:  # fmt: skip
        """Create the gas, in shuffled memory.

        Args:
            side: boxes a side.
            height: of the cuboids, in d.
            filling_fraction: of volume.
            kind: "granular", without overlaps, or "ideal", at random positions.
            temperature: m <v^2> / dim.
            seed: of all random numbers.
            backend: that makes a granular gas.

        Raises:
            ValueError: a filling fraction that cannot be packed.
        """
        box = md.Box((side, side, self._upright(side, height))[: self.dim])  # in 2D the boxes are 1 d high
        if kind == "ideal":
            generator = np.random.default_rng(seed)
            n = max(1, round(filling_fraction * box.volume / sphere_volume(3)))
            pos = box.wrap(generator.random((n, self.dim)) * box.lengths)
            return md.State(pos, md.scenes.maxwell_velocities(n, self.dim, temperature, generator), box)
        own = self.own_fraction(filling_fraction)
        return md.preparation.granular_gas(own, box, temperature, seed, "shuffled", backend=backend)

    def in_order(self, state: md.State, order: str, seed: int) -> md.State:
        """Sort the particles by an ordering of their boxes, or leave them shuffled.

        Args:
            state: shuffled.
            order: "shuffled", "lattice" (of the ids), or one of `sfc.orderings`, laid over the boxes.
            seed: of the ordering `random`.

        Raises:
            ValueError: an unknown ordering.
        """
        if order == "shuffled":
            return state
        if order == "lattice":
            return state.by_id()
        return state.take(places(state, order, 1.0, seed, self.ordered))

    def seen(self, state: md.State) -> md.State:
        """Return the state that the search uses: where it reads columns, the projection on their plane."""
        if self.dim == self.read:
            return state
        flat = md.Box(state.box.lengths[: self.read])
        return md.State(state.pos[:, : self.read], state.vel[:, : self.read], flat, state.id)


GEOMETRIES = {  # by their names in columns and flags
    "squares": Geometry(dim=2, ordered=2, densest=0.8 * 2 / 3, read=2, shape="squares"),
    "cuboids": Geometry(dim=3, ordered=2, densest=0.6, read=2, shape="cuboids"),
    "cubes": Geometry(dim=3, ordered=3, densest=0.6, read=3, shape="cubes"),
    "cuboids_boxes": Geometry(dim=3, ordered=2, densest=0.6, read=3, shape="cuboids"),
    "cuboids_space": Geometry(dim=3, ordered=3, densest=0.6, read=3, shape="cuboids"),
    "cubes_columns": Geometry(dim=3, ordered=2, densest=0.6, read=2, shape="cubes"),
    "cubes_boxes": Geometry(dim=3, ordered=2, densest=0.6, read=3, shape="cubes"),
}


def check_systems(config: Settings, height: int, is_packed: bool) -> None:
    """Check filling fractions and sizes of the geometries of a Config.

    Args:
        config: with the axes `geometry`, `size` and `filling_fraction`.
        height: of cuboids, in d.
        is_packed: whether spheres must not overlap.

    Raises:
        ValueError: spheres that cannot be packed, or more than fit the memory of this machine.
    """
    axes: Any = config
    for kind in values(axes.geometry):
        geometry = GEOMETRIES[kind]
        most, gas = (geometry.densest, "without overlaps") if is_packed else (1.0, "of an ideal gas")
        config.check("filling_fraction", above=0, high=most, remedy=f"these are {kind} {gas}")
        for size in values(axes.size):
            particles = geometry.particles(size, height, config.highest("filling_fraction"))
            config.check_memory(f"--size {size} of {kind}", particles, "particles")


def own_side(order: str, side: int, dim: int) -> int:
    """Return the power of a curve's base nearest to a side, by their ratio; the side itself for a scan."""
    if order not in sfc.curves(dim):
        return side
    base = sfc.curve(order, dim).base
    return base ** max(1, round(math.log(side, base)))
