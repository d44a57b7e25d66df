"""Plane section of a state: the discs in which a plane cuts the spheres."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from md import checks
from md.boundaries.base import RADIUS
from md.particles.state import State


class Section(NamedTuple):
    """Discs of p spheres in a plane, in the order of the ids.

    Attributes:
        id: (p,) of the spheres.
        centre: (p, 2) of the discs along the two other axes, in d.
        radius: (p,) of the discs, in d: above 0, at most the radius of the sphere.
        vel: (p, 3) velocities of the spheres, in d per time unit.
    """

    id: np.ndarray
    centre: np.ndarray
    radius: np.ndarray
    vel: np.ndarray


def section(state: State, axis: int = 1, at: float | None = None) -> Section:
    """Cut the spheres of a state by a plane perpendicular to an axis.

    Args:
        state: in three dimensions.
        axis: the axis.
        at: position of the plane on the axis, in d; None for the middle of the box.

    Returns:
        The discs. A disc that extends beyond a side of the box is not repeated at the other side.

    Raises:
        TypeError: no `md.State`, an axis that is not an integer, or a position that is not a number.
        ValueError: a state in two dimensions, an axis that does not exist, or a plane outside the box.
    """
    box = checks.instance("state", state, State, "an md.State", "take the `state` of a simulation").box
    if box.dim != 3:
        raise ValueError(f"a section of a state in {box.dim} dimensions; allowed: 3")
    axis = checks.integer("axis", axis, 0, 2)
    length = box.lengths[axis]
    at = length / 2 if at is None else checks.number("at", at, 0, length, unit=f"d, along axis {axis}")
    distance = state.pos[:, axis].astype(np.float64) - at
    if box.periodic[axis]:
        distance -= length * np.round(distance / length)
    spheres = np.full(len(state), RADIUS) if state.radius is None else state.radius.astype(np.float64)
    rows = np.flatnonzero(np.abs(distance) < spheres)
    rows = rows[np.argsort(state.id[rows])]
    others = np.array([k for k in range(3) if k != axis])
    return Section(
        id=state.id[rows],
        centre=state.pos[np.ix_(rows, others)].astype(np.float64),
        radius=np.sqrt(spheres[rows] ** 2 - distance[rows] ** 2),
        vel=state.vel[rows].astype(np.float64),
    )
