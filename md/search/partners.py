"""A law that collects the partners a search visits instead of computing a force.

A search's own force kernel folds it: it counts and stores every partner within reach. With an infinite reach
that is the kernel's access stream; with the cutoff it is the set of pairs. So the traversal that is predicted
and tested is the one that is timed.
"""

from typing import NamedTuple

import numpy as np

from md.laws.pair import pair_function, pair_size
from sfc.compile import inlined


class CollectPartners(NamedTuple):
    """Law that counts the partners within reach and, if there is room, stores them.

    Attributes:
        reach2: (1,) square of the search radius; infinite for every visit.
        radius: (n,) of each particle, in d, if the search radius is in sums of two radii; (0,) if it is in d.
        offsets: (n,) int64 index of each particle's first partner; used only if `partners` has room.
        partners: (partners of all,) int32 slots, filled; or (0,) to count only.
    """

    reach2: np.ndarray
    radius: np.ndarray
    offsets: np.ndarray
    partners: np.ndarray


@inlined
def none_yet(law, ri):
    """Return 0: no partner is counted yet."""
    return 0


@pair_function(CollectPartners, initial=none_yet)
def interact(law, vel, i, j, r2, dr, vi, acc):
    """Count one more partner if it is within reach, and store it if there is room."""
    size = pair_size(law.radius, i, j)
    if r2 >= law.reach2[0] * (size * size):
        return acc
    if len(law.partners):
        law.partners[law.offsets[i] + acc] = j
    return acc + 1
