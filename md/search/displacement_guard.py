"""Displacement guard: stops fused steps on a device once a particle may have moved too far since the build.

A device takes fused steps before the host has read how far particles moved. Each fused step reads a
`DisplacementGuard` and sums an upper bound of the distance that the fastest particle has travelled since the
structure was built. Once that is no longer less than the limit, no particle moves, in this step and in all
later ones, until the structure is rebuilt, or lists are pruned again. Each such step adds 1 to
`halted_steps`.

A step that prunes takes the partners from the lists of the build, and stores those within the cutoff and the
inner skin in shorter lists, which the next steps read. Those halt by the bound for these lists (`bound`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from md.backend import Backend
from md.backend.base import Array


class DisplacementGuard(NamedTuple):
    """Bound of the displacement since the last build, which fused steps read and update.

    A step reads entry `turn` of `fastest` and `travelled` (`turn` of `md.integrate.fused.KickDrift`) and
    writes the other. Each thread compares one word only: the thread of the first particle computes, from the
    distance, the speed that would halt the next step.

    Attributes:
        fastest: (2,) uint64. The lower half is a float32: the square of the largest speed in the step before,
            rounded up, or somewhat more. The upper half counts steps, so that a newer word is larger. (0,)
            for a structure that is rebuilt at every step: nothing is summed, and no step halts.
        travelled: (6,) float32. Entry `turn`: bound of the distance travelled from the build to the step
            before, in d. Entry 2 + `turn`: bits of the smallest square of a speed in the step before that
            halts a step; 4 + `turn` the same for steps that read pruned lists. A build sets all bits of all
            entries, so that nothing halts; or distances to infinity and speeds to zero, to halt the steps.
        halted_steps: (1,) int32, number of steps that were halted.
        limit: largest allowed displacement, in d.
        rounding: largest displacement of a step beyond speed times time, by rounding, in d.
        bound: (2,) float32, largest allowed displacement since the build for steps that read pruned lists,
            in d; by `turn` as `travelled`. (0,) without pruned lists.
        inner_limit: largest allowed displacement since the pruning, in d.
        prunes: 1 for a step that prunes lists, else 0.
    """

    fastest: Array
    travelled: Array
    halted_steps: Array
    limit: np.float32
    rounding: np.float32
    bound: Array
    inner_limit: np.float32
    prunes: int


def unguarded(backend: Backend) -> DisplacementGuard:
    """Return the guard of a structure that is rebuilt at every step: it halts nothing."""
    fastest, travelled, halted, bound = (
        backend.empty(0, dtype) for dtype in (np.uint64, np.float32, np.int32, np.float32)
    )
    infinite, none = np.float32(np.inf), np.float32(0)
    return DisplacementGuard(fastest, travelled, halted, infinite, none, bound, infinite, 0)
