"""Hilbert's curve in 2D and 3D, from its L-system.

Hilbert, Math. Ann. 38 (1891) 459. In 3D the name covers many curves. `hilbert` is the curve of the
granular-gas thesis [thesis, appendix]; `butz` and `compact` are two others. From 4D on the name is registered
for Butz's curve.
"""

from sfc import checks
from sfc.automaton.curve import Curve
from sfc.automaton.lsystem import GrammarError, curve_from_grammar
from sfc.curves.grammars import HILBERT


def hilbert(dim: int, axiom: str = "A") -> Curve:
    """Build Hilbert's curve.

    Args:
        dim: 2 (4 states) or 3 (16 states).
        axiom: the symbol to start from, one of the grammar's: A or B in 2D; A, B, C or D in 3D.

    Returns:
        A continuous curve of base 2 that starts in the origin's corner.

    Raises:
        TypeError: a dim that is no integer, or an axiom that is no str.
        ValueError: another dim.
        GrammarError: an axiom that is no symbol of the grammar.
    """
    dim = checks.integer("dim", dim, 2, 3)
    known = tuple(HILBERT[dim])
    if checks.instance("axiom", axiom, str, f"one of {', '.join(known)}") not in known:
        raise GrammarError(f"axiom {axiom!r} of hilbert in {dim}D; allowed: {', '.join(known)}")
    name = "hilbert" if axiom == "A" else f"hilbert-{axiom}"
    return curve_from_grammar(name, dim, axiom, HILBERT[dim])
