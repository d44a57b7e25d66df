"""Hilbert's curve, by grammar, and what else goes by its name in 3D.

Hilbert, Math. Ann. 38 (1891) 459. In 3D the name covers many curves. `hilbert` is the four-symbol grammar of
the granular-gas thesis that this laboratory examines (seed 003, its appendix), whose symbols are four chiral
versions; `butz` (in butz.py) and `compact` (in compact.py) are others.
"""

from sfc import checks
from sfc.automaton.curve import Curve
from sfc.automaton.lsystem import GrammarError, curve_from_grammar
from sfc.butz import butz

RULES = {
    2: {"A": ">BF<AFA<FB>", "B": "<AF>BFB>FA<"},
    3: {
        "A": "B-#+C#C+#-D&#^D-#+&&C#C+#+B<<",
        "B": "A&#^C#B^#^D^^-#-D^|#^B|#C^#^A<<",
        "C": "|D^|#^B-#+C^#^A&&#A&#^C+#+B^#^D<<",
        "D": "|C#B-#+B|#A&#^A&&#B-#+B|#C<<",
    },
}


def hilbert(dim: int, axiom: str = "A") -> Curve:
    """Hilbert's curve.

    Args:
        dim: 2 (4 states) or 3 (16 states), from the grammar; or 4, which no turtle walks: Butz's.
        axiom: the symbol to start from, one of the grammar's: A or B in 2D; A, B, C or D in 3D; A in 4D.

    Returns:
        A continuous curve of base 2 that starts in the origin's corner.

    Raises:
        TypeError: a dim that is no integer, or an axiom that is no str.
        ValueError: another dim.
        GrammarError: an axiom that is no symbol of the grammar.
    """
    dim = checks.integer("dim", dim, 2, 4)
    known = tuple(RULES.get(dim, {"A": ""}))
    if checks.instance("axiom", axiom, str, f"one of {', '.join(known)}") not in known:
        raise GrammarError(f"axiom {axiom!r} of hilbert in {dim}D; allowed: {', '.join(known)}")
    name = "hilbert" if axiom == "A" else f"hilbert-{axiom}"
    if dim not in RULES:
        return butz(dim, name)
    return curve_from_grammar(name, dim, axiom, RULES[dim])
