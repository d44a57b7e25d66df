"""Haverkort's curve F: a 3D Hilbert curve with end points inside faces, of small Euclidean dilation."""

from sfc import checks
from sfc.automaton.curve import Curve
from sfc.automaton.patterns import curve_from_patterns

PATTERNS = {
    "f": (
        *("000 f xZY", "010 f YxZ", "011 f Yxz~", "001 f ZXy"),
        *("101 f zXy~", "111 f yxz", "110 f yxZ~", "100 f yZx~"),
    ),
}


def haverkort_f(dim: int) -> Curve:
    """Build Haverkort's curve F, which leads from (0, 1/3, 1/3) to (2/3, 1/3, 0) in a unit cube.

    Args:
        dim: 3 (48 states).

    Returns:
        A continuous curve of base 2 from the lower side along axis 0 to that along axis 2.

    Raises:
        TypeError: a dim that is no integer.
        ValueError: another dim.

    Haverkort, An inventory of three-dimensional Hilbert space-filling curves, arXiv:1109.2323 (2011).
    """
    dim = checks.integer("dim", dim, 3, 3)
    return curve_from_patterns("haverkort_f", dim, 2, PATTERNS, "f xyz")
