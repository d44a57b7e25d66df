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

from md.backend.base import Array
from md.backend.prelude import add_scaled, zero
from md.laws.pair import (
    PairLaw,
    initial,
    is_reciprocal,
    kernel_law,
    pair_function,
    pair_size,
    result,
)
from md.laws.pair import interact as asked
from sfc.compile import inlined


class ScaledLaw(NamedTuple):
    """What kernels take as this law.

    Attributes:
        radius: (n,) of each particle, in d.
        reach2: square of the cutoff of `pair`.
        pair: the law between spheres of diameter 1, as kernels take it.
    """

    radius: Array
    reach2: np.floating
    pair: Any


class Sizes:
    """A law between particles of different radius.

    Args:
        pair: the law between two whose radii are a half.
        radius: (n,) of the particles, in d, by the rows that a search's kernel reads.

    Attributes:
        cutoff: of the other law, in sums of two radii.
        reciprocal: as of the other law.

    Raises:
        TypeError: a law of a class without a pair function.
    """

    def __init__(self, pair: PairLaw, radius: Array):
        self.reciprocal = is_reciprocal(pair)
        self.pair, self.cutoff, self._radius = pair, pair.cutoff, radius

    def kernel_law(self, precision: np.dtype) -> ScaledLaw:
        """The law as kernels take it."""
        reach2 = np.dtype(precision).type(self.cutoff * self.cutoff)  # as `Search.touching` has it
        return ScaledLaw(self._radius, reach2, kernel_law(self.pair, precision))


def scaled_to_radii(law: PairLaw, radius: Array) -> Any:
    """A law for particles of some radii.

    Args:
        law: between two whose radii are a half. It is asked for another itself if it has a method `scaled_to_radii`.
        radius: (n,) of the particles, in d; (0,) where all are a half: then it is the law as it is.
    """
    if not len(radius):
        return law
    return law.scaled_to_radii(radius) if hasattr(law, "scaled_to_radii") else Sizes(law, radius)


@inlined
def begun(law, ri):
    """Make the accumulator of the law between spheres of diameter 1."""
    return initial(law.pair, ri)


@inlined
def ended(law, ri, vi, acc):
    """Turn the accumulator into the force, as that law does."""
    return result(law.pair, ri, vi, acc)


@pair_function(ScaledLaw, initial=begun, result=ended)
def interact(law, vel, i, j, r2, dr, vi, acc):
    """Add what that law gives of a partner, with all lengths in sums of the two radii."""
    size = pair_size(law.radius, i, j)
    size2 = size * size
    if r2 >= law.reach2 * size2:
        return acc
    one = law.radius.dtype.type(1)  # of a literal 1 the inverse would be float64
    return asked(law.pair, vel, i, j, r2 / size2, add_scaled(zero(dr), one / size, dr), vi, acc)
