"""Haverkort's curve A26.0010 1011.1011 0011: a 3D Hilbert curve of small dilation in the max norm."""

from sfc import checks
from sfc.automaton.curve import Curve
from sfc.automaton.patterns import curve_from_patterns

PATTERNS = {
    "a26": (
        *("000 a26 zXy~", "010 a26 yzX~", "011 a26 yzx", "001 a26 XZY~"),
        *("101 a26 xZY", "111 a26 Yzx~", "110 a26 YzX", "100 a26 YXz"),
    ),
}


def haverkort_a26(dim: int) -> Curve:
    """Build Haverkort's curve A26.0010 1011.1011 0011, of one pattern between adjacent corners.

    Args:
        dim: 3 (48 states).

    Returns:
        A continuous curve of base 2 from the origin's corner to the opposite one along axis 0.

    Raises:
        TypeError: a dim that is no integer.
        ValueError: another dim.

    Haverkort, An inventory of three-dimensional Hilbert space-filling curves, arXiv:1109.2323 (2011).
    """
    dim = checks.integer("dim", dim, 3, 3)
    return curve_from_patterns("haverkort_a26", dim, 2, PATTERNS, "a26 xyz")
