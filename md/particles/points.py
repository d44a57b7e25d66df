"""Points in any unit and from any corner, converted to positions in d in a `Box`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from md import checks
from md.particles.box import Box

ROUNDED = 1e-6  # of a length: outside by less is the rounding of float32 or of decimals
VOLUMES = {2: np.pi / 4, 3: np.pi / 6}  # of a sphere of diameter 1
SAME = 1e-6  # relative difference of radii up to which all are one


class Converted(NamedTuple):
    """Arguments of `md.State`, and what was done to get them.

    Attributes:
        pos: (n, dim) float64, in d.
        vel: (n, dim) float64, in d per time unit.
        box: with one corner at the origin.
        radius: (n,) in d; None if all are 0.5.
        notes: sentences on what was converted or assumed.
    """

    pos: np.ndarray
    vel: np.ndarray
    box: Box
    radius: np.ndarray | None
    notes: list[str]


def convert_points(
    points: ArrayLike,
    box: Any = None,
    periodic: Any = None,
    diameter: float | None = None,
    origin: Any = None,
    velocities: ArrayLike | None = None,
    radius: ArrayLike | None = None,
) -> Converted:
    """Convert points to positions in d from the lower corner of the box.

    Args:
        points: (n, 2 or 3) in any unit of length.
        box: two or three lengths in that unit; None for the box around the spheres, between walls.
        periodic: one flag, or one an axis; None for periodic axes if there is a box.
        diameter: of a sphere in that unit, which becomes 1 d; None for the mean of the radii.
        origin: lower corner of the box in that unit; None for 0, or for minus half the lengths if all points
            are in that box and not in the other.
        velocities: (n, dim) in that unit per time unit; None for 0.
        radius: (n,) of each sphere in that unit; None for half a diameter each.

    Returns:
        Positions, velocities, box, radii, and notes.

    Raises:
        TypeError: an argument of another class.
        ValueError: another shape, a value that is not finite, a point outside the box, periodic axes without
            a box, or neither a diameter nor radii: the message has the filling fraction for a diameter of 1.
    """
    found = checks.array("points", points, "fiu", "real numbers", ("n", "dim"), finite=True)
    n, dim = found.shape
    if dim not in VOLUMES or not n:
        raise checks.refuse_value("shape of points", found.shape, "(n, 2) or (n, 3), of at least one point")
    points = found.astype(np.float64)
    notes: list[str] = []
    sizes, diameter = _sizes(n, radius, diameter, notes)
    lengths, corner, flags = _box(points, box, periodic, origin, diameter, sizes, notes)
    if diameter is None:
        filled = n * VOLUMES[dim] / math.prod(lengths)
        raise ValueError(
            "diameter = None; allowed: that of a sphere in the unit of the points, above 0; give diameter="
            f"...: with a diameter of 1 the {n:,} spheres would fill {filled:.3g} of the box"
        )
    into = Box(tuple(lengths / diameter), flags)
    pos = _put_in((points - corner) / diameter, into, notes)
    if velocities is None:
        vel = np.zeros((n, dim))
        notes.append("velocities are 0")
    else:
        given = checks.array("velocities", velocities, "fiu", "real numbers", (n, dim), finite=True)
        vel = given.astype(np.float64) / diameter
    if diameter != 1:
        also = "" if velocities is None else " and velocities"
        notes.insert(0, f"lengths{also} are divided by the diameter {diameter:g}")
    mean = 1.0 if sizes is None else float(np.mean((2 * sizes / diameter) ** dim))
    notes.append(f"the filling fraction is {n * mean * VOLUMES[dim] / into.volume:.3g}")
    return Converted(pos, vel, into, None if sizes is None else sizes / diameter, notes)


def _sizes(
    n: int, radius: ArrayLike | None, diameter: float | None, notes: list[str]
) -> tuple[np.ndarray | None, float | None]:
    """Return radii, or None if all are half the diameter, and the diameter; None if nothing says it."""
    if diameter is not None:
        diameter = checks.number("diameter", diameter, above=0, unit="of the points")
    if radius is None:
        return None, diameter
    allowed = "real numbers above 0, one a sphere"
    sizes = checks.array("radius", radius, "fiu", allowed, (n,), finite=True).astype(np.float64)
    if not (sizes > 0).all():
        i = int((sizes > 0).argmin())
        raise checks.refuse_value(f"radius[{i}]", float(sizes[i]), "above 0")
    if diameter is None:
        diameter = 2 * float(sizes.mean())
        if diameter != 1:
            notes.append(f"a length of 1 d is the mean diameter, {diameter:g}")
    same = np.abs(2 * sizes - diameter).max() <= SAME * diameter
    return None if same else sizes, diameter


def _box(
    points: np.ndarray,
    box: Any,
    periodic: Any,
    origin: Any,
    diameter: float | None,
    sizes: np.ndarray | None,
    notes: list[str],
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return lengths and lower corner of the box, (dim,) each in the unit of the points, and periodic flags.

    Raises:
        TypeError, ValueError: what `convert_points` raises of the box.
    """
    dim = points.shape[1]
    if box is None:
        if origin is not None or (periodic is not None and np.any(periodic)):
            raise ValueError(
                f"periodic = {checks.shown(periodic)}, origin = {checks.shown(origin)} without a box; "
                "allowed: walls alone; give box=, its lengths in the unit of the points"
            )
        reach = (diameter or 1.0) / 2 if sizes is None else float(sizes.max())
        lengths, corner = np.ptp(points, axis=0) + 2 * reach, points.min(axis=0) - reach
        notes.append(f"the box is that around the spheres, {lengths.tolist()} in the unit of the points")
        return lengths, corner, False
    remedy = "in the unit of the points"
    lengths = np.array(checks.numbers("box", box, dim, above=0, remedy=remedy))
    if origin is not None:
        corner = np.array(checks.numbers("origin", origin, dim, remedy=remedy))
    else:
        corner = np.zeros(dim)
        centred = -lengths / 2
        if _outside(points, corner, lengths).any() and not _outside(points, centred, lengths).any():
            corner = centred
            notes.append(f"the points are centred: the lower corner of the box is {corner.tolist()}")
    out = _outside(points, corner, lengths)
    if out.any():
        i = int(out.argmax())
        raise ValueError(
            f"points[{i}] = {points[i].tolist()} is outside the box of lengths {lengths.tolist()} from "
            f"{corner.tolist()}, as are {int(out.sum()):,} of {len(points):,}; allowed: points in the "
            "box; give origin=, its lower corner, or wrap the points"
        )
    return lengths, corner, True if periodic is None else periodic


def _outside(points: np.ndarray, corner: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return for each point whether it is outside a box by more than rounding: (n,) bool."""
    off, slack = points - corner, ROUNDED * lengths
    return ((off < -slack) | (off > lengths + slack)).any(axis=1)


def _put_in(pos: np.ndarray, box: Box, notes: list[str]) -> np.ndarray:
    """Put positions that rounding has put outside the box into it, and add a note on them."""
    out = box.outside(pos)
    if not out.any():
        return pos
    notes.append(f"{int(out.sum()):,} points at a side of the box, outside by rounding, are put into it")
    return np.where(box.periodic, box.wrap(pos), np.clip(pos, 0, box.lengths))
