"""Any law between spheres of different radius: what it says of two of diameter 1, in another unit of length.

The unit is the sum of the two radii, s = r_i + r_j, the distance at which they touch. A force that depends on
r/d becomes the same function of r/s: K (1 - r/s) n for a spring, whose constant K/s is the smaller the larger
they are; what depends on velocities alone, as dashpots do, stays. The energy of a pair is s times that of two
at r/s. All masses are 1, so that with m_eff = 1/2, w0^2 = 2 K / s and g = mu two spheres part after pi / w,
w^2 = w0^2 - g^2, and keep e = exp(-pi g / w) of their speed: large ones touch longer, and keep less. From
g = w0, s = 2 K / mu^2, on they do not part.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from md.backend.base import Array
from md.backend.prelude import add_scaled, zero
from md.laws.pair import PairLaw, interact, pair_size


class Sized(NamedTuple):
    """What kernels take as this law.

    Attributes:
        pair: parameters of the law between spheres of diameter 1.
        radius: (n,) of each particle, in d.
        reach2: square of that law's cutoff.
    """

    pair: np.ndarray
    radius: Array
    reach2: np.floating


class Sizes:
    """A law between particles of different radius.

    Args:
        pair: the law between two whose radii are a half.
        radius: (n,) of the particles, in d, by the rows that a search's kernel reads.

    Attributes:
        cutoff: of the other law, in sums of two radii.
    """

    def __init__(self, pair: PairLaw, radius: Array):
        self.pair, self.cutoff, self._radius = pair, pair.cutoff, radius

    def parameters(self, precision: np.dtype) -> Sized:
        """The law as kernels take it."""
        reach2 = np.dtype(precision).type(self.cutoff * self.cutoff)  # as `Search.touching` has it
        return Sized(self.pair.parameters(precision), self._radius, reach2)


def of_sizes(law: PairLaw, radius: Array) -> Any:
    """A law for particles of some radii.

    Args:
        law: between two whose radii are a half. It is asked for another itself if it has a method `of_sizes`.
        radius: (n,) of the particles, in d; (0,) where all are a half: then it is the law as it is.
    """
    if not len(radius):
        return law
    return law.of_sizes(radius) if hasattr(law, "of_sizes") else Sizes(law, radius)


@overload(interact, jit_options={"forceinline": True})
def _interact(law, vel, i, j, r2, dr, vi, acc):
    if not (isinstance(law, types.BaseNamedTuple) and law.instance_class is Sized):
        return None
    one = acc.dtype  # of a literal 1 the inverse would be float64

    def sized(law, vel, i, j, r2, dr, vi, acc):
        size = pair_size(law.radius, i, j)
        size2 = size * size
        if r2 >= law.reach2 * size2:
            return acc
        return interact(law.pair, vel, i, j, r2 / size2, add_scaled(zero(dr), one(1) / size, dr), vi, acc)

    return sized
