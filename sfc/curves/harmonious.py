"""The harmonious Hilbert curve: Hilbert's curve in any dimension, in harmony with those of fewer."""

from sfc import checks
from sfc.automaton.curve import Curve
from sfc.automaton.patterns import AXES, curve_from_patterns


def harmonious(dim: int) -> Curve:
    """Build the harmonious Hilbert curve.

    On every face of the cube at the origin it visits the cells in the order of the harmonious curve of the
    face's dimension; in 2D it is Hilbert's. The sub-cubes follow the Gray code. The axes of sub-cube r are
    permuted to descending order, first those whose bit of r differs from its last bit. It is mirrored along
    the axes on whose upper side sub-cube r - 1 lies, and along the last axis if it lies on the lower side.

    Args:
        dim: 2 (Hilbert's curve, 4 states), 3 (24 states) or 4 (192 states).

    Returns:
        A continuous curve of base 2 from the origin's corner to the opposite one along axis 0.

    Raises:
        TypeError: a dim that is no integer.
        ValueError: one outside this range.

    Haverkort, Harmonious Hilbert curves and other extradimensional space-filling curves, arXiv:1211.0175
    (2012); Sixteen space-filling curves and traversals for d-dimensional cubes and simplices,
    arXiv:1711.04473 (2017).
    """
    dim = checks.integer("dim", dim, 2, len(AXES))
    lines = []
    for r in range(1 << dim):
        bits, cell = _bits(r, dim), _bits(r ^ r >> 1, dim)
        mirrored = [*_bits(r - 1 ^ r - 1 >> 1, dim)[:-1], 1 - cell[-1]] if r else cell
        order = sorted(range(dim), key=lambda axis: (bits[axis] == bits[-1], -axis))
        letters = "".join(
            AXES[order.index(axis)].upper() if mirrored[axis] else AXES[order.index(axis)]
            for axis in range(dim)
        )
        lines.append("".join(map(str, cell)) + " harmonious " + letters)
    return curve_from_patterns("harmonious", dim, 2, {"harmonious": lines}, f"harmonious {AXES[:dim]}")


def _bits(number: int, dim: int) -> list[int]:
    """List the bits of a number; axis 0 is the highest."""
    return [number >> (dim - 1 - axis) & 1 for axis in range(dim)]
