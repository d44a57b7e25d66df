"""Particle arrays of a rank on a device: rows with room for particles that come, and for ghosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from md.backend.base import Array
from md.particles.arrays import ROOM, PackedRows, ParticleArrays

ALIGNED = 64  # rows to which room is rounded up


class Records(NamedTuple):
    """Particles that are sent from rank to rank.

    Attributes:
        numbers: (m * each,) position, velocity, and radius if there are radii, of each.
        ids: (m,) int32; (0,) where they are not sent.
    """

    numbers: Array
    ids: Array


class RankArrays(ParticleArrays):
    """Particles of a rank on a device: those that it owns, and behind them its ghosts.

    Packed rows have room for more, and stay where they are in memory while that is enough.

    Args:
        particles: of this rank; all are owned.
    """

    def __init__(self, particles: ParticleArrays):
        vars(self).update(vars(particles))
        self._blocks: list[Array] = []  # of the packed rows
        self._copied: tuple[Array, Array] | None = None  # of `keep_copy`

    @property
    def constants(self) -> Mapping[str, int]:
        """Constants of kernels that read `velocities`; see `Backend.kernels`."""
        return {"PACKED": 1, "GHOSTS": 1} if self.is_packed else {}

    @property
    def each(self) -> int:
        """Numbers of a particle in `Records`."""
        return 2 * self.box.dim + self.has_radii

    @property
    def was_packed(self) -> bool:
        """Whether there is memory of packed rows, with the number of rows of now."""
        return len(self._packed) == 2

    def pack(self) -> None:
        """Store positions and velocities as packed rows, where they were before they were unpacked.

        So peers may store ghosts of the next step meanwhile, which are in other memory.
        """
        now = next((one for one in self._packed if one.pos is self.pos), None)
        if self.is_packed or now is None:
            super().pack()
            return
        now.store_velocities(self.velocities[: self.n])
        other = self._packed[now is self._packed[0]]
        self.velocities, self._spare = self.pos, 2 * [other.pos]

    def _packed_rows(self, rows: int) -> PackedRows:
        self._blocks.append(self._block(rows))
        return PackedRows(self._blocks[-1], self.box.dim, rows)

    def _block(self, rows: int) -> Array:
        """Allocate memory of packed rows, with room for more."""
        room = -(-(rows + rows // ROOM) // ALIGNED) * ALIGNED
        return self.backend.alone(2 * self.box.dim * room, self.pos.dtype)

    def new_records(self, m: int) -> Records:
        """Allocate records of m particles."""
        return Records(self.backend.empty(m * self.each, self.pos.dtype), self.backend.empty(m, np.int32))

    def copy_out(self, rows: Array, has_ids: bool = True, into: Records | None = None) -> Records:
        """Copy some rows.

        Args:
            rows: (m,) int32.
            has_ids: whether their ids and radii are copied too.
            into: filled; None for new records.
        """
        m, radius = len(rows), self.radius if has_ids else self.radius[:0]
        if into is None:
            each = 2 * self.box.dim + (has_ids and self.has_radii)
            numbers = self.backend.empty(m * each, self.pos.dtype)
            into = Records(numbers, self.backend.empty(m if has_ids else 0, np.int32))
        kernels = self.backend.kernels(__name__, constants=self.constants)
        kernels.copy_out(m, rows, self.pos, self.velocities, self.id, radius, *into)
        return into

    def copy_in(self, first: int, records: Records) -> None:
        """Store records in rows from `first` on, without ids and radii if there are no ids."""
        radius = self.radius if len(records.ids) else self.radius[:0]
        each = 2 * self.box.dim + (len(records.ids) > 0 and self.has_radii)
        kernels = self.backend.kernels(__name__, constants=self.constants)
        kernels.copy_in(
            len(records.numbers) // each, first, *records, self.pos, self.velocities, self.id, radius
        )

    @property
    def room(self) -> int:
        """Rows for which the memory of packed rows has room; 0 where rows are not packed."""
        if not self.is_packed:
            return 0
        return min(len(block) for block in self._blocks[:2]) // (2 * self.box.dim)

    @property
    def sets(self) -> list[tuple[Array, Array]]:
        """Positions and velocities in the two pieces of memory that steps read and write in turn."""
        if self.is_packed:
            return [(one.pos, one.pos) for one in self._packed]
        spare = self.spare
        return [(self.pos, self.velocities), (spare[0], spare[1])]

    def keys_of(self, arrived: Records | None, table: Array, grid: np.ndarray) -> Array:
        """Return the (n + m,) int32 sort keys of the owned particles, and of m that have come.

        They are by the place of the cell, and in it by its 2^dim parts: small ones, so that neighbours are
        close to each other in memory.

        Args:
            arrived: records of those that have come.
            table: (cells,) int32 place of each cell.
            grid: record of the cells.
        """
        backend, numbers, m = self.backend, self.pos[:0], 0
        if arrived is not None:
            numbers, m = arrived.numbers, len(arrived.ids)
        keys = backend.empty(self.n + m, np.int32)
        given = numbers, int(self.has_radii), table, grid, keys
        backend.kernels(__name__).keys_of(len(keys), self.n, self.pos, *given)
        return keys

    def take_records(self, arrived: Records, order: Array, owned: int, ghosts: int) -> None:
        """Move the particles of this system, with some more; the ghosts follow by `copy_in`.

        Args:
            arrived: particles that have come.
            order: int32 rows, of which the first are those of the owned particles; rows from n on are those
                of `arrived`.
            owned: number of owned particles.
            ghosts: number of ghosts.
        """
        backend, dim, precision = self.backend, self.box.dim, self.pos.dtype
        n, rows, is_packed = self.n, owned + ghosts, self.is_packed
        before = self.pos, self.velocities, self.id, self.radius
        kernels = backend.kernels(__name__, constants=self.constants)
        if is_packed:
            now = int(self.pos is self._packed[1].pos)
            self._packed[1 - now] = self._with_room(1 - now, rows)
            pos = vel = self._packed[1 - now].pos
        else:
            self._spare = []
            pos, vel = (backend.rows(rows, dim, precision) for _ in range(2))
        id, radius = backend.empty(rows, np.int32), backend.empty(rows if self.has_radii else 0, precision)
        kernels.take(owned, n, order, *before, *arrived, pos, vel, id, radius)
        self.n, self.pos, self.velocities, self.id, self.radius = owned, pos, vel, id, radius
        self._spare_id, self._spare_radius = id[:0], radius[:0]
        if is_packed:
            self._packed[now] = self._with_room(now, rows)
            self._spare = 2 * [self._packed[now].pos]

    def _with_room(self, k: int, rows: int) -> PackedRows:
        """Return packed rows in block k, which is replaced if it is too small."""
        dim = self.box.dim
        if len(self._blocks[k]) < 2 * dim * rows:
            self._blocks[k] = self._block(rows)
        return PackedRows(self._blocks[k], dim, rows)

    def keep_copy(self) -> None:
        """Copy all rows, for `restore_copy`."""
        if self.is_packed:
            self._blocks += [self._block(0)] * (len(self._blocks) == 2)
            kept = 2 * (self._with_room(2, self.rows).pos,)
        else:
            kept = tuple(self.backend.rows(self.rows, self.box.dim, self.pos.dtype) for _ in range(2))
        self._copy(self.pos, self.velocities, *kept)
        self._copied = kept

    def restore_copy(self) -> None:
        """Return to positions and velocities as they were at `keep_copy`; rows are the same."""
        assert self._copied is not None
        if self._copied[0] is self._copied[1]:
            self.pack()
        elif self.is_packed:
            self.unpack()
        self._copy(*self._copied, self.pos, self.velocities)

    def _copy(self, *rows: Array) -> None:
        """Copy positions and velocities, the first two arrays, to two others."""
        none, no_radius = self.backend.empty(0, np.int32), self.backend.empty(0, self.pos.dtype)
        kernels = self.backend.kernels("md.particles.arrays", constants=self.constants)
        kernels.gather(self.rows, none, *rows[:2], none, no_radius, *rows[2:], none, no_radius)

    def list_cells(self, begins: Array, stops: Array, first: Array, start: Array, rows: Array) -> None:
        """List the rows of the particles of some cells.

        Args:
            begins: (m,) int32 first sort key of each cell.
            stops: (m,) int32 first sort key behind each.
            first: (m,) int32 where the list of each begins in `rows`.
            start: int32 first row of each sort key, and one more.
            rows: int32, filled.
        """
        self.backend.kernels(__name__).list_cells(len(begins), begins, stops, first, start, rows)
