"""How well an order keeps neighbours together: five measures of any `Ordering`.

Contract. Positions are 0 .. size - 1 along the order, without gaps, and lengths are counted in cells. A
measure looks at everything (`exact`) in boxes up to `PAIR_CELLS` cells where its work grows as size**2, up to
`LISTED_CELLS` where it grows as size; above, or where `samples` is given, it draws that many at random, with
replacement (`SAMPLES` where no number is given), and says how far the mean may be off. `seed` fixes the draw.

A sampled measure asks single cells for their rank or ranks for their cell, so it needs an ordering whose
ranks have no gaps (`is_dense`) or a box of at most `LISTED_CELLS` cells, which it lists. A box with nothing
to look at, as a single cell has no pair, has the mean and the worst NaN.
"""

from sfc.locality.measure import LISTED_CELLS, PAIR_CELLS, SAMPLES, Measure
from sfc.locality.neighbourhood import Clusters, Partition, clusters, edge_stretch, partition_cut
from sfc.locality.sections import bounding_box, dilation

__all__ = [
    "LISTED_CELLS",
    "PAIR_CELLS",
    "SAMPLES",
    "Clusters",
    "Measure",
    "Partition",
    "bounding_box",
    "clusters",
    "dilation",
    "edge_stretch",
    "partition_cut",
]
