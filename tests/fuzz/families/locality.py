"""Five measures of the locality of an ordering, beside loops over all pairs, sections, windows or faces."""

from __future__ import annotations

import math

from hypothesis.strategies import sampled_from

import sfc
from tests.fuzz import references
from tests.fuzz.families import Family
from tests.fuzz.families.boxes import some_orderings
from tests.fuzz.judge import Cases, cases, equal, require, same
from tests.fuzz.kinds import Kind, an, either, few, integer, maybe


def measure(name: str):
    """A measure of an ordering."""

    def part(draw) -> Cases:
        ordering, path = draw(some_orderings(64))
        dim, size = ordering.dim, ordering.size
        windows = few(integer(1, 8, (1, 3)), (dim,))
        more = {
            "clusters": {"window": either(integer(1, min(ordering.shape), (1, 2)), windows)},
            "partition_cut": {"pieces": integer(1, size, (1, min(8, size)))},
        }

        def check(found, plain):
            if name == "partition_cut":
                cuts, pairs = references.cut(path, plain["pieces"])
                if found.exact:
                    require(found.cut in cuts, f"{found.cut} cut, and by the reference {cuts}")
                    same(found.share, found.cut / pairs if pairs else math.nan, "share", 1e-12)
                return
            right = references.MEASURES[name](path, ordering.shape, plain)
            if found.exact or not right:
                equal(found.samples, len(right), "samples")
                both = (math.fsum(right) / len(right), max(right)) if right else (math.nan, math.nan)
                same((found.mean, found.worst), both, "mean and worst", 1e-9)
            require(not right or found.worst <= max(right) * (1 + 1e-9), f"worst {found.worst} of all")

        kinds = {"ordering": an(sfc.Ordering, ordering)} | more.get(name, {})
        optional = {"samples": maybe(integer(1, usual=(1, 40), most=10**5)), "seed": integer(0)}
        if name == "dilation":
            optional["norm"] = Kind(sampled_from((1, 2, math.inf)))
        return cases(getattr(sfc.locality, name), kinds, optional, check=check)

    return part


FAMILY = Family({measure(name): 1 for name in (*references.MEASURES, "partition_cut")})
