"""Particles: what the user gives and gets (`State`), and what a backend works on (`Particles`)."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numba
import numpy as np

from md import checks
from md.backend import Backend
from md.box import Box
from sfc.compile import kernel

MAX_ID = 2**31 - 1
MAX_PARTICLES = 2**31 - 1024  # slots, links and ids are int32, with room to round a launch up
SMALLEST, LARGEST = (
    1e-9,
    1e9,
)  # radii in d, such that squares of sums of them are far from the ends of float32


def pair_distances(pos: np.ndarray, id: np.ndarray, box: Box, pairs: np.ndarray) -> np.ndarray:
    """Distances between the centres of pairs, nearest images taken: (p,) float64, in d.

    Args:
        pos: (n, dim) positions in d.
        id: (n,) names, in the same order.
        box: the box.
        pairs: (p, 2) ids.
    """
    order = np.argsort(id)
    first, second = order[np.searchsorted(id, pairs.T, sorter=order)] if len(pairs) else ((), ())
    first, second = np.asarray(first, np.intp), np.asarray(second, np.intp)
    apart = box.nearest(pos[first].astype(np.float64) - pos[second])
    return np.sqrt(np.square(apart).sum(axis=1))


def pair_sizes(radius: np.ndarray | None, id: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Sums of the radii of pairs, the distances at which they touch: (p,) float64, in d.

    Args:
        radius: (n,) in d; None where all are a half.
        id: (n,) names, in the same order.
        pairs: (p, 2) ids.
    """
    if radius is None or not len(pairs):
        return np.ones(len(pairs))
    order = np.argsort(id)
    first, second = order[np.searchsorted(id, pairs.T, sorter=order)]
    return (radius[first] + radius[second]).astype(np.float64)


class State:
    """Positions and velocities of n spheres in a box, on the host: of diameter 1, or each of its own radius.

    All have mass 1, whatever their radius.

    Args:
        pos: (n, dim) positions in d, inside the box.
        vel: (n, dim) velocities in d per time unit.
        box: the box.
        id: (n,) distinct integers that name the particles whatever their memory order; 0 .. n - 1 if not
            given.
        radius: (n,) of each sphere in d, 1e-9 to 1e9; None for a half of all.

    Attributes:
        radius: as given; None where all are a half, and of no particles.

    Raises:
        TypeError: no `md.Box`, or what makes no array.
        ValueError: shapes that do not match, a dtype that is none of numbers, a masked array, a value that is
            not finite, a particle outside the box, ids that repeat, a radius outside its range, or more
            particles than int32 counts or memory holds.
    """

    def __init__(self, pos, vel, box: Box, id=None, radius=None):
        checks.instance("box", box, Box, "an md.Box", "such as md.Box((10, 10, 10))")
        pos, vel = (_floats(name, given, ("n", box.dim)) for name, given in (("pos", pos), ("vel", vel)))
        if vel.shape != pos.shape:
            raise ValueError(f"vel of shape {vel.shape}; allowed: that of pos, {pos.shape}")
        outside = box.outside(pos)
        if outside.any():
            i = int(outside.argmax())
            raise ValueError(
                f"pos[{i}] = {pos[i].tolist()} is outside the box; allowed: (least, most) = {box.ends}, "
                f"where periodic = {box.periodic}, open = {box.open}; box.wrap(pos) folds positions back "
                "along the periodic axes"
            )
        ids = np.arange(len(pos)) if id is None else id
        ids = checks.array("id", ids, "iu", "integers, one a particle", (len(pos),), low=0, high=MAX_ID)
        ranked = np.sort(ids)
        again = ranked[1:] == ranked[:-1]
        if again.any():
            twice = ranked[int(again.argmax())]
            raise ValueError(f"id holds a repeated value, {twice}; allowed: distinct integers, 0 .. {MAX_ID}")
        self.pos, self.vel, self.box, self.id = pos, vel, box, ids.astype(np.int32)
        self.radius = _radii(radius, len(pos))

    def __len__(self) -> int:
        return len(self.pos)

    def __repr__(self) -> str:
        return f"<State of {len(self)} particles in {self.box}>"

    @property
    def filling_fraction(self) -> float:
        """Volume (in 2D: area) of the spheres over that of the box."""
        return len(self) * mean_volume(self.radius, self.box.dim) / self.box.volume

    def by_id(self) -> State:
        """The same particles in the order of their ids, whatever the memory order."""
        return self.take(np.argsort(self.id))

    def take(self, order) -> State:
        """The particles in another memory order, or some of them.

        Args:
            order: (m,) indices into the present order, distinct integers from 0 to n - 1; or (n,) flags,
                True for those to take.

        Raises:
            TypeError: what makes no array.
            ValueError: another dtype or shape, an index that is none, or one that repeats.
        """
        n = len(self)
        listed = isinstance(order, (list, tuple)) and len(order) > 0
        if (isinstance(order, np.ndarray) and order.dtype == bool) or (
            listed and set(map(type, order)) <= {bool, np.bool_}
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
    """Volume of a sphere of diameter 1: pi/6 in 3D, pi/4 (a disc's area) in 2D.

    Raises:
        TypeError: a dimension that is no integer.
        ValueError: another than 2 or 3.
    """
    return np.pi / 6 if checks.integer("dim", dim, 2, 3) == 3 else np.pi / 4


def mean_volume(radius: np.ndarray | None, dim: int) -> float:
    """Mean volume of spheres of some radii, (n,) in d; None for one of diameter 1."""
    if radius is None:
        return sphere_volume(dim)
    return float(np.mean((2 * radius.astype(np.float64)) ** dim)) * sphere_volume(dim)


def _radii(radius, n: int) -> np.ndarray | None:
    if radius is None:
        return None
    radius = _floats("radius", radius, (n,), "one a particle, or None for a half")
    wide = radius.astype(np.float64)  # numpy compares a float32 with bounds of float32
    good = (wide >= SMALLEST) & (wide <= LARGEST)
    if not good.all():
        i = int(good.argmin())
        raise ValueError(
            f"radius[{i}] = {wide[i]}; allowed: {SMALLEST:g} to {LARGEST:g}, in d; take another d"
        )
    return radius if n else None


def _floats(name: str, values, shape: tuple[int | str, ...], remedy: str = "") -> np.ndarray:
    """A copy as floats; refused before it is made where there are more particles than can be."""
    array = checks.array(name, values, "fiu", "real numbers", shape, remedy)
    if len(array) > MAX_PARTICLES:
        raise ValueError(f"{name} of {len(array)} particles; allowed: up to {MAX_PARTICLES} (int32 slots)")
    wanted = array.dtype if array.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    checks.room(f"a copy of {name}", wanted.itemsize * array.size, "take fewer particles")
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
        copy = np.array(array, dtype=wanted, order="C")
    return checks.array(name, copy, "f", "real numbers", shape, finite=True)


class Particles:
    """The particle arrays on a backend, in their present memory order.

    Args:
        state: the start.
        precision: numpy dtype of positions and velocities.
        backend: where the arrays live.

    Attributes:
        pos, vel: (n, dim) arrays of the backend.
        id: (n,) int32.
        radius: (n,) of the precision, in d; (0,) where all are a half.
        narrowest, widest: the least and the largest diameter, in d; 1 without particles.
        work: (n,) int32, the slots in the order in which a force kernel takes them; (0,) for memory order.
        spare: arrays like `pos` and `vel` for a kernel that writes while others read; see `swap`.
    """

    def __init__(self, state: State, precision: np.dtype, backend: Backend):
        self.backend, self.box, self.n = backend, state.box, len(state)
        pos = state.box.wrap(state.pos.astype(precision))  # rounding may reach the box's far side
        self.pos = backend.upload_rows(pos)
        self.vel = backend.upload_rows(state.vel.astype(precision))
        self.id = backend.upload(state.id)
        radius = np.empty(0, precision) if state.radius is None else state.radius.astype(precision)
        self.radius = backend.upload(radius)
        self.narrowest = float(2 * radius.min()) if len(radius) else 1.0
        self.widest = float(2 * radius.max()) if len(radius) else 1.0
        self.work = backend.empty(0, np.int32)
        self._make_spares()

    def _make_spares(self) -> None:
        self.spare = [self.backend.rows(*self.pos.shape, self.pos.dtype) for _ in range(2)]
        self._spare_id = self.backend.empty(self.n, np.int32)
        self._spare_radius = self.backend.empty(len(self.radius), self.radius.dtype)

    def on(self, backend: Backend) -> Particles:
        """A copy of these particles on another backend."""
        other = copy.copy(self)
        other.backend = backend
        other.pos, other.vel = (backend.upload_rows(self.backend.download(a)) for a in (self.pos, self.vel))
        other.id, other.radius, other.work = (
            backend.upload(self.backend.download(a)) for a in (self.id, self.radius, self.work)
        )
        other._make_spares()
        return other

    def take_from(self, other: Particles) -> None:
        """Take over the arrays of a copy on another backend, in its memory order."""
        self.pos[...] = self.backend.upload(other.backend.download(other.pos))
        self.vel[...] = self.backend.upload(other.backend.download(other.vel))
        self.id[...] = self.backend.upload(other.backend.download(other.id))
        self.radius[...] = self.backend.upload(other.backend.download(other.radius))

    def permute(self, order) -> None:
        """Move every particle: slot i takes what was in slot order[i]. The arrays swap with their spares.

        Args:
            order: (n,) int32 permutation on the backend.
        """
        spare = *self.spare, self._spare_id, self._spare_radius
        self.backend.kernels(__name__).gather(self.n, order, self.pos, self.vel, self.id, self.radius, *spare)
        self.swap()
        self.id, self._spare_id = self._spare_id, self.id
        self.radius, self._spare_radius = self._spare_radius, self.radius

    def copy_to(self, order, pos, vel, radius) -> None:
        """Copy positions, velocities and radii in another order: row i takes what is in slot order[i].

        Args:
            order: (n,) int32 permutation on the backend.
            pos: (n, dim) array of the backend, filled.
            vel: likewise.
            radius: as many as the particles have, filled.
        """
        no_id = self.backend.empty(0, np.int32)
        self.backend.kernels(__name__).gather(
            self.n, order, self.pos, self.vel, no_id, self.radius, pos, vel, no_id, radius
        )

    def swap(self) -> None:
        """Take the spare positions and velocities, which a kernel has filled, for the particles' own."""
        (self.pos, self.vel), self.spare = self.spare, [self.pos, self.vel]

    @property
    def arrays(self) -> tuple:
        """All arrays in their present roles; assign what it was to have them so again."""
        ids, radii = (self.id, self._spare_id), (self.radius, self._spare_radius)
        return self.pos, self.vel, *self.spare, *ids, *radii

    @arrays.setter
    def arrays(self, arrays: tuple) -> None:
        self.pos, self.vel, *self.spare, self.id, self._spare_id, self.radius, self._spare_radius = arrays

    def to_state(self, vel=None) -> State:
        """A copy on the host.

        Args:
            vel: (n, dim) velocities on the backend to give instead of the particles' own.
        """
        vel = self.vel if vel is None else vel
        down: Sequence[np.ndarray] = [self.backend.download(a) for a in (self.pos, vel, self.id)]
        return State(down[0], down[1], self.box, down[2], self.radii())

    def radii(self) -> np.ndarray | None:
        """A copy of the radii on the host: (n,) in d, in memory order; None where all are a half."""
        return self.backend.download(self.radius) if len(self.radius) else None


@kernel(parallel=True)
def gather(n, order, pos, vel, id, radius, new_pos, new_vel, new_id, new_radius):
    """Slot i of the new arrays takes slot order[i] of the old; `id` and `radius` may be (0,) and stay out."""
    for i in numba.prange(n):
        j = order[i]
        for k in range(pos.shape[1]):
            new_pos[i, k] = pos[j, k]
            new_vel[i, k] = vel[j, k]
        if len(id):
            new_id[i] = id[j]
        if len(radius):
            new_radius[i] = radius[j]
