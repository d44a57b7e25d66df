"""How long a search's structure holds, for fused steps that a device takes before the host has looked.

Contract. Every fused step is told a `DisplacementGuard`. From it the step adds up how far the fastest particle can have
gone since the structure was built. Where that is too far nothing moves, in this step and all after it, until
the structure is built anew; the step counts itself in `halted_steps`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from md.backend import Backend
from md.backend.base import Array


class DisplacementGuard(NamedTuple):
    """What a fused step is told of the structure it works on.

    A step reads entry `turn` of `fastest` and `travelled` (`turn` of `md.integrate.fused.KickDrift`) and writes
    the other.

    Attributes:
        fastest: (2,) uint64. The lower half is a float32: the square of the largest speed in the step before,
            rounded up, or somewhat more. The upper half counts steps, so that what is newer is larger. (0,)
            for a structure that is built at every step: nothing is added up, and nothing halts.
        travelled: (2,) float32, how far the fastest can have gone from the build to the step before. Who builds
            sets all bits of both; or both to infinity, to halt the steps.
        halted_steps: (1,) int32, steps that were halted.
        limit: how far a particle may go, in d.
        rounding: how much farther than its speed says a step may take a particle, by rounding, in d.
    """

    fastest: Array
    travelled: Array
    halted_steps: Array
    limit: np.float32
    rounding: np.float32


def unguarded(backend: Backend) -> DisplacementGuard:
    """The pace of a structure that is built at every step."""
    none = [backend.empty(0, dtype) for dtype in (np.uint64, np.float32, np.int32)]
    return DisplacementGuard(*none, np.float32(np.inf), np.float32(0))
