"""Energy monitor: detects an energy above that of the start, and particles too slow for their precision.

Springs and dashpots return at most the energy they have stored, so without driving a kinetic energy above
that of the start, contacts included, is an error of the time step. If the step is too long for the contacts,
the energy grows from contact to contact without bound. With gravity or shaking there is no such bound. The
same sum shows when particles are too slow for their precision (`warn_if_unresolved`), under any law, and
driven or not, unless gravity or shaking moves a particle at rest far enough within 100 steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from md.boundaries.base import RADIUS
from md.boundaries.external_field import ExternalField
from md.errors import EnergyExploded, FrozenPrecision, OverlappingStart
from md.integrate.base import Stepper
from md.laws import PairLaw
from md.laws.pair import EnergyLaw
from md.particles.box import Box
from md.particles.state import pair_distances, pair_sizes
from md.particles.system import StatusCopy, System
from md.search import SearchConfig
from md.search.pair_finder import pair_finder
from md.search.policy import MANY_STEPS
from md.simulation.caller import levels_to_caller
from sfc.compile import in_parts, kernel

GROWTH = 4.0  # allowed ratio to the energy of the start; long but stable steps change it by a third
SLOW = 0.01  # d per step; slower particles do not explode, though rounding may have set them in motion
INTERVAL = 100
THREADS = 2**16  # at most, on a device, in whole blocks; each sums several particles
FEWEST_ULP = 32  # the rounding of a step, up to half a unit, is then 1.6 % of the step


def least_stride(box: Box, precision: np.dtype) -> float:
    """Return the least displacement of a typical particle in a step, in d: 32 units in the last place."""
    return FEWEST_ULP * float(np.spacing(np.dtype(precision).type(max(box.lengths))))


def warn_if_unresolved(step: int, stride: float, box: Box, precision: np.dtype) -> bool:
    """Warn with `FrozenPrecision` if a typical particle moves less in a step than `least_stride`.

    Args:
        step: steps taken.
        stride: displacement of a typical particle in a step, in d.
        box: the box.
        precision: numpy dtype of the positions.

    Returns:
        Whether it warned.
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
        stacklevel=levels_to_caller(),
    )
    return True


class EnergyMonitor:
    """Monitor of overlaps at the start and of the kinetic energy at steps 1, 2, 4, ..., later at intervals.

    Args:
        system: shared state of the simulation.
        law: between pairs; without a `potential` and a `closest_start` no energy is a fault.
        stepper: of the simulation; under one that relaxes the energy is not monitored.
        field: gravity and walls.
        search: configuration of the search, for the pairs that touch at the start.
        allow_overlap: whether centres may be closer at the start than the law's `closest_start`.

    Attributes:
        has_work: whether the energy is monitored.
        is_started: whether the start was checked, or needs no check.
        start: energy of the start, contacts included, in m d^2 / time^2; None before the check of the start,
            for a law without a potential, and for driven particles.
    """

    def __init__(
        self,
        system: System,
        law: PairLaw,
        stepper: Stepper,
        field: ExternalField,
        search: SearchConfig,
        allow_overlap: bool,
    ):
        self.has_work = system.n_total > 0 and not stepper.capabilities.relaxes
        self.is_started = not self.has_work
        self._system, self._law, self._stepper, self._field = system, law, stepper, field
        self._search, self._allow_overlap = search, allow_overlap
        self._interval = max(INTERVAL, 10 * system.backend.check_interval)
        self.start: float | None = None
        self._next, self._is_frozen = 1, False

    def check_start(self, step: int) -> OverlappingStart | None:
        """Compute the energy of the start, and return the fault of particles that overlap deeply.

        The pairs are found by a separate search, so that the simulation's search is not changed; it does not
        move the particles.

        Args:
            step: steps taken; a fault is returned at step 0 only, and not with `allow_overlap`.
        """
        system, reach = self._system, self._law.cutoff
        is_needed = isinstance(self._law, EnergyLaw) and not (self._allow_overlap and self._field.drives)
        if not is_needed:
            pairs = np.empty((0, 2), np.int32)  # there may be many
        else:
            pairs = pair_finder(system, self._search).touching(reach)
        overlap = self._of_all_ranks(self._check(pairs))
        if overlap is None or step or self._allow_overlap:
            return None
        self.is_started = False
        return overlap

    def _of_all_ranks(self, overlap: OverlappingStart | None) -> OverlappingStart | None:
        """Return the closest overlap of all ranks with their number, and sum their energies of the start."""
        domain = self._system.domain
        if domain is None:
            return overlap
        found = domain.communicator.all_of((overlap, self.start))
        if self.start is not None:
            self.start = sum(start for _, start in found)
        overlaps = [one for one, _ in found if one is not None]
        overlaps = [one for one in overlaps if one.other is not None] or overlaps  # walls come last
        if not overlaps:
            return None
        closest = min(overlaps, key=lambda one: one.distance / one.allowed)
        return OverlappingStart(
            closest.particle, closest.other, closest.distance, sum(one.pairs for one in overlaps),
            closest.allowed, closest.by_radius,
        )  # fmt: skip

    def _check(self, pairs: np.ndarray) -> OverlappingStart | None:
        """Compute the energy of the start, and check its overlaps.

        Args:
            pairs: (p, 2) ids of the pairs that touch.

        Returns:
            The fault of the closest pair, if it is closer than the law's `closest_start`; or else of the
            particle deepest in a wall, if it is closer to the wall than half of that. With different radii
            the
            distance is relative to the sum of two radii, and the depth to the diameter.
        """
        self._next, self.is_started = 1, True
        if not isinstance(self._law, EnergyLaw):
            return None
        p, down = self._system.particles, self._system.backend.download
        has_walls, radius = self._field.has_walls, p.radii()
        own = None if radius is None else radius[: p.n]
        pos, id = np.empty((0, p.box.dim)), np.empty(0, np.int32)
        if len(pairs) or has_walls:  # else there is nothing to look up, and there may be many particles
            pos, id = down(p.pos), down(p.id)
        size = pair_sizes(radius, id, pairs)
        distance = pair_distances(pos, id, p.box, pairs) / size
        self.start = None
        if not self._field.drives:
            contacts = float((size**2 * self._law.potential(distance)).sum())
            self._launch()
            walls = self._field.potential(pos[: p.n], own) if has_walls else 0.0
            self.start = self._system.status.poll()().energy + contacts + walls
        allowed = self._law.closest_start  # type: ignore[attr-defined]  # laws with a potential have it
        near = int(np.count_nonzero(distance < allowed))
        if near:
            closest = int(distance.argmin())
            particle, other = pairs[closest].tolist()
            found = float(size[closest] * distance[closest])
            return OverlappingStart(
                particle, other, found, near, float(size[closest] * allowed), radius is not None
            )
        if not has_walls:
            return None
        depth, reach = self._field.overlaps(pos[: p.n], own).max(axis=1, initial=0), np.full(p.n, RADIUS)
        if own is not None:
            reach = own.astype(np.float64)
        if not p.n:
            return None
        deepest, near = int((depth / reach).argmax()), int(np.count_nonzero(depth > reach * (1 - allowed)))
        if not near:
            return None
        found = float(reach[deepest] - depth[deepest])
        allowed *= float(reach[deepest])
        return OverlappingStart(int(id[deepest]), None, found, near, allowed, radius is not None)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return the energy of the start: `start`, (1,) float64, or (0,) if it is unknown."""
        return {"start": np.array([] if self.start is None else [self.start], np.float64)}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the energy of the start from a saved state.

        Args:
            state: `start` as `state_dict` returns it, and `step`, the steps taken when the run was saved.
        """
        start = state["start"]
        self.start = float(start[0]) if len(start) else None
        self.is_started = self.is_started or int(state["step"]) > 0

    def steps_to_next(self, step: int) -> int:
        """Return the steps until the energy is to be summed, at least 1; many if it never is."""
        return max(1, self._next - step) if self.has_work else MANY_STEPS

    def measure(self, step: int, now: bool = False) -> bool:
        """Sum the kinetic energy into the status block, if that is due; does not wait.

        Args:
            step: steps taken so far.
            now: sum it in any case.

        Returns:
            Whether it was summed.
        """
        is_started = step > 0 or self.is_started
        if not (self.has_work and is_started and (now or step >= self._next)):
            return False
        self._next = step + min(step, self._interval)
        self._launch()
        return True

    def judge(self, step: int, status: StatusCopy) -> EnergyExploded | None:
        """Return the fault of an energy far above that of the start; warn if particles are too slow.

        Args:
            step: steps taken when the energy was summed.
            status: copy of the status block, with that energy.
        """
        energy, particle = status.energy, int(status.fastest) & 0xFFFFFFFF
        speed = float(np.sqrt(np.uint32(status.fastest >> np.uint64(32)).view(np.float32)))
        p = self._system.particles
        if not self._is_frozen:
            self._is_frozen = self._warn_if_slow(step, np.sqrt(2 * energy / self._system.n_total), speed)
        if self.start is None:
            return None
        moves = speed * self._stepper.time_of_step(speed)  # displacement in a step
        fast = moves > SLOW * self._law.cutoff * p.narrowest
        if not (
            fast and GROWTH * self.start < energy < np.inf
        ):  # an infinite energy or NaN has another cause
            return None
        total = self._system.n_total
        return EnergyExploded(step, particle, moves, energy / total, self.start / total, self._system.dt)

    def _warn_if_slow(self, step: int, typical: float, fastest: float) -> bool:
        """Warn if a typical particle is too slow for the precision, and will not soon be faster.

        Particles that gravity or shaking sets in motion are slow in their first steps, and at rest in a heap.
        They are not frozen, if rounding can hold a particle for at most `INTERVAL` steps.

        Args:
            step: steps taken.
            typical: speed of a typical particle.
            fastest: speed of the fastest particle.

        Returns:
            Whether it warned.
        """
        p, dt = self._system.particles, self._stepper.time_of_step(fastest)
        if self._field.speed_gained(INTERVAL * dt) * dt >= least_stride(p.box, p.pos.dtype):
            return False
        return warn_if_unresolved(step, typical * dt, p.box, p.pos.dtype)

    def _launch(self) -> None:
        """Store the energy of all particles and the fastest particle in the status block."""
        p, backend, status = self._system.particles, self._system.backend, self._system.status
        backend.fill(status.energy, 0)
        backend.fill(status.fastest, 0)
        threads = min(-(-p.n // 256) * 256, THREADS)
        backend.kernels(__name__, constants=p.constants).motion(
            threads, p.n, p.velocities, p.id, 4 * backend.workers, status.energy, status.fastest
        )


def motion(threads, n, vel, id, parts, energy, fastest):
    """Compute energy[0], the sum of v^2 / 2 (m = 1), and fastest[0]; `threads` are those of a device.

    fastest[0] holds the bits of the largest v^2 as float32 in the upper half, the id of its particle in the
    lower. Numbers that are not negative are ordered as their bits, with NaN above them all.
    """
    sums, most = np.zeros(parts), np.zeros(parts, np.uint64)
    in_parts(lambda part: _motion(part.start, part.stop, n, vel, id, sums, most), parts, rows=n)
    energy[0], fastest[0] = 0.0, most.max()
    for one in sums:  # in order: `sum` rounds in another way
        energy[0] += one


@kernel
def _motion(first, last, n, vel, id, sums, most):
    """Store the energy of each of the parts first .. last - 1, and its word of `motion`."""
    parts = len(sums)
    for p in range(first, last):
        total, top = 0.0, np.uint64(0)
        for i in range(p * n // parts, (p + 1) * n // parts):
            v2 = 0.0
            for k in range(vel.shape[1]):
                v2 += float(vel[i, k]) ** 2
            total += v2
            word = np.uint64(np.float32(v2).view(np.uint32)) << np.uint64(32) | np.uint64(id[i])
            top = max(top, word)
        sums[p], most[p] = total / 2, top
