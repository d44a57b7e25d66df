"""Forces from a BVH traversal (`md.search.bvh.traversal`), one-sided (gather) or symmetric (push).

One-sided: each leaf sums its own force. Symmetric: each pair is visited once and both particles get the
force. A part is a range of leaves. A symmetric kernel adds to one array of sums a part, because two parts may
add to the same leaf; the device kernels add with atomics instead (`pair_forces.cuh`). `rows` and `tree` are
those of `md.search.bvh.traversal`; `reach` is that of a leaf, or the record of it for a part. `lists` is
None, or the number of partners of each leaf, the room of a list, and the partners
(`md.search.bvh.contact_list`).
"""

import numpy as np

from md.backend.prelude import finish, load
from md.laws.pair import initial, result
from md.search.bvh.traversal import traverse_images, visit_leaf
from sfc.compile import callee, inlined


@inlined
def reach_of(reach):
    """Return the search radius, its square for inner nodes, and its square for leaves."""
    return reach.reach, reach.reach2, reach.leaf2


@callee
def gather_leaf(n, leaf, later_only, rows, tree, grid, reach, law, stack, out):
    """Compute the force on the particle of a leaf, one-sided."""
    pos, vel, order = rows
    acc = traverse_images(n, leaf, later_only, rows, tree, grid, reach, law, stack, None)
    i = np.int64(order[leaf]) if len(order) else leaf
    ri, vi = load(pos, i, grid), load(vel, i, grid)
    finish(out, grid, i, ri, vi, result(law, ri, vi, acc))


@callee
def gather_part(part, n, parts, later_only, rows, tree, grid, reach, law, stack, out):
    """Compute the forces on the particles of a part of the leaves, one-sided."""
    for leaf in range(part * n // parts, (part + 1) * n // parts):
        gather_leaf(n, leaf, later_only, rows, tree, grid, reach_of(reach), law, stack, out)


@callee
def push_part(part, n, parts, lists, rows, tree, grid, reach, law, stack, sums):
    """Compute the forces of a part of the leaves, symmetric: row k of the part's sums belongs to leaf k."""
    part_sums, begin = sums[part], part * n // parts
    part_sums[begin:] = 0
    for leaf in range(begin, (part + 1) * n // parts):
        if lists is None or lists[0][leaf] > lists[1]:
            acc = traverse_images(n, leaf, True, rows, tree, grid, reach_of(reach), law, stack, part_sums)
        else:
            acc = push_listed(n, leaf, lists, rows, grid, law, part_sums)
        for axis in range(len(acc)):
            part_sums[leaf, axis] += acc[axis]


@callee
def push_listed(n, leaf, lists, rows, grid, law, sums):
    """Return the force of the listed partners on a leaf's particle, and add the opposite to the partners."""
    (counts, _, partners), (pos, vel, _) = lists, rows
    ri, vi = load(pos, leaf, grid), load(vel, leaf, grid)
    query, acc = (leaf, leaf, leaf, ri, vi, ri, 0), initial(law, ri)
    for k in range(counts[leaf]):
        acc = visit_leaf(rows, grid, law, False, query, np.int64(partners[k * n + leaf]), ri, sums, acc)
    return acc


@callee
def sum_parts(leaf, n, parts, order, sums, out):
    """Sum the forces on a leaf over the parts that may have added to it: those that do not begin after it."""
    i = np.int64(order[leaf]) if len(order) else leaf
    for axis in range(out.shape[1]):
        total = sums[0, leaf, axis]
        for part in range(1, parts):
            if part * n // parts > leaf:
                break
            total += sums[part, leaf, axis]
        out[i, axis] = total
