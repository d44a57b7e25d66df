"""Keys and orders of points, by curves, by orderings of cells and by orders of points; encoding in one call.

`order.py` has `keys`, `argsort` and `sort`, `codec.py` has `encode` and `decode`. Below them, `by_curve.py`
and `by_ordering.py` make keys of the cells of `grid.py`. `geometries.py` makes points of geometries,
`rows.py` checks arrays and sorts their rows.
"""

from sfc.point_keys.codec import decode, encode
from sfc.point_keys.order import argsort, keys, sort

__all__ = ["argsort", "decode", "encode", "keys", "sort"]
