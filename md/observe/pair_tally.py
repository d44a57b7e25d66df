"""Pair tally: a law that measures energy, touching partners and contacts started of each particle.

The force kernel of a search calls it as a law. It stores its sums in arrays and gives no force.

A contact has started in the last step if the pair is closer than the cutoff and was not one step before. The
stored velocity of the leapfrog is that of the drift of this step, so that the difference of the pair was
dr - dt dv before: nothing is stored between steps. Positions are rounded. A pair that was within that
rounding of the cutoff one step before may count twice or not at all, which in float32 happens to a few
contacts in ten thousand.
"""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple, Self

import numpy as np
from numba import types

from md.backend.base import Array, Backend
from md.backend.prelude import load, sub
from md.laws.pair import EnergyLaw, PairLaw, by_types, kernel_law, pair_function, pair_size, potential
from sfc.compile import inlined


class TallyParameters(NamedTuple):
    """Kernel parameters of a pair tally.

    Attributes:
        reach2: square of the cutoff of the wrapped law.
        radius: (n,) of each particle, in d; (0,) if all are 0.5.
        dt: time of the last drift; 0 without one: then no contact counts as started.
        energy: (n,) float64, added to: half of the energy of the pairs of each particle.
        touching: (n,) int32, added to: partners closer than the cutoff, in sums of two radii.
        started: (n,) int32, added to: touching partners with a contact started in the last step.
        pair: kernel parameters of the wrapped law; None for one without a `potential`.
    """

    reach2: np.floating
    radius: Array
    dt: np.float64
    energy: Array
    touching: Array
    started: Array
    pair: Any


class PairTally:
    """A law that sums energies and contacts of the pairs of another law; for one call of a force kernel.

    Args:
        law: the wrapped law; the energy stays 0 if it has no `potential`.
        dt: time of the last drift in time units; 0 to count no contacts started.
        n: number of particles.
        backend: of the particles.

    Attributes:
        cutoff: of the wrapped law.
        pair: the wrapped law, or None if it has no `potential`.
        energy, touching, started: (n,) arrays, as in `TallyParameters`, in the row order of the search's
            kernel, which under a reorder of mode "shadow" is that of the copy.
    """

    reciprocal = False

    def __init__(self, law: PairLaw, dt: float, n: int, backend: Backend):
        self.cutoff, self.pair = law.cutoff, law if isinstance(law, EnergyLaw) else None
        self._dt, self._backend = np.float64(dt), backend
        self._radius: Array | None = None
        self.energy = backend.zeros(n, np.float64)
        self.touching, self.started = (backend.zeros(n, np.int32) for _ in range(2))

    def scaled_to_radii(self, radius: Array) -> Self:
        """Copy the law, with the same arrays, for particles of radii (n,) in d."""
        other = copy.copy(self)
        other._radius = radius
        return other

    def kernel_law(self, precision: np.dtype) -> TallyParameters:
        """Return the kernel parameters of the law, in a precision."""
        radius = self._backend.empty(0, precision) if self._radius is None else self._radius
        pair = None if self.pair is None else kernel_law(self.pair, precision)
        reach2 = np.dtype(precision).type(self.cutoff * self.cutoff)  # as in `Search.touching`
        return TallyParameters(reach2, radius, self._dt, self.energy, self.touching, self.started, pair)


@inlined
def distance2_at(dr, dv, time):
    """Compute the squared distance of a pair after a free flight: |dr + time dv|^2 in float64."""
    total = 0.0
    for axis in range(len(dr)):
        total += (np.float64(dr[axis]) + time * np.float64(dv[axis])) ** 2  # `float` would leave float32
    return total


@by_types
def choose_interact(law, vel, i, j, r2, dr, vi, acc):
    """Return the function to compile, with an energy if the wrapped law has one."""
    has_energy = not isinstance(law.types[law.fields.index("pair")], types.NoneType)

    def interact(law, vel, i, j, r2, dr, vi, acc):
        size = pair_size(law.radius, i, j)
        reach2 = law.reach2 * (size * size)
        if r2 >= reach2:
            return acc
        dv = sub(vi, load(vel, j, dr))
        law.touching[i] += 1
        law.started[i] += distance2_at(dr, dv, -law.dt) >= reach2
        if has_energy:
            s = np.float64(size)
            law.energy[i] += s * s * potential(law.pair, math.sqrt(distance2_at(dr, dv, 0.0)) / s) / 2
        return acc

    return interact


pair_function(TallyParameters)(choose_interact)
