"""Walks through a tree (`md.search.bvh.tree`) for one of its leaves: without a stack, or with one.

A walk folds a pair law over the leaves in reach of the leaf's particle and of its images at periodic sides.
Where each pair is to be met once it sees those alone that come `after` its own; else `after` is -1.

Contract. `rows` are positions, velocities and the slot of the particle of each leaf, which is (0,) where rows
are in the order of leaves. `tree` is boxes and ways. `far` is how far the particle looks, the square of that
for a node's box, and for a leaf's. `whom` is leaf, after, slot, position, velocity, position of the image
and its number. `sums` is None, or (n, dim): what the partners get, by their leaves.
"""

import numpy as np

from md.backend.prelude import displacement, dot, load, sub, zero
from md.laws.pair import initial, interact
from md.search.bvh.periodic_images import image_of, is_nearest, is_needed, needs_images
from md.search.bvh.tree import gap2
from sfc.compile import callee, inlined

ROOM = 96  # entries of a stack in a thread: a tree of keys of 63 bits and places of 31 has 95 levels


@inlined
def meet(rows, grid, law, asks, whom, partner, there, sums, acc):
    """The accumulator after a leaf in reach; where there are sums, what its particle gets is added there."""
    (pos, vel, order), (leaf, _, i, ri, vi, _, image) = rows, whom
    if partner == leaf:
        return acc
    j = np.int64(order[partner]) if len(order) else partner
    rj = load(pos, j, grid)
    if asks and not is_nearest(grid, ri, rj, there, image):
        return acc
    dr = displacement(grid, ri, rj)
    if sums is None:
        return interact(law, vel, i, j, dot(dr, dr), dr, vi, acc)
    back = sub(zero(ri), interact(law, vel, i, j, dot(dr, dr), dr, vi, initial(law, ri)))
    for axis in range(len(back)):
        sums[partner, axis] += back[axis]
    return sub(acc, back)


@callee
def traverse_ropes(n, rows, tree, grid, far, law, asks, whom, sums, acc):
    """Fold the law over the leaves in reach of a position, node by node: from the root, or past its own."""
    (nodes, way), after, at = tree, whom[1], whom[5]
    node = np.int64(way[2 * (n - 1 + after) + 1]) if after >= 0 else 0
    while node >= 0:
        low, partner = load(nodes, 2 * node, grid), node - (n - 1)
        near = gap2(at, low, load(nodes, 2 * node + 1, grid)) < (far[1] if partner < 0 else far[2])
        node = np.int64(way[2 * node + (0 if near else 1)])
        if near and partner >= 0:
            acc = meet(rows, grid, law, asks, whom, partner, low, sums, acc)
    return acc


@callee
def traverse_stack(n, rows, tree, grid, far, law, asks, whom, sums, acc, stack):
    """The same with a stack, as the source does it.

    A left child bears the number of the last leaf below it, be it a leaf or not, so that this is known
    without a look; the last leaf below a right one is that below its parent.
    """
    (nodes, way), after, at, top = tree, whom[1], whom[5], 1
    stack[0] = 0
    while top > 0:
        top -= 1
        node = np.int64(stack[top])
        low, partner = load(nodes, 2 * node, grid), node - (n - 1)
        if not gap2(at, low, load(nodes, 2 * node + 1, grid)) < (far[1] if partner < 0 else far[2]):
            continue
        if partner >= 0:
            acc = meet(rows, grid, law, asks, whom, partner, low, sums, acc)
            continue
        left = np.int64(way[2 * node])
        if (left if left < n - 1 else left - (n - 1)) > after:
            stack[top] = left
            top += 1
        stack[top] = way[2 * left + 1]
        top += 1
    return acc


@callee
def traverse_images(n, leaf, is_later, rows, tree, grid, far, law, stack, sums):
    """What a leaf's particle and its images get of all others, or of those whose leaves come later."""
    pos, vel, order = rows
    after = leaf if is_later else -1
    i = np.int64(order[leaf]) if len(order) else leaf
    ri, vi = load(pos, i, grid), load(vel, i, grid)
    low, high = load(tree[0], 0, grid), load(tree[0], 1, grid)
    asks, acc = needs_images(grid, ri, low, high, far[0]), initial(law, ri)
    for image in range(3 ** len(ri) if asks else 1):
        if is_needed(grid, ri, image, low, high, far[0]):
            whom = leaf, after, i, ri, vi, image_of(grid, ri, image), image
            if stack is None:
                acc = traverse_ropes(n, rows, tree, grid, far, law, asks, whom, sums, acc)
            else:
                acc = traverse_stack(n, rows, tree, grid, far, law, asks, whom, sums, acc, stack)
    return acc
