"""Polydisperse law: a pair law between spheres of different radius, with lengths scaled by the sum of radii.

The unit of length is the sum of the two radii, s = r_i + r_j, the distance at which they touch. A force that
depends on r/d becomes the same function of r/s: K (1 - r/s) n for a spring. Its constant K/s is smaller for
larger spheres. Terms that depend on velocities only, such as dashpots, are unchanged. The energy of a pair is
s times that of two spheres of diameter 1 at r/s. All masses are 1, so that with m_eff = 1/2, w0^2 = 2 K / s
and g = mu two spheres separate after pi / w, w^2 = w0^2 - g^2, with e = exp(-pi g / w) of their speed: large
spheres touch longer and lose more speed. From g = w0, s = 2 K / mu^2, on they do not separate.
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
from md.laws.pair import interact as pair_interact
from sfc.compile import inlined


class ScaledLaw(NamedTuple):
    """Kernel parameters of a polydisperse law.

    Attributes:
        radius: (n,) of each particle, in d.
        reach2: square of the cutoff of `pair`.
        pair: kernel parameters of the law between spheres of diameter 1.
    """

    radius: Array
    reach2: np.floating
    pair: Any


class PolydisperseLaw:
    """A pair law between particles of different radius.

    Args:
        pair: the law between two particles of radius 0.5.
        radius: (n,) of the particles, in d, in the row order of the search's kernel.

    Attributes:
        cutoff: of the wrapped law, in sums of two radii.
        reciprocal: as of the wrapped law.

    Raises:
        TypeError: a law of a class without a pair function.
    """

    def __init__(self, pair: PairLaw, radius: Array):
        self.reciprocal = is_reciprocal(pair)
        self.pair, self.cutoff, self._radius = pair, pair.cutoff, radius

    def kernel_law(self, precision: np.dtype) -> ScaledLaw:
        """Return the kernel parameters of the law, in a precision."""
        reach2 = np.dtype(precision).type(self.cutoff * self.cutoff)  # as in `Search.touching`
        return ScaledLaw(self._radius, reach2, kernel_law(self.pair, precision))


def scaled_to_radii(law: PairLaw, radius: Array) -> Any:
    """Make a law for particles of given radii.

    Args:
        law: between two particles of radius 0.5. If it has a method `scaled_to_radii`, the result is that of
            the method.
        radius: (n,) of the particles, in d; (0,) if all are 0.5.

    Returns:
        The law for these radii; `law` itself for (0,).
    """
    if not len(radius):
        return law
    scaled = getattr(law, "scaled_to_radii", None)
    return PolydisperseLaw(law, radius) if scaled is None else scaled(radius)


@inlined
def initial_of_pair(law, ri):
    """Make the accumulator of the wrapped law."""
    return initial(law.pair, ri)


@inlined
def result_of_pair(law, ri, vi, acc):
    """Convert the accumulator to the force of the wrapped law."""
    return result(law.pair, ri, vi, acc)


@pair_function(ScaledLaw, initial=initial_of_pair, result=result_of_pair)
def interact(law, vel, i, j, r2, dr, vi, acc):
    """Add the contribution of a partner by the wrapped law, with all lengths in sums of the two radii."""
    size = pair_size(law.radius, i, j)
    size2 = size * size
    if r2 >= law.reach2 * size2:
        return acc
    one = law.radius.dtype.type(1)  # of a literal 1 the inverse would be float64
    return pair_interact(law.pair, vel, i, j, r2 / size2, add_scaled(zero(dr), one / size, dr), vi, acc)
