"""Contact lists: a law that stores the partners of each particle for a second kernel, which adds the forces.

A traversal that computes forces in place needs no lists. Lists are the older method, measured here for
comparison ([lift]; part I of [karras2012blog]).
"""

from __future__ import annotations

from typing import NamedTuple

from md.backend.base import Array
from md.laws.pair import pair_function
from md.search.partners import none_yet


class ContactList(NamedTuple):
    """Law that lists the partners of each particle, as long as there is room.

    Attributes:
        room: capacity of each list, in partners.
        partners: (room * n,) int32 slots of n particles, filled: the k-th partner of particle i is stored in
            k * n + i, so that neighbouring threads write neighbouring entries.
    """

    room: int
    partners: Array


@pair_function(ContactList, initial=none_yet)
def interact(law, vel, i, j, r2, dr, vi, acc):
    """Count one more partner, and store it if there is room.

    The output of a force kernel, (n,) int32, is the number of partners of each particle: more than the room
    if some are not in the list.
    """
    if acc < law.room:
        law.partners[acc * len(vel) + i] = j
    return acc + 1
