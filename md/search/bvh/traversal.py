"""Traversal of a tree (`md.search.bvh.tree`) for the particle of one leaf, with or without a stack.

A traversal folds a pair law over the leaves within reach of the particle and of its images at periodic sides.
If each pair is to be visited once, it visits only leaves later than its own, `after`; else `after` is -1.

Contract. `rows` are positions, velocities and the slot of the particle of each leaf, (0,) if rows are in the
order of leaves. `tree` is nodes and ropes. `reach` is the search radius, its square for inner nodes and its
square for leaves. `query` is leaf, after, slot, position, velocity, position of the image and its number.
`sums` is None, or (n, dim) forces on the partners, by their leaves.
"""

import numpy as np

from md.backend.prelude import displacement, dot, load, sub, zero
from md.laws.pair import initial, interact
from md.search.bvh.periodic_images import image_of, is_nearest, is_needed, needs_images
from md.search.bvh.tree import gap2
from sfc.compile import callee, inlined

ROOM = 96  # entries of the stack of a thread: a tree of keys of 63 bits and indices of 31 has 95 levels


@inlined
def visit_leaf(rows, grid, law, check_images, query, partner, stored, sums, acc):
    """Fold the law over the particle of a leaf within reach; with `sums`, add the opposite force there."""
    (pos, vel, order), (leaf, _, i, ri, vi, _, image) = rows, query
    if partner == leaf:
        return acc
    j = np.int64(order[partner]) if len(order) else partner
    rj = load(pos, j, grid)
    if check_images and not is_nearest(grid, ri, rj, stored, image):
        return acc
    dr = displacement(grid, ri, rj)
    if sums is None:
        return interact(law, vel, i, j, dot(dr, dr), dr, vi, acc)
    back = sub(zero(ri), interact(law, vel, i, j, dot(dr, dr), dr, vi, initial(law, ri)))
    for axis in range(len(back)):
        sums[partner, axis] += back[axis]
    return sub(acc, back)


@callee
def traverse_ropes(n, rows, tree, grid, reach, law, check_images, query, sums, acc):
    """Fold the law over the leaves within reach of a position, along ropes from the root or the own leaf."""
    (nodes, ropes), after, at = tree, query[1], query[5]
    node = np.int64(ropes[2 * (n - 1 + after) + 1]) if after >= 0 else 0
    while node >= 0:
        low, partner = load(nodes, 2 * node, grid), node - (n - 1)
        near = gap2(at, low, load(nodes, 2 * node + 1, grid)) < (reach[1] if partner < 0 else reach[2])
        node = np.int64(ropes[2 * node + (0 if near else 1)])
        if near and partner >= 0:
            acc = visit_leaf(rows, grid, law, check_images, query, partner, low, sums, acc)
    return acc


@callee
def traverse_stack(n, rows, tree, grid, reach, law, check_images, query, sums, acc, stack):
    """Fold the law over the leaves within reach of a position, with a stack of nodes ([karras2012blog]).

    A left child has the number of the last leaf below it, whether it is a leaf or not, so that this leaf is
    known without a load; the last leaf below a right child is the one below its parent.
    """
    (nodes, ropes), after, at, top = tree, query[1], query[5], 1
    stack[0] = 0
    while top > 0:
        top -= 1
        node = np.int64(stack[top])
        low, partner = load(nodes, 2 * node, grid), node - (n - 1)
        if not gap2(at, low, load(nodes, 2 * node + 1, grid)) < (reach[1] if partner < 0 else reach[2]):
            continue
        if partner >= 0:
            acc = visit_leaf(rows, grid, law, check_images, query, partner, low, sums, acc)
            continue
        left = np.int64(ropes[2 * node])
        if (left if left < n - 1 else left - (n - 1)) > after:
            stack[top] = left
            top += 1
        stack[top] = ropes[2 * left + 1]
        top += 1
    return acc


@callee
def traverse_images(n, leaf, later_only, rows, tree, grid, reach, law, stack, sums):
    """Fold the law for a leaf's particle and its images over all other leaves, or over later leaves only."""
    pos, vel, order = rows
    after = leaf if later_only else -1
    i = np.int64(order[leaf]) if len(order) else leaf
    ri, vi = load(pos, i, grid), load(vel, i, grid)
    low, high = load(tree[0], 0, grid), load(tree[0], 1, grid)
    check_images, acc = needs_images(grid, ri, low, high, reach[0]), initial(law, ri)
    for image in range(3 ** len(ri) if check_images else 1):
        if is_needed(grid, ri, image, low, high, reach[0]):
            query = leaf, after, i, ri, vi, image_of(grid, ri, image), image
            if stack is None:
                acc = traverse_ropes(n, rows, tree, grid, reach, law, check_images, query, sums, acc)
            else:
                acc = traverse_stack(n, rows, tree, grid, reach, law, check_images, query, sums, acc, stack)
    return acc
