"""Particle state on the host (`State`), and distances and volumes of its spheres."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from md import checks
from md.backend import Backend
from md.backend.base import Array
from md.errors import ConvertedPoints
from md.particles.box import Box
from md.particles.points import convert_points

MAX_ID = 2**31 - 1
MAX_PARTICLES = 2**31 - 1024  # slots, links and ids are int32, also after a launch size is rounded up
SMALLEST, LARGEST = 1e-9, 1e9  # radii in d; squares of sums of two are far from the limits of float32


def pair_distances(pos: np.ndarray, id: np.ndarray, box: Box, pairs: np.ndarray) -> np.ndarray:
    """Compute the distances between the centres of pairs, between nearest images.

    Args:
        pos: (n, dim) positions in d.
        id: (n,) ids, in the same order.
        box: the box.
        pairs: (p, 2) ids.

    Returns:
        (p,) float64, in d.
    """
    first, second = _slots(id, pairs)
    difference = box.nearest(pos[first].astype(np.float64) - pos[second])
    return np.sqrt(np.square(difference).sum(axis=1))


def pair_sizes(radius: np.ndarray | None, id: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Compute the sums of the radii of pairs, the distances at which they touch.

    Args:
        radius: (n,) in d; None if all are 0.5.
        id: (n,) ids, in the same order.
        pairs: (p, 2) ids.

    Returns:
        (p,) float64, in d.
    """
    if radius is None or not len(pairs):
        return np.ones(len(pairs))
    first, second = _slots(id, pairs)
    return (radius[first] + radius[second]).astype(np.float64)


def _slots(id: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Find the slots of the particles of pairs: (2, p) indices into `id`.

    Only the ids of the pairs are sorted: there may be few pairs among many particles.
    """
    slots = np.flatnonzero(np.isin(id, pairs))
    order = slots[np.argsort(id[slots])]
    return order[np.searchsorted(id[order], pairs.T)] if len(pairs) else np.empty((2, 0), np.intp)


class State:
    """Positions and velocities of n spheres in a box, on the host: of diameter 1, or of given radii.

    All have mass 1, whatever their radius.

    Args:
        pos: (n, dim) positions in d, inside the box.
        vel: (n, dim) velocities in d per time unit.
        box: the box.
        id: (n,) distinct integers that identify the particles in any memory order; None for 0 .. n - 1.
        radius: (n,) of each sphere in d, 1e-9 to 1e9; None for 0.5 each. A law is that of two spheres of
            radius 0.5, enlarged (`md.laws.polydisperse`).

    Attributes:
        radius: as given; None if all are 0.5, and for no particles.

    Raises:
        TypeError: no `md.Box`, or a value that cannot be converted to an array.
        ValueError: shapes that do not match, a dtype that is not numeric, a masked array, a value that is not
            finite, a particle outside the box, ids that repeat, a radius outside its range, or more particles
            than int32 counts or memory holds.
    """

    def __init__(
        self,
        pos: ArrayLike,
        vel: ArrayLike,
        box: Box,
        id: ArrayLike | None = None,
        radius: ArrayLike | None = None,
    ):
        checks.instance("box", box, Box, "an md.Box", "such as md.Box((10, 10, 10))")
        pos, vel = (_floats(name, given, ("n", box.dim)) for name, given in (("pos", pos), ("vel", vel)))
        if vel.shape != pos.shape:
            raise ValueError(f"vel of shape {vel.shape}; allowed: that of pos, {pos.shape}")
        outside = box.outside(pos)
        if outside.any():
            i = int(outside.argmax())
            raise ValueError(
                f"pos[{i}] = {pos[i].tolist()} is outside the box; allowed: (least, most) = {box.ends}, "
                f"where periodic = {box.periodic}, open = {box.open}; box.wrap(pos) wraps positions along "
                "the periodic axes"
            )
        ids = np.arange(len(pos)) if id is None else id
        ids = checks.array("id", ids, "iu", "integers, one a particle", (len(pos),), low=0, high=MAX_ID)
        ranked = np.sort(ids)
        repeated = ranked[1:] == ranked[:-1]
        if repeated.any():
            value = ranked[int(repeated.argmax())]
            raise ValueError(f"id holds a repeated value, {value}; allowed: distinct integers, 0 .. {MAX_ID}")
        self.pos, self.vel, self.box, self.id = pos, vel, box, ids.astype(np.int32)
        self.radius = _radii(radius, len(pos))

    @classmethod
    def from_points(
        cls,
        points: ArrayLike,
        box: Sequence[float] | None = None,
        periodic: bool | Sequence[bool] | None = None,
        diameter: float | None = None,
        origin: Sequence[float] | None = None,
        velocities: ArrayLike | None = None,
        radius: ArrayLike | None = None,
    ) -> State:
        """Make a state of points in any unit of length: they are divided by a diameter and shifted to a box.

        Args:
            points: (n, 2 or 3), in any unit of length, such as mm.
            box: two or three lengths in that unit; None for the box around the spheres, between walls.
            periodic: one flag for all axes, or one flag an axis; None for periodic axes if a box is given.
            diameter: of a sphere in that unit, which becomes 1 d; None for the mean one of the radii.
            origin: lower corner of the box in that unit; None for 0, or for minus half the lengths if all
                points are in that centred box and not in the other one.
            velocities: (n, dim) in that unit per time unit; None for 0.
            radius: (n,) of each sphere in that unit; None for half a diameter each.

        Raises:
            TypeError: an argument of another class.
            ValueError: another shape, a value that is not finite, a point outside the box, periodic axes
                without a box, or neither a diameter nor radii: the message has the filling fraction that a
                diameter of 1 would make.

        Warns:
            ConvertedPoints: lengths were divided, or a box, a corner, velocities or a diameter assumed; says
                which, and the filling fraction.
        """
        made = convert_points(points, box, periodic, diameter, origin, velocities, radius)
        if len(made.notes) > 1:  # the last one is the filling fraction
            warnings.warn("; ".join(made.notes), ConvertedPoints, stacklevel=2)
        return cls(made.pos, made.vel, made.box, radius=made.radius)

    def __len__(self) -> int:
        return len(self.pos)

    def __repr__(self) -> str:
        return f"<State of {len(self)} particles in {self.box}>"

    @property
    def filling_fraction(self) -> float:
        """Volume (in 2D: area) of the spheres with centres in the box, over that of the box."""
        count, radius = len(self), self.radius
        if any(self.box.open):
            sides = np.array(self.box.lengths, self.pos.dtype)
            inside = np.flatnonzero(((self.pos >= 0) & (self.pos <= sides)).all(axis=1))
            count, radius = len(inside), None if radius is None or not len(inside) else radius[inside]
        mean = 1.0 if radius is None else float(np.mean((2 * radius.astype(np.float64)) ** self.box.dim))
        return count * (mean * sphere_volume(self.box.dim)) / self.box.volume

    def store(self, backend: Backend, pos: Array, vel: Array, id: Array) -> None:
        """Copy the particles to arrays of a backend, rounded to its precision; radii are not copied.

        A state that is made from a recipe may let a kernel write them instead (`md.scenes.benchmark`).

        Args:
            backend: of the arrays.
            pos: (n, dim) array, filled; a position that is rounded to the upper side of a periodic axis
                becomes 0.
            vel: (n, dim) array, filled.
            id: (n,) int32 array, filled.
        """
        pos[...] = backend.upload(self.box.wrap(self.pos.astype(pos.dtype)))
        vel[...] = backend.upload(self.vel.astype(vel.dtype))
        id[...] = backend.upload(self.id)

    def by_id(self) -> State:
        """Return the particles in the order of their ids."""
        return self.take(np.argsort(self.id))

    def take(self, order: ArrayLike) -> State:
        """Return the particles in another memory order, or some of them.

        Args:
            order: (m,) indices into the memory order, distinct integers from 0 to n - 1; or (n,) flags, True
                for the particles to return.

        Raises:
            TypeError: a value that cannot be converted to an array.
            ValueError: another dtype or shape, an index out of range, or one that repeats.
        """
        n = len(self)
        given: Any = order
        if (isinstance(given, np.ndarray) and given.dtype == bool) or (
            isinstance(given, (list, tuple)) and len(given) > 0 and set(map(type, given)) <= {bool, np.bool_}
        ):
            order = np.flatnonzero(checks.array("order", order, "b", "flags, one a particle", (n,)))
        order = checks.array("order", order, "iu", "integers, or flags", ("m",))
        if len(order) > n:
            raise ValueError(f"order of {len(order)} entries; allowed: up to {n}, distinct indices")
        remedy = f"they are indices of {n} particles"
        order = checks.array("order", order, "iu", "integers", ("m",), low=0, high=n - 1, outside=remedy)
        order = order.astype(np.intp)
        radius = None if self.radius is None else self.radius[order]
        return State(self.pos[order], self.vel[order], self.box, self.id[order], radius)


def sphere_volume(dim: int) -> float:
    """Return the volume of a sphere of diameter 1: pi/6 in 3D, pi/4 (the area of a disc) in 2D.

    Raises:
        TypeError: a dimension that is not an integer.
        ValueError: a dimension other than 2 or 3.
    """
    return np.pi / 6 if checks.integer("dim", dim, 2, 3) == 3 else np.pi / 4


def _radii(given: ArrayLike | None, n: int) -> np.ndarray | None:
    """Check radii and copy them as floats; None for no particles.

    Raises:
        ValueError: a radius outside `SMALLEST` to `LARGEST`.
    """
    if given is None:
        return None
    radius = _floats("radius", given, (n,), "one a particle, or None for a half")
    wide = radius.astype(np.float64)  # numpy would compare a float32 with bounds of float32
    good = (wide >= SMALLEST) & (wide <= LARGEST)
    if not good.all():
        i = int(good.argmin())
        raise ValueError(
            f"radius[{i}] = {wide[i]}; allowed: {SMALLEST:g} to {LARGEST:g}, in d; take another d"
        )
    return radius if n else None


def _floats(name: str, values: ArrayLike, shape: tuple[int | str, ...], remedy: str = "") -> np.ndarray:
    """Copy an array as floats, after a check of the number of particles and of free memory."""
    array = checks.array(name, values, "fiu", "real numbers", shape, remedy)
    if len(array) > MAX_PARTICLES:
        raise ValueError(f"{name} of {len(array)} particles; allowed: up to {MAX_PARTICLES} (int32 slots)")
    dtype = array.dtype if array.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    checks.require_allocatable(f"a copy of {name}", dtype.itemsize * array.size, "take fewer particles")
    with np.errstate(over="ignore"):  # a value that overflows becomes infinite, which raises below
        copy = np.array(array, dtype=dtype, order="C")
    return checks.array(name, copy, "f", "real numbers", shape, finite=True)
