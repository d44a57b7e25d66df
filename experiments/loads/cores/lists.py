"""Loads of a search with lists of partners on a core: list after list, and the row of each partner."""

from __future__ import annotations

import md
from experiments.loads.cores.rows import OTHER, note_force, note_own, note_partner, rows_of
from sfc.cache import end, note
from sfc.cache.core import CoreStream, one_by_one
from sfc.cache.loads import READ
from sfc.compile import kernel

INDEX = 4  # bytes of an entry of a list


def verlet_stream(simulation: md.Simulation) -> CoreStream:
    """Make the stream of the forces of `verlet` on the CPU, which sorts the particles for its lists.

    The kernel goes twice through the lists of 64 particles at a time, first for those in reach; here each
    particle has its partners one after the other.
    """
    simulation.search.update(force=True)
    found = simulation.search.accesses()
    rows, n = rows_of(simulation, INDEX * len(found.reads)), len(found.offsets) - 1
    return one_by_one(_walk, (rows, found.readers, found.offsets, found.reads), n)


@kernel
def _walk(items, rows, readers, offsets, reads, noted):
    for k in range(len(items)):
        i = readers[items[k]]
        note_own(noted, rows, i)
        for entry in range(offsets[items[k]], offsets[items[k] + 1]):
            note(noted, OTHER, rows.base[3] + 4 * entry, READ, False)
            note_partner(noted, rows, i, reads[entry])
        note_force(noted, rows, i)
        end(noted, k)
