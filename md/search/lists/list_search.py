"""Neighbour lists that are used for several steps, with all partners within cutoff + skin of a particle.

A list is complete as long as no particle has moved by more than half the skin since the build. Then the
particles are sorted in memory, so that partners are close to each other, and a lister (`lister`) makes the
lists again. Fused steps of a device sort them at few builds only: there lists need no order in memory.
Verlet, Phys. Rev. 159 (1967) 98.

Fused steps read shorter lists, of the partners within cutoff + inner skin. Before any particle may have moved
by more than half the inner skin, a step reads the others and takes the next ones from them (pruning): so
lists can be built rarely and be short. Páll and others, J. Chem. Phys. 153 (2020) 134110.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numba
import numpy as np

from md import checks
from md.backend import OnDevice
from md.backend.base import Array
from md.backend.prelude import displacement, dot, load
from md.errors import ListOverflow
from md.laws import PairLaw
from md.laws.pair import kernel_law
from md.laws.polydisperse import scaled_to_radii
from md.particles.capabilities import SearchCapabilities
from md.particles.cell_grid import CellGrid
from md.particles.state import sphere_volume
from md.particles.system import System
from md.search.base import FusedOutput, Search, SearchConfig
from md.search.lists.blocks import BLOCK, BlockLists, Bound, force_of_blocks, steps_of_blocks
from md.search.lists.displacement_bound import DisplacementBound
from md.search.lists.lister import Lister, Lists
from md.search.lists.pruned_lists import ENTRIES, MOST_ROWS, ROW_BYTES, PrunedLists
from md.search.lists.skin import Skin
from md.search.lists.step_costs import FEW
from md.search.partners import CollectPartners
from sfc import Curve
from sfc.compile import kernel

ROOM = 20  # initial room of a list on the CPU, in partners, at most: one list of millions has more than 16
FEW_PARTNERS = 2**18  # partners in all for which the CPU has room at first, however long lists usually are
ROUNDING = 1e-5  # of a distance relative to the cutoff, at most
FEW_BLOCKS = 128  # blocks of a thread on the CPU: so few are one share, because each share costs time too
MOST_PARTICLE_STEPS, MOST_STEPS = 2**20, 256  # in a call: steps times particles on the CPU, and steps
DENSER = 1.2  # partners of a particle over those in an ideal gas, for the rows of lists on a device
MANY = 2**26  # particles of which, on a device, many have partners that are far in memory
# Most entries of a list that a thread of a device keeps in shared memory. Few particles leave more room, and
# need it: their skin is wide, and one crowded list takes as long as all others.
KEPT, KEPT_OF_FEW = 28, 44

force = OnDevice(threads=128, registers=(40, 72), of_boids=(40, 78))  # of packed rows


class ListConfig(SearchConfig):
    """Base of the configurations of neighbour lists with a skin; those differ in how partners are found.

    Attributes:
        cell_order: order in memory; None for the usual one.
        skin: in d; None for the fastest, "auto" to tune it.
        inner_skin: of pruned lists, in d; None for the fastest.

    Raises:
        TypeError: an order that is neither a name nor a curve, or a skin that is no number.
        ValueError: a skin that is negative or not finite, or an inner skin wider than the skin.
    """

    # A build waits; fused steps have a guard.
    capabilities = SearchCapabilities(fusable=True, moves_particles=True, packs=True)
    cell_order: str | Curve | None
    skin: float | Literal["auto"] | None
    inner_skin: float | None

    def __post_init__(self):
        if self.cell_order is not None:
            self._check("cell_order", checks.order_of_cells)
        if self.skin is not None:
            remedy = "None for a width that suits the box; 'auto' to tune it during the run"
            self._check("skin", checks.number_or_word, ("auto",), 0, unit="d", remedy=remedy)
        if self.inner_skin is None:
            return
        self._check("inner_skin", checks.number, 0, unit="d")
        if isinstance(self.skin, (int, float)) and self.inner_skin > self.skin:
            raise ValueError(
                f"inner_skin of {type(self).__name__} = {self.inner_skin} beside skin = {self.skin}; "
                f"allowed: 0 .. {self.skin}, as lists are pruned to it; take a wider skin, or inner_skin=None"
            )

    def build(self, system: System) -> ListSearch:
        """Make the search for a system.

        Raises:
            ValueError: a skin too wide for the box, an order that does not suit, or more cells than can be
                numbered.
        """
        return ListSearch(self, system)

    @abstractmethod
    def lister(self, system: System) -> Lister:
        """Make the lister of a system, which finds the partners."""


def most_room(rows: int, n: int) -> int:
    """Return the largest pool of lists of n particles with rows, by the numbers in its kernels."""
    return max(0, MOST_ROWS - rows * n)


def usual_length(n: int, density: float, reach: float, dim: int) -> float:
    """Return the mean number of partners for which lists have room.

    Args:
        n: number of particles.
        density: of these, in 1 / d^dim.
        reach: distance of the partners, in d.
        dim: 2 or 3.
    """
    return min(DENSER * density * sphere_volume(dim) * (2 * reach) ** dim, n)


def usual_rows(mean: float) -> int:
    """Return the rows of a list of a device, for a mean number of partners; longer lists go on in a pool."""
    return max(1, round((mean + 1.5 * math.sqrt(mean)) / ENTRIES))


class ListSearch(Search):
    """Search with neighbour lists over the particles of a system.

    Attributes:
        skin: `Skin`, the width of the skin and its tuning.
    """

    config: ListConfig
    policy: DisplacementBound

    def __init__(self, config: ListConfig, system: System):
        self._cutoff, self._lister = system.grid.cutoff, config.lister(system)
        self.skin = Skin(config.skin, system.grid, system.n_usual, config.inner_skin)
        if system.domain is not None and system.backend.runs_ahead:
            self.skin.limit_to(2 * system.domain.allowed)
        policy = DisplacementBound(system, self.skin, self._largest_displacement, self._grow)
        super().__init__(config, system, self._cells(system.grid), policy)
        self._needed, self._farthest = self.backend.zeros(1, np.int64), self.backend.zeros(1, np.float64)
        self._pruned = PrunedLists(self.particles.n, self.backend)
        self._is_fused: bool | None = None  # before `prepare`
        self._last_stride: float | None = None

    def prepare(self, fused: bool) -> None:
        """Choose the widths of the skin that were not given, and allocate the sort.

        The first build allocates the lists.

        Raises:
            ValueError: not enough memory, or more cells or partners than can be numbered.
        """
        super().prepare(fused)
        self._is_fused = fused
        stride = self._stride_of(self.system)
        self._choose_skin(stride)
        self._allocate(lists=False)
        self.policy.start_at(stride)

    def _choose_skin(self, stride: float) -> None:
        """Choose the width of the skin for the present density and the longest move of a step, in d."""
        # Pruned lists are for one distance: they would keep most partners of small particles.
        can_prune = (self.policy.is_guarded or self.policy.is_bounded) and not self._lister.is_by_radius
        self._density, self._usual_cutoff = self._lister.usual()
        self.skin.describe(self._density, self._usual_cutoff)
        self.skin.choose(stride, prunes=can_prune)
        self.policy.set_limit()

    def _stride_of(self, system: System) -> float:
        """Return the largest displacement of all ranks in a step, in d; waits for the device."""
        return system.dt * math.sqrt(system.largest(system.particles.fastest2()))

    def _cells(self, grid: CellGrid) -> CellGrid:
        """Return a grid with cells as wide as the cutoff and the skin, or wider."""
        return CellGrid(grid.box, self._cutoff + self.skin.width, grid.precision, grid.backend)

    def _allocate(self, lists: bool = True) -> None:
        """Allocate the sort and the lists for the present skin; the earlier ones are freed before.

        Args:
            lists: False to leave them to the next build, and only check that there is memory.

        Raises:
            ValueError: not enough memory, or more cells or partners than can be numbered.
        """
        backend, n, grid = self.backend, self.particles.n, self._cells(self.grid)
        self._free_lists()
        self._pruned.free()
        self.grid = grid
        self._lister.allocate(grid)
        self._reference_pos = backend.empty((0, grid.box.dim), grid.precision)
        self._rows = self._usual_rows(grid.cutoff)
        room = self._usual_room()
        if backend.runs_ahead:
            needed = ROW_BYTES * (self._rows * n + room) + self.particles.packing_bytes
            if self.policy.prunes:
                needed += self._pruned.bytes_for(self._usual_length(self._inner_reach))
            what = f"neighbour lists of {n} particles and their packed rows"
            checks.require_bytes(
                what, needed, backend.free_memory(), "take fewer particles, or a smaller skin"
            )
        if lists:
            self._allocate_lists(room)

    def _usual_rows(self, reach: float) -> int:
        """Return the rows of a list on a device, enough for most; longer lists go on in a pool."""
        return usual_rows(self._usual_length(reach))

    @property
    def _inner_reach(self) -> float:
        """Distance of partners that pruned lists hold, in d, without the rounding."""
        return self._cutoff + self.skin.inner

    def _usual_length(self, reach: float) -> float:
        """Return the mean number of partners within a distance."""
        reach = reach - self._cutoff + self._usual_cutoff
        return usual_length(self.particles.n, self._density, reach, self.grid.box.dim)

    def _column(self, reach: float) -> int:
        """Return the entries kept in shared memory while a list of the partners within reach is made.

        They are enough for nearly all lists.
        """
        mean = 1 + self._usual_length(reach)  # with itself
        most = KEPT_OF_FEW if self.particles.n < FEW else KEPT
        return min(most, 4 * math.ceil((mean + 3 * math.sqrt(mean)) / 4))

    def _usual_room(self) -> int:
        """Return the initial room: of all lists in partners on the CPU, of the pool in rows on a device."""
        n = self.particles.n
        if self.backend.runs_ahead:
            return n // (8 if n < MANY else 2) + 1
        return min(ROOM * n, max(FEW_PARTNERS, math.ceil(n * self._usual_length(self.grid.cutoff))))

    def _free_lists(self) -> None:
        """Free the lists; the next build allocates them."""
        self.policy.lists_freed()
        self._room = -1
        self._partners = self._first = self._count = self.backend.empty(0, np.int32)
        self._owners = self.backend.empty(0, np.uint8)
        self._pruned_blocks: tuple[Array, ...] = ()
        self.generation += 1

    def _allocate_lists(self, room: int) -> None:
        """Allocate lists with this room instead of the present ones; they are freed before.

        Raises:
            ValueError: more rows on a device than can be numbered.
            MemoryError: not enough memory.
        """
        backend, n = self.backend, self.particles.n
        self._free_lists()
        backend.release()
        entries, listed = room, -(-n // BLOCK)
        if backend.runs_ahead:
            entries, listed = self._rows * n + room, 0
            most = most_room(self._rows, n)
            if room > most:
                raise ValueError(
                    f"neighbour lists of {n} particles on a device need {self._rows} rows and a pool of "
                    f"{room} rows; allowed: a pool of up to {most}; take a smaller skin, or "
                    "fewer particles"
                )
        partners = backend.empty(entries, np.uint64 if backend.runs_ahead else np.int32)
        owners = backend.empty(room if listed else 0, np.uint8)
        first, count = (backend.empty(listed, np.int64) for _ in range(2))
        if listed and self.policy.prunes:
            nearer = self._usual_length(self._inner_reach) / self._usual_length(self.grid.cutoff)
            self._allocate_pruned(max(n, math.ceil(nearer * room)))
        self._partners, self._owners, self._first, self._count = partners, owners, first, count
        self._room = room

    def _allocate_pruned(self, room: int) -> None:
        """Allocate pruned lists of the CPU with this room instead of the present ones.

        Raises:
            ValueError: not enough memory; the present ones are kept.
        """
        n, empty, free = self.particles.n, self.backend.empty, self.backend.free_memory()
        remedy = "take fewer particles, or a smaller inner_skin"
        checks.require_bytes(f"pruned neighbour lists of {n} particles", 5 * room, free, remedy)
        starts = (empty(-(-n // BLOCK), np.int64) for _ in range(2))
        self._pruned_blocks = *starts, empty(room, np.int32), empty(room, np.uint8)
        self._pruned_needed = 0

    def reset(self) -> None:
        """Return to the state after construction, with the room of the first lists.

        Widths of the skin that were not given are chosen again, by the present speeds.
        """
        if self._is_fused is None:
            return
        before, usual = (self.skin.width, self.skin.inner), self._usual_room()
        stride = self._stride_of(self.system)
        if not self.skin.tunes:
            self._choose_skin(stride)
        if before != (self.skin.width, self.skin.inner):
            has_room = True
            try:
                self._allocate(lists=False)
            except (ValueError, MemoryError):
                has_room = False
            if self.system.largest(not has_room):  # on all ranks: they have equal skins
                self.skin.width, self.skin.inner = before
                self.policy.set_limit()
                self._allocate(lists=False)
        elif self._room not in (-1, usual):
            self._allocate_lists(usual)
        super().reset()
        self.policy.start_at(stride)

    def build(self) -> None:
        """Sort the particles in memory and list the partners of each, as far as there is room.

        On a device steps with lists that overflowed are halted.
        """
        if self._is_fused is None:
            self.prepare(fused=False)
        # Captured steps of guarded runs hold the addresses of the arrays, which then stay what they are.
        moved = self._lister.sort(keep_roles=self.policy.is_guarded)
        if moved is not None:
            self.system.domain.rows_moved(moved)
        self._list_partners()

    def update(self, force: bool = False) -> None:
        """Build the lists, with a proposed skin if there is one, if a particle has moved too far; waits.

        Args:
            force: build wherever the particles are.
        """
        if not (force or self.policy.is_due):
            return
        self.policy.begin_build()
        if self.skin.proposed is not None:
            self._change_skin()
        with self._all_ghosts():
            self.build()
            while self._grow():
                self._list_partners()
        self.policy.built()

    def _change_skin(self) -> None:
        """Allocate lists for the proposed skin; or for the present one again, if that has no room."""
        width = self.skin.width
        self.skin.change()
        try:
            self._allocate()
        except (ValueError, MemoryError):
            self.skin.refuse(width)
            self._allocate()
        self.policy.restart()
        self.policy.set_limit()

    def rebuild(self, moves: bool = True) -> None:
        """Build for a step plan: on a device without waiting, on the CPU if a particle has moved too far.

        Args:
            moves: whether a device sorts the particles in memory too.
        """
        if not self.backend.runs_ahead:
            self.update()
        else:
            with self._all_ghosts():
                self.build() if moves else self._list_partners()

    @contextmanager
    def _all_ghosts(self) -> Iterator[None]:
        """Update all ghosts before a build in the block, and afterwards mark those that the lists name."""
        domain = self.system.domain
        peers = domain.peers if domain is not None and self.backend.runs_ahead else None
        if peers is None or not peers.is_connected:
            yield
            return
        peers.store_all()
        yield
        p, named = self.particles, peers.named
        self.backend.fill(named, 0)
        kernels = self.backend.kernels(__name__)
        borders = peers.borders, p.n, peers.live
        kernels.mark_ghosts(*borders, p.pos, self._partners, self.grid.record, named)
        peers.store_marks()

    def _grow(self) -> bool:
        """Make more room if the lists overflowed, and return whether they did; waits for the device."""
        needed = int(self.backend.download(self._needed)[0])
        if needed <= self._room:
            return False
        room, most = needed + needed // 4, self._most_room()
        if room > most:
            each = ENTRIES if self.backend.runs_ahead else 1  # partners
            slot = self._lister.crowded_slot()
            particle = int(self.backend.download(self.particles.id)[slot])
            raise ListOverflow(particle, each * room, each * most)
        self._allocate_lists(room)
        return True

    def _most_room(self) -> int:
        """Return the largest room for which there are memory and numbers, if the present lists are freed."""
        bytes_each = ROW_BYTES if self.backend.runs_ahead else 10 if self.policy.prunes else 5
        most = self.backend.free_memory() // bytes_each + max(self._room, 0)
        return min(most, most_room(self._rows, self.particles.n)) if self.backend.runs_ahead else most

    def _list_partners(self) -> None:
        """Fill the lists; `_grow` then returns whether they overflowed."""
        backend, p, g = self.backend, self.particles, self.grid
        if self._room < 0:  # the first build, or an earlier allocation has failed
            self._allocate_lists(self._usual_room())
        if backend.runs_ahead and self.policy.prunes and not self._pruned.rows:
            self._pruned.allocate(self._usual_length(self._inner_reach))
        backend.fill(self._needed, 0)
        backend.fill(self.policy.travelled, -1)
        if not (self.policy.is_guarded or len(self._reference_pos)):
            self._reference_pos = backend.rows(p.rows, g.box.dim, g.precision)
        lists = Lists(
            self._first, self._count, self._partners, self._owners, self._rows, self._room, self._needed,
            self.policy.travelled,
        )  # fmt: skip
        # Pruning tests the positions: a few partners too many cost less than a test at each build.
        is_exact = not self.policy.prunes
        self._lister.list(self.skin.rounding, self._reference_pos, lists, self._column, is_exact)

    def _largest_displacement(self) -> float:
        """Return the largest displacement of a particle since the build, in d; waits for the device."""
        backend, p, g = self.backend, self.particles, self.grid
        backend.fill(self._farthest, 0)
        backend.kernels(__name__).farthest(p.rows, p.pos, self._reference_pos, g.record, self._farthest)
        return float(np.sqrt(backend.download(self._farthest)[0]))

    def pairs(self, cutoff: float) -> np.ndarray:
        """Return the ids of the pairs with centres closer than a cutoff: (p, 2) int32, i < j, sorted.

        Lists of a reach from contact do not have all of them: then another search finds them, which moves no
        particles.
        """
        finder = self._lister.pair_finder(self.system)
        return super().pairs(cutoff) if finder is None else finder.pairs(cutoff)

    def structure(self) -> tuple[Array]:
        """Return the lists."""
        return (self._partners,)

    def _fold(self, law: Any, parameters: Any, out: Any) -> None:
        """Fold a law over the lists: fused, in blocks on the CPU, or as any other search."""
        is_fused = isinstance(out, FusedOutput)
        if self.backend.runs_ahead:
            if is_fused and self.policy.prunes:
                self._take_pruned_steps(law, parameters, out)
            else:
                super()._fold(law, parameters, out)
        elif is_fused:
            self._take_steps(parameters, (out, out), int(out.clock[out.turn]), 1)
        else:
            p, lists = self.particles, self._block_lists
            if isinstance(law, CollectPartners):  # it takes partners beyond the cutoff
                lists = lists._replace(within2=self.grid.precision.type(np.inf))
            force_of_blocks(p.n, p.pos, p.vel, lists, self.grid.record, parameters, out)

    @property
    def most_steps(self) -> int:
        """Largest number of fused steps that `take_steps` takes at once; 1 for one by one."""
        if self.system.domain is not None:
            return 1
        if self.backend.runs_ahead:
            has_few = self._pruned.resident_threads(self.grid.precision.itemsize)
            return MOST_STEPS if has_few and self.policy.prunes else 1
        few = MOST_PARTICLE_STEPS // max(1, self.particles.n)
        return max(1, min(few, MOST_STEPS)) if self.policy.is_bounded else 1

    def take_steps(self, law: PairLaw, outputs: Sequence[Any], step: int, most: int) -> int:
        """Take fused steps, on the CPU until the lists may be incomplete; see `Search.take_steps`."""
        law = scaled_to_radii(law, self._radius)
        parameters = kernel_law(law, self.grid.precision)
        if self.backend.runs_ahead:
            self._take_pruned_steps(law, parameters, outputs[0], most)
            return most
        return self._take_steps(parameters, outputs, step, most)

    @property
    def _block_lists(self) -> BlockLists:
        """Lists of the last build, for the kernels of the CPU that fold a law block by block."""
        real, workers = self.grid.precision.type, self.backend.workers
        reach = self._inner_reach + self.skin.rounding
        shares = 4 * workers if self.particles.n > FEW_BLOCKS * BLOCK * workers else workers
        numbers = real((self._cutoff * (1 + ROUNDING)) ** 2), real(reach**2), shares
        return BlockLists(self._first, self._count, self._partners, self._owners, *numbers)

    def _take_steps(self, parameters: Any, outputs: Sequence[Any], step: int, most: int) -> int:
        """Take up to `most` fused steps on the CPU while the lists are valid; return how many were taken."""
        p, lists, grid = self.particles, self._block_lists, self.grid.record
        pruned = lists
        if self.policy.prunes and p.n:  # without particles no lists were made
            if not self._pruned_blocks:  # there were no particles before
                self._allocate_pruned(p.n)
            if self._pruned_needed > len(self._pruned_blocks[2]):
                self._allocate_pruned(self._pruned_needed + self._pruned_needed // 4)
            pruned = BlockLists(*self._pruned_blocks, *lists[len(self._pruned_blocks) :])
        since_build, since_pruning, rounding = self.policy.travel()
        taken, *bounds, self._pruned_needed = steps_of_blocks(
            most, step, p.n, p.pos, p.vel, lists, pruned, Bound(*since_build), Bound(*since_pruning),
            rounding, grid, parameters, *outputs,
        )  # fmt: skip
        self._last_stride = bounds[0] - since_build[0]
        self.policy.moved_to(*bounds)
        return taken

    @property
    def last_stride(self) -> float | None:
        """Largest displacement of an owned particle in the last step, in d; None if it was not found."""
        return self._last_stride

    def named_ghosts(self) -> np.ndarray:
        """Return which ghosts the lists name, (ghosts,) uint8."""
        p, lists = self.particles, self._block_lists
        found = np.zeros(p.rows - p.n, np.uint8)
        _find_named(p.n, lists, found)
        return found

    def rows_changed(self) -> None:
        """Discard the lists: there are other rows. The next build fills the same room."""
        backend, self._last_stride = self.backend, None
        if backend.runs_ahead:
            self._lister.rows_changed()
            self._keep_lists()
            return
        listed = -(-self.particles.n // BLOCK)
        self._lister.rows_changed()
        self.policy.lists_freed()
        self._reference_pos = backend.empty((0, self.grid.box.dim), self.grid.precision)
        if not len(self._owners):  # there were no particles before
            self._free_lists()
        if self._room >= 0:
            self._first, self._count = (backend.empty(listed, np.int64) for _ in range(2))
        if self._pruned_blocks:
            starts = (backend.empty(listed, np.int64) for _ in range(2))
            self._pruned_blocks = *starts, *self._pruned_blocks[2:]
            self._pruned_needed = 0

    def _keep_lists(self) -> None:
        """Keep the memory of the lists of a device for other particles, if there is enough."""
        n = self.particles.n
        self._pruned.keep(n)
        room = len(self._partners) - self._rows * n
        if room < self._usual_room() // 2:
            self._free_lists()
            return
        self._room = room
        self.generation += 1
        self.policy.rows_changed()

    def _take_pruned_steps(self, law: Any, parameters: Any, out: Any, steps: int = 1) -> None:
        """Launch the kernel of fused steps on a device, over pruned lists."""
        p, reach = self.particles, self.grid.precision.type(self._inner_reach + self.skin.rounding)
        given = (p.pos, p.velocities), self._partners, reach**2, self.grid.record, parameters, out
        self._pruned.step(law, p.constants, *given, steps)


@kernel(parallel=True)
def farthest(n, pos, reference_pos, grid, most):
    """Store the square of the largest displacement of a particle from its reference_pos in most[0]."""
    found = 0.0
    for i in numba.prange(n):
        g = grid[0]
        dr = displacement(g, load(pos, i, g), load(reference_pos, i, g))
        found = max(found, float(dot(dr, dr)))
    most[0] = found


@kernel(parallel=True)
def _find_named(n, lists, found):
    """Set entry j - n of `found` to 1 for each partner j from n on."""
    for b in numba.prange(len(lists.first)):
        for entry in range(lists.first[b], lists.first[b] + lists.count[b]):
            if lists.partners[entry] >= n:
                found[lists.partners[entry] - n] = 1
