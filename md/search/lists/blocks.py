"""Forces and fused steps by neighbour lists on the CPU, for a block of particles at a time.

Most listed partners are too far away for a force, and how many each particle has cannot be predicted. The
lists of a block are contiguous. So one loop over all of its entries, which has no branch, finds those within
the cutoff, and a second one takes these particle by particle: a third of the time of a force is saved. If a
particle without partners has no force, all of a block move freely first, and those with near entries again
(`md.particles.free_flight`). A call can take many fused steps, because a step of few particles takes less
time than its call from Python. Now and then a step prunes: it keeps the nearer entries, which the next steps
read (`md.search.lists.pruned_lists`).
"""

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from md.backend import NO_FAULT
from md.backend.prefetch import prefetch
from md.backend.prelude import displacement, dot, finish, load, sub
from md.laws.pair import initial, interact, result
from md.particles.free_flight import fastest_of, fly, free_flight
from sfc.compile import inlined, kernel

BLOCK = 64  # particles; at most 256, so that one byte numbers them
at = np.uint64  # unsigned index: Numba tests a signed one for being negative at each access


class BlockLists(NamedTuple):
    """Neighbour lists of blocks of particles.

    Attributes:
        first: (blocks,) int64 place in `partners` of the first entry of each block.
        count: (blocks,) int64 number of its entries.
        partners: int32 slots of the partners: those of the first particle of a block, of the second, and so
            on.
        owners: uint8 number, in its block, of the particle to which a partner belongs.
        within2: square of the cutoff in d^2, or a little more.
        reach2: square of the largest distance of the partners of pruned lists, in d^2.
        shares: ranges of blocks, one after another, that threads take.
    """

    first: Any
    count: Any
    partners: Any
    owners: Any
    within2: Any
    reach2: Any
    shares: int


class Bound(NamedTuple):
    """Bound of the displacement of any particle since a build or a pruning, in d.

    Attributes:
        now: at the first step.
        limit: up to which the lists are complete.
    """

    now: float
    limit: float


@inlined
def block_of(b, n, lists):
    """Return the first particle of block b, the one after its last, its first entry, and its entries."""
    return b * BLOCK, min((b + 1) * BLOCK, n), lists.first[at(b)], lists.count[at(b)]


@inlined
def fold_near(lowest, highest, near, found, begin, pos, vel, lists, grid, law, out, flight):
    """Fold the law over the near entries of a block; return the square of the largest speed of its particles.

    Args:
        lowest: first particle of the block.
        highest: particle after the last.
        near: entries of the block, counted from `begin` on, in order.
        found: number of near entries.
        begin: first entry of the block.
        pos: (n, dim) positions.
        vel: (n, dim) velocities.
        lists: `BlockLists` of the entries.
        grid: record of the cells.
        law: parameters of the law.
        out: of `finish`.
        flight: `FreeFlight` by which particles without near entries may move, or None.
    """
    g, taken, largest, i = grid[0], 0, 0.0, lowest
    flew = fly(flight, lowest, highest)
    while True:
        if flew:
            if taken == found:
                break
            i = lowest + lists.owners[at(begin + near[at(taken)])]
        elif i == highest:
            break
        ri, vi = load(pos, at(i), g), load(vel, at(i), g)
        acc = initial(law, ri)
        while taken < found and lowest + lists.owners[at(begin + near[at(taken)])] == i:
            j = lists.partners[at(begin + near[at(taken)])]
            dr = displacement(g, ri, load(pos, at(j), g))
            acc = interact(law, vel, i, j, dot(dr, dr), dr, vi, acc)
            taken += 1
        largest = max(largest, finish(out, g, at(i), ri, vi, result(law, ri, vi, acc)))
        i += 1
    return largest


@inlined
def near_of(lowest, begin, entries, near, pos, lists, grid):
    """Store the entries of a block within the cutoff in `near`, counted from `begin`; return their number."""
    found = 0
    for k in range(entries):
        owner, partner = lists.owners[at(begin + k)], lists.partners[at(begin + k)]
        dr = sub(load(pos, at(lowest + owner), grid), load(pos, at(partner), grid))
        r2 = dot(dr, dr)
        near[at(found)] = k  # overwritten by the next, unless this one counts
        # Longer ones may be across a periodic side; one that is not a number counts.
        found += not ((r2 >= lists.within2) & (r2 < grid.nearest2))
    return found


@inlined
def near_and_pruned(b, lowest, begin, entries, near, pos, lists, pruned, here, last, grid):
    """Do as `near_of`, and store the entries within `pruned.reach2` in the lists of `pruned`, from `here` on.

    Return the number of near entries, and the place after the last that was stored; it is beyond `last` if
    there is too little room, and the lists are cut then.
    """
    found, start = 0, here
    for k in range(entries):
        owner, partner = lists.owners[at(begin + k)], lists.partners[at(begin + k)]
        dr = displacement(grid, load(pos, at(lowest + owner), grid), load(pos, at(partner), grid))
        r2 = dot(dr, dr)
        near[at(found)] = k
        found += not (r2 >= lists.within2)
        pruned.owners[at(min(here, last))], pruned.partners[at(min(here, last))] = owner, partner
        here += not (r2 >= pruned.reach2)
    pruned.first[at(b)], pruned.count[at(b)] = start, here - start
    return found, here


@inlined
def fold_share(p, n, pos, vel, lists, pruned, prunes, grid, law, out):
    """Fold the law over the partners of the particles of share p.

    Return the square of the largest speed, and the entries of the share in pruned lists, if they are filled.

    The partners are those of the lists, in the same order, except for those too far away for a force. The law
    is folded in one place, whether lists are pruned or not, because each call is inlined and adds to the
    compile time.

    Args:
        p: number of the share.
        n: number of particles.
        pos: (n, dim) positions.
        vel: (n, dim) velocities.
        lists: `BlockLists` that are read.
        pruned: those that are filled if the lists are pruned; None if they never are.
        prunes: whether they are.
        grid: record of the cells.
        law: parameters of the law.
        out: of `finish`.
    """
    g, blocks = grid[0], -(-n // BLOCK)
    near, largest = np.empty(8 * BLOCK, np.uint32), 0.0
    flight = free_flight(out, g, law, pos, vel, BLOCK)
    room = 0 if pruned is None else len(pruned.partners)
    begin_of_share, last = p * room // lists.shares, (p + 1) * room // lists.shares - 1
    here = begin_of_share
    for b in range(p * blocks // lists.shares, (p + 1) * blocks // lists.shares):
        lowest, highest, begin, entries = block_of(b, n, lists)
        if entries > len(near):
            near = np.empty(2 * entries, np.uint32)
        if pruned is None or not prunes:
            found = near_of(lowest, begin, entries, near, pos, lists, g)
        else:
            found, here = near_and_pruned(b, lowest, begin, entries, near, pos, lists, pruned, here, last, g)
        for k in range(found):
            prefetch(vel, lists.partners[at(begin + near[at(k)])])
        own = fold_near(lowest, highest, near, found, begin, pos, vel, lists, grid, law, out, flight)
        largest = max(largest, own)
    return max(largest, fastest_of(flight)), here - begin_of_share


@inlined
def step_share(p, prunes, returns, n, pos, vel, lists, pruned, grid, law, out, back):
    """Take a fused step of the particles of share p; return what `fold_share` returns.

    Chosen here: a named tuple that a `prange` reads must be an argument of its kernel, so a choice between
    two fails to compile for threads. There is one call for both directions, because each call is inlined and
    adds to the compile time.

    A step that `returns` moves the particles from the arrays of `out` to `pos` and `vel`, by `back`. The
    other arguments are those of `steps_of_blocks`.
    """
    now, x, v = (back, out.pos, out.vel) if returns else (out, pos, vel)
    return fold_share(p, n, x, v, lists if prunes else pruned, pruned, prunes, grid, law, now)


@kernel(parallel=True)
def force_of_blocks(n, pos, vel, lists, grid, law, out):
    """Compute out[i], the law folded over the partners in the list of particle i within the cutoff.

    Args:
        n: number of particles.
        pos: (n, dim) positions.
        vel: (n, dim) velocities.
        lists: `BlockLists`.
        grid: record of the cells.
        law: parameters of the law.
        out: array of `finish`.
    """
    for p in numba.prange(lists.shares):
        fold_share(p, n, pos, vel, lists, None, False, grid, law, out)


@kernel(parallel=True)
def steps_of_blocks(most, step, n, pos, vel, lists, pruned, bound, inner, rounding, grid, law, out, back):
    """Take fused steps until the lists may be incomplete, or there is a fault.

    Args:
        most: largest number of steps, at least 1.
        step: number of the first step.
        n: number of particles.
        pos: (n, dim) positions.
        vel: (n, dim) velocities.
        lists: `BlockLists` of the build.
        pruned: `BlockLists` that steps read, filled by those that prune; `lists` for no pruning.
        bound: `Bound` since the build.
        inner: `Bound` since the pruning; at its limit a step prunes. An infinite limit for no pruning.
        rounding: largest displacement of a step beyond speed times time, in d.
        grid: record of the cells.
        law: parameters of the law.
        out: `md.integrate.fused.KickDrift` of the first step.
        back: that of the second step, which writes to `pos` and `vel`.

    Returns:
        Number of steps; the two bounds of the displacement after them; and the room that pruned lists need,
        0 if no step pruned. If there is less, the lists are cut, and the next step has to prune.
    """
    fastest, travelled, since, taken = np.zeros(lists.shares), bound.now, inner.now, 0
    kept, needed = np.zeros(lists.shares, np.int64), 0
    while taken < most:
        prunes, returns = not since < inner.limit, taken % 2 == 1
        if returns:
            back.clock[back.turn] = step + taken
        else:
            out.clock[out.turn] = step + taken
        for p in numba.prange(lists.shares):
            fastest[p], kept[p] = step_share(
                p, prunes, returns, n, pos, vel, lists, pruned, grid, law, out, back
            )
        taken += 1
        # 1e-6: more than the rounding of the speed and the stride in float32. The position is rounded too.
        stride = math.sqrt(fastest.max()) * out.drift * (1 + 1e-6) + rounding
        travelled += stride
        since = stride if prunes else since + stride
        if prunes and n:
            needed = lists.shares * (kept.max() + 1)
            if needed > len(pruned.partners):
                since = math.inf
                break
        if not travelled < bound.limit or out.fault[0] != NO_FAULT:
            break
    return taken, travelled, since, needed
