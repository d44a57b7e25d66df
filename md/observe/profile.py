"""Density, velocity and temperature along an axis of the box."""

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
    """A cut of the box into slices across an axis, all alike.

    Args:
        axis: 0, 1 or 2.
        bins: slices, 1 to 1000.

    Raises:
        TypeError: a value that is no integer.
        ValueError: one outside its range.
    """

    axis: int
    bins: int = 20

    def __post_init__(self):
        for name, low, high in (("axis", 0, 2), ("bins", 1, MOST_BINS)):
            whole = checks.integer(f"{name} of Profile", getattr(self, name), low, high)
            object.__setattr__(self, name, whole)  # of Python's width: products of it are taken

    def along(self, box: Box) -> tuple[int, ...]:
        """Parts along each axis of a box.

        Raises:
            ValueError: a box without this axis.
        """
        if self.axis >= box.dim:
            raise ValueError(
                f"axis = {self.axis} of a profile in a box of {box.dim} axes; allowed: less than {box.dim}"
            )
        return tuple(self.bins if axis == self.axis else 1 for axis in range(box.dim))


def profiles_of(given: Any) -> tuple[Profile, ...]:
    """One profile, or several, as a tuple.

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
    """What a profile shows at some step; slice k reaches from k to k + 1 times the box length over `bins`.

    Attributes:
        axis: across which the slices lie.
        centre: (bins,) of each slice along the axis, in d.
        particles: (bins,) number of those whose centre is in the slice, or on its lower side.
        number_density: (bins,) in 1 / d^dim.
        filling_fraction: (bins,) volume of as many spheres over that of the slice; NaN where radii differ.
        velocity: (bins, dim) mean, in d per time unit; NaN in an empty slice.
        temperature: (bins,) m <(v - velocity)^2> / dim, in d^2 / time^2; NaN in an empty slice. The mean that
            is taken off takes 1 / particles of the temperature along.
    """

    axis: int
    centre: np.ndarray
    particles: np.ndarray
    number_density: np.ndarray
    filling_fraction: np.ndarray
    velocity: np.ndarray
    temperature: np.ndarray


def profiled(axis: int, sums: np.ndarray, box: Box, sized: bool = False) -> Profiled:
    """What a profile shows.

    Args:
        axis: of the profile.
        sums: (bins, 3 + dim), of `md.observe.sums.binned`.
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
    """Mean velocity in each bin: (..., dim) for sums of shape (..., 3 + dim); NaN in an empty one."""
    with np.errstate(invalid="ignore"):
        return sums[..., 3:] / sums[..., :1]


def thermal_energy(sums: np.ndarray) -> np.ndarray:
    """Energy of motion per particle about the mean velocity of its bin: (...), NaN in an empty one."""
    with np.errstate(invalid="ignore"):
        mean = sums[..., 2] / sums[..., 0]
    return np.maximum(mean - np.square(mean_velocity(sums)).sum(axis=-1), 0) / 2
