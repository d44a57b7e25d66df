"""Polydisperse law: a pair law between spheres of different radius, in units of the sum of the two radii.

The unit of length is the sum of the two radii, s = r_i + r_j, the distance at which the spheres touch; units
of time and of mass are unchanged. Two spheres then move as two of diameter 1 would, enlarged by s. A force f
of the distance and of the relative velocity becomes

    F(r, v) = s f(r / s, v / s),

and the energy of a pair s^2 U(r / s). For a spring and a dashpot F = K (s - r) n - mu (v . n) n: the force
for a length of overlap and the damping are the same for all sizes, as at walls. All masses are 1, so that
contacts of all pairs last equally long and have the same coefficient of restitution. Coulomb friction is a
ratio of two forces and does not depend on s.

The relative velocity is scaled by changing v_i, so a law may depend on velocities by their difference only.
In float32 the difference has an error of s 6e-8 of the speeds. A law with an `initial` or a `result` of its
own sums no forces: its lengths are scaled, its velocities are not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from md.backend.base import Array
from md.backend.prelude import add_scaled, load, sub, zero
from md.laws.pair import (
    PairLaw,
    by_types,
    initial,
    is_reciprocal,
    kernel_law,
    pair_function,
    pair_size,
    result,
)
from md.laws.pair import interact as pair_interact


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


def initial_of_pair(law, ri):
    """Make the accumulator of the wrapped law."""
    return initial(law.pair, ri)


def result_of_pair(law, ri, vi, acc):
    """Convert the accumulator to the force of the wrapped law."""
    return result(law.pair, ri, vi, acc)


@by_types
def choose_interact(law, vel, i, j, r2, dr, vi, acc):
    """Return the function to compile: velocities and forces are scaled if the law sums forces."""
    sums_forces = law.types[law.fields.index("pair")].instance_class.zero_alone

    def interact(law, vel, i, j, r2, dr, vi, acc):
        size = pair_size(law.radius, i, j)
        size2 = size * size
        if r2 >= law.reach2 * size2:
            return acc
        one = law.radius.dtype.type(1)  # of a literal 1 the inverse would be float64
        scaled = add_scaled(zero(dr), one / size, dr)
        if not sums_forces:
            return pair_interact(law.pair, vel, i, j, r2 / size2, scaled, vi, acc)
        slower = add_scaled(vi, one / size - one, sub(vi, load(vel, j, dr)))  # less v_j it is (v_i - v_j) / s
        return add_scaled(acc, size, pair_interact(law.pair, vel, i, j, r2 / size2, scaled, slower, zero(dr)))

    return interact


pair_function(ScaledLaw, initial=initial_of_pair, result=result_of_pair)(choose_interact)
