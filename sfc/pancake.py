"""The Hilbert pancake: a flat path over square blocks whose every block is a Hilbert cube.

The thesis's curve for a shallow box (seed 003, chapter 4 and its figure 4.6). The path over the blocks is
gilbert's, which is Hilbert's on a square of 2**k blocks. Each cube is turned so that it starts beside the
end of the one before and ends on the side of the one after: a Hilbert cube ends in a corner that differs from
its first along one axis, so to leave through a side that the first corner does not lie on, it must be that
axis; from one that it does lie on, any other.
"""

import numpy as np

from sfc.catalogue import curve
from sfc.gilbert import gilbert
from sfc.scans import Scan

CUBE = "hilbert"


def covering(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The smallest shape a pancake fills that holds a box: height 2**j, and a base of whole cubes."""
    height = 1 << (shape[2] - 1).bit_length()
    return (*(-(-side // height) * height for side in shape[:2]), height)


def pancake(shape: tuple[int, ...]) -> Scan:
    """The pancake in an n x m x h box.

    Args:
        shape: n, m, h with h = 2**j, and n and m multiples of h.

    Returns:
        Rank of cells and cells of ranks; unit steps throughout.

    Raises:
        ValueError: a shape it cannot fill; names the next that it can.
    """
    if covering(shape) != shape:
        raise ValueError(
            f"pancake of {shape} cells; allowed: (n, m, h) with h a power of two, and n and m multiples of "
            f"h; the smallest that holds this box is {covering(shape)}, which sfc.covering() ranks it by"
        )
    height = shape[2]
    order, volume = height.bit_length() - 1, height**3
    cube = curve(CUBE, 3)
    blocks = gilbert((shape[0] // height, shape[1] // height))
    path = blocks.cells(np.arange(shape[0] // height * (shape[1] // height)))
    axes, far = _turned(path, _exit_axis(cube))

    def rank(cells):
        block = blocks.rank(cells[:, :2] // height).astype(np.int64)
        local = cells % height
        local = np.where(far[block], height - 1 - local, local)
        local = np.take_along_axis(local, axes[block], axis=1)
        return block.astype(np.uint64) * np.uint64(volume) + cube.encode(local, order)

    def cells(rank):
        block = rank // volume
        found = np.empty((len(rank), 3), np.int64)
        np.put_along_axis(found, axes[block], cube.decode(rank % volume, order), axis=1)
        found = np.where(far[block], height - 1 - found, found)
        found[:, :2] += path[block] * height
        return found

    return Scan(rank, cells)


def _exit_axis(cube) -> int:
    """The axis along which a curve's last cell lies across from its first."""
    return int(np.flatnonzero(cube.traversal(1)[-1])[0])


def _turned(path: np.ndarray, exit_axis: int) -> tuple[np.ndarray, np.ndarray]:
    """How each block's cube is turned.

    Args:
        path: (blocks, 2) the blocks in order.
        exit_axis: axis of the cube as it stands along which it ends across from its start.

    Returns:
        axes: (blocks, 3); axis k of the cube as it stands lies along axis axes[:, k] of the box.
        far: (blocks, 3) bool; whether it starts on the far side of each axis of the box.
    """
    count = len(path)
    axes, far = np.empty((count, 3), np.int64), np.zeros((count, 3), bool)
    corner = np.zeros(3, bool)
    steps = np.diff(path, axis=0)
    for block in range(count):
        far[block] = corner
        along = 2  # the last may end anywhere
        if block < count - 1:
            axis = int(np.flatnonzero(steps[block])[0])
            side = steps[block, axis] > 0
            along = axis if corner[axis] != side else 2
        axes[block] = [(along + k - exit_axis) % 3 for k in range(3)]
        corner = corner.copy()
        corner[along] = not corner[along]
        if block < count - 1:
            corner[axis] = not side  # the next cube is entered from the side that this one leaves by
    return axes, far
