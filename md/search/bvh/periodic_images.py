"""Images of a position at periodic sides, for traversals of nodes that may extend beyond the box.

An image is a number of `dim` digits of base 3, the first axis lowest: 1 is a length up, 2 a length down.
"""

from sfc.compile import inlined, overload


@inlined
def is_needed(grid, r, image, low, high, reach):
    """Return whether the box from `low` to `high` is within reach of an image of a position."""
    for axis in range(len(r)):
        digit = image % 3
        image //= 3
        x, length = r[axis], grid.length[axis]
        gap = x + length - high[axis] if digit == 1 else low[axis] - x + length
        if digit > 0 and (grid.periodic[axis] == 0 or gap >= reach):
            return False
    return True


@inlined
def needs_images(grid, r, low, high, reach):
    """Return whether the box is within reach of any image of a position other than the position itself."""
    needs = False
    for axis in range(len(r)):
        x, length = r[axis], grid.length[axis]
        close = x + length - high[axis] < reach or low[axis] - x + length < reach
        needs |= grid.periodic[axis] != 0 and close
    return needs


@inlined
def is_nearest(grid, a, b, stored, image):
    """Return whether an image of a is the one nearest to b.

    The tree may store b a length away, at `stored`, which may differ from that position by less than half a
    length. So no particle is visited by two images.
    """
    for axis in range(len(a)):
        half, d, offset = grid.half[axis], a[axis] - b[axis], stored[axis] - b[axis]
        nearest = -1 if d > half else (1 if d < -half else 0)
        out = 1 if offset > half else (-1 if offset < -half else 0)
        moved = -1 if image % 3 == 2 else image % 3
        if moved - out != nearest:
            return False
        image //= 3
    return True


@inlined
def moved_along(grid, axis, r, image):
    """Return a coordinate of an image of a position."""
    digit = image // 3**axis % 3
    if digit == 0:
        return r[axis]
    return r[axis] + grid.length[axis] if digit == 1 else r[axis] - grid.length[axis]


def image_of(grid, r, image):
    """Return an image of a position: the position moved by up to a length along each axis."""
    raise NotImplementedError


@overload(image_of)
def _image_of(grid, r, image):
    if r.count == 2:
        return lambda grid, r, image: (moved_along(grid, 0, r, image), moved_along(grid, 1, r, image))
    return lambda grid, r, image: (
        moved_along(grid, 0, r, image),
        moved_along(grid, 1, r, image),
        moved_along(grid, 2, r, image),
    )
