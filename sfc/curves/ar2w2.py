"""The AR2W2 curve of Asano, Ranjan, Roos, Welzl and Widmayer: four patterns, not continuous."""

from sfc import checks
from sfc.automaton.curve import Curve
from sfc.automaton.patterns import curve_from_patterns

PATTERNS = {
    "A": ("00 D xy", "10 B yX~", "01 C Yx", "11 B xY"),
    "B": ("00 D yx", "01 C Xy~", "11 B xy", "10 B YX"),
    "C": ("00 A yx", "01 B Yx", "11 A yX", "10 B YX"),
    "D": ("00 A xy", "01 C Yx", "11 A yX", "10 D Yx~"),
}
STARTS = ("A", "D")


def ar2w2(dim: int, axiom: str = "A") -> Curve:
    """Build the AR2W2 curve, three sections of which cover any square of four cells.

    A leads from a corner to the opposite one; B, C and D lead to an adjacent one. Every order of a curve
    starts from the same pattern, so that it refines the order before. The first quarter of A is D, and that
    of D is A: with A at odd and D at even orders, an order continues the one before instead.

    Args:
        dim: 2 (64 states).
        axiom: the pattern to start from: A or D.

    Returns:
        A curve of base 2 that starts in the origin's corner; some of its steps are diagonal, so it is not
        continuous.

    Raises:
        TypeError: a dim that is no integer, or an axiom that is no str.
        ValueError: another dim or axiom.

    Asano, Ranjan, Roos, Welzl and Widmayer, Theoretical Computer Science 181 (1997) 3; as four patterns,
    Haverkort and van Walderveen, Computational Geometry 43 (2010) 131.
    """
    dim = checks.integer("dim", dim, 2, 2)
    axiom = checks.word("axiom", axiom, STARTS)
    name = "ar2w2" if axiom == "A" else f"ar2w2-{axiom}"
    return curve_from_patterns(name, dim, 2, PATTERNS, f"{axiom} xy")
