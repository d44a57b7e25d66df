"""Velocities along the centre lines of a cavity, their extremes, and the centre of its vortex."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from md.cavity.cavity import Cavity
from md.cavity.validation.references import Reference


class CentreLines(NamedTuple):
    """Velocities along both centre lines, at the points of the grid.

    Attributes:
        y, u: position along the vertical centre line over its length, and velocity along +x; (ny,).
        x, v: position along the horizontal centre line over its length, and velocity along +y; (nx,).
    """

    y: np.ndarray
    u: np.ndarray
    x: np.ndarray
    v: np.ndarray


class Deviation(NamedTuple):
    """Deviation of centre-line velocities from a reference, over all its points.

    Attributes:
        u_rms, v_rms: root mean square.
        u_largest, v_largest: largest magnitude.
    """

    u_rms: float
    u_largest: float
    v_rms: float
    v_largest: float


def centre_lines(cavity: Cavity) -> CentreLines:
    """Return the velocities along the centre lines; for an even number of points, the mean of the two middle.

    Args:
        cavity: any cavity; velocities are as in `Cavity.u` and `Cavity.v`.
    """
    ny, nx = cavity.scheme.shape
    u = (cavity.u[:, nx // 2] + cavity.u[:, (nx - 1) // 2]) / 2
    v = (cavity.v[ny // 2] + cavity.v[(ny - 1) // 2]) / 2
    return CentreLines(np.linspace(0, 1, ny), u.astype(float), np.linspace(0, 1, nx), v.astype(float))


def extremes(cavity: Cavity) -> dict[str, float]:
    """Compute the extremes for which references have values, and where they are.

    Velocities are those of cubic splines through the points of the centre lines, psi is that of a parabola
    through the smallest value at a point and its neighbours.

    Args:
        cavity: of at least 5 x 5 points.

    Returns:
        "u_min", "v_max", "v_min", "psi" as in `Reference.extremes`, and positions "u_min_y", "v_max_x",
        "v_min_x", "psi_x", "psi_y" as fractions of the height or width.
    """
    y, u, x, v = centre_lines(cavity)
    found = {}
    for name, where, at, values, sign in (
        ("u_min", "y", y, u, 1),
        ("v_max", "x", x, v, -1),
        ("v_min", "x", x, v, 1),
    ):
        spline = CubicSpline(at, values)
        candidates = np.concatenate([spline.derivative().roots(extrapolate=False), at[[0, -1]]])
        best = candidates[np.argmin(sign * spline(candidates))]
        found[name], found[f"{name}_{where}"] = float(spline(best)), float(best)
    psi = cavity.stream_function()
    inside = psi[1:-1, 1:-1]
    row, column = (int(k) + 1 for k in np.unravel_index(inside.argmin(), inside.shape))
    value = psi[row, column]
    for name, low, high, place, count in (
        ("psi_y", psi[row - 1, column], psi[row + 1, column], row, len(y)),
        ("psi_x", psi[row, column - 1], psi[row, column + 1], column, len(x)),
    ):
        slope, bend = (high - low) / 2, high - 2 * psi[row, column] + low
        shift = -slope / bend if bend > 0 else 0.0
        value += slope * shift / 2
        found[name] = float((place + shift) / (count - 1))
    return {**found, "psi": float(value)}


def deviation(cavity: Cavity, reference: Reference) -> Deviation:
    """Compare velocities along the centre lines with a table, by cubic splines through the grid's points.

    Args:
        cavity: of side 1 and with a lid of speed 1.
        reference: with tables; its doubtful values are left out.
    """
    y, u, x, v = centre_lines(cavity)
    at_x, table = np.array(reference.x), np.array(reference.v)
    kept = ~np.isin(at_x, reference.doubtful)
    du = CubicSpline(y, u)(reference.y) - np.array(reference.u)
    dv = CubicSpline(x, v)(at_x[kept]) - table[kept]
    u_rms, v_rms = (float(np.sqrt((d**2).mean())) for d in (du, dv))
    return Deviation(u_rms, float(np.abs(du).max()), v_rms, float(np.abs(dv).max()))
