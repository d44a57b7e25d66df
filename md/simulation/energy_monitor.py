"""Watching the start and the energy: a gas that nothing drives never has more than it started with.

Springs and dashpots give back at most what they took, so kinetic energy beyond that of the start, contacts
included, is made by the time step alone. A step that is too long for the contacts makes it grow from meeting
to meeting without end. Where gravity or shaking drives the gas, there is no such bound. The same sum tells
when the particles are too slow for their precision (`warn_if_unresolved`), driven or not and under any law.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numba
import numpy as np

from md.backend import Backend
from md.boundaries.external_field import ExternalField
from md.boundaries.walls import RADIUS
from md.errors import EnergyExploded, FrozenPrecision, OverlappingStart
from md.integrate import Integrator
from md.laws import PairLaw
from md.particles.arrays import ParticleArrays
from md.particles.box import Box
from md.particles.cell_grid import CellGrid
from md.particles.state import pair_distances, pair_sizes
from md.search import Reflexive, Scattered, Search
from md.search.bvh.base import TreeSearch
from sfc.compile import kernel

FEWEST_ULP = 32  # a step's rounding, up to half a unit, is then 1.6 % of the step


def least_stride(box: Box, precision: np.dtype) -> float:
    """What the typical particle has to move by in a step, in d: 32 units in the last place of the side."""
    return FEWEST_ULP * float(np.spacing(np.dtype(precision).type(max(box.lengths))))


def warn_if_unresolved(step: int, stride: float, box: Box, precision: np.dtype) -> bool:
    """Warn with `FrozenPrecision` if the particles move by too little.

    Args:
        step: steps taken.
        stride: of the typical particle, in d per step.
        box: the box.
        precision: numpy dtype of the positions.

    Returns:
        Whether it has.
    """
    precision, least = np.dtype(precision), least_stride(box, precision)
    if not 0 < stride < least:
        return False
    finer = "precision='float64', " if precision == np.float32 else ""
    warnings.warn(
        f"step {step}: {precision} freezes the particles: the typical one moves by {stride:.3g} d a step in "
        f"a box of side {max(box.lengths):g} d; allowed: at least {least:.3g} d, {FEWEST_ULP} units in the "
        f"last place of the side; take {finer}a smaller box or a longer dt",
        FrozenPrecision,
        stacklevel=_levels_to_caller(),
    )
    return True


def _levels_to_caller() -> int:
    """How many calls lie between the function that asks and who called this package."""
    package, level, frame = str(Path(__file__).parents[1]), 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        level, frame = level + 1, frame.f_back
    return level


GROWTH = 4.0  # over the energy of the start; steps that are long but stable swing it by a third
SLOW = 0.01  # d per step; what is slower does not explode, though rounding may have set it in motion
INTERVAL = 100


class EnergyMonitor:
    """Looks at the start, then at the energy of motion: at steps 1, 2, 4 and so on, later at intervals.

    Args:
        particles: the particles.
        law: their law; of one without a `potential` and a `closest_start` no energy is a fault.
        integrator: bound to them; there is nothing to watch where it relaxes them.
        outside: what acts on them from outside.
        dt: time step in time units, the longest.
        backend: where they live.

    Attributes:
        on: whether there is something to watch.
        begun: whether `begin` has been called, or need not be.
        start: energy of the start, contacts included, in m d^2 / time^2; None before `begin`, of a law that
            tells none, and of a gas that is driven.
    """

    def __init__(
        self,
        particles: ParticleArrays,
        law: PairLaw,
        integrator: Integrator,
        outside: ExternalField,
        dt: float,
        backend: Backend,
    ):
        self.on = len(particles.id) > 0 and not integrator.relaxes
        self.begun = not self.on
        self._particles, self._law, self._dt, self._backend = particles, law, dt, backend
        self._integrator, self._outside = integrator, outside
        self._energy = backend.zeros(1, np.float64)
        self._fastest = backend.zeros(1, np.uint64)
        self._interval = max(INTERVAL, 10 * backend.check_interval)
        self.start: float | None = None
        self._next, self._frozen = 1, False

    def begin(self, pairs: np.ndarray) -> OverlappingStart | None:
        """Take down the energy of the start.

        Args:
            pairs: (p, 2) ids of the pairs that touch.

        Returns:
            The fault of the closest pair, where it is closer than the law's `closest_start`; or else of the
            particle deepest in a wall, where it is closer than half of that to it. Where radii differ, close
            and deep are so by the sum of two radii, and by the diameter.
        """
        self._next, self.begun = 1, True
        if not hasattr(self._law, "potential"):
            return None
        p, down = self._particles, self._backend.download
        pos, id = down(p.pos), down(p.id)
        radius = p.radii()
        size = pair_sizes(radius, id, pairs)
        distance = pair_distances(pos, id, p.box, pairs) / size
        self.start = None
        if not self._outside.drives:
            contacts = float((size * self._law.potential(distance)).sum())
            self.start = self._measure()()[0] + contacts + self._outside.potential(pos, radius)
        allowed = self._law.closest_start
        near = int(np.count_nonzero(distance < allowed))
        if near:
            closest = int(distance.argmin())
            particle, other = pairs[closest].tolist()
            found = float(size[closest] * distance[closest])
            return OverlappingStart(
                particle, other, found, near, float(size[closest] * allowed), radius is not None
            )
        depth, reach = self._outside.overlaps(pos, radius).max(axis=1, initial=0), np.full(p.n, RADIUS)
        if radius is not None:
            reach = radius.astype(np.float64)
        deepest, near = int((depth / reach).argmax()), int(np.count_nonzero(depth > reach * (1 - allowed)))
        if not near:
            return None
        found = float(reach[deepest] - depth[deepest])
        allowed *= float(reach[deepest])
        return OverlappingStart(int(id[deepest]), None, found, near, allowed, radius is not None)

    def restore(self, step: int, start: float | None) -> None:
        """Go on from a run that was saved, with the energy of its start."""
        self.start, self.begun = start, self.begun or step > 0

    def look(self, step: int, now: bool = False) -> Callable[[], EnergyExploded | None]:
        """Look whether the energy of motion outgrew that of the start, or is nearly gone; waits for nothing.

        Args:
            step: steps taken so far.
            now: look at this step in any case, for somebody else does.

        Returns:
            A function that waits for what was looked at, and gives the fault if there is one.
        """
        begun = step > 0 or self.begun
        if not (self.on and begun and (now or step >= self._next)):
            return lambda: None
        self._next = step + min(step, self._interval)
        return partial(self._judge, step, self._measure())

    def _judge(self, step: int, measured: Callable[[], tuple[float, float, int]]) -> EnergyExploded | None:
        energy, speed, particle = measured()
        p = self._particles
        if not self._frozen:
            stride = np.sqrt(2 * energy / p.n) * self._integrator.stride(speed)
            self._frozen = warn_if_unresolved(step, stride, p.box, p.pos.dtype)
        if self.start is None:
            return None
        moves = speed * self._integrator.stride(speed)  # in a step
        fast = moves > SLOW * self._law.cutoff * p.narrowest
        if not (fast and GROWTH * self.start < energy < np.inf):  # infinite and NaN tell of no cause
            return None
        return EnergyExploded(step, particle, moves, energy / p.n, self.start / p.n, self._dt)

    def _measure(self) -> Callable[[], tuple[float, float, int]]:
        """Kinetic energy of all, and speed and id of the fastest, once asked for."""
        p, backend = self._particles, self._backend
        backend.fill(self._energy, 0)
        backend.fill(self._fastest, 0)
        backend.kernels(__name__).motion(p.n, p.vel, p.id, 4 * backend.workers, self._energy, self._fastest)
        energy, fastest = backend.look(self._energy), backend.look(self._fastest)

        def measured() -> tuple[float, float, int]:
            word = fastest()
            speed = float(np.sqrt((word >> np.uint64(32)).astype(np.uint32).view(np.float32)[0]))
            return float(energy()[0]), speed, int(word[0]) & 0xFFFFFFFF

        return measured


@kernel(parallel=True)
def motion(n, vel, id, parts, energy, fastest):
    """energy[0] = sum of v^2 / 2 (m = 1); fastest[0] = bits of the largest v^2 as float32, above its id.

    Numbers that are not negative are ordered as their bits are, and NaN stands above them all.
    """
    sums, most = np.zeros(parts), np.zeros(parts, np.uint64)
    for p in numba.prange(parts):
        total, top = 0.0, np.uint64(0)
        for i in range(p * n // parts, (p + 1) * n // parts):
            v2 = 0.0
            for k in range(vel.shape[1]):
                v2 += float(vel[i, k]) ** 2
            total += v2
            word = np.uint64(np.float32(v2).view(np.uint32)) << np.uint64(32) | np.uint64(id[i])
            top = max(top, word)
        sums[p], most[p] = total / 2, top
    energy[0], fastest[0] = 0.0, most.max()
    for p in range(parts):
        energy[0] += sums[p]


# A grid of more than MOST_CELLS + CELLS_EACH * n cells is not made for n particles: a tree needs none.
CELLS_EACH, MOST_CELLS = 64, 2**20


def begin(
    watch: EnergyMonitor,
    search: Search,
    particles: ParticleArrays,
    grid: CellGrid,
    backend: Backend,
    reach: float | None,
) -> OverlappingStart | None:
    """Let a watch see the start, by a search of its own, so that the run's stays as it is.

    Args:
        watch: of the run.
        search: the choice, not bound; one that would move the particles is not taken.
        particles: of the run.
        grid: of the run.
        backend: of the run.
        reach: of the law, in d; None where the pairs are not needed, for they may be many.

    Returns:
        What `EnergyMonitor.begin` does.
    """
    if reach is None:
        return watch.begin(np.empty((0, 2), np.int32))
    finder = search
    if search.sorts_data:
        sparse = isinstance(search, TreeSearch) and grid.size > MOST_CELLS + CELLS_EACH * particles.n
        finder = Reflexive(met="twice", atomics="none", data="unsorted") if sparse else Scattered()
    finder = finder.bind(particles, grid, backend)
    finder.build()
    return watch.begin(finder.touching(reach))
