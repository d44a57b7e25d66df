"""Models of a cache: predicted hits of a stream of memory accesses.

Contract. An `AccessStream` lists the memory slots that are read, grouped by reader, the slot for which they
are read. A model computes a `HitRatio` from it. Caches start empty. Slots are particles; `addresses` converts
them to bytes.
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
