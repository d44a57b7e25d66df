"""Particles: what the user gives and gets (`State`), and what a backend works on (`Particles`)."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numba
import numpy as np

from md.backend import Backend
from md.backend.jit import kernel
from md.box import Box

MAX_ID = 2**31 - 1
MAX_PARTICLES = 2**31 - 1024  # slots, links and ids are int32, with room to round a launch up


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


class State:
    """Positions and velocities of n spheres of diameter and mass 1 in a box, on the host.

    Args:
        pos: (n, dim) positions in d, inside the box.
        vel: (n, dim) velocities in d per time unit.
        box: the box.
        id: (n,) distinct integers that name the particles whatever their memory order; 0 .. n - 1 if not
            given.

    Raises:
        ValueError: shapes that do not match, a value that is not finite, a particle outside the box, ids
            that repeat, or more particles than int32 counts.
    """

    def __init__(self, pos, vel, box: Box, id=None):
        pos, vel = _floats("pos", pos), _floats("vel", vel)
        if pos.ndim != 2 or pos.shape[1] != box.dim:
            raise ValueError(f"pos of shape {pos.shape}; allowed in this box: (n, {box.dim})")
        if vel.shape != pos.shape:
            raise ValueError(f"vel of shape {vel.shape}; allowed: that of pos, {pos.shape}")
        if len(pos) > MAX_PARTICLES:
            raise ValueError(f"{len(pos)} particles; allowed: up to {MAX_PARTICLES} (int32 slots)")
        for name, array in (("pos", pos), ("vel", vel)):
            finite = np.isfinite(array).all(axis=1)
            if not finite.all():
                i = int(finite.argmin())
                raise ValueError(f"{name}[{i}] = {array[i].tolist()}; allowed: finite numbers")
        outside = box.outside(pos)
        if outside.any():
            i = int(outside.argmax())
            raise ValueError(
                f"pos[{i}] = {pos[i].tolist()} is outside the box; allowed: 0 <= pos < {box.lengths}, where "
                f"periodic = {box.periodic}; box.wrap(pos) folds positions back along the periodic axes"
            )
        ids = np.arange(len(pos)) if id is None else np.asarray(id)
        if ids.shape != (len(pos),) or not np.issubdtype(ids.dtype, np.integer):
            raise ValueError(f"id of shape {ids.shape} and dtype {ids.dtype}; allowed: {len(pos)} integers")
        ranked = np.sort(ids)
        if len(ids) and (ranked[0] < 0 or ranked[-1] > MAX_ID or (ranked[1:] == ranked[:-1]).any()):
            raise ValueError(f"id holds a repeated value or one outside 0 .. {MAX_ID}")
        self.pos, self.vel, self.box, self.id = pos, vel, box, ids.astype(np.int32)

    def __len__(self) -> int:
        return len(self.pos)

    def __repr__(self) -> str:
        return f"<State of {len(self)} particles in {self.box}>"

    @property
    def filling_fraction(self) -> float:
        """Volume (in 2D: area) of the spheres over that of the box."""
        return len(self) * sphere_volume(self.box.dim) / self.box.volume

    def by_id(self) -> State:
        """The same particles in the order of their ids, whatever the memory order."""
        return self.take(np.argsort(self.id))

    def take(self, order) -> State:
        """The particles in another memory order, or some of them.

        Args:
            order: (m,) indices into the present order.
        """
        return State(self.pos[order], self.vel[order], self.box, self.id[order])


def sphere_volume(dim: int) -> float:
    """Volume of a sphere of diameter 1: pi/6 in 3D, pi/4 (a disc's area) in 2D."""
    return np.pi / 6 if dim == 3 else np.pi / 4


def _floats(name: str, values) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype == object or not (
        np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)
    ):
        raise ValueError(f"{name} of dtype {array.dtype}; allowed: real numbers")
    wanted = array.dtype if array.dtype in (np.float32, np.float64) else np.float64
    return np.array(array, dtype=wanted, order="C")


class Particles:
    """The particle arrays on a backend, in their present memory order.

    Args:
        state: the start.
        precision: numpy dtype of positions and velocities.
        backend: where the arrays live.

    Attributes:
        pos, vel: (n, dim) arrays of the backend.
        id: (n,) int32.
        work: (n,) int32, the slots in the order in which a force kernel takes them; (0,) for memory order.
        spare: arrays like `pos` and `vel` for a kernel that writes while others read; see `swap`.
    """

    def __init__(self, state: State, precision: np.dtype, backend: Backend):
        self.backend, self.box, self.n = backend, state.box, len(state)
        pos = state.box.wrap(state.pos.astype(precision))  # rounding may reach the box's far side
        self.pos = backend.upload_rows(pos)
        self.vel = backend.upload_rows(state.vel.astype(precision))
        self.id = backend.upload(state.id)
        self.work = backend.empty(0, np.int32)
        self.spare = [backend.rows(*pos.shape, precision) for _ in range(2)]
        self._spare_id = backend.empty(self.n, np.int32)

    def on(self, backend: Backend) -> Particles:
        """A copy of these particles on another backend."""
        other = copy.copy(self)
        other.backend = backend
        other.pos, other.vel = (backend.upload_rows(self.backend.download(a)) for a in (self.pos, self.vel))
        other.id, other.work = (backend.upload(self.backend.download(a)) for a in (self.id, self.work))
        other.spare = [backend.rows(*self.pos.shape, self.pos.dtype) for _ in range(2)]
        other._spare_id = backend.empty(self.n, np.int32)
        return other

    def take_from(self, other: Particles) -> None:
        """Take over the arrays of a copy on another backend, in its memory order."""
        self.pos[...] = self.backend.upload(other.backend.download(other.pos))
        self.vel[...] = self.backend.upload(other.backend.download(other.vel))
        self.id[...] = self.backend.upload(other.backend.download(other.id))

    def permute(self, order) -> None:
        """Move every particle: slot i takes what was in slot order[i]. The arrays swap with their spares.

        Args:
            order: (n,) int32 permutation on the backend.
        """
        self.backend.kernels(__name__).gather(
            self.n, order, self.pos, self.vel, self.id, *self.spare, self._spare_id
        )
        self.swap()
        self.id, self._spare_id = self._spare_id, self.id

    def copy_to(self, order, pos, vel) -> None:
        """Copy positions and velocities in another order: row i of the copy takes what is in slot order[i].

        Args:
            order: (n,) int32 permutation on the backend.
            pos: (n, dim) array of the backend, filled.
            vel: likewise.
        """
        nobody = self.backend.empty(0, np.int32)
        self.backend.kernels(__name__).gather(self.n, order, self.pos, self.vel, nobody, pos, vel, nobody)

    def swap(self) -> None:
        """Take the spare positions and velocities, which a kernel has filled, for the particles' own."""
        (self.pos, self.vel), self.spare = self.spare, [self.pos, self.vel]

    @property
    def arrays(self) -> tuple:
        """All arrays in their present roles; assign what it was to have them so again."""
        return self.pos, self.vel, *self.spare, self.id, self._spare_id

    @arrays.setter
    def arrays(self, arrays: tuple) -> None:
        self.pos, self.vel, *self.spare, self.id, self._spare_id = arrays

    def to_state(self, vel=None) -> State:
        """A copy on the host.

        Args:
            vel: (n, dim) velocities on the backend to give instead of the particles' own.
        """
        down: Sequence[np.ndarray] = [
            self.backend.download(a) for a in (self.pos, self.vel if vel is None else vel, self.id)
        ]
        return State(down[0], down[1], self.box, down[2])


@kernel(parallel=True)
def gather(n, order, pos, vel, id, new_pos, new_vel, new_id):
    """Slot i of the new arrays takes slot order[i] of the old; `id` may be (0,) and stay out of it."""
    for i in numba.prange(n):
        j = order[i]
        for k in range(pos.shape[1]):
            new_pos[i, k] = pos[j, k]
            new_vel[i, k] = vel[j, k]
        if len(id):
            new_id[i] = id[j]
