"""Wierum's beta-Omega curve: two patterns with end points inside the sides of the square."""

from sfc import checks
from sfc.automaton.curve import Curve
from sfc.automaton.patterns import curve_from_patterns

PATTERNS = {
    "omega": ("00 beta xY", "01 beta Yx", "11 beta yx~", "10 beta XY~"),
    "beta": ("00 beta xY", "01 beta Yx", "11 beta yx~", "10 omega yX"),
}


def betaomega(dim: int) -> Curve:
    """Build the open beta-Omega curve, which starts from the pattern Omega.

    In a unit square, Omega leads from (0, 1/3) to (1, 1/3), and beta from (0, 1/3) to (2/3, 0). Wierum's
    closed curve is a ring of four betas.

    Args:
        dim: 2 (24 states).

    Returns:
        A continuous curve of base 2 from the lower to the upper side along axis 0; at order k both ends are
        at 2**k // 3 along axis 1.

    Raises:
        TypeError: a dim that is no integer.
        ValueError: another dim.

    Wierum, Definition of a New Circular Space-Filling Curve: Beta-Omega-Indexing, report TR-001-02, Paderborn
    Center for Parallel Computing (2002); as two patterns, Haverkort and van Walderveen, Computational
    Geometry 43 (2010) 131.
    """
    dim = checks.integer("dim", dim, 2, 2)
    return curve_from_patterns("betaomega", dim, 2, PATTERNS, "omega xy")
