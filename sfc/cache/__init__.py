"""Models of a cache: predicted hits of a stream of memory accesses.

Contract. An `AccessStream` lists the memory slots that are read, grouped by reader, the slot for which they
are read. A model computes a `HitRatio` from it. Caches start empty. Slots are particles; `addresses` converts
them to bytes.

A GPU takes the loads of 32 threads at once. A `LoadStream` has the loads and stores of each of these warps,
in bytes, instruction by instruction; `LoadStream.of` makes one from the elements that threads take, and
`in_lockstep` from a compiled walk through the kernel, as one thread takes it. `warps` counts the sectors
that are asked for, `l1` those that the first cache lacks, and `l2` the bytes that come from memory and go
there, and the pages that are opened for them, for each item of the kernel. `foresee` does all three for a
`Machine`, and adds the time.
"""

from sfc.cache.addresses import LAYOUTS, addresses
from sfc.cache.block import block, block_hits
from sfc.cache.footprint import MemoryBytes, l2
from sfc.cache.forecast import Fitted, Forecast, foresee
from sfc.cache.loads import ADDED, READ, WRITTEN, Access, LoadStream, WarpLoads, starts_of
from sfc.cache.lockstep import end, in_lockstep, note, note_row
from sfc.cache.lru import StackDistances, lru
from sfc.cache.machine import Machine
from sfc.cache.multiprocessor import L1, L1Loads, l1
from sfc.cache.sectors import Estimate, WarpSectors, warps
from sfc.cache.set_associative import set_associative
from sfc.cache.stream import AccessStream, HitRatio

__all__ = [
    "ADDED",
    "L1",
    "LAYOUTS",
    "READ",
    "WRITTEN",
    "Access",
    "AccessStream",
    "Estimate",
    "Fitted",
    "Forecast",
    "HitRatio",
    "L1Loads",
    "LoadStream",
    "Machine",
    "MemoryBytes",
    "StackDistances",
    "WarpLoads",
    "WarpSectors",
    "addresses",
    "block",
    "block_hits",
    "end",
    "foresee",
    "in_lockstep",
    "l1",
    "l2",
    "lru",
    "note",
    "note_row",
    "set_associative",
    "starts_of",
    "warps",
]
