"""Particle arrays of a rank on a device: compact, or laid out for steps with room for particles that come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from md.backend.base import Array
from md.domain.on_device.layout import LEAST, Layout
from md.particles.arrays import PackedRows, ParticleArrays

NO_PARTICLE = -1  # id of a row
LIVE, REACHED, NO_ROOM, LOST, COUNTS = 0, 1, 2, 3, 4  # places in `RankArrays.words`, as in records.cuh


class Records(NamedTuple):
    """Particles that are sent from rank to rank, or kept.

    Attributes:
        numbers: (m * each,) position, velocity, and radius if there are radii, of each.
        ids: (m,) int32; (0,) where they are not sent.
    """

    numbers: Array
    ids: Array

    def part(self, first: int, last: int) -> Records:
        """Return the records from one to before another."""
        each = len(self.numbers) // max(1, len(self.ids))
        return Records(self.numbers[each * first : each * last], self.ids[first:last])


class RankArrays(ParticleArrays):
    """Particles of a rank on a device: those that it owns, and behind them its ghosts.

    While particles are read or sent by the host, rows are compact: `n` is the number of owned particles, and
    `rows` that of all. For steps they are laid out (`Layout`), in memory of their own that peers may open:
    `n` and `rows` are the room then, and the device counts the particles. A row without a particle has the id
    `NO_PARTICLE`, and does not move.

    Args:
        particles: of this rank; all are owned.
        ranks: number of ranks.

    Attributes:
        layout: of the rows; None while they are compact.
        words: int32, of rows that are laid out: number of owned particles; the row from which on rows are 0
            in both `sets`, or a smaller one than that number; 1 if there was too little room; not 0 once a
            peer did not come for a long time; and of each rank the number of records that it has sent last,
            and of the ghosts that it owns.
        sets: positions and velocities of the laid out rows in the two pieces of memory that steps read and
            write in turn; the same array twice if they are packed.
        radius_sets: their radii, two arrays that migrations read and write in turn; (0,) if all are 0.5.
    """

    def __init__(self, particles: ParticleArrays, ranks: int):
        vars(self).update(vars(particles))
        self.layout: Layout | None = None
        self.words = self.backend.alone(COUNTS + 2 * ranks, np.int32)
        self.backend.fill(self.words, 0)
        self._memory: list[Array] = []  # of packed rows
        self.sets: list[tuple[Array, Array]] = []
        self.radius_sets = [self.backend.alone(0, self.pos.dtype) for _ in range(2)]
        self._kept: dict[int, Records] = {}  # turn -> copy

    @property
    def constants(self) -> Mapping[str, int]:
        """Constants of kernels that read `velocities`; see `Backend.kernels`."""
        return {"PACKED": 1, "GHOSTS": 1} if self.is_packed else {}

    @property
    def each(self) -> int:
        """Numbers of a particle in `Records`."""
        return 2 * self.box.dim + self.has_radii

    @property
    def packing_bytes(self) -> int:
        """Bytes that `lay_out` allocates beside those that it has, without the room for more rows."""
        needed = 2 * 2 * self.box.dim * self.pos.dtype.itemsize * self.rows
        return 0 if self.layout is not None else max(0, needed - sum(one.nbytes for one in self._memory))

    def pack(self) -> None:
        """Do nothing: rows that are laid out are packed already.

        Raises:
            RuntimeError: rows are compact.
        """
        if not self.is_packed:
            raise RuntimeError("rows of a rank are packed by `lay_out` alone")

    def lay_out(self, layout: Layout, rank: int, ghosts: np.ndarray, packs: bool) -> None:
        """Move the particles to the rows of a layout.

        Args:
            layout: of all ranks.
            rank: this one.
            ghosts: (ranks,) numbers of ghosts of each, in the order of the rows.
            packs: whether positions and velocities become packed rows.
        """
        backend, n, real = self.backend, self.n, self.pos.dtype
        every, rows, room = self.copy_out(), layout.rows(rank), int(layout.owned[rank])
        self.sets = self._sets(rows, packs)
        (self.pos, self.velocities), self._spare = self.sets[0], list(self.sets[1])
        self.id, self._spare_id = (backend.empty(rows, np.int32) for _ in range(2))
        if self.has_radii and len(self.radius_sets[0]) < rows:
            self.radius_sets = [backend.alone(rows, real) for _ in range(2)]
        self.radius, self._spare_radius = (one[: rows if self.has_radii else 0] for one in self.radius_sets)
        self._first_radius = self.radius
        for array in (self.id, self._spare_id):
            backend.fill(array, NO_PARTICLE)
        self._count(n)
        backend.fill(self.words[COUNTS:], 0)
        self.copy_in(0, every.part(0, n))
        last = n
        for owner, count in enumerate(ghosts.tolist()):
            self.copy_in(layout.first_ghost(owner, rank), every.part(last, last + count))
            backend.fill(self.words[COUNTS + len(ghosts) + owner :][:1], count)
            last += count
        self.layout, self.n = layout, room
        self._kept = {turn: one for turn, one in self._kept.items() if len(one.ids) == room}

    @property
    def others(self) -> tuple[Array, Array, Array, Array]:
        """Positions, velocities, ids and radii that a migration fills, before `exchange_roles`."""
        return *self.spare, self._spare_id, self._spare_radius

    @property
    def radii_turn(self) -> int:
        """Which of `radius_sets` has those of now, on all ranks."""
        return int(self.radius is not self._first_radius)

    def _sets(self, rows: int, packs: bool) -> list[tuple[Array, Array]]:
        """Return memory of so many rows, twice, filled with 0; the same as before where there is enough."""
        backend, dim, real = self.backend, self.box.dim, self.pos.dtype
        if not packs:
            self.sets = [(backend.rows(rows, dim, real), backend.rows(rows, dim, real)) for _ in range(2)]
            self._clear()
            return self.sets
        if not self._memory or len(self._memory[0]) < 2 * dim * rows:
            self._memory, self._packed, self.sets = [], [], []
            room = -(-rows // LEAST) * LEAST  # so that rows of four begin at 16 bytes
            self._memory = [backend.alone(2 * dim * room, real) for _ in range(2)]
        self._clear()
        self._packed = [PackedRows(block, dim, rows) for block in self._memory]
        return [(one.pos, one.pos) for one in self._packed]

    def _clear(self) -> None:
        """Set all laid out rows to 0, in both sets."""
        if self._memory:
            for block in self._memory:
                self.backend.fill(block, 0)
        else:
            for array in (one for pair in self.sets for one in pair):
                array[...] = 0

    def new_records(self, m: int) -> Records:
        """Allocate records of m particles."""
        return Records(self.backend.empty(m * self.each, self.pos.dtype), self.backend.empty(m, np.int32))

    def copy_out(
        self, rows: Array | None = None, has_ids: bool = True, into: Records | None = None
    ) -> Records:
        """Copy some rows.

        Args:
            rows: (m,) int32; None for all, or the first ones for which there is room.
            has_ids: whether their ids and radii are copied too.
            into: filled; None for new records.
        """
        radius, backend = self.radius if has_ids else self.radius[:0], self.backend
        m = len(rows) if rows is not None else self.rows if into is None else len(into.ids)
        if into is None:
            each = 2 * self.box.dim + (has_ids and self.has_radii)
            numbers = backend.empty(m * each, self.pos.dtype)
            into = Records(numbers, backend.empty(m if has_ids else 0, np.int32))
        rows = backend.empty(0, np.int32) if rows is None else rows
        kernels = backend.kernels(__name__, constants=self.constants)
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

    def keep_copy(self, turn: int = 0) -> None:
        """Copy the owned particles of laid out rows, by launches alone, for `restore` or `settle`.

        Args:
            turn: 0 or 1, of two copies that are kept.
        """
        if turn not in self._kept:
            self._kept[turn] = self.new_records(self.n)
        self.copy_out(into=self._kept[turn])

    def restore(self, turn: int) -> None:
        """Store a copy in the laid out rows again; there are no ghosts then.

        Args:
            turn: of which `keep_copy`.
        """
        kept = self._kept[turn]
        self._clear()
        self.copy_in(0, kept)
        self._count(self._live_of(kept))

    def _count(self, live: int) -> None:
        """Note the number of owned particles, and that there was room; a lost peer is not forgotten."""
        self.backend.fill(self.words[LIVE:NO_ROOM], live)
        self.backend.fill(self.words[NO_ROOM:LOST], 0)

    def _live_of(self, kept: Records) -> int:
        """Return the number of particles of a copy; waits for the device."""
        return int((self.backend.download(kept.ids) != NO_PARTICLE).sum())

    def settle(self, turn: int | None = None) -> None:
        """Make the rows compact again, without ghosts.

        Args:
            turn: with the particles of which `keep_copy`; None for those of now.
        """
        backend, dim, real = self.backend, self.box.dim, self.pos.dtype
        if turn is None:
            self.keep_copy(0)
        kept = self._kept[turn or 0]
        n = self._live_of(kept)
        self.layout, self.row_keys, self.n = None, None, n
        self.pos, self.velocities = (backend.rows(n, dim, real) for _ in range(2))
        self.id, self.radius = backend.empty(n, np.int32), backend.empty(n * self.has_radii, real)
        self._spare, self._spare_id, self._spare_radius = [], self.id[:0], self.radius[:0]
        self.copy_in(0, kept.part(0, n))

    def keys_of(
        self, arrived: Records | None, table: Array, grid: np.ndarray, constants: Mapping[str, int]
    ) -> Array:
        """Return the (n + m,) int32 sort keys of the owned particles, and of m that have come.

        They are by the place of the cell, and in it by its parts.

        Args:
            arrived: records of those that have come.
            table: (cells,) int32 place of each cell.
            grid: record of the cells.
            constants: `Places.constants`.
        """
        backend, numbers, m = self.backend, self.pos[:0], 0
        if arrived is not None:
            numbers, m = arrived.numbers, len(arrived.ids)
        keys = backend.empty(self.n + m, np.int32)
        given = numbers, int(self.has_radii), table, grid, keys
        backend.kernels(__name__, constants=constants).keys_of(len(keys), self.n, self.pos, *given)
        return keys

    def take_records(self, arrived: Records, order: Array, owned: int, ghosts: int) -> None:
        """Move the particles of compact rows, with some more; the ghosts follow by `copy_in`.

        Args:
            arrived: particles that have come.
            order: int32 rows, of which the first are those of the owned particles; rows from n on are those
                of `arrived`.
            owned: number of owned particles.
            ghosts: number of ghosts.
        """
        backend, dim, precision, rows = self.backend, self.box.dim, self.pos.dtype, owned + ghosts
        before = self.pos, self.velocities, self.id, self.radius
        pos, vel = (backend.rows(rows, dim, precision) for _ in range(2))
        id, radius = backend.empty(rows, np.int32), backend.empty(rows if self.has_radii else 0, precision)
        backend.kernels(__name__).take(owned, self.n, order, *before, *arrived, pos, vel, id, radius)
        self.n, self.pos, self.velocities, self.id, self.radius = owned, pos, vel, id, radius
        self._spare, self._spare_id, self._spare_radius = [], id[:0], radius[:0]
