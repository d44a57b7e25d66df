"""Peano's curve in two dimensions: a serpentine of 3 x 3, mirrored so that it joins up."""

from sfc.curve import Curve
from sfc.lsystem import curve_from_grammar

RULES = {2: {"A": "AFBFA>F>BFAFB<F<AFBFA", "B": "BFAFB<F<AFBFA>F>BFAFB"}}


def peano(dim: int) -> Curve:
    """Peano's curve from its grammar. Peano, Math. Ann. 36 (1890) 157.

    Args:
        dim: 2.

    Returns:
        A continuous curve of base 3 from one corner to the opposite one, 4 states.
    """
    return curve_from_grammar("peano", dim, "A", RULES[dim])
