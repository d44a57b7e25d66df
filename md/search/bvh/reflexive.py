"""Tree search in which each leaf traverses the tree for the other leaves, in variants to be compared.

In [lift] every pair is visited once: the particle of the earlier leaf visits the other, and adds to the force
on both. Nodes to visit are kept on a stack, and the search works on a copy of the particles in the order of
the leaves. Sources: [lift], and part II of [karras2012blog].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numba
import numpy as np

from md import checks
from md.backend import OnDevice
from md.backend.base import Array
from md.laws import PairLaw
from md.laws.pair import is_reciprocal, kernel_law
from md.laws.polydisperse import scaled_to_radii
from md.particles.capabilities import SearchCapabilities
from md.particles.system import System
from md.search.bvh.base import BinaryTreeSearch, TreeConfig
from md.search.bvh.contact_list import ContactList
from md.search.bvh.pair_forces import gather_part, push_part, sum_parts
from md.search.sorted_copy import ScatterOutput, room_for_copy
from sfc import Curve
from sfc.compile import in_parts, kernel

CHOICES = {
    "stack": ("local", "shared", "none"),
    "met": ("once", "twice"),
    "atomics": ("plain", "aggregated", "none"),
    "data": ("sorted", "shadow", "unsorted"),
    "contacts": ("walked", "listed"),
}
MOST_ROOM = 2**31 - 1  # a device counts partners in int32
ROOM = 32  # capacity of a list, in partners of later leaves
NARROW = 64  # threads of a block of a device, with the stacks of all of them in shared memory


@dataclass(frozen=True)
class Reflexive(TreeConfig):
    """Configuration of the tree search of [lift] and its variants, on the tree of `Lbvh`.

    Pairs are visited once for reciprocal laws only (`md.laws.pair`): laws by which a partner gets the
    opposite of the force on the particle. For any other law each pair is visited from both sides.

    On the CPU, if pairs are visited once, each thread has its own array of sums, and these are added at the
    end. Another number of threads (`NUMBA_NUM_THREADS`) therefore gives other bits. A run repeats bit for
    bit, and resumes bit for bit from a checkpoint, only with the same number of threads.

    Args:
        cell_order: the curve of the leaves: a name of `sfc.curves(dim)` or a curve, of base 2.
        stack: where a traversal stores the nodes still to visit. "local": in an array of the thread.
            "shared": in shared memory of a device's block; on the CPU as "local". "none": nowhere, because
            ropes lead from each node to the next.
        met: "once": a pair is visited by the particle of the earlier leaf, which adds to the force on both; a
            subtree of earlier leaves only is not entered. "twice": from either particle, so that a step
            repeats bit for bit on a device too.
        atomics: how a device adds to the force on a partner. "plain": one atomic addition a thread.
            "aggregated": the threads of a warp with the same partner sum first, and one of them adds. "none":
            it does not add, which is allowed with met="twice" only. The CPU sums in parts, in the same order
            each time.
        data: "sorted": the particles are moved to the order of the leaves at each sort. "shadow": they are
            not moved; at each force a copy in that order is made, from which the forces are scattered.
            "unsorted": they are not moved; each leaf stores the slot of its particle.
        rebuild_every: steps from one sort to the next; 1 sorts at every step. Boxes are always computed at
            every step.
        contacts: when the forces of pairs are added. "walked": during the traversal. "listed": a first kernel
            traverses and lists the partners, a second one adds the forces; allowed with met="once",
            atomics="plain" and rows in the order of the leaves only.
        room: capacity of each list, in partners. A particle with more partners traverses the tree again in
            the second kernel, so that no contact is lost; `crowded` counts these particles.

    Raises:
        TypeError: a choice that is no word, or a number of steps or a room that is no integer.
        ValueError: an unknown choice, choices that do not go together, or a number below 1.
    """

    name = "reflexive"
    capabilities = SearchCapabilities(  # by default
        capturable=True, moves_particles=True, bitwise_on=("cpu",)
    )
    cell_order: str | Curve = "morton"
    stack: str = "shared"
    met: str = "once"
    atomics: str = "plain"
    data: str = "sorted"
    rebuild_every: int = 1
    contacts: str = "walked"
    room: int = ROOM

    def __post_init__(self):
        for field, words in CHOICES.items():
            self._check(field, checks.word, words)
        if (self.met == "twice") != (self.atomics == "none"):
            raise ValueError(
                f"Reflexive(met={self.met!r}, atomics={self.atomics!r}); allowed: met='twice' with "
                "atomics='none', where a thread writes its own force only, or met='once' with 'plain' or "
                "'aggregated'"
            )
        if self.contacts == "listed" and (self.atomics != "plain" or self.data == "unsorted"):
            raise ValueError(
                f"Reflexive(contacts='listed', met={self.met!r}, atomics={self.atomics!r}, "
                f"data={self.data!r}); allowed: met='once', atomics='plain', data='sorted' or 'shadow'"
            )
        super().__post_init__()
        self._check("room", checks.integer, 1, MOST_ROOM, unit="partners")
        can = SearchCapabilities(  # if pairs are visited twice, one thread has the whole force on a particle
            fusable=self.met == "twice" and self.data == "sorted",
            capturable=True,
            moves_particles=True,
            bitwise_on=("cpu",) if self.met == "once" else ("cpu", "cuda"),
        )
        object.__setattr__(self, "capabilities", can)

    def build(self, system: System) -> ReflexiveSearch:
        """Make the search for a system.

        Raises:
            ValueError: a curve of another base or dimension, or a tree or lists that do not fit in memory.
        """
        return ReflexiveSearch(self, system)


class ReflexiveSearch(BinaryTreeSearch):
    """Tree search of [lift] and its variants over the particles of a system.

    In `accesses` particles are readers in the order of the leaves. What they read are slots of particles, or
    rows of the copy if `data` is "shadow". A pair that is visited once is there once, with the visiting
    particle as its reader.

    Attributes:
        stack, met, atomics, data, contacts, room: of the configuration.
    """

    def __init__(self, config: Reflexive, system: System):
        super().__init__(config, system)
        p, grid, backend, real = self.particles, self.grid, self.backend, self.grid.precision
        self.stack, self.met, self.atomics = config.stack, config.met, config.atomics
        self.data, self.contacts, self.room = config.data, config.contacts, config.room
        rounding = 8 * np.finfo(real).eps * max(grid.box.lengths)  # of an image's position
        reach = grid.cutoff + rounding
        fields = [(name, real) for name in ("reach", "reach2", "leaf2")]
        self._centres = np.array([(reach, reach**2, reach**2)], np.dtype(fields, align=True))
        self._spheres = self._centres  # no boxes enclose spheres
        self._entries = -(-(self.tree.depth + 1) // 8) * 8
        self._read = p
        summed = self.met == "once" and not backend.runs_ahead
        self._sums = backend.empty((backend.workers if summed else 0, p.n, grid.box.dim), real)
        listed = p.n if self.contacts == "listed" else 0
        self._contact_counts = backend.zeros(listed, np.int32)
        if listed:
            what = f"room = {self.room} for {listed} particles"
            remedy = "take less room, fewer particles, or contacts='walked'"
            checks.require_bytes(what, 4 * self.room * listed, backend.free_memory(), remedy)
        self._contact_list = ContactList(self.room, backend.empty(self.room * listed, np.int32))
        if self.data == "shadow":
            self._read = room_for_copy(p, backend)
            self._forces = backend.rows(p.n if self.met == "once" else 0, grid.box.dim, real)

    def build(self) -> None:
        """Sort the particles along the curve, in memory or by slot, and link the tree."""
        self.tree.build(self.particles.pos)
        if self.data == "sorted":
            self.particles.permute(self.tree.keys.order)

    def force(self, law: PairLaw, out: Array) -> None:
        """Compute the force on every particle, or another sum of a pair law over its partners.

        Args:
            law: the law. If it is not reciprocal, each pair is visited from both sides in any case.
            out: (n, dim) array of the backend, filled: the force on each particle, in its own slot; or, if
                the search is fusable, another output that `finish` takes (`md.integrate.fused.KickDrift`).
        """
        law, order, copied = scaled_to_radii(law, self._radius), self.tree.keys.order, self.data == "shadow"
        parameters = kernel_law(law, self.grid.precision)
        if self.met == "twice" or not is_reciprocal(law):
            self._fold(law, parameters, ScatterOutput(out, order) if copied else out)
        else:
            forces = self._forces if copied else out
            self._push(law, parameters, forces)
            if copied:
                self.backend.kernels(__name__).scatter_forces(self.particles.n, order, forces, out)

    @property
    def crowded(self) -> int:
        """Number of particles with more partners than room in the last forces; waits for the device."""
        return int((self.backend.download(self._contact_counts) > self.room).sum())

    @property
    def _work_order(self) -> Array:
        """(n,) int32 slot of the particle of each leaf, a work item; (0,) if it is the number of the leaf."""
        return self.tree.keys.order if self.data == "unsorted" else self._in_place

    def _ids(self) -> np.ndarray:
        """Return the ids of the rows that the kernel reads: those of the copy for data='shadow'."""
        id = super()._ids()
        return id[self.backend.download(self.tree.keys.order)] if self.data == "shadow" else id

    @property
    def boxes(self) -> tuple[Array, Array, Array]:
        """Nodes and ropes of the tree, and the slot of each leaf, (0,) if it is the leaf's number."""
        slots = self._in_place if self.data == "sorted" else self.tree.keys.order
        return self.tree.nodes, self.tree.ropes, slots

    def structure(self) -> tuple[Array, Array, Array, np.ndarray]:
        """Return the order of the leaves, nodes and ropes of the tree, and the search radii."""
        return self._work_order, self.tree.nodes, self.tree.ropes, self._boxes_of()[1]

    @property
    def slots(self) -> Array:
        """(n,) int32 slot of the particle in each row of the copy; (0,) without a copy."""
        return self.tree.keys.order if self.data == "shadow" else self._in_place

    @property
    def _radius(self) -> Array:
        """Radii of the rows that the kernel reads: those of the copy for data='shadow'."""
        return self._read.radius

    def _fit(self) -> tuple[Any, ...]:
        """Update the copy and the boxes from the present positions; return the arguments of the kernels."""
        read = self._read
        if self.data == "shadow":
            self.particles.copy_to(self.tree.keys.order, read.pos, read.vel, read.radius)
        self.tree.fit(read.pos, self._work_order)
        return read.pos, read.vel, *self.structure(), self.grid.record

    def _fold(self, law: Any, parameters: Any, out: Any) -> None:
        """Fit the boxes, and fold a law by the kernel in which each leaf gathers from its partners."""
        later_only = self._reads_all and self.met == "once"
        self._gather(law, int(later_only), self._fit(), parameters, out)

    def _gather(self, law: Any, later_only: int, read: tuple[Any, ...], parameters: Any, out: Any) -> None:
        """Fold a law over all other leaves, or over later leaves only, by boxes that `_fit` computed."""
        gather = getattr(self.backend.kernels(__name__, law), f"gather_{self.stack}")
        gather(self.particles.n, 4 * self.backend.workers, self._entries, later_only, *read, parameters, out)

    def additions(self, law: PairLaw) -> int:
        """Count the atomic additions to rows that a device makes in one computation of the forces.

        Args:
            law: that is reciprocal.

        Returns:
            Additions to partners, as many as the lanes of each warp make after they summed what `atomics`
            lets them sum, and one of each particle's own sum.

        Raises:
            ValueError: a CPU, which adds without atomics, or pairs that are visited twice.
        """
        if not self.backend.runs_ahead or self.met == "twice":
            found = f"met={self.met!r} on {self.backend.name}"
            raise checks.refuse_value("search", found, "met='once' on a device, which adds atomically")
        counts = self.backend.rows(self.particles.n, self.grid.box.dim, self.grid.precision)
        law = scaled_to_radii(law, self._radius)
        self._push(law, kernel_law(law, self.grid.precision), counts, {"COUNT_ADDITIONS": 1})
        return int(self.backend.download(counts)[:, 0].sum(dtype=np.float64))

    def _push(
        self, law: PairLaw, parameters: Any, out: Array, constants: Mapping[str, int] | None = None
    ) -> None:
        """Fit the boxes, and add the force of each pair to both particles, directly or from lists."""
        read, n = self._fit(), self.particles.n
        kernels = self.backend.kernels(__name__, law, constants)
        self.backend.kernels(__name__).clear(n, out)
        if self.contacts == "listed":
            self._gather(self._contact_list, 1, read, self._contact_list, self._contact_counts)
            lists = self.room, self._contact_counts, self._contact_list.partners
            kernels.resolve(n, self.backend.workers, *lists, *read, parameters, self._sums, out)
            return
        push = getattr(kernels, f"{'push' if self.atomics == 'plain' else 'sum'}_{self.stack}")
        push(n, self.backend.workers, self._entries, *read, parameters, self._sums, out)


@kernel(parallel=True)
def gather_none(n, parts, entries, later_only, pos, vel, order, nodes, ropes, reach, grid, law, out):
    """Compute out[i], the law folded over all other leaves or over later leaves only; without a stack."""
    for part in numba.prange(parts):
        rows, tree = (pos, vel, order), (nodes, ropes)
        gather_part(np.int64(part), n, parts, later_only, rows, tree, grid[0], reach[0], law, None, out)


@kernel(parallel=True)
def gather_local(n, parts, entries, later_only, pos, vel, order, nodes, ropes, reach, grid, law, out):
    """Compute out[i] as `gather_none` does, with a stack of so many entries."""
    for part in numba.prange(parts):
        rows, tree, stack = (pos, vel, order), (nodes, ropes), np.empty(entries, np.int32)
        gather_part(np.int64(part), n, parts, later_only, rows, tree, grid[0], reach[0], law, stack, out)


@kernel(parallel=True)
def push_none(n, parts, entries, pos, vel, order, nodes, ropes, reach, grid, law, sums, out):
    """Compute out[i], the force on each particle, visiting each pair once; without a stack."""
    for part in numba.prange(parts):
        rows, tree = (pos, vel, order), (nodes, ropes)
        push_part(np.int64(part), n, parts, None, rows, tree, grid[0], reach[0], law, None, sums)
    for leaf in numba.prange(n):
        sum_parts(np.int64(leaf), n, parts, order, sums, out)


@kernel(parallel=True)
def push_local(n, parts, entries, pos, vel, order, nodes, ropes, reach, grid, law, sums, out):
    """Compute out[i] as `push_none` does, with a stack of so many entries."""
    for part in numba.prange(parts):
        rows, tree, stack = (pos, vel, order), (nodes, ropes), np.empty(entries, np.int32)
        push_part(np.int64(part), n, parts, None, rows, tree, grid[0], reach[0], law, stack, sums)
    for leaf in numba.prange(n):
        sum_parts(np.int64(leaf), n, parts, order, sums, out)


@kernel(parallel=True)
def resolve(n, parts, room, counts, partners, pos, vel, order, nodes, ropes, reach, grid, law, sums, out):
    """Compute out[i] from contact lists; the particle of a list that overflowed traverses the tree."""
    for part in numba.prange(parts):
        rows, tree, lists = (pos, vel, order), (nodes, ropes), (counts, room, partners)
        push_part(np.int64(part), n, parts, lists, rows, tree, grid[0], reach[0], law, None, sums)
    for leaf in numba.prange(n):
        sum_parts(np.int64(leaf), n, parts, order, sums, out)


_in_shared = OnDevice(NARROW, shared=lambda entries: 4 * NARROW * entries)  # bytes of int32
gather_shared, push_shared = (_in_shared(partial(one)) for one in (gather_local, push_local))
sum_none, sum_local, sum_shared = push_none, push_local, push_shared


def clear(n, out):
    """Set the force on every particle to zero."""
    in_parts(lambda part: out[part].fill(0), n)


@kernel(parallel=True)
def scatter_forces(n, order, forces, out):
    """Copy row k of the forces to the slot order[k]."""
    for k in numba.prange(n):
        for axis in range(out.shape[1]):
            out[order[k], axis] = forces[k, axis]
