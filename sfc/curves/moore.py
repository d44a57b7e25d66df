"""Moore's closed curve: Hilbert's with a different first level, so that its end is adjacent to its start."""

from sfc import checks
from sfc.automaton.curve import Curve
from sfc.automaton.lsystem import curve_from_grammar
from sfc.curves.grammars import HILBERT

AXIOMS = {2: "AFA<F<AFA", 3: "A+#<A&#<A+<#A+#^A+<#A+&#A+#<A"}


def moore(dim: int) -> Curve:
    """Build Moore's curve: four (eight) Hilbert curves in a loop around a square (cube).

    Moore, Trans. Amer. Math. Soc. 1 (1900) 72-90. In 3D the eight are the curve of [thesis]; the axiom is the
    shortest string of its kind, found by trying all loops around the cube with the symbol A.

    Args:
        dim: 2 (5 states) or 3 (33 states).

    Returns:
        A closed, continuous curve of base 2.

    Raises:
        TypeError: a dim that is no integer.
        ValueError: one outside this range.
    """
    dim = checks.integer("dim", dim, 2, 3)
    return curve_from_grammar("moore", dim, AXIOMS[dim], HILBERT[dim])
