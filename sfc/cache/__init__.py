"""Models of a cache fed by a stream of accesses: what an order should buy.

Contract. A stream says which memory slots are read, grouped by the reader, the slot on whose behalf they are
read. A model turns it into a `HitRatio`. Caches start empty. Slots are particles; `addresses` converts them
to bytes.
"""

from sfc.cache.addresses import LAYOUTS, addresses
from sfc.cache.block import block, block_hits
from sfc.cache.lru import StackDistances, lru
from sfc.cache.set_associative import set_associative
from sfc.cache.stream import AccessStream, HitRatio

__all__ = [
    "LAYOUTS",
    "AccessStream",
    "HitRatio",
    "StackDistances",
    "addresses",
    "block",
    "block_hits",
    "lru",
    "set_associative",
]
