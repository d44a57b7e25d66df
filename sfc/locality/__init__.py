"""Locality of an order: five measures of any `Ordering`, one of a curve, and three of the edges of a graph.

Contract. Positions are 0 .. size - 1 along the order, without gaps, and lengths are counted in cells. A
measure is exact in boxes up to `PAIR_CELLS` cells if its work grows as size**2, and up to `LISTED_CELLS` if
it grows as size. Above, or if `samples` is given, it draws that many at random, with replacement (`SAMPLES`
by default), and estimates the standard error of the mean. `seed` fixes the draw.

A sampled measure computes ranks of single cells or cells of single ranks, so it needs an ordering without
gaps (`is_dense`) or a box of at most `LISTED_CELLS` cells, which it lists. In a box without anything to
measure, such as a single cell without a pair, the mean and the worst are NaN.

`limit_dilation` is the worst-case dilation of a curve in the limit of its orders.

`bandwidth`, `edge_length` and `edge_cut` measure an order of the vertices of any graph, such as a mesh.
"""

from sfc.locality.graph import bandwidth, edge_cut, edge_length
from sfc.locality.limit import limit_dilation
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
    "bandwidth",
    "bounding_box",
    "clusters",
    "dilation",
    "edge_cut",
    "edge_length",
    "edge_stretch",
    "limit_dilation",
    "partition_cut",
]
