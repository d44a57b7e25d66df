"""Locality of an order: five measures of any `Ordering`.

Contract. Positions are 0 .. size - 1 along the order, without gaps, and lengths are counted in cells. A
measure is exact in boxes up to `PAIR_CELLS` cells if its work grows as size**2, and up to `LISTED_CELLS` if
it grows as size. Above, or if `samples` is given, it draws that many at random, with replacement (`SAMPLES`
by default), and estimates the standard error of the mean. `seed` fixes the draw.

A sampled measure computes ranks of single cells or cells of single ranks, so it needs an ordering without
gaps (`is_dense`) or a box of at most `LISTED_CELLS` cells, which it lists. In a box without anything to
measure, such as a single cell without a pair, the mean and the worst are NaN.
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
