"""The law that measures instead of pushing: energy, partners and contacts begun of each particle.

Folded by a search's own force kernel it takes down, of every particle, what its touching partners amount to.

A contact has begun in the last step where the pair is closer than the cutoff now and was not a step ago. The
leapfrog's stored velocity is the one that carried the particles through that step, so the pair was at
dr - dt dv then: nothing has to be remembered between steps. What rounds is the positions; a pair that stands
within that rounding of the cutoff a step ago may count twice or not at all, which in float32 happens to a few
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
from md.laws.pair import PairLaw, by_types, kernel_law, pair_function, pair_size, potential
from sfc.compile import inlined


class Measured(NamedTuple):
    """What kernels take as this law.

    Attributes:
        reach2: square of the cutoff of the law that is measured.
        radius: (n,) of each particle, in d; (0,) where all are a half.
        dt: time of the last drift; 0 where there was none: then no contact counts as begun.
        energy: (n,) float64, raised: of each particle, half of that of its pairs.
        touching: (n,) int32, raised: its partners closer than the cutoff, in sums of two radii.
        begun: (n,) int32, raised: those whose contact began in the last step.
        pair: that law, as kernels take it; None for one without a `potential`.
    """

    reach2: np.floating
    radius: Array
    dt: np.float64
    energy: Array
    touching: Array
    begun: Array
    pair: Any


class PairTally:
    """Take down what the pairs of another law amount to; for one fold by a search.

    Args:
        law: the other law; its energy stays 0 if it has no `potential`.
        dt: time of the last drift in time units; 0 to count no contacts begun.
        n: particles.
        backend: where they live.

    Attributes:
        cutoff: of the other law.
        pair: the other law, or None if it has no `potential`.
        energy, touching, begun: (n,) arrays, as in `Measured`; by the rows that the search's kernel reads,
            which under a reorder of mode "shadow" are those of the copy.
    """

    reciprocal = False

    def __init__(self, law: PairLaw, dt: float, n: int, backend: Backend):
        self.cutoff, self.pair, self._dt = law.cutoff, law if hasattr(law, "potential") else None, dt
        self._backend, self._radius = backend, None
        self.energy = backend.zeros(n, np.float64)
        self.touching, self.begun = (backend.zeros(n, np.int32) for _ in range(2))

    def scaled_to_radii(self, radius: Array) -> Self:
        """The same, by the same arrays, for particles of radii (n,) in d."""
        other = copy.copy(self)
        other._radius = radius
        return other

    def kernel_law(self, precision: np.dtype) -> Measured:
        """The law as kernels take it."""
        radius = self._backend.empty(0, precision) if self._radius is None else self._radius
        pair = None if self.pair is None else kernel_law(self.pair, precision)
        reach2 = np.dtype(precision).type(self.cutoff * self.cutoff)  # as `Search.touching` has it
        dt = np.float64(self._dt)
        return Measured(reach2, radius, dt, self.energy, self.touching, self.begun, pair)


@inlined
def square_at(dr, dv, time):
    """Square of the distance of a pair that flies on, or back, for some time: |dr + time dv|^2 in float64."""
    total = 0.0
    for axis in range(len(dr)):
        total += (np.float64(dr[axis]) + time * np.float64(dv[axis])) ** 2  # `float` would leave float32
    return total


@by_types
def measured(law, vel, i, j, r2, dr, vi, acc):
    """Choose the function by whether the law that is measured tells an energy."""
    has_energy = not isinstance(law.types[law.fields.index("pair")], types.NoneType)

    def interact(law, vel, i, j, r2, dr, vi, acc):
        size = pair_size(law.radius, i, j)
        reach2 = law.reach2 * (size * size)
        if r2 >= reach2:
            return acc
        dv = sub(vi, load(vel, j, dr))
        law.touching[i] += 1
        law.begun[i] += square_at(dr, dv, -law.dt) >= reach2
        if has_energy:
            s = np.float64(size)
            law.energy[i] += s * potential(law.pair, math.sqrt(square_at(dr, dv, 0.0)) / s) / 2
        return acc

    return interact


pair_function(Measured)(measured)
