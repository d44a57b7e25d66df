"""Orderings of the cells of a box: row scans, paths that fit a box, and boxes within the cube of a curve.

`Ordering` ranks cells and lists them; `ordering` and `covering` make one by name. Each entry below is a
function shape -> `Scan`; a new one is a file and one line here, `register_ordering(name, build, dims)`. Every
curve of the registry is an ordering too.
"""

from sfc.orderings import gilbert, pancake, scans
from sfc.orderings.factory import covering, ordering
from sfc.orderings.ordering import MOST_AXES, Ordering
from sfc.registry import register_ordering

__all__ = ["Ordering", "covering", "ordering"]

ANY = range(1, MOST_AXES + 1)
register_ordering("gilbert", gilbert.gilbert, (2, 3))
register_ordering("pancake", pancake.pancake, (3,), covering=pancake.covering)
register_ordering("random", scans.random, ANY)
register_ordering("row", scans.row, ANY)
register_ordering("tiled", scans.tiled, ANY)
register_ordering("zigzag", scans.zigzag, ANY)
