"""What leaves of a tree do with whom their walks (`md.search.bvh.traversal`) meet: gather, or push both of each pair.

A part is some of the leaves in turn. Who pushes both adds to sums of its part's own, for two parts may meet
one leaf; the device's kernels add with atomics instead (`pair_forces.cuh`). `rows`, `tree` and `far` are those
of `md.search.bvh.traversal`. `lists` is None, or how many each leaf met, the room of a list, and the partners
(`md.search.bvh.contact_list`).
"""

import numpy as np

from md.backend.prelude import displacement, dot, finish, load, sub, zero
from md.laws.pair import initial, interact, result
from md.search.bvh.traversal import traverse_images
from sfc.compile import callee, inlined


@inlined
def far_of(reach):
    """How far walks look, the square of that, and that for leaves."""
    return reach.reach, reach.reach2, reach.leaf2


@callee
def gather_part(part, n, parts, later, rows, tree, grid, far, law, stack, out):
    """Of some of the leaves, for their own particles alone."""
    pos, vel, order = rows
    for leaf in range(part * n // parts, (part + 1) * n // parts):
        i = np.int64(order[leaf]) if len(order) else leaf
        acc = traverse_images(n, leaf, later, rows, tree, grid, far, law, stack, None)
        ri, vi = load(pos, i, grid), load(vel, i, grid)
        finish(out, grid, i, ri, vi, result(law, ri, vi, acc))


@callee
def push_part(part, n, parts, lists, rows, tree, grid, far, law, stack, sums):
    """Of some of the leaves, for both of each pair: row k of the part's sums is of leaf k."""
    mine, begin = sums[part], part * n // parts
    for leaf in range(begin, n):
        for axis in range(mine.shape[1]):
            mine[leaf, axis] = 0
    for leaf in range(begin, (part + 1) * n // parts):
        if lists is None or lists[0][leaf] > lists[1]:
            acc = traverse_images(n, leaf, 1, rows, tree, grid, far, law, stack, mine)
        else:
            acc = push_listed(n, leaf, lists, rows, grid, law, mine)
        for axis in range(len(acc)):
            mine[leaf, axis] += acc[axis]


@callee
def push_listed(n, leaf, lists, rows, grid, law, sums):
    """What a leaf's particle gets of those in its list, which get as much."""
    (met, _, partners), (pos, vel, _) = lists, rows
    ri, vi = load(pos, leaf, grid), load(vel, leaf, grid)
    acc = initial(law, ri)
    for k in range(met[leaf]):
        j = np.int64(partners[k * n + leaf])
        dr = displacement(grid, ri, load(pos, j, grid))
        back = sub(zero(ri), interact(law, vel, leaf, j, dot(dr, dr), dr, vi, initial(law, ri)))
        for axis in range(len(back)):
            sums[j, axis] += back[axis]
        acc = sub(acc, back)
    return acc


@callee
def sum_parts(leaf, n, parts, order, sums, out):
    """Of all parts that may have met a leaf; earlier ones do not begin after it."""
    i = np.int64(order[leaf]) if len(order) else leaf
    for axis in range(out.shape[1]):
        total = sums[0, leaf, axis]
        for part in range(1, parts):
            if part * n // parts > leaf:
                break
            total += sums[part, leaf, axis]
        out[i, axis] = total
