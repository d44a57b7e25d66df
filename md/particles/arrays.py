"""Arrays of the particles on a backend, in their present memory order."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numba
import numpy as np

from md.backend import Backend
from md.particles.state import State
from sfc.compile import kernel


class ParticleArrays:
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

    def on(self, backend: Backend) -> ParticleArrays:
        """A copy of these particles on another backend."""
        other = copy.copy(self)
        other.backend = backend
        other.pos, other.vel = (backend.upload_rows(self.backend.download(a)) for a in (self.pos, self.vel))
        other.id, other.radius, other.work = (
            backend.upload(self.backend.download(a)) for a in (self.id, self.radius, self.work)
        )
        other._make_spares()
        return other

    def take_from(self, other: ParticleArrays) -> None:
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
