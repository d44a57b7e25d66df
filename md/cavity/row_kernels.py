"""Kernel of the steps of a cavity whose points are stored row by row, in (ny, nx) arrays."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from md.cavity.scheme import Scheme
from sfc.compile import inlined, kernel


class Edges(NamedTuple):
    """Conditions for one field at the four sides.

    Attributes:
        copies: (4,) bool: whether bottom, top, left, right copy the neighbouring point inside.
        bottom, top: (nx,) fixed values; not read where copied.
        left, right: (ny,) fixed values; not read where copied.
    """

    copies: np.ndarray
    bottom: np.ndarray
    top: np.ndarray
    left: np.ndarray
    right: np.ndarray


def edges(scheme: Scheme, name: str) -> Edges:
    """Return the conditions for one field.

    Args:
        scheme: the discretised problem.
        name: of the field: "u", "v" or "p".
    """
    given = {side: getattr(one, name) for side, one in scheme.conditions.items()}
    ny, nx = scheme.shape
    cells = {"bottom": nx, "top": nx, "left": ny, "right": ny}
    fixed = {
        side: np.zeros(cells[side], scheme.dtype) if value is None else value.astype(scheme.dtype)
        for side, value in given.items()
    }
    copies = np.array([given[side] is None for side in Edges._fields[1:]])
    return Edges(copies, **fixed)


@kernel(parallel=True)
def advance(steps, sweeps, fields, factors, u_edges, v_edges, p_edges):
    """Take steps, until a field is not finite.

    Args:
        steps, sweeps: numbers of steps, and of sweeps in each.
        fields: `md.cavity.memory.Fields` of (ny, nx) arrays. After an odd number of sweeps in all the
            pressure is in `p_next`.
        factors: `md.cavity.scheme.Coefficients`.
        u_edges, v_edges, p_edges: `Edges` of the three fields.

    Returns:
        `steps`, or -k if a field is not finite after k steps.
    """
    u, v, p, ut, vt, q, b = fields
    ny, nx = u.shape
    for step in range(steps):
        for r in numba.prange(ny):
            tentative_row(r, u, v, ut, vt, factors)
        for r in numba.prange(1, ny - 1):
            source_row(r, ut, vt, b, factors)
        for _ in range(sweeps):
            for r in numba.prange(1, ny - 1):
                sweep_row(r, p, q, b, factors.quarter)
                pressure_ends(r, q, p_edges)
            pressure_rows(q, p_edges)
            p, q = q, p
        bad = 0
        for r in numba.prange(1, ny - 1):
            bad += correct_row(r, u, v, ut, vt, p, factors.gradient)
        velocity_edges(u, u_edges)
        velocity_edges(v, v_edges)
        if bad > 0:
            return -(step + 1)
    return steps


@inlined
def tentative_row(r, u, v, ut, vt, factors):
    """Compute the tentative velocities of row r; on the boundary copy the velocities."""
    ny, nx = u.shape
    if r == 0 or r == ny - 1:
        for c in range(nx):
            ut[r, c] = u[r, c]
            vt[r, c] = v[r, c]
    else:
        ut[r, 0], vt[r, 0] = u[r, 0], v[r, 0]
        ut[r, nx - 1], vt[r, nx - 1] = u[r, nx - 1], v[r, nx - 1]
        for c in range(1, nx - 1):
            uc, uw, ue, us, un = u[r, c], u[r, c - 1], u[r, c + 1], u[r - 1, c], u[r + 1, c]
            vc, vw, ve, vs, vn = v[r, c], v[r, c - 1], v[r, c + 1], v[r - 1, c], v[r + 1, c]
            ut[r, c] = tentative(uc, uw, ue, us, un, uc, vc, factors)
            vt[r, c] = tentative(vc, vw, ve, vs, vn, uc, vc, factors)


@inlined
def tentative(centre, west, east, south, north, u, v, factors):
    """Return the tentative velocity at a point from a velocity there and at the neighbours."""
    laplacian = west + south - factors.four * centre + east + north
    carried = u * (east - west) + v * (north - south)
    return centre + (factors.diffusion * laplacian - factors.advection * carried)


@inlined
def source_row(r, ut, vt, b, factors):
    """Compute the right-hand side of row r from the divergence of the tentative velocity."""
    for c in range(1, ut.shape[1] - 1):
        b[r, c] = factors.source * ((ut[r, c + 1] - ut[r, c - 1]) + (vt[r + 1, c] - vt[r - 1, c]))


@inlined
def sweep_row(r, p, q, b, quarter):
    """Compute row r of q, the pressure p after one sweep."""
    for c in range(1, p.shape[1] - 1):
        q[r, c] = (p[r, c - 1] + p[r, c + 1] + p[r - 1, c] + p[r + 1, c] - b[r, c]) * quarter


@inlined
def pressure_ends(r, q, edges):
    """Set the pressure at both ends of row r."""
    last = q.shape[1] - 1
    q[r, last] = q[r, last - 1] if edges.copies[3] else edges.right[r]
    q[r, 0] = q[r, 1] if edges.copies[2] else edges.left[r]


@inlined
def pressure_rows(q, edges):
    """Set the pressure in the rows at bottom and top, which overwrite the corners."""
    ny, nx = q.shape
    for c in range(nx):
        q[0, c] = q[1, c] if edges.copies[0] else edges.bottom[c]
    for c in range(nx):
        q[ny - 1, c] = q[ny - 2, c] if edges.copies[1] else edges.top[c]


@inlined
def correct_row(r, u, v, ut, vt, p, gradient):
    """Compute the velocities of row r from the tentative ones; return how many points are not finite."""
    bad = 0
    for c in range(1, u.shape[1] - 1):
        uc = ut[r, c] - gradient * (p[r, c + 1] - p[r, c - 1])
        vc = vt[r, c] - gradient * (p[r + 1, c] - p[r - 1, c])
        u[r, c], v[r, c] = uc, vc
        bad += not_finite(uc) | not_finite(vc) | not_finite(p[r, c])
    return bad


@inlined
def not_finite(value):
    """Return 1 for NaN and infinities, else 0."""
    return 0 if value - value == 0 else 1


@inlined
def velocity_edges(field, edges):
    """Set the boundary values of a velocity: bottom, top, left, right."""
    ny, nx = field.shape
    for c in range(nx):
        field[0, c] = field[1, c] if edges.copies[0] else edges.bottom[c]
    for c in range(nx):
        field[ny - 1, c] = field[ny - 2, c] if edges.copies[1] else edges.top[c]
    for r in range(ny):
        field[r, 0] = field[r, 1] if edges.copies[2] else edges.left[r]
    for r in range(ny):
        field[r, nx - 1] = field[r, nx - 2] if edges.copies[3] else edges.right[r]
