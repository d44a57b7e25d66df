"""Hilbert's curve in two and three dimensions.

Hilbert, Math. Ann. 38 (1891) 459. In 3D the name covers many curves; this one is the four-symbol grammar
of the granular-gas thesis that this laboratory examines (its appendix), whose symbols are four chiral
versions.
"""

from sfc.curve import Curve
from sfc.lsystem import curve_from_grammar

RULES = {
    2: {"A": ">BF<AFA<FB>", "B": "<AF>BFB>FA<"},
    3: {
        "A": "B-#+C#C+#-D&#^D-#+&&C#C+#+B<<",
        "B": "A&#^C#B^#^D^^-#-D^|#^B|#C^#^A<<",
        "C": "|D^|#^B-#+C^#^A&&#A&#^C+#+B^#^D<<",
        "D": "|C#B-#+B|#A&#^A&&#B-#+B|#C<<",
    },
}


def hilbert(dim: int) -> Curve:
    """Hilbert's curve from its grammar.

    Args:
        dim: 2 (4 states) or 3 (16 states).

    Returns:
        A continuous curve of base 2 that starts in the origin's corner.
    """
    return curve_from_grammar("hilbert", dim, "A", RULES[dim])
