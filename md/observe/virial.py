"""The law that takes down the virial of each particle instead of pushing: what its contacts press with.

Of particle i it is the sum of f . dr / 2 over its partners, f the force on i by j and dr = r_i - r_j: half of
what the pair has, for either meets the other. Divided by dim times an area (a volume in 3D) the sum over the
particles in it is the part of the pressure that is not of motion. Irving and Kirkwood, J. Chem. Phys. 18
(1950) 817.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from md.backend.base import Array, Backend
from md.backend.prelude import dot
from md.laws.pair import PairLaw, initial, kernel_law, pair_function, require_force_sum
from md.laws.pair import interact as asked


class VirialParameters(NamedTuple):
    """What kernels take as this law.

    Attributes:
        virial: (n,) float64, raised; in m d^2 / time^2.
        pair: the law that pushes, as kernels take it.
    """

    virial: Array
    pair: Any


class Virial:
    """A law that asks another.

    Args:
        law: that pushes.
        n: particles.
        backend: where they live.

    Attributes:
        cutoff: of the other law.
        pair: the other law.
        virial: (n,) float64 array, by the rows that the search's kernel reads.

    Raises:
        ValueError: a law that sums other things than forces.
    """

    reciprocal = False

    def __init__(self, law: PairLaw, n: int, backend: Backend):
        require_force_sum(law, "the virial")
        self.cutoff, self.pair, self.virial = law.cutoff, law, backend.zeros(n, np.float64)

    def kernel_law(self, precision: np.dtype) -> VirialParameters:
        """The law as kernels take it."""
        return VirialParameters(self.virial, kernel_law(self.pair, precision))


@pair_function(VirialParameters)
def interact(law, vel, i, j, r2, dr, vi, acc):
    """The accumulator as it is; what the partner presses with is added to `virial`."""
    alone = asked(law.pair, vel, i, j, r2, dr, vi, initial(law.pair, vi))
    law.virial[i] += np.float64(dot(alone, dr)) / 2
    return acc
