"""Neighbour lists that outlive the step: whoever is within cutoff + skin of a particle is in its list.

A list holds as long as no particle has moved by more than half the skin since it was made. Then the particles
are sorted by cell, so that partners lie close together in memory, and the lists are made anew. Verlet, Phys.
Rev. 159 (1967) 98.
"""

from __future__ import annotations

import copy
import math
from typing import Literal

import numba
import numpy as np

from md import checks
from md.backend import Backend
from md.backend.base import Array
from md.backend.prelude import (
    axis_neighbours,
    displacement,
    dot,
    finish,
    home_cell,
    is_interior,
    load,
    neighbour_rows,
    separation,
    store,
    sub,
)
from md.errors import ListOverflow
from md.laws.pair import initial, interact, result
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.particles.cell_sort import CellSort
from md.search.base import Search, StepPlan
from md.search.displacement_guard import DisplacementGuard
from md.search.skin import Skin, checked
from sfc import Curve
from sfc.compile import kernel

ROOM = 24  # partners of a particle that there is room for at first: of many millions one has more than 16
MARGIN = 0.95  # of how far a particle may go, planned for
RECALL = 0.98  # of the longest stride of the fastest so far, for the next may be as fast
LONGEST = 10_000  # steps that are planned for
MOST_ROOM = 2**31 - 1  # places are int32 on the CPU
WIDTH = 8  # numbers written at once
at = np.uint64  # an index without a sign: for one with a sign Numba asks each time whether it is negative


class Verlet(Search):
    """Neighbour lists with a skin, made anew only when a particle has moved too far for them.

    Args:
        cell_order: order of the cells in memory: a name of `sfc.orderings(dim)` or a curve.
        skin: in d, 0 or more; 0 makes the lists anew at every step. "auto" for one that is tuned while the
            run goes on, by the times of its steps: then runs do not repeat bit for bit. None for 0.3, or less
            in a periodic box too narrow for that.

    Attributes:
        builds: how often the lists were made.

    Raises:
        TypeError: an order that is neither a name nor a curve, or a skin that is no number.
        ValueError: a skin that is negative or not finite, or (when bound) too wide for the box.
    """

    name = "verlet"
    sorts_data = True
    records = False  # build waits; fused steps have a pace instead

    def __init__(self, cell_order: str | Curve = "row", skin: float | Literal["auto"] | None = None):
        self.cell_order = checks.order_of_cells("cell_order of Verlet", cell_order)
        self.skin, self.builds = checked(skin), 0

    def bind(self, particles: ParticleArrays, grid: CellGrid, backend: Backend) -> Verlet:
        """A copy that works on these particles, in cells as wide as cutoff and skin."""
        bound = copy.copy(self)
        bound._skin, bound._cutoff = Skin(self.skin, grid), grid.cutoff
        status = backend.zeros(4, np.uint64)  # stays when the skin changes: the host may not have looked yet
        bound._status, bound._fastest, bound._travelled = status, status[:2], status[2:3].view(np.float32)
        bound._halted_steps = status[3:].view(np.int32)[:1]
        return Search.bind(bound, particles, bound._cells(grid, backend), backend)

    def _cells(self, grid: CellGrid, backend: Backend) -> CellGrid:
        return CellGrid(grid.box, self._cutoff + self._skin.width, grid.precision, backend)

    def _allocate(self) -> None:
        backend, n = self.backend, self.particles.n
        self._sort = CellSort(self.cell_order, n, self.grid, backend)
        self._reference_pos = backend.rows(n, self.grid.box.dim, self.grid.precision)
        listed = 0 if backend.runs_ahead else n
        self._first, self._count = backend.empty(listed, np.int32), backend.empty(listed, np.int32)
        self._partners = backend.empty(min(ROOM * n, MOST_ROOM), np.int32)
        self._needed, self._farthest = backend.zeros(1, np.int64), backend.zeros(1, np.float64)
        self._begin()

    def _begin(self) -> None:
        self._window, self._since, self._stride = 8, 0, 0.0
        self._listed = self._whole = False  # whether there are lists, and whether they had room

    def forget(self) -> None:
        """Nor how many steps were planned, how fast who was, and how much room the lists took."""
        room = min(ROOM * self.particles.n, MOST_ROOM)
        if len(self._partners) != room:
            self._partners = self.backend.empty(room, np.int32)
        self.backend.fill(self._status, 0)
        self._begin()

    def build(self) -> None:
        """List the partners of each particle if one has moved too far; the host waits for the answer."""
        if self._whole and not self._expired():
            return
        self._whole = False
        if self._skin.proposed is not None:
            self._skin.change()
            self.grid = self._cells(self.grid, self.backend)
            self._allocate()
        self._sort.apply(self.particles)
        self._enlist()
        while self._make_room():
            self._enlist()
        self.builds, self._since, self._listed, self._whole = self.builds + 1, 0, True, True

    def plan(self) -> StepPlan:
        """On a device as many steps as the fastest has allowed so far; on the CPU `rebuild` asks at each."""
        if not self.backend.runs_ahead:
            return super().plan()
        if not self._listed or (self._since >= self._window and self._skin.proposed is not None):
            self._whole = False  # so that they are made
            self.build()
        build = self._since >= self._window
        return StepPlan(self._window - (0 if build else self._since), build, rebuild=False)

    def rebuild(self) -> None:
        """Make the lists; on a device without asking whether they had room, for then the step halts."""
        if self.backend.runs_ahead:
            self._sort.apply(self.particles)
            self._enlist()
        else:
            self.build()

    @property
    def pace(self) -> DisplacementGuard:
        """On a device the search's own."""
        if not self.backend.runs_ahead:
            return super().pace
        limit, rounding = np.float32(self._skin.limit), np.float32(self._skin.step_rounding)
        return DisplacementGuard(self._fastest, self._travelled, self._halted_steps, limit, rounding)

    @property
    def replaced(self) -> tuple[Array, ...]:
        """The partners, when they need more room."""
        return (self._partners,)

    def steps_taken(self, plan: StepPlan) -> None:
        """The lists have grown older."""
        if self.backend.runs_ahead:
            self.builds += plan.build
            self._whole |= plan.build
            self._since = plan.steps + (0 if plan.build else self._since)

    @property
    def status(self) -> Array:
        """On a device the search's own."""
        return self._status if self.backend.runs_ahead else super().status

    def process(self, status: np.ndarray, dt: float) -> int:
        """Plans as many steps as the fastest particle allows."""
        if not status[:2].any():  # no fused step was taken
            return 0
        halted = int(status[3:].view(np.int32)[0])
        speed2 = np.uint32(int(status[:2].max()) & 0xFFFFFFFF).view(np.float32)
        self._stride = max(dt * math.sqrt(speed2), RECALL * self._stride)
        longest = min(2 * self._window, LONGEST)
        stride = self._stride + self._skin.step_rounding
        if self._skin.limit < longest * stride:
            longest = min(longest, 1 + int(max(0.0, MARGIN * self._skin.limit / stride)))
        self._window = max(1, min(longest, self._window - 1) if halted else longest)
        if int(status[:2].max()) >> 63:  # their counter is half way to its end; before a build they may be 0
            self.backend.fill(self._fastest, 0)
            self._since = LONGEST
        return halted

    @property
    def tunes(self) -> bool:
        """Whether the skin does."""
        return self._skin.tunes

    def timed(self, ms: float, steps: int) -> None:
        """For the skin."""
        self._skin.timed(ms, steps)

    def resume(self) -> None:
        """The lists are made anew before the next step, with room if it was for want of that."""
        self._whole = not self._make_room()
        self.backend.fill(self._halted_steps, 0)
        self._since = LONGEST  # however the plan may change

    def _make_room(self) -> bool:
        """Take more room if the lists were cut short; whether they were."""
        needed = int(self.backend.download(self._needed)[0])
        if needed <= len(self._partners):
            return False
        room = needed + needed // 4
        room += -room % (4 * max(1, self.particles.n))  # on a device lists stand side by side in fours
        most = min(MOST_ROOM, self.backend.free_memory() // self._partners.itemsize + len(self._partners))
        if room > most:
            crowd = int(np.diff(self.backend.download(self._sort.start)).argmax())
            slot = int(self.backend.download(self._sort.start)[crowd])
            raise ListOverflow(int(self.backend.download(self.particles.id)[slot]), room, most)
        self._partners = self.backend.empty(room, np.int32)
        return True

    def _enlist(self) -> None:
        """List the partners of each particle; `_make_room` says whether there was room."""
        backend, p, g = self.backend, self.particles, self.grid
        reach2 = g.precision.type(g.cutoff + self._skin.rounding) ** 2
        rank = self._sort.table if backend.runs_ahead else self._sort.rank
        backend.fill(self._needed, 0)
        backend.fill(self._travelled, -1)
        backend.kernels(__name__).build_lists(
            p.n, p.pos, self._sort.start, rank, g.record, reach2, self._reference_pos,
            self._first, self._count, self._partners, len(self._partners), self._needed, self._travelled,
            4 * backend.workers,
        )  # fmt: skip

    def _expired(self) -> bool:
        """Whether two particles that are in no list of each other may touch now."""
        backend, p, g = self.backend, self.particles, self.grid
        backend.fill(self._farthest, 0)
        backend.kernels(__name__).farthest(p.n, p.pos, self._reference_pos, g.record, self._farthest)
        return not np.sqrt(backend.download(self._farthest)[0]) < self._skin.limit

    def _structure(self):
        return self._first, self._count, self._partners


@kernel(parallel=True)
def farthest(n, pos, reference_pos, grid, most):
    """most[0] = square of the farthest that a particle is from its reference_pos."""
    found = 0.0
    for i in numba.prange(n):
        g = grid[0]
        dr = displacement(g, load(pos, i, g), load(reference_pos, i, g))
        found = max(found, float(dot(dr, dr)))
    most[0] = found


@kernel(parallel=True)
def build_lists(
    n, pos, start, rank, grid, reach2, reference_pos, first, count, partners, room, needed, travelled, parts
):
    """List the partners of each particle within a distance, and drop reference_pos.

    The partners of particle i stand in `partners` from first[i] on (on a device otherwise, and `first` and
    `count` are empty: see verlet.cu). Each part lists a stretch of the particles. needed[0] is the room that
    all lists need; with less some are cut short, and on a device `travelled` is infinite, which halts the steps.
    """
    lengths = np.zeros(parts, np.int64)
    for p in numba.prange(parts):
        g = grid[0]
        begin, last = p * room // parts, (p + 1) * room // parts - 1
        here = begin
        near = np.empty(n + WIDTH, np.uint32)  # who stands in the cells around a particle
        for i in range(p * n // parts, (p + 1) * n // parts):
            ri = load(pos, i, g)
            store(reference_pos, i, ri)
            first[i] = here
            home = home_cell(g, ri)
            beside = axis_neighbours(g, 0, home[0])
            around = 0
            for row in neighbour_rows(g, home):
                if row < 0:
                    continue
                joined = (
                    min(beside[0], beside[2]) >= 0
                    and rank[at(row + beside[1])] == rank[at(row + beside[0])] + 1
                    and rank[at(row + beside[2])] == rank[at(row + beside[0])] + 2
                )  # the three cells are one stretch of memory
                for k in range(1 if joined else 3):
                    if beside[k] < 0:
                        continue
                    cell = rank[at(row + beside[k])]
                    j = start[at(cell)]
                    length = start[at(cell + (3 if joined else 1))] - j
                    for b in range(WIDTH):  # most stretches are shorter: what is over is overwritten
                        near[at(around + b)] = j + b
                    for b in range(WIDTH, length):
                        near[at(around + b)] = j + b
                    around += length
            # Who is within reach is a coin toss, so no branch: what is not is overwritten by the next.
            if is_interior(g, home):
                for k in range(around):
                    j = near[at(k)]
                    dr = sub(ri, load(pos, at(j), g))
                    partners[at(min(here, last))] = j
                    here += (dot(dr, dr) < reach2) & (j != i)
            else:
                for k in range(around):
                    j = near[at(k)]
                    dr = displacement(g, ri, load(pos, at(j), g))
                    partners[at(min(here, last))] = j
                    here += (dot(dr, dr) < reach2) & (j != i)
            count[i] = here - first[i]
        lengths[p] = here - begin
    needed[0] = parts * (lengths.max() + 1)


@kernel(parallel=True)
def force(n, pos, vel, first, count, partners, grid, law, out):
    """out[i] = the law folded over the list of each particle."""
    for i in numba.prange(n):
        g = grid[0]
        ri = load(pos, i, g)
        vi = load(vel, i, g)
        acc = initial(law, ri)
        interior = is_interior(g, home_cell(g, ri))
        for a in range(first[i], first[i] + count[i]):
            j = partners[a]
            dr = separation(g, interior, ri, load(pos, j, g))
            acc = interact(law, vel, i, j, dot(dr, dr), dr, vi, acc)
        finish(out, g, i, ri, vi, result(law, ri, vi, acc))
