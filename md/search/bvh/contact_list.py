"""The law that puts off: whom does a walk meet? A list for each particle, for a kernel that pushes later.

A walk that pushes in place needs none. Lists are how it was done first, and what it is compared with (the
article on Newtonian lift, seed 000; Karras, Thinking parallel, part I, NVIDIA developer blog, 2012).
"""

from __future__ import annotations

from typing import NamedTuple

from md.backend.base import Array
from md.laws.pair import pair_function
from md.search.partners import none_yet


class ContactList(NamedTuple):
    """Write down whom a particle meets, as long as there is room.

    Attributes:
        room: partners of each that there is room for.
        partners: (room * n,) int32 slots of n particles, filled: the k-th of particle i in k * n + i, so that
            neighbouring threads write side by side.
    """

    room: int
    partners: Array


@pair_function(ContactList, initial=none_yet)
def interact(law, vel, i, j, r2, dr, vi, acc):
    """The number of partners so far, and one more, which is written down if there is room.

    The output of a force kernel, (n,) int32, is how many each met: more than the room where some are not in
    the list.
    """
    if acc < law.room:
        law.partners[acc * len(vel) + i] = j
    return acc + 1
