"""The law that collects instead of pushing: which partners does a search visit?

Folded by a search's own force kernel, it counts every partner within reach and writes it down. With an
infinite reach that is the kernel's access stream; with the cutoff it is the pair set. So what is predicted
and what is tested is the traversal that is timed.
"""

from typing import NamedTuple

import numpy as np

from md.laws.pair import pair_function, pair_size
from sfc.compile import inlined


class CollectPartners(NamedTuple):
    """Count the partners within reach and, where there is room, write them down.

    Attributes:
        reach2: (1,) square of the distance a partner must be closer than; infinite for every visit.
        radius: (n,) of each particle, in d, where the distance is in sums of two radii; (0,) where in d.
        offsets: (n,) int64 place of each particle's first partner; used only when `partners` has room.
        partners: (partners of all,) int32 slots, filled; or (0,) to count only.
    """

    reach2: np.ndarray
    radius: np.ndarray
    offsets: np.ndarray
    partners: np.ndarray


@inlined
def none_yet(law, ri):
    """No partner counted."""
    return 0


@pair_function(CollectPartners, initial=none_yet)
def interact(law, vel, i, j, r2, dr, vi, acc):
    """The number of partners so far, and one more within reach, which is written down if there is room."""
    size = pair_size(law.radius, i, j)
    if r2 >= law.reach2[0] * (size * size):
        return acc
    if len(law.partners):
        law.partners[law.offsets[i] + acc] = j
    return acc + 1
