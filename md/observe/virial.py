"""Virial: a law that sums the virial of the contacts of each particle and gives no force.

The virial of particle i is the sum of f . dr / 2 over its partners, with f the force on i by j and
dr = r_i - r_j: half of the virial of the pair, the other half counts for j. The sum over the particles in an
area (in 3D a volume), divided by dim times the area, is the contact part of the pressure. Irving and
Kirkwood, J. Chem. Phys. 18 (1950) 817.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from md.backend.base import Array, Backend
from md.backend.prelude import dot
from md.laws.pair import PairLaw, initial, kernel_law, pair_function, require_force_sum
from md.laws.pair import interact as pair_interact


class VirialParameters(NamedTuple):
    """Kernel parameters of the virial law.

    Attributes:
        virial: (n,) float64, added to; in m d^2 / time^2.
        pair: kernel parameters of the wrapped law.
    """

    virial: Array
    pair: Any


class Virial:
    """A law that sums the virial of the forces of another law.

    Args:
        law: the wrapped law.
        n: number of particles.
        backend: of the particles.

    Attributes:
        cutoff: of the wrapped law.
        pair: the wrapped law.
        virial: (n,) float64 array, in the row order of the search's kernel.

    Raises:
        ValueError: a law that sums other values than forces.
    """

    reciprocal = False

    def __init__(self, law: PairLaw, n: int, backend: Backend):
        require_force_sum(law, "the virial")
        self.cutoff, self.pair, self.virial = law.cutoff, law, backend.zeros(n, np.float64)

    def kernel_law(self, precision: np.dtype) -> VirialParameters:
        """Return the kernel parameters of the law, in a precision."""
        return VirialParameters(self.virial, kernel_law(self.pair, precision))


@pair_function(VirialParameters)
def interact(law, vel, i, j, r2, dr, vi, acc):
    """Add the virial of a partner to `virial`, and return the accumulator unchanged."""
    force = pair_interact(law.pair, vel, i, j, r2, dr, vi, initial(law.pair, vi))
    law.virial[i] += np.float64(dot(force, dr)) / 2
    return acc
