"""Particle arrays on a backend, in memory order, and the kernel that permutes them."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numba
import numpy as np

from md.backend import Backend
from md.backend.base import Array
from md.particles.state import State
from sfc.compile import kernel


class ParticleArrays:
    """Positions, velocities, ids and radii of the particles on a backend, in memory order.

    Args:
        state: the start.
        precision: numpy dtype of positions, velocities and radii.
        backend: on which the arrays are stored.

    Attributes:
        pos, vel: (n, dim) arrays of the backend, in d and d per time unit.
        id: (n,) int32.
        radius: (n,) of the precision, in d; (0,) if all are 0.5.
        narrowest, widest: the least and the largest diameter, in d; 1 without particles.
        work: (n,) int32 work order, the slots in the order in which a force kernel processes them; (0,) for
            memory order.
        spare: arrays like `pos` and `vel`, output of a kernel that reads `pos` and `vel`; see `swap`.
    """

    def __init__(self, state: State, precision: np.dtype, backend: Backend):
        self.backend, self.box, self.n = backend, state.box, len(state)
        pos = state.box.wrap(state.pos.astype(precision))  # a rounded position may be at the upper side
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
        """Allocate the spare arrays."""
        n, dim = self.pos.shape
        self.spare = [self.backend.rows(n, dim, self.pos.dtype) for _ in range(2)]
        self._spare_id = self.backend.empty(self.n, np.int32)
        self._spare_radius = self.backend.empty(len(self.radius), self.radius.dtype)

    def on(self, backend: Backend) -> ParticleArrays:
        """Copy the particles to another backend."""
        other = copy.copy(self)
        other.backend = backend
        other.pos, other.vel = (backend.upload_rows(self.backend.download(a)) for a in (self.pos, self.vel))
        other.id, other.radius, other.work = (
            backend.upload(self.backend.download(a)) for a in (self.id, self.radius, self.work)
        )
        other._make_spares()
        return other

    def take_from(self, other: ParticleArrays) -> None:
        """Copy the arrays of `other`, a copy on another backend, with their memory order."""
        self.pos[...] = self.backend.upload(other.backend.download(other.pos))
        self.vel[...] = self.backend.upload(other.backend.download(other.vel))
        self.id[...] = self.backend.upload(other.backend.download(other.id))
        self.radius[...] = self.backend.upload(other.backend.download(other.radius))

    def permute(self, order: Array) -> None:
        """Move every particle: slot i gets the particle of slot order[i]. Swaps arrays and spare arrays.

        Args:
            order: (n,) int32 permutation on the backend.
        """
        spare = *self.spare, self._spare_id, self._spare_radius
        self.backend.kernels(__name__).gather(self.n, order, self.pos, self.vel, self.id, self.radius, *spare)
        self.swap()
        self.id, self._spare_id = self._spare_id, self.id
        self.radius, self._spare_radius = self._spare_radius, self.radius

    def copy_to(self, order: Array, pos: Array, vel: Array, radius: Array) -> None:
        """Copy positions, velocities and radii in another order: row i gets the values of slot order[i].

        Args:
            order: (n,) int32 permutation on the backend.
            pos: (n, dim) array of the backend, filled.
            vel: (n, dim) array of the backend, filled.
            radius: array of the shape of `ParticleArrays.radius`, filled.
        """
        no_id = self.backend.empty(0, np.int32)
        self.backend.kernels(__name__).gather(
            self.n, order, self.pos, self.vel, no_id, self.radius, pos, vel, no_id, radius
        )

    def swap(self) -> None:
        """Exchange positions and velocities with the spare ones, which a kernel has filled."""
        (self.pos, self.vel), self.spare = self.spare, [self.pos, self.vel]

    @property
    def arrays(self) -> tuple[Array, ...]:
        """All arrays, spare ones included, by their roles; assign an earlier value to restore the roles."""
        ids, radii = (self.id, self._spare_id), (self.radius, self._spare_radius)
        return self.pos, self.vel, *self.spare, *ids, *radii

    @arrays.setter
    def arrays(self, arrays: tuple[Array, ...]) -> None:
        self.pos, self.vel, *self.spare, self.id, self._spare_id, self.radius, self._spare_radius = arrays

    def to_state(self, vel: Array | None = None) -> State:
        """Copy the particles to the host.

        Args:
            vel: (n, dim) velocities on the backend for the state; None for those of the particles.
        """
        vel = self.vel if vel is None else vel
        down: Sequence[np.ndarray] = [self.backend.download(a) for a in (self.pos, vel, self.id)]
        return State(down[0], down[1], self.box, down[2], self.radii())

    def radii(self) -> np.ndarray | None:
        """Copy the radii to the host: (n,) in d, in memory order; None if all are 0.5."""
        return self.backend.download(self.radius) if len(self.radius) else None


@kernel(parallel=True)
def gather(n, order, pos, vel, id, radius, new_pos, new_vel, new_id, new_radius):
    """Copy slot order[i] of the old arrays to slot i of the new ones; `id` and `radius` may be (0,)."""
    for i in numba.prange(n):
        j = order[i]
        for k in range(pos.shape[1]):
            new_pos[i, k] = pos[j, k]
            new_vel[i, k] = vel[j, k]
        if len(id):
            new_id[i] = id[j]
        if len(radius):
            new_radius[i] = radius[j]
