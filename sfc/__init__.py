"""Space-filling curves, orderings of boxes, and models of a cache. Knows no physics.

`curve("hilbert", dim=3)` is an automaton with encode, decode and traversal. `ordering("hilbert", shape)`
ranks the cells of any box. `cache.block` predicts the hits of an access stream. `testing.check_curve` checks
a curve of yours. `device` encodes and decodes arrays on a CUDA device.
"""

from sfc import cache, device, testing
from sfc.catalogue import curve, curves, register
from sfc.curve import Curve
from sfc.grammar_file import read_curve
from sfc.lsystem import GrammarError, curve_from_grammar
from sfc.ordering import Ordering, covering, ordering, orderings

__all__ = [
    "Curve",
    "GrammarError",
    "Ordering",
    "cache",
    "covering",
    "curve",
    "curve_from_grammar",
    "curves",
    "device",
    "ordering",
    "orderings",
    "read_curve",
    "register",
    "testing",
]
