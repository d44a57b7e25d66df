"""The law that puts off: whom does a walk meet? A list for each particle, for a kernel that pushes later.

A walk that pushes in place needs none. Lists are how it was done first, and what it is compared with (the
article on Newtonian lift, seed 000; Karras, Thinking parallel, part I, NVIDIA developer blog, 2012).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from md.backend.base import Array
from md.backend.prelude import finish
from md.laws.pair import interact


class Listing(NamedTuple):
    """Write down whom a particle meets, as long as there is room.

    Attributes:
        room: partners of each that there is room for.
        partners: (room * n,) int32 slots of n particles, filled: the k-th of particle i in k * n + i, so that
            neighbouring threads write side by side.
    """

    room: int
    partners: Array


class Counts(NamedTuple):
    """Output of a force kernel on such a law: how many each particle met.

    Attributes:
        met: (n,) int32, filled; more than the room where some are not in the list.
    """

    met: Array


@overload(interact, jit_options={"forceinline": True})
def _interact(law, vel, i, j, r2, dr, vi, acc):
    if not (isinstance(law, types.BaseNamedTuple) and law.instance_class is Listing):
        return None
    one = acc.dtype

    def write_down(law, vel, i, j, r2, dr, vi, acc):
        k = int(acc[0])
        if k < law.room:
            law.partners[k * len(vel) + i] = j
        return (acc[0] + one(1), *acc[1:])

    return write_down


@overload(finish, jit_options={"forceinline": True})
def _finish(out, grid, i, ri, vi, acc):
    if not (isinstance(out, types.BaseNamedTuple) and out.instance_class is Counts):
        return None

    def write_number(out, grid, i, ri, vi, acc):
        out.met[i] = np.int32(acc[0])

    return write_number
