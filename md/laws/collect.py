"""The law that collects instead of pushing: which partners does a search visit?

Folded by a search's own force kernel, it records every partner within reach. With an infinite reach that
is the kernel's access stream; with the cutoff it is the pair set. So what is predicted and what is tested
is the traversal that is timed.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from md.laws.pair import interact, pair_size


class Collect(NamedTuple):
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


@overload(interact, jit_options={"forceinline": True})
def _interact(law, vel, i, j, r2, dr, vi, acc):
    if not (isinstance(law, types.BaseNamedTuple) and law.instance_class is Collect):
        return None
    one = acc.dtype
    if acc.count == 2:

        def collect_2d(law, vel, i, j, r2, dr, vi, acc):
            size = pair_size(law.radius, i, j)
            if r2 >= law.reach2[0] * (size * size):
                return acc
            if len(law.partners):
                law.partners[law.offsets[i] + int(acc[0])] = j
            return (acc[0] + one(1), acc[1])

        return collect_2d

    def collect_3d(law, vel, i, j, r2, dr, vi, acc):
        size = pair_size(law.radius, i, j)
        if r2 >= law.reach2[0] * (size * size):
            return acc
        if len(law.partners):
            law.partners[law.offsets[i] + int(acc[0])] = j
        return (acc[0] + one(1), acc[1], acc[2])

    return collect_3d
