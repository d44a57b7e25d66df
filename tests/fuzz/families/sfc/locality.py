"""Five measures of the locality of an ordering; what they give is a matter of tests.sfc.locality."""

from __future__ import annotations

import math

from hypothesis.strategies import sampled_from

import sfc
from tests.fuzz.families import Family
from tests.fuzz.families.sfc.boxes import some_orderings
from tests.fuzz.judge import Cases, cases
from tests.fuzz.kinds import Kind, an, either, few, integer, maybe, of

MEASURES = "edge_stretch", "dilation", "bounding_box", "clusters", "partition_cut"


def measures(draw) -> Cases:
    """A measure of an ordering."""
    ordering, call = draw(some_orderings(64)), getattr(sfc.locality, draw(sampled_from(MEASURES)))
    along, size = integer(1, min(ordering.shape), (1, 2)), ordering.size
    table = {
        "ordering": an(sfc.Ordering, ordering), "pieces": integer(1, size, (1, min(8, size))),
        "window": either(along, few(integer(1, 8, (1, 3)), (ordering.dim,))), "seed": integer(0),
        "samples": maybe(integer(1, usual=(1, 40), most=10**5)), "norm": Kind(sampled_from((1, 2, math.inf))),
    }  # fmt: skip
    return cases(call, of(call, table))


FAMILY = Family({measures: 1})
