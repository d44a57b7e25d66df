"""Kernel of the steps of a cavity with its points stored row by row, in (ny, nx) arrays."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from md.cavity.scheme import Scheme
from md.cavity.sides import NAMES
from md.cavity.vector_rows import sweep_row
from sfc.compile import callee, inlined, kernel


class Edges(NamedTuple):
    """Conditions for one field at the four sides.

    Attributes:
        copies_bottom, copies_top, copies_left, copies_right: whether the points of the side copy the
            neighbouring points inside.
        bottom, top: (nx,) fixed values; not read where copied.
        left, right: (ny,) fixed values; not read where copied.
    """

    copies_bottom: bool
    copies_top: bool
    copies_left: bool
    copies_right: bool
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
    bottom, top, left, right = (given[side] is None for side in NAMES)
    return Edges(bottom, top, left, right, *(fixed[side] for side in NAMES))


@kernel(parallel=True)
def advance(steps, sweeps, fields, factors, parts, u_edges, v_edges, p_edges):
    """Take steps, until a field is not finite.

    `parts` is the number of parts into which the rows are cut; threads share the parts. `fields` are
    `md.cavity.memory.Fields` of (ny, nx) arrays; after an odd number of sweeps in all the pressure is in
    `p_next`. `factors` are `md.cavity.scheme.Coefficients`, and the last three the `Edges` of the fields.
    Returns `steps`, or -k if a field is not finite after k steps.
    """
    u, v, p, ut, vt, q, b = fields
    inner = len(u) - 2
    for step in range(steps):
        for k in numba.prange(parts):
            first, last = rows_of(k, parts, inner)
            tentative_rows(first, last, u, v, ut, vt, factors)
        copy_edges(u, ut)
        copy_edges(v, vt)
        for k in numba.prange(parts):
            first, last = rows_of(k, parts, inner)
            source_rows(first, last, ut, vt, b, factors.source)
        for _ in range(sweeps):
            for k in numba.prange(parts):
                first, last = rows_of(k, parts, inner)
                sweep_rows(first, last, p, q, b, factors.quarter, p_edges)
            set_bottom_and_top(q, p_edges)
            p, q = q, p
        bad = 0
        for k in numba.prange(parts):
            first, last = rows_of(k, parts, inner)
            bad += correct_rows(first, last, u, v, ut, vt, p, factors.gradient)
        set_velocity_edges(u, u_edges)
        set_velocity_edges(v, v_edges)
        if bad > 0:
            return -(step + 1)
    return steps


@inlined
def rows_of(k, parts, inner):
    """Return the first row of part k of the `inner` rows inside the boundary, and the row after its last."""
    return 1 + inner * k // parts, 1 + inner * (k + 1) // parts


@inlined
def tentative_rows(first, last, u, v, ut, vt, factors):
    """Compute the tentative velocities at the points inside of rows first .. last - 1."""
    for r in range(first, last):
        for c in range(1, u.shape[1] - 1):
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


@callee
def copy_edges(field, copied):
    """Copy the boundary values of a field to another."""
    ny, nx = field.shape
    for c in range(nx):
        copied[0, c], copied[ny - 1, c] = field[0, c], field[ny - 1, c]
    for r in range(ny):
        copied[r, 0], copied[r, nx - 1] = field[r, 0], field[r, nx - 1]


@inlined
def source_rows(first, last, ut, vt, b, source):
    """Compute the right-hand side in rows first .. last - 1 from the divergence of the tentative velocity."""
    for r in range(first, last):
        for c in range(1, ut.shape[1] - 1):
            b[r, c] = source * ((ut[r, c + 1] - ut[r, c - 1]) + (vt[r + 1, c] - vt[r - 1, c]))


@inlined
def sweep_rows(first, last, p, q, b, quarter, given):
    """Compute rows first .. last - 1 of q, the pressure p after one sweep, with both ends of each row."""
    nx = p.shape[1]
    for r in range(first, last):
        sweep_row(p, (r - 1, r, r + 1, r), q, b, r, quarter)
        q[r, nx - 1] = q[r, nx - 2] if given.copies_right else given.right[r]
        q[r, 0] = q[r, 1] if given.copies_left else given.left[r]


@callee
def set_bottom_and_top(field, given):
    """Set the boundary values at bottom and top, corners included."""
    ny, nx = field.shape
    if given.copies_bottom:
        for c in range(nx):
            field[0, c] = field[1, c]
    else:
        for c in range(nx):
            field[0, c] = given.bottom[c]
    if given.copies_top:
        for c in range(nx):
            field[ny - 1, c] = field[ny - 2, c]
    else:
        for c in range(nx):
            field[ny - 1, c] = given.top[c]


@inlined
def correct_rows(first, last, u, v, ut, vt, p, gradient):
    """Compute the velocities in rows first .. last - 1 from the tentative ones.

    Returns how many points of these rows are not finite.
    """
    bad = 0
    for r in range(first, last):
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


@callee
def set_velocity_edges(field, given):
    """Set the boundary values of a velocity: bottom, top, left, right."""
    ny, nx = field.shape
    set_bottom_and_top(field, given)
    for r in range(ny):
        field[r, 0] = field[r, 1] if given.copies_left else given.left[r]
        field[r, nx - 1] = field[r, nx - 2] if given.copies_right else given.right[r]
