"""Profiles of density, velocity and temperature along an axis of the box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from md import checks
from md.observe.sums import MOST_BINS
from md.particles.box import Box
from md.particles.state import sphere_volume


@dataclass(frozen=True)
class Profile:
    """Choice of a profile: slices of equal width across an axis of the box.

    A particle beyond an open side of the box is in no slice.

    Args:
        axis: 0, 1 or 2.
        bins: slices, 1 to 1000.

    Raises:
        TypeError: a value that is not an integer.
        ValueError: a value outside its range.
    """

    axis: int
    bins: int = 20

    def __post_init__(self) -> None:
        for name, low, high in (("axis", 0, 2), ("bins", 1, MOST_BINS)):
            value = checks.integer(f"{name} of Profile", getattr(self, name), low, high)
            object.__setattr__(self, name, value)  # a Python integer: products do not wrap

    def along(self, box: Box) -> tuple[int, ...]:
        """Return the number of slices along each axis of a box: `bins`, and 1 along other axes.

        Raises:
            ValueError: a box without this axis.
        """
        if self.axis >= box.dim:
            raise ValueError(
                f"axis = {self.axis} of a profile in a box of {box.dim} axes; allowed: less than {box.dim}"
            )
        return tuple(self.bins if axis == self.axis else 1 for axis in range(box.dim))


def profiles_of(given: Any) -> tuple[Profile, ...]:
    """Convert one profile, or several, to a tuple.

    Raises:
        TypeError: something else.
    """
    if isinstance(given, Profile):
        return (given,)
    found = checks.sequence("profiles", given, "md.Profile, or one of them")
    for k, profile in enumerate(found):
        checks.instance(f"profiles[{k}]", profile, Profile, "an md.Profile")
    return found


class Profiled(NamedTuple):
    """Values of a profile at one step; slice k is from k to k + 1 times the box length over `bins`.

    Attributes:
        axis: of the profile.
        centre: (bins,) of each slice along the axis, in d.
        particles: (bins,) number of centres of particles in the slice, or on its lower side.
        number_density: (bins,) in 1 / d^dim.
        filling_fraction: (bins,) volume of as many spheres over that of the slice; NaN if radii differ.
        velocity: (bins, dim) mean, in d per time unit; NaN in an empty slice.
        temperature: (bins,) m <(v - velocity)^2> / dim, in d^2 / time^2; NaN in an empty slice. It is too low
            by a fraction of 1 / particles, because the mean velocity is that of the same particles.
    """

    axis: int
    centre: np.ndarray
    particles: np.ndarray
    number_density: np.ndarray
    filling_fraction: np.ndarray
    velocity: np.ndarray
    temperature: np.ndarray


def profiled(axis: int, sums: np.ndarray, box: Box, sized: bool = False) -> Profiled:
    """Compute the values of a profile from sums.

    Args:
        axis: of the profile.
        sums: (bins, 3 + dim), from `md.observe.sums.binned`.
        box: the box.
        sized: whether radii differ.
    """
    bins = len(sums)
    density = sums[:, 0] * bins / box.volume
    return Profiled(
        axis,
        (np.arange(bins) + 0.5) * box.lengths[axis] / bins,
        sums[:, 0].astype(np.int64),
        density,
        density * (np.nan if sized else sphere_volume(box.dim)),
        mean_velocity(sums),
        thermal_energy(sums) * 2 / box.dim,
    )


def mean_velocity(sums: np.ndarray) -> np.ndarray:
    """Compute the mean velocity in each bin: (..., dim) for sums of shape (..., 3 + dim); NaN if empty."""
    with np.errstate(invalid="ignore"):
        return sums[..., 3:] / sums[..., :1]


def thermal_energy(sums: np.ndarray, squares: int = 2) -> np.ndarray:
    """Compute the kinetic energy per particle about the mean velocity of the bin: (...), NaN if empty.

    Args:
        sums: (..., 3 + dim), the number of particles first, and the sums of the velocity last.
        squares: column of the sums of v^2.
    """
    with np.errstate(invalid="ignore"):
        mean = sums[..., squares] / sums[..., 0]
    return np.maximum(mean - np.square(mean_velocity(sums)).sum(axis=-1), 0) / 2
