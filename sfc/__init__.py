"""Space-filling curves, orderings of boxes, locality measures and cache models, without physics.

`keys`, `argsort` and `sort` order points of floats or integers, or geometries, along a curve or by an
ordering of cells, such as `row`; the latter two also by an order of points, such as `strided`. `encode` and
`decode` convert cells to indices along a curve and back, in one call. `curve("hilbert", dim=3)` has encode,
decode and traversal of cells, in up to 64 dims. `ordering("hilbert", shape)` ranks the cells of any box.
`locality` measures how well an order keeps neighbours together. `cache.block`, `cache.lru` and
`cache.set_associative` predict the hits of an access stream. `testing.check_curve` checks a curve. `device`
encodes, decodes and ranks arrays on a CUDA device.
"""

from sfc import cache, checks, device, locality, testing
from sfc.any_curve import AnyCurve
from sfc.automaton.curve import Curve
from sfc.automaton.grammar_file import parse_curve, read_curve
from sfc.automaton.lsystem import GrammarError, curve_from_grammar
from sfc.orderings import Ordering, covering, ordering

# isort: split
# The rooms `sfc.curves`, `sfc.orderings` and `sfc.point_orders` register their entries; then the functions
# take these three names.
from sfc import curves as _families  # noqa: F401 - registers the curve families
from sfc import point_orders as _orders_of_points  # noqa: F401 - registers the orders of points
from sfc.point_keys import argsort, decode, encode, keys, sort
from sfc.registry import curve, curves, orderings, point_orders, register, register_ordering
from sfc.show_config import show_config

__all__ = [
    "AnyCurve",
    "Curve",
    "GrammarError",
    "Ordering",
    "argsort",
    "cache",
    "checks",
    "covering",
    "curve",
    "curve_from_grammar",
    "curves",
    "decode",
    "device",
    "encode",
    "keys",
    "locality",
    "ordering",
    "orderings",
    "parse_curve",
    "point_orders",
    "read_curve",
    "register",
    "register_ordering",
    "show_config",
    "sort",
    "testing",
]
