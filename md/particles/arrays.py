"""Particle arrays on a backend, in memory order, and the kernel that permutes them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numba
import numpy as np

from md.backend import Backend, OnDevice
from md.backend.base import Array
from md.particles.state import State
from sfc.compile import kernel

ROOM = 16  # rows for each further one that arrays have room for, where their number changes


class PackedRows:
    """Positions and velocities as packed rows in one block of memory; `rows.cuh` has their layout.

    Args:
        block: (2 * dim * room,) array of the backend.
        dim: 2 or 3.
        rows: number of rows, if there is room for more: then their addresses do not depend on that number,
            since the rows of two come before those of four, in reverse. None for as many as there is room
            for.

    Attributes:
        pos: (rows, dim) view of the positions; its address is that of the rows.
    """

    def __init__(self, block: Array, dim: int, rows: int | None = None):
        room = len(block) // (2 * dim)
        if rows is None:
            fours, rest = block[: 4 * room], block[4 * room :].reshape(room, 2 * dim - 4)
        else:
            middle = (2 * dim - 4) * room
            fours, rest = block[middle:], block[:middle].reshape(room, 2 * dim - 4)[::-1]
        fours, rows = fours.reshape(room, 4), room if rows is None else rows
        self.pos, self._first, self._rest = fours[:rows, :dim], fours[:rows, dim:], rest[:rows]

    def fill(self, pos: Array, vel: Array) -> None:
        """Copy positions and velocities, (n, dim) each, into the rows."""
        of_row = self._first.shape[1]
        self.pos[...], self._first[...], self._rest[...] = pos, vel[:, :of_row], vel[:, of_row:]

    def copy_velocities(self, vel: Array) -> None:
        """Copy the velocities to an (n, dim) array."""
        of_row = self._first.shape[1]
        vel[:, :of_row], vel[:, of_row:] = self._first, self._rest


class ParticleArrays:
    """Positions, velocities, ids and radii of the particles on a backend, in memory order.

    Args:
        state: the start.
        precision: numpy dtype of positions, velocities and radii.
        backend: on which the arrays are stored.

    Attributes:
        n: number of particles that this system moves: those of the first rows. Other rows are of copies of
            particles of other ranks (ghosts); without these n is the number of all rows.
        pos: (rows, dim) array of the backend, in d.
        id: (rows,) int32.
        radius: (rows,) of the precision, in d; (0,) if all are 0.5.
        total: number of particles of all ranks.
        has_radii: whether particles have radii; a rank without any knows it from the others.
        narrowest, widest: the least and the largest diameter, in d; 1 without particles.
        work: (n,) int32 work order, the slots in the order in which a force kernel processes them; (0,) for
            memory order.

    On a device that gathers rows of four numbers, fused steps may read and write packed rows (`pack`): the
    position and one component of the velocity of a particle are one such row, or in 2D both of them. That is
    three quarters of the memory that a step reads and writes in 3D, half of it in 2D.
    """

    velocities: Array  # (n, dim) velocities, or `pos` if the rows are packed
    row_keys: Any = None  # `md.particles.cell_sort.Keys` of rows of which some have no particle
    region: Any = None  # `md.particles.cell_sort.Region` in which the particles of a rank on the CPU are

    def __init__(self, state: State, precision: np.dtype, backend: Backend):
        self.backend, self.box, self.n = backend, state.box, len(state)
        self._spare: list[Array] = []  # none, that of `pos`, or both; `spare` allocates those not there
        self._spare_id: Array
        self._spare_radius: Array
        self.total = self.n
        self.pos, self.vel = (backend.rows(self.n, self.box.dim, precision) for _ in range(2))
        self.id = backend.empty(self.n, np.int32)
        state.store(backend, self.pos, self.vel, self.id)
        radius = np.empty(0, precision) if state.radius is None else state.radius.astype(precision)
        self.radius = backend.upload(radius)
        self.has_radii = len(radius) > 0
        self.narrowest = float(2 * radius.min()) if len(radius) else 1.0
        self.widest = float(2 * radius.max()) if len(radius) else 1.0
        self.work = backend.empty(0, np.int32)
        self._make_spares()

    @property
    def rows(self) -> int:
        """Number of all rows."""
        return len(self.id)

    def keep(self, rows: np.ndarray) -> None:
        """Keep some particles only; all of them are owned.

        Args:
            rows: (m,) their rows.
        """
        pos, vel, id, radius = map(self.backend.download, (self.pos, self.vel, self.id, self.radius))
        self._store(pos[rows], vel[rows], id[rows], radius[rows] if len(radius) else radius, len(rows))

    def records(self, rows: np.ndarray, more: np.ndarray | None = None) -> np.ndarray:
        """Copy particles into records with `pos`, `vel`, `id`, and `radius` if there are radii.

        Args:
            rows: (m,) their rows; those from n on are rows of `more`.
            more: records.
        """
        dim, real = self.box.dim, self.pos.dtype
        fields = [("pos", real, (dim,)), ("vel", real, (dim,)), ("id", np.int32)]
        found = np.empty(len(rows), [*fields, ("radius", real)] if self.has_radii else fields)
        there = np.flatnonzero(rows >= self.n)
        for name in found.dtype.names or ():
            owned = getattr(self, name)[: self.n]
            if more is None:
                found[name] = owned.take(rows, axis=0)
                continue
            if self.n:
                found[name] = owned.take(rows, axis=0, mode="clip")
            found[name][there] = more[name][rows[there] - self.n]
        return found

    def take_over(self, arrived: np.ndarray, order: np.ndarray, ghosts: np.ndarray) -> None:
        """Move the particles of this system, with some more, and store other ghosts after them.

        Args:
            arrived: records of particles that have come.
            order: (owned,) int32 rows of the owned particles; rows from n on are those of `arrived`.
            ghosts: records of the ghosts.
        """
        owned, rows = len(order), len(order) + len(ghosts)
        last = self.n + len(arrived)
        now: list[Array] = []
        new: list[Array] = []
        spare: list[Array] = []
        names = ("pos", "vel", "id", "radius")
        for name, other in zip(names, (*self.spare, self._spare_id, self._spare_radius), strict=True):
            array = getattr(self, name)
            if name == "radius" and not self.has_radii:
                now, new, spare = [*now, array], [*new, other], [*spare, array]
                continue
            held = with_room(array, last, kept=self.n)  # ghosts are overwritten
            held[self.n :] = arrived[name]
            target = with_room(other, rows)
            target[owned:] = ghosts[name]
            now, new, spare = [*now, held], [*new, target], [*spare, with_room(held, rows)]
        self.backend.kernels(__name__).gather(owned, order, *now, *new)
        self.n, (self.pos, self.vel, self.id, self.radius) = owned, new
        self._spare, (self._spare_id, self._spare_radius) = spare[:2], spare[2:]

    def _store(self, pos: Array, vel: Array, id: Array, radius: Array, owned: int) -> None:
        """Store other rows, of which the first are owned."""
        self.n = owned
        self.pos, self.vel = self.backend.upload_rows(pos), self.backend.upload_rows(vel)
        self.id, self.radius = self.backend.upload(id), self.backend.upload(radius)
        self._make_spares()

    def _make_spares(self) -> None:
        """Allocate the spare arrays."""
        self._spare = []
        self._spare_id = self.backend.empty(self.rows, np.int32)
        self._spare_radius = self.backend.empty(len(self.radius), self.radius.dtype)
        self._packed: list[PackedRows] = []  # two, made by the first `pack`

    @property
    def spare(self) -> list[Array]:
        """Arrays like `pos` and `velocities`, output of a kernel that reads these; see `swap`."""
        n, dim = self.pos.shape
        while len(self._spare) < 2:
            self._spare.append(self.backend.rows(n, dim, self.pos.dtype))
        return self._spare

    @spare.setter
    def spare(self, spare: list[Array]) -> None:
        self._spare = spare

    @property
    def vel(self) -> Array:
        """(n, dim) velocities on the backend, in d per time unit; reading them ends `is_packed`."""
        self.unpack()
        return self.velocities

    @vel.setter
    def vel(self, vel: Array) -> None:
        self.velocities = vel

    @property
    def is_packed(self) -> bool:
        """Whether positions and velocities are packed rows."""
        return self.velocities is self.pos

    @property
    def packing_bytes(self) -> int:
        """Bytes that `pack` allocates at its first call; 0 after it."""
        return (2 - len(self._packed)) * 2 * self.pos.shape[1] * self.pos.dtype.itemsize * self.n

    @property
    def constants(self) -> Mapping[str, int]:
        """Constants of kernels that read `velocities`; see `Backend.kernels`."""
        return {"PACKED": 1} if self.is_packed else {}

    def fastest2(self) -> float:
        """Return the square of the largest speed of an owned particle; waits for the device."""
        most = self.backend.zeros(1, np.float64)
        kernels = self.backend.kernels(__name__, constants=self.constants)
        kernels.fastest(self.n, self.velocities, most)
        return float(self.backend.download(most)[0])

    def pack(self) -> None:
        """Store positions and velocities as packed rows, for kernels compiled with `constants`."""
        if self.is_packed:
            return
        n = len(self.pos)
        self._spare = []  # freed before rows are allocated
        if len(self._packed) < 2:
            self.backend.release()
        while len(self._packed) < 2:
            self._packed.append(self._packed_rows(n))
        first, second = self._packed
        rows, spare = (second, first) if self.pos is first.pos else (first, second)
        rows.fill(self.pos, self.velocities)
        self.pos = self.velocities = rows.pos
        self.spare = [spare.pos, spare.pos]

    def _packed_rows(self, rows: int) -> PackedRows:
        """Allocate packed rows."""
        dim = self.box.dim
        return PackedRows(self.backend.empty(2 * dim * rows, self.pos.dtype), dim)

    def unpack(self) -> None:
        """Store velocities as rows of their own, if rows are packed."""
        if not self.is_packed:
            return
        n, dim = self.pos.shape
        vel = self.backend.rows(n, dim, self.pos.dtype)
        next(rows for rows in self._packed if rows.pos is self.pos).copy_velocities(vel)
        self.velocities, self._spare = vel, self._spare[:1]

    def on(self, backend: Backend) -> ParticleArrays:
        """Copy the particles to another backend."""
        self.unpack()
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

    def permute(
        self, order: Array, keep_roles: bool = False, gather: Callable[..., None] | None = None
    ) -> None:
        """Move every particle: slot i gets the particle of slot order[i].

        The particles are copied to the spare arrays, which then become the arrays, and these the spare ones.

        Args:
            order: (rows,) int32 permutation on the backend, of the owned particles and of the ghosts.
            keep_roles: copy the particles back instead, so that arrays and spare arrays stay what they are.
            gather: kernel that copies them and computes more, with the arguments of `gather` in arrays.cu;
                None for that one.
        """
        now = self.pos, self.velocities, self.id, self.radius
        spare = *self.spare, self._spare_id, self._spare_radius
        kernels = self.backend.kernels(__name__, constants=self.constants)
        (gather or kernels.gather)(self.rows, order, *now, *spare)
        if keep_roles:
            kernels.gather(self.rows, self.backend.empty(0, np.int32), *spare, *now)
            return
        self.exchange_roles()

    def exchange_roles(self) -> None:
        """Exchange all arrays with the spare ones, which a kernel has filled."""
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
        (self.pos, self.velocities), self.spare = self.spare, [self.pos, self.velocities]

    def carry_ghosts(self) -> None:
        """Copy the rows of ghosts from the spare arrays, which were the arrays before a fused step."""
        for now, before in zip((self.pos, self.velocities), self.spare, strict=True):
            now[self.n :] = before[self.n :]

    @property
    def arrays(self) -> tuple[Array, ...]:
        """All arrays, spare ones included, by their roles; assign an earlier value to restore the roles."""
        ids, radii = (self.id, self._spare_id), (self.radius, self._spare_radius)
        return self.pos, self.velocities, *self.spare, *ids, *radii

    @arrays.setter
    def arrays(self, arrays: tuple[Array, ...]) -> None:
        self.pos, self.velocities, *self.spare, self.id, self._spare_id, self.radius, self._spare_radius = (
            arrays
        )

    def to_state(self, vel: Array | None = None) -> State:
        """Copy the particles that this system moves to the host.

        Args:
            vel: (n, dim) velocities on the backend for the state; None for those of the particles.
        """
        vel = self.vel if vel is None else vel
        down: Sequence[np.ndarray] = [self.backend.download(a[: self.n]) for a in (self.pos, vel, self.id)]
        radii = self.radii()
        return State(down[0], down[1], self.box, down[2], None if radii is None else radii[: self.n])

    def radii(self) -> np.ndarray | None:
        """Copy the radii to the host: (n,) in d, in memory order; None if all are 0.5."""
        return self.backend.download(self.radius) if len(self.radius) else None


def with_room(array: np.ndarray, rows: int, kept: int = 0) -> np.ndarray:
    """Return the first rows of the memory of an array, or of more memory if it has fewer.

    Args:
        array: (n, ...), or a part of a larger one from the first row on.
        rows: number of rows.
        kept: rows that are copied if there is too little memory.
    """
    memory = array if array.base is None else array.base
    if len(memory) < rows or memory.dtype != array.dtype or memory.shape[1:] != array.shape[1:]:
        memory = np.empty((rows + rows // ROOM, *array.shape[1:]), array.dtype)
        memory[:kept] = array[:kept]
    return memory[:rows]


@OnDevice(registers=(22, 30))  # of packed rows
@kernel(parallel=True)
def gather(n, order, pos, vel, id, radius, new_pos, new_vel, new_id, new_radius):
    """Copy slot order[i] of the old arrays to slot i of the new ones; slot i if `order` is (0,).

    `id` and `radius` may be (0,) too.
    """
    for i in numba.prange(n):
        j = np.int64(order[i]) if len(order) else np.int64(i)
        for k in range(pos.shape[1]):
            new_pos[i, k] = pos[j, k]
            new_vel[i, k] = vel[j, k]
        if len(id):
            new_id[i] = id[j]
        if len(radius):
            new_radius[i] = radius[j]


@kernel(parallel=True)
def fastest(n, vel, most):
    """Store the square of the largest speed in most[0]."""
    found = 0.0
    for i in numba.prange(n):
        speed2 = 0.0
        for k in range(vel.shape[1]):
            speed2 += vel[i, k] * vel[i, k]
        found = max(found, speed2)
    most[0] = found
