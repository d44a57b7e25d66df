"""Orders of points: they rank points, not cells, so that they are no orderings of a box.

`sfc.argsort` and `sfc.sort` take their names. Each entry below is a function points -> rows in order; a new
one is a file and one line here, `register_point_order(name, order)`.
"""

from sfc.point_orders import sort_tile_recursive, strided
from sfc.registry import register_point_order

register_point_order("str", sort_tile_recursive.sort_tile_recursive)
register_point_order("strided", strided.strided)
register_point_order("tiled_strided", strided.tiled_strided)
