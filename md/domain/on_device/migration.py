"""Migration of particles between devices by launches alone, so that no host waits for a number.

The rows of all ranks are laid out with room for more (`md.domain.on_device.layout`): what is sent has a place
at the receiver, and kernels read from memory how much of it is there. Where room is too little, particles
are left out and a word says so; the ranks return to a copy then.

Border particles are sorted, so that those that leave are together, rank by rank; and all once those have come
that others have sent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from md.backend.base import Array
from md.domain.communicator import Communicator
from md.domain.halo import Halo
from md.domain.on_device.layout import Layout
from md.domain.on_device.peers import Peers
from md.domain.on_device.rank_arrays import COUNTS, RankArrays
from md.domain.partition import Partition, around

MOST_KEYS = 2**31
PART = 1.5  # widest part of a cell, in d
ABSENT = 32  # rows without a particle that have the same sort key; as in records.cuh


def bins_of_absent(rows: int) -> int:
    """Return how many sort keys rows without a particle have, of so many rows."""
    return -(-rows // ABSENT)


class Places:
    """Sort keys of the cells of the box, as one rank sees them, on its device.

    A cell has several keys, for its parts along each axis, so that neighbours are close to each other in
    memory. Those of its own cells are first, and of them those of the border; the others follow rank by rank.

    Args:
        partition: at present.
        halo: of this rank.
        rank: this one.
        ranks: number of ranks.
        most: keys up to which cells have as many as is usual; there are less than MOST_KEYS in any case.
        nearby: whether the cells beside its own ones alone have places, and all farther ones one together:
            enough for particles that migrate at the end of a period.

    Attributes:
        table: (cells,) int32 place of each cell.
        parts: of a cell, along each axis.
        bins: number of all sort keys.
        own, border: number of those of the own cells, and of the border cells.
        first: (ranks + 1,) first key of those of each rank.
        runs: peer -> (2, runs) first keys of runs of border cells that follow each other, and last ones, each
            one more; of these the peer has the particles as ghosts.

    Raises:
        ValueError: more keys than can be numbered.
    """

    def __init__(
        self,
        partition: Partition,
        halo: Halo,
        rank: int,
        ranks: int,
        most: int = MOST_KEYS,
        nearby: bool = False,
    ):
        grid, owner = partition.grid, partition.owner
        backend, dim = grid.backend, grid.box.dim
        widest = max(length / cells for length, cells in zip(grid.box.lengths, grid.shape, strict=True))
        self.parts, most = max(2, math.ceil(widest / PART)), min(most, MOST_KEYS - 1)
        while self.parts > 1 and self.parts**dim * grid.size > most:
            self.parts -= 1
        keys = self.parts**dim  # of a cell
        is_other = owner != rank
        if nearby:
            is_other &= around(owner == rank, partition.grid.shape, partition.grid.box.periodic)
        others = np.flatnonzero(is_other)
        others = others[np.argsort(owner[others], kind="stable")]
        own = int((owner == rank).sum())
        table, cells = halo.table.copy(), own + len(others) + nearby
        table[owner != rank] = cells - 1
        table[others] = own + np.arange(len(others), dtype=np.int32)
        if keys * cells >= MOST_KEYS:
            raise ValueError(
                f"{cells} cells of a divided box on a device; allowed: less than {MOST_KEYS // keys}; take "
                "a longer travel of md.Division"
            )
        self.table = backend.upload(table)
        self.bins, self.own, self.border = keys * cells, keys * own, keys * halo.borders
        self.first = keys * (own + np.searchsorted(owner[others], np.arange(ranks + 1))).astype(np.int32)
        self.runs = {}
        for peer in halo.peers:
            places = halo.places(peer)
            ends = np.flatnonzero(np.diff(places) != 1) + 1
            self.runs[peer] = keys * np.array([places[[0, *ends]], places[[*(ends - 1), -1]] + 1], np.int32)

    def usual(self, n: int) -> tuple[int, dict[int, int]]:
        """Return the numbers of particles of the border, and of those that each peer has as ghosts.

        Args:
            n: owned particles, spread evenly over the own cells.
        """
        each = n / max(1, self.own)  # of a key
        sent = {rank: math.ceil(each * int(np.diff(run, axis=0).sum())) for rank, run in self.runs.items()}
        return math.ceil(each * self.border), sent

    @property
    def constants(self) -> Mapping[str, int]:
        """Constants of kernels that find sort keys."""
        return {"PARTS": self.parts}


class Migration:
    """Migrations of a rank until its rows are laid out again.

    Args:
        communicator: of the ranks.
        particles: of this one; their rows are laid out.
        peers: memory of the others.
        places: of the cells.
        layout: of the rows.
        grid: record of the cells of the partition.
        start: int32 row of the first particle of each sort key of the own cells, at present.
    """

    def __init__(
        self, communicator: Communicator, particles: RankArrays, peers: Peers, places: Places, layout: Layout,
        grid: np.ndarray, start: Array,
    ):  # fmt: skip
        self._particles, self._peers, self._places, self._grid = particles, peers, places, grid
        self._backend = backend = particles.backend
        self._me, self._size, ranks = communicator.rank, communicator.size, list(places.runs)
        self._borders, rows = int(layout.borders[self._me]), particles.n
        self._rows = backend.empty(int(layout.ghosts[self._me, ranks].sum()), np.int32)
        self._place = backend.empty(len(ranks) * self._borders, np.int32)
        self._inbox = peers.connect(layout, ranks, self._rows, self._place)
        self._leaving, every = int(layout.leaving[self._me, ranks].sum()), rows + len(self._inbox.records.ids)
        runs = np.concatenate([np.empty((2, 0), np.int32), *(places.runs[rank] for rank in ranks)], axis=1)
        ends = np.cumsum([places.runs[rank].shape[1] for rank in ranks]).astype(np.int32)
        firsts, lasts = backend.upload(runs)
        self._runs = backend.upload(ends), firsts, lasts
        firsts_of = places.first - places.own
        self._keys_of = tuple(backend.upload(firsts_of[np.array(ranks, int) + k]) for k in (0, 1))
        self._keys, self._order = backend.empty(every, np.int32), backend.empty(every, np.int32)
        self._leavers = backend.empty(self._borders, np.int32)
        # Rows of each of the two sorts, and bins of cells.
        self._sorts = [(self._borders, places.bins - places.own), (every, places.own)]
        bins = [some + bins_of_absent(m) for m, some in self._sorts]
        self._start = backend.empty(max(bins) + 1, np.int32)
        self._scratch = [backend.sort_scratch(m, b) for (m, _), b in zip(self._sorts, bins, strict=True)]
        self._list_border(start)

    def launch(self) -> None:
        """Let particles migrate, and list the border again, by launches alone."""
        p, places, peers, inbox, backend = (
            self._particles, self._places, self._peers, self._inbox, self._backend
        )  # fmt: skip
        rows, every, records = p.n, len(self._keys), inbox.records
        kernels = backend.kernels(__name__, constants={**p.constants, **places.constants})
        now, leave = (p.pos, p.velocities, p.id, p.radius), places.bins - places.own
        found = places.own, leave, self._keys, self._leavers, p.words
        kernels.leave_keys(rows, p.pos, self._borders, places.table, self._grid, *found)
        start = self._sort(0, self._leavers)
        leaving = len(peers.ranks), inbox.sent_ends, *self._keys_of, leave, start, self._order
        there = COUNTS + self._me, inbox.numbers_of, inbox.ids_of, inbox.words_of
        kernels.send_records(self._leaving, *leaving, *now, *there, p.words)
        peers.synchronise()
        came = inbox.ends, peers.ranks, p.pos, records.numbers, int(p.has_radii)
        kernels.arrive_keys(every, rows, *came, places.table, self._grid, places.own, self._keys, p.words)
        start = self._sort(1, self._keys)
        taken = rows, self._order, start[places.own :]
        kernels.take_rows(rows, *taken, *now, *records, *p.others, p.words)
        p.exchange_roles()
        self._list_border(start)

    def _sort(self, turn: int, keys: Array) -> Array:
        """Sort keys, and return the first place of each."""
        rows, bins = self._sorts[turn]
        start = self._start[: bins + bins_of_absent(rows) + 1]
        self._backend.sort(keys, start, self._order[:rows], self._scratch[turn], stable_bins=bins)
        return start

    def _list_border(self, start: Array) -> None:
        """List the border rows for the peers, and store their radii and number there.

        Args:
            start: first row of each sort key of the own cells.
        """
        p, peers, inbox = self._particles, self._peers, self._inbox
        if not len(self._rows):
            return
        self._backend.fill(self._place, -1)
        ends, shift = peers.sent
        there = shift, COUNTS + self._size + self._me, inbox.radii_of[p.radii_turn], inbox.words_of
        given = ends, *self._runs, start, self._borders, p.pos, p.radius, *there
        kernels = self._backend.kernels(__name__, constants=p.constants)
        kernels.list_border(len(self._rows), *given, self._rows, self._place, p.words)


class RowKeys:
    """Sort keys of rows that are laid out, for the lists of a search.

    Args:
        particles: of a rank.
        peers: of it.
        ranks: number of ranks.

    Attributes:
        borders: rows of border particles, which alone have ghosts nearby.
    """

    def __init__(self, particles: RankArrays, peers: Peers, ranks: int):
        self._particles, self._peers, self._ranks = particles, peers, ranks
        self.borders = peers.borders

    @property
    def more(self) -> int:
        """Keys behind those of the cells, of rows without a particle."""
        return bins_of_absent(self._particles.rows)

    def find(self, pos: Array, table: Array, grid: np.ndarray, cells: int, keys: Array) -> None:
        """Find the sort key of each row: the number of its cell, or the entry of a table for it.

        Args:
            pos: (rows, dim) positions.
            table: (cells,) int32, or (0,).
            grid: record of the cells.
            cells: number of cells.
            keys: (rows,) int32, filled.
        """
        p = self._particles
        given = p.n, self._ranks, p.words, self._peers.ranks, self._peers.ghost_ends, pos, table, grid, cells
        p.backend.kernels(__name__).keys_of_rows(len(keys), *given, keys)
