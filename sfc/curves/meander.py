"""Wunderlich's meander: 3 x 3 squares in the shape of an R."""

from sfc import checks
from sfc.automaton.curve import Curve
from sfc.automaton.patterns import curve_from_patterns

PATTERNS = {
    "meander": (
        *("00 meander yx", "01 meander yx", "02 meander xy"),
        *("12 meander xy", "22 meander xy", "21 meander XY"),
        *("11 meander YX", "10 meander YX", "20 meander xy"),
    ),
}


def meander(dim: int) -> Curve:
    """Build Wunderlich's meander, the R-order of Haverkort and van Walderveen.

    Args:
        dim: 2 (4 states).

    Returns:
        A continuous curve of base 3 from the origin's corner to the one along axis 0.

    Raises:
        TypeError: a dim that is no integer.
        ValueError: another dim.

    Wunderlich, Elemente der Mathematik 28 (1973) 1; Haverkort and van Walderveen, Computational Geometry 43
    (2010) 131.
    """
    dim = checks.integer("dim", dim, 2, 2)
    return curve_from_patterns("meander", dim, 3, PATTERNS, "meander xy")
