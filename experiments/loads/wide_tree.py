"""Loads and stores of the wide bounding volume hierarchy on a GPU (md/search/bvh/wide_bvh.cu).

The rows are packed, as they are on CUDA by default. A block of 128 threads works on a node of 16 leaves, 8
lanes of a warp on the 8 particles of a leaf. Each box is loaded by the threads that test it:

- Descent: the block's own box, by all threads; then level by level the children of all nodes within reach,
  128 at a time, a thread each. The numbers of those within reach are in shared memory.
- Selection: the box of the thread's own leaf; then those of the leaves found, 8 at a time, each by one of the
  8 lanes of every leaf: the 4 leaves of a warp load the same boxes.
- Bytes: the coordinates of one byte of the particles in the leaves near a leaf, 4 leaves at a time, the last
  leaf again if there are fewer left. All 8 lanes of a leaf load the same 16 bytes, twice a leaf. In float32
  the compiler has registers for the first two leaves, and loads the others when these have come; in float64
  for all four.
- Partners: the position of one that passes, of each lane its next one, and the velocity if it is in reach.
- A thread with too many leaves for that walks down the tree by itself, node by node, and loads the particles
  of each leaf within reach.
- Stores: the moved particle; then the thread loads its moved position, and stores its bytes; a lane of each
  leaf stores the box of the leaf, and one of the block that of the node, for the next step.

Every second step takes its blocks from the last to the first: the step before is that here. Between the two
steps the boxes of the levels above 1 are computed, a launch each.

Left out: the step after a sort, one in `rebuild_every`; the words of the clock, which one thread stores; what
a thread that walks by itself has on its stack, and in float64 the boxes of the selection, which the compiler
stores there and does not read; and that the warps of a block wait for each other at barriers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import md
from experiments.loads.force import LAST, PART, Rows, StepLoads, block_of, rows_of
from experiments.loads.packed import (
    note_packed_moved,
    note_packed_position,
    note_packed_row,
    note_packed_velocity,
    packed_rows_of,
)
from md.search.bvh.base import TreeConfig
from md.search.bvh.wide_boxes import (
    LEAF,
    LEAVES,
    MOST_LEVELS,
    MOST_NEAR,
    MOST_NODES,
    NODES,
    ROW,
    WideBoxes,
    gap2,
    particle_gap2,
    reaches_of,
)
from sfc.cache import end, in_lockstep, note, note_row
from sfc.cache.loads import LANES, READ, WRITTEN
from sfc.compile import callee, kernel

STEM, BOXES = "md.search.bvh.wide_bvh", "md.search.bvh.wide_boxes"
BLOCK = LEAF * LEAVES
WORD, COMPARED = 4, 4  # bytes of the coordinates of a particle, and leaves of which they are compared at once
HALVES = WORD * LEAF // PART  # loads of the bytes of a leaf
AT_ONCE = 4, HALVES * COMPARED  # of the loads of these leaves, issued at once, in float32 and in float64
STAGE = 2**56  # places of a part of the kernel
SELECTION, OWN, BYTES, PARTNERS, ALONE = (k * STAGE for k in range(1, 6))
MADE = LAST + 16  # place of what is stored for the next step


class Tree(NamedTuple):
    """A tree over packed rows, as a walk through its kernels needs it.

    Attributes:
        rows: of the particles; its addresses are those of the rows of four numbers, of the rest of the
            velocities, of both as they are moved, of boxes, of bytes, and of both for the next step.
        is_reversed: whether the blocks are taken from the last to the first.
        leaf2: square of the distance of boxes within reach, of the precision of the positions.
        levels: record of `md.search.bvh.wide_boxes.levels_of`.
        boxes: (nodes, 8) of all levels.
        bytes: (8 * leaves,) int32 coordinates of one byte, 0 of absent particles.
        most: sum of squares of differences of bytes up to which a pair may be within reach.
    """

    rows: Rows
    is_reversed: bool
    leaf2: np.floating
    levels: np.ndarray
    boxes: np.ndarray
    bytes: np.ndarray
    most: int

    def before(self) -> Tree:
        """Return the same in the step before: arrays in the other roles, and blocks in the other order."""
        base = self.rows.base[[2, 3, 0, 1, 6, 7, 4, 5]]
        return self._replace(rows=self.rows._replace(base=base), is_reversed=not self.is_reversed)


def wide_tree_loads(simulation: md.Simulation) -> StepLoads:
    """Make the streams of a fused step of a simulation at its present positions, in layout aos4.

    The particles are sorted first if their order is as old as `rebuild_every`. The threads of whole blocks
    are items: those beyond the last particle load boxes too.

    Args:
        simulation: with search "wide_bvh", on the CPU, of particles of the same radius.

    Raises:
        ValueError: another search or backend, a search that sorts at every step, or particles that differ in
            radius.
    """
    tree = tree_of(simulation)
    count, number = int(tree.levels["count"][0]), tree.levels["number"][0]
    dtype = tree.rows.pos.dtype
    block = block_of(STEM, "force", dtype, simulation.law)
    above = block_of(BOXES, "fit_nodes", dtype)
    items = BLOCK * int(number[1])
    force, before = (in_lockstep(_force, (one,), items, **block) for one in (tree, tree.before()))
    fits = (
        in_lockstep(_fit_nodes, (tree, level), NODES * int(number[level]), **above)
        for level in range(2, count)
    )
    return StepLoads(force, [before, *fits])


def tree_of(simulation: md.Simulation) -> Tree:
    """Return the tree of a simulation at its present positions.

    Args:
        simulation: as that of `wide_tree_loads`.

    Raises:
        ValueError: as `wide_tree_loads`.
    """
    rows_of(simulation, "wide_bvh")
    search, particles = simulation.search, simulation.system.particles
    if isinstance(search.config, TreeConfig) and search.config.rebuild_every == 1:
        raise ValueError("rebuild_every = 1; allowed: from 2 on, as a step is followed that does not sort")
    if len(particles.radius):
        raise ValueError("particles that differ in radius; allowed: all of diameter 1, without State.radius")
    search.update()
    n, grid = particles.n, search.grid
    tree = WideBoxes(n, grid, grid.cutoff, simulation.backend)
    tree.fit(particles.pos, particles.radius, 1.0)
    bytes = np.zeros(LEAF * int(tree.levels["number"][0, 0]), np.int32)
    whole = np.floor(particles.pos.astype(np.float64) * tree.units["per_unit"][0]).astype(np.int64) & 255
    bytes[:n] = (whole << 8 * np.arange(whole.shape[1])).sum(axis=1)
    rows = packed_rows_of(simulation, "wide_bvh", np.arange(n), *2 * [tree.boxes.nbytes, bytes.nbytes])
    leaf2 = reaches_of(grid, grid.cutoff, 1.0)[0]["reach2"][0]
    return Tree(rows, False, leaf2, tree.levels, tree.boxes, bytes, int(tree.units["most"][0]))


@callee
def parts_of(rows):
    """Return the number of parts of 16 bytes that hold the coordinates of a position."""
    return rows.pieces if rows.pos.shape[1] == 3 else 1


@callee
def note_box(noted, tree, place, node, waits):
    """Note the load of a box, of the parts that hold coordinates, in up to 4 places."""
    rows = tree.rows
    parts, half = parts_of(rows), 16 * rows.pieces
    at = rows.base[4] + 2 * half * node
    note_row(noted, place, at, parts, READ, waits)
    note_row(noted, place + parts, at + half, parts, READ, False)


@callee
def descend(tree, block, near, counts):
    """List the nodes within reach of a block, level by level; as the function in wide_traversal.cuh.

    Args:
        tree: the tree.
        block: number of the node of level 1.
        near: (levels, MOST_NODES) int32, filled from the uppermost level down.
        counts: (levels,) their number on each level, which may be larger than the room.

    Returns:
        The level that was searched last: 0, or the one with more nodes than there is room for.
    """
    levels, dim = tree.levels[0], tree.rows.pos.shape[1]
    own, top, level = levels.first[1] + block, levels.count - 1, levels.count
    while level > 0 and (level > top or counts[level] <= MOST_NODES):
        level -= 1
        children = NODES if level else LEAVES
        above = 1 if level == top else counts[level + 1]
        counts[level] = 0
        for k in range(above):
            first = 0 if level == top else near[level + 1, k] * children
            last = levels.number[level] if level == top else first + children
            for node in range(first, min(last, levels.number[level])):
                if gap2(dim, tree.rows.grid[0], tree.boxes, own, levels.first[level] + node) < tree.leaf2:
                    if counts[level] < MOST_NODES:
                        near[level, counts[level]] = node
                    counts[level] += 1
    return level


@callee
def note_descent(noted, tree, block, lane, near, counts, lowest):
    """Note the boxes that a thread of a block tests, for what `descend` has listed."""
    levels = tree.levels[0]
    top = levels.count - 1
    note_box(noted, tree, 0, levels.first[1] + block, True)
    for k in range(0, levels.number[top], BLOCK):
        if k + lane < levels.number[top]:
            note_box(noted, tree, 16 * (k // BLOCK) + 8, levels.first[top] + k + lane, k > 0)
    for level in range(top - 1, lowest - 1, -1):
        children = NODES if level else LEAVES
        for k in range(lane, counts[level + 1] * children, BLOCK):
            node = near[level + 1, k // children] * children + k % children
            if node < levels.number[level]:
                place = ((top - level) << 40) + 16 * (k // BLOCK)
                note_box(noted, tree, place, levels.first[level] + node, True)


@callee
def select(tree, leaf, near, count, kept):
    """List those of the leaves near a block that are within reach of a leaf; return their number."""
    found = 0
    for k in range(count):
        if gap2(tree.rows.pos.shape[1], tree.rows.grid[0], tree.boxes, leaf, near[k]) < tree.leaf2:
            if found < MOST_NEAR:
                kept[found] = near[k]
            found += 1
    return found


@callee
def note_selection(noted, tree, leaf, lane, near, count):
    """Note the boxes that a thread tests to select those within reach of its leaf."""
    note_box(noted, tree, SELECTION, leaf, True)
    for k in range(lane % LEAF, count, LEAF):
        note_box(noted, tree, SELECTION + 8 + 8 * (k // LEAF), near[k], k >= LEAF)


@callee
def may_be_near(tree, i, j):
    """Return whether two particles may be within reach by their bytes: `beyond_reach` of a device."""
    apart, total = np.int64(tree.bytes[i]) - np.int64(tree.bytes[j]), 0
    for shift in range(0, 32, 8):
        byte = (apart >> shift) & 255
        byte -= 256 * (byte > 127)
        total += byte * byte
    return total <= tree.most


@callee
def note_pair(noted, rows, place, i, j):
    """Note the position of a partner, and its velocity if it is in reach, in 4 places."""
    note_packed_position(noted, rows, place, j, True)
    note_packed_velocity(noted, rows, place + 2, i, j)


@callee
def note_partners(noted, tree, i, kept, near):
    """Note bytes of the particles in the leaves near a leaf, and partners in the order of the leaves."""
    rows = tree.rows
    at_once = AT_ONCE[rows.pieces - 1]
    note(noted, OWN + 8, rows.base[5] + WORD * i, READ, False)
    for k in range(0, near, COMPARED):
        for part in range(HALVES * COMPARED):
            at = HALVES * kept[min(k + part // HALVES, near - 1)] + part % HALVES
            waits = (k > 0 and part == 0) or part == at_once
            note(noted, BYTES + HALVES * k + part, rows.base[5] + PART * at, READ, waits)
    turn = 0
    for k in range(near):
        for j in range(kept[k] * LEAF, (kept[k] + 1) * LEAF):
            if may_be_near(tree, i, j):
                if j != i and j < rows.n:
                    note_pair(noted, rows, PARTNERS + 8 * turn, i, j)
                turn += 1


@callee
def note_alone(noted, tree, i):
    """Note the walk of a thread down the tree by itself: `descend_alone` of wide_traversal.cuh."""
    rows, levels, dim = tree.rows, tree.levels[0], tree.rows.pos.shape[1]
    note_packed_row(noted, rows, 0, ALONE, i, READ)
    top, turn, node = levels.count - 1, 0, 0
    level, none = top, tree.leaf2 - tree.leaf2
    while level < top or node < levels.number[top]:
        turn += 1
        place, row = ALONE + (turn << 32), levels.first[level] + node
        note_box(noted, tree, place, row, turn > 1)
        if particle_gap2(dim, rows.grid[0], tree.boxes, row, rows.pos, i, none) < tree.leaf2:
            if level > 0:
                level -= 1
                node *= NODES if level else LEAVES
                continue
            for j in range(node * LEAF, min((node + 1) * LEAF, rows.n)):
                if j != i:
                    note_pair(noted, rows, place + 8 * (j % LEAF + 1), i, j)
        node += 1
        children = NODES if level else LEAVES
        while level < top and (node % children == 0 or node >= levels.number[level]):
            node = (node - 1) // children + 1
            level += 1
            children = NODES


@callee
def note_made(noted, tree, block, lane):
    """Note what a thread stores for the next step: bytes of its particle, and boxes of leaf and block."""
    rows, i = tree.rows, block * BLOCK + lane
    box = 32 * rows.pieces
    if i < rows.n:
        at = rows.base[2] + 16 * rows.pieces * i
        note_row(noted, MADE, at, parts_of(rows), READ, False)
        note(noted, MADE + 2, rows.base[7] + WORD * i, WRITTEN, True)
        if lane % LEAF == 0:
            note_row(noted, MADE + 3, rows.base[6] + box * (i // LEAF), 2 * rows.pieces, WRITTEN, False)
    if lane == 0:
        node = tree.levels[0].first[1] + block
        note_row(noted, MADE + 8, rows.base[6] + box * node, 2 * rows.pieces, WRITTEN, False)


@kernel
def _force(threads, tree, noted):
    rows, blocks, block, leaf = tree.rows, tree.levels[0].number[1], -1, -1
    near, counts = np.empty((MOST_LEVELS, MOST_NODES), np.int32), np.zeros(MOST_LEVELS, np.int64)
    kept, found, lowest = np.empty(MOST_NEAR, np.int32), 0, 0
    for t in range(len(threads)):
        lane = threads[t] % BLOCK
        number = threads[t] // BLOCK
        number = blocks - 1 - number if tree.is_reversed else number
        if number != block:
            block = number
            lowest = descend(tree, block, near, counts)
        own = block * BLOCK + lane
        i = min(own, rows.n - 1)
        note_descent(noted, tree, block, lane, near, counts, lowest)
        is_alone = lowest > 0 or counts[0] > MOST_NODES
        if not is_alone:
            if i // LEAF != leaf:
                leaf = i // LEAF
                found = select(tree, leaf, near[0], counts[0], kept)
            note_selection(noted, tree, leaf, lane, near[0], counts[0])
            is_alone = found > MOST_NEAR
        note_packed_row(noted, rows, 0, OWN, i, READ)
        if own < rows.n:
            if is_alone:
                note_alone(noted, tree, i)
            elif found > 0:
                note_partners(noted, tree, i, kept, found)
            note_packed_moved(noted, rows, i)
        note_made(noted, tree, block, lane)
        end(noted, t)


@kernel
def _fit_nodes(threads, tree, level, noted):
    # A warp for each node: a lane a child, the first one again for those that do not exist.
    levels, rows = tree.levels[0], tree.rows
    below = levels.first[level - 1]
    for t in range(len(threads)):
        child = threads[t]
        node = child // LANES
        is_there = child < levels.number[level - 1]
        note_box(noted, tree, 0, below + (child if is_there else node * NODES), True)
        if child % LANES == 0:
            at = rows.base[4] + 4 * ROW * rows.pieces * (levels.first[level] + node)
            note_row(noted, LAST, at, 2 * rows.pieces, WRITTEN, True)
        end(noted, t)
