"""Watching the energy: a gas that nothing drives never has more than it started with.

Springs and dashpots give back at most what they took, so kinetic energy beyond that of the start, contacts
included, is made by the time step alone. A step that is too long for the contacts makes it grow from meeting
to meeting without end. The same sum tells when the particles are too slow for their precision
(`md.frozen`), under any law.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numba
import numpy as np

from md.backend import Backend
from md.backend.jit import kernel
from md.faults import EnergyExploded, OverlappingStart, Remains
from md.frozen import warn_if_frozen
from md.laws import PairLaw
from md.state import Particles

GROWTH = 4.0  # over the energy of the start; steps that are long but stable swing it by a third
SLOW = 0.01  # d per step; what is slower does not explode, though rounding may have set it in motion
INTERVAL = 100


class Watch:
    """Looks at the start, then at the energy of motion: at steps 1, 2, 4 and so on, later at intervals.

    Args:
        particles: the particles.
        law: their law; of one without a `potential` and a `closest_start` no energy is a fault.
        dt: time step in time units.
        backend: where they live.

    Attributes:
        on: whether there is something to watch.
        start: energy of the start, contacts included, in m d^2 / time^2; None before `begin`, and of a law
            that tells none.
    """

    def __init__(self, particles: Particles, law: PairLaw, dt: float, backend: Backend):
        self.on = len(particles.id) > 0
        self._particles, self._law, self._dt, self._backend = particles, law, dt, backend
        self._energy = backend.zeros(1, np.float64)
        self._fastest = backend.zeros(1, np.uint64)
        self._interval = max(INTERVAL, 10 * backend.check_interval)
        self.start: float | None = None
        self._next, self._frozen = 1, False

    def begin(self, pairs: np.ndarray) -> OverlappingStart | None:
        """Take down the energy of the start.

        Args:
            pairs: (p, 2) ids of the pairs within the law's cutoff.

        Returns:
            The fault of the closest pair, where it is closer than the law's `closest_start`.
        """
        if not hasattr(self._law, "potential"):
            return None
        distance = self._distances(pairs)
        self.start = self._measure()()[0] + float(self._law.potential(distance).sum())
        self._next = 1
        allowed = self._law.closest_start
        near = int(np.count_nonzero(distance < allowed))
        if not near:
            return None
        closest = int(distance.argmin())
        particle, other = pairs[closest].tolist()
        return OverlappingStart(particle, other, float(distance[closest]), near, allowed)

    def look(self, step: int, now: bool = False) -> Callable[[], EnergyExploded | None]:
        """Look whether the energy of motion outgrew that of the start, or is nearly gone; waits for nothing.

        Args:
            step: steps taken so far.
            now: look at this step in any case, for somebody else does.

        Returns:
            A function that waits for what was looked at, and gives the fault if there is one.
        """
        begun = step > 0 or self.start is not None
        if not (self.on and begun and (now or step >= self._next)):
            return lambda: None
        self._next = step + min(step, self._interval)
        return partial(self._judge, step, self._measure())

    def _judge(self, step: int, measured: Callable[[], tuple[float, float, int]]) -> EnergyExploded | None:
        energy, speed, particle = measured()
        p = self._particles
        if not self._frozen:
            stride = np.sqrt(2 * energy / p.n) * self._dt
            self._frozen = warn_if_frozen(step, stride, p.box, p.pos.dtype)
        if self.start is None:
            return None
        fast = speed * self._dt > SLOW * self._law.cutoff
        if not (fast and GROWTH * self.start < energy < np.inf):  # infinite and NaN tell of no cause
            return None
        return EnergyExploded(step, particle, speed * self._dt, energy / p.n, self.start / p.n, self._dt)

    def remains(self, step: int) -> Remains:
        """Copies of the arrays as they lie now, on the host; `step` as in `Remains`."""
        p, down = self._particles, self._backend.download
        return Remains(down(p.pos), down(p.vel), down(p.id), p.box, step, self._dt)

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

    def _distances(self, pairs: np.ndarray) -> np.ndarray:
        """Between the centres of each pair, nearest images taken: (p,) float64."""
        if not len(pairs):
            return np.empty(0)
        p = self._particles
        id, pos = self._backend.download(p.id), self._backend.download(p.pos)
        order = np.argsort(id)
        first, second = order[np.searchsorted(id, pairs.T, sorter=order)]
        apart = pos[first].astype(np.float64) - pos[second]
        apart -= np.where(p.box.periodic, np.round(apart / p.box.lengths) * p.box.lengths, 0)
        return np.sqrt(np.square(apart).sum(axis=1))


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
    energy[0], fastest[0] = sums.sum(), most.max()
