"""Time of a step with neighbour lists on a device, as a function of the widths of the skin."""

from __future__ import annotations

import math

import numpy as np

from md.particles.state import sphere_volume

MARGIN = 0.95  # share of the allowed displacement that a plan uses
FEW = 2**18  # fewer particles take a device less time in a step than launches and captures take the host
RESTING = 0.01  # displacement in a step in cutoffs that is assumed if no particle moves


class StepCosts:
    """Model of the time of a step with neighbour lists on a device, by which the skin is chosen.

    The numbers are those of an H200 with float32, in ps for a particle: of a step, and of each listed
    partner; of a build with its sort, of each candidate in the cells around a particle, and of each cell; of
    a pruning, and of each partner that it reads beyond those that it keeps. Those of a build are fitted to
    the sum of its kernels at 8 widths and densities (2^21 spheres, 1 to 40 % filling, within 2.5 %), with an
    eighth of the kernels that move the particles in memory. The others are fitted to times of steps at 65
    pairs of widths (2^21 to 2^25 spheres, 1 to 50 % filling, up to 1.3 times the shortest time of each). The
    model is within 10 % of these times, with a root mean square of 3.6 %. (Rows of lists had four entries, in
    16 bytes, then.) Launches take a time of their own, estimated from kernels of 2^17 spheres: a small system
    gets a wide skin.

    Args:
        n: number of particles.
        density: particles in a unit of volume, in 1 / d^dim.
        cutoff: of the law, in d.
        dim: 2 or 3.
    """

    STEP, PARTNER = 14.1, 2.9
    BUILD, CANDIDATE, CELL = 70.4, 0.89, 11.7
    PRUNING, READ = 5.4, 3.2
    MOST_KEPT = 9.0  # mean number of partners in pruned lists: of more, many lists would have no room
    STEP_LAUNCH, BUILD_LAUNCHES, PRUNING_LAUNCHES = 2.5e6, 30e6, 1.5e6  # in ps

    def __init__(self, n: int, density: float, cutoff: float, dim: int):
        self._n, self._density, self._cutoff, self._dim = n, density, cutoff, dim
        self._widths = cutoff * np.geomspace(0.02, 1.5, 100)

    def _partners(self, width: np.ndarray) -> np.ndarray:
        """Return the mean number of partners within cutoff + width."""
        return self._density * sphere_volume(self._dim) * (2 * (self._cutoff + width)) ** self._dim

    def time(self, skin: np.ndarray, inner: np.ndarray, stride: float) -> np.ndarray:
        """Return the time of a step in ps for a particle; lists are pruned where `inner` is below `skin`.

        Args:
            skin: widths in d.
            inner: widths in d of the skin of pruned lists, of a shape that suits `skin`.
            stride: largest displacement of a particle in a step, in d.
        """
        partners, read = self._partners(inner), self._partners(skin)
        wide, dim = self._cutoff + skin, self._dim
        candidates, cells = self._density * (3 * wide) ** dim, 1 / (self._density * wide**dim)
        build = self.BUILD + self.CANDIDATE * candidates + self.CELL * cells + self.BUILD_LAUNCHES / self._n
        pruning = self.PRUNING + self.READ * (read - partners) + self.PRUNING_LAUNCHES / self._n
        step = self.STEP + self.PARTNER * partners + self.STEP_LAUNCH / self._n
        steps, inner_steps = (1 + np.floor(MARGIN * width / 2 / stride) for width in (skin, inner))
        if self._n < FEW:  # as plans are rounded (`displacement_bound`)
            inner_steps = 2 ** np.floor(np.log2(inner_steps))
        return step + build / steps + np.where(inner < skin, pruning / inner_steps, 0)

    def fastest(
        self, stride: float, skin: float | None, inner: float | None, widest: float
    ) -> tuple[float, float]:
        """Return the widths of the skin and of the inner skin with the shortest time of a step, in d.

        Args:
            stride: largest displacement of a particle in a step, in d; 0 if none is known.
            skin: width that was given; None if it is to be chosen.
            inner: inner width that was given, infinite for no pruned lists; None if it is to be chosen.
            widest: largest width that the box allows.
        """
        stride = stride if stride > 0 and math.isfinite(stride) else RESTING * self._cutoff
        widths = np.append(self._widths[self._widths < widest], min(widest, self._widths[-1]))
        if skin is not None:
            widths = np.array([skin])
        elif inner is not None and inner < widths[-1]:
            widths = widths[widths >= inner]
        kept = self._partners(self._widths)
        inners = (
            np.append(self._widths[kept <= self.MOST_KEPT], math.inf) if inner is None else np.array([inner])
        )
        wide = widths[:, None]
        narrow = np.minimum(inners[None, :], wide)
        times = self.time(wide, narrow, stride)
        best = np.unravel_index(times.argmin(), times.shape)
        return float(widths[best[0]]), float(narrow[best])
