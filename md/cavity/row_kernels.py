"""Kernel of the steps of a cavity with its points stored row by row, in (ny, nx) arrays.

Several sweeps may be taken in one pass over memory (`md.cavity.strategies.blocked`).
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from md.cavity.scheme import Scheme
from md.cavity.sides import NAMES
from md.cavity.vector_rows import sweep_row
from sfc.compile import callee, inlined, kernel, overload

TENTATIVE, SOURCE = -2, -1  # numbers of the phases of a step; passes of sweeps are counted from 0


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
    ny, nx = scheme.shape
    given = [getattr(scheme.conditions[side], name) for side in NAMES]
    values = (np.zeros(n) if one is None else one for n, one in zip((nx, nx, ny, ny), given, strict=True))
    bottom, top, left, right = (one is None for one in given)
    return Edges(bottom, top, left, right, *(one.astype(scheme.dtype) for one in values))


@kernel(parallel=True)
def advance(steps, sweeps, depth, parts, fields, rows, at, factors, u_edges, v_edges, p_edges):
    """Take steps, until a field is not finite.

    One loop over the parts has all phases of a step, since each parallel loop is compiled by itself.

    Args:
        steps: number of steps.
        sweeps: of the pressure, in a step.
        depth: most sweeps of a pass; 1 if the arrays have gaps.
        parts: number of parts into which the rows are cut; threads share the parts.
        fields: `md.cavity.memory.Fields` of (ny, nx) arrays. After an odd number of passes in all, the
            pressure is in `p_next`.
        rows: (2 ny + 3 (depth - 1) parts, nx): both pressures, then the rings of the parts; for arrays with
            gaps any array of such.
        at: row of the pressure `p` in `rows`: 0, or ny.
        factors: `md.cavity.scheme.Coefficients`.
        u_edges: `Edges` of u.
        v_edges: `Edges` of v.
        p_edges: `Edges` of the pressure.

    Returns:
        `steps`, or -k if a field is not finite after k steps.
    """
    u, v, p, ut, vt, q, b = fields
    passes = -(-sweeps // depth)
    bad = np.empty(parts, np.int64)
    for step in range(steps):
        for phase in range(TENTATIVE, passes + 1):
            count = min(depth, sweeps - phase * depth)
            for part in numba.prange(parts):
                k = np.int64(part)  # the index of prange is unsigned
                first, last = rows_of(k, parts, len(u) - 2)
                if phase == TENTATIVE:
                    tentative_rows(first, last, u, v, ut, vt, factors)
                elif phase == SOURCE:
                    source_rows(first, last, ut, vt, b, factors.source)
                elif phase < passes:
                    ring = 2 * len(u) + 3 * (depth - 1) * k
                    sweep_part((first, last, ring), count, (p, q), rows, at, b, factors.quarter, p_edges)
                else:
                    bad[k] = correct_rows(first, last, u, v, ut, vt, p, factors.gradient)
            if phase == TENTATIVE:
                copy_edges(u, ut)
                copy_edges(v, vt)
            elif 0 <= phase < passes:
                p, q, at = q, p, len(u) - at
        set_velocity_edges(u, u_edges)
        set_velocity_edges(v, v_edges)
        for k in range(parts):
            if bad[k] > 0:
                return -(step + 1)
    return steps


@inlined
def rows_of(k, parts, inner):
    """Return the first row of part k of the `inner` rows inside the boundary, and the row after its last."""
    return 1 + inner * k // parts, 1 + inner * (k + 1) // parts


@callee
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


@callee
def source_rows(first, last, ut, vt, b, source):
    """Compute the right-hand side in rows first .. last - 1 from the divergence of the tentative velocity."""
    for r in range(first, last):
        for c in range(1, ut.shape[1] - 1):
            b[r, c] = source * ((ut[r, c + 1] - ut[r, c - 1]) + (vt[r + 1, c] - vt[r - 1, c]))


def sweep_part(part, count, pressures, rows, at, b, quarter, given):
    """Take sweeps of one part of the rows; only kernels can call it.

    Args:
        part: first row of the part, the row after its last, and the first row of its ring in `rows`.
        count: number of sweeps.
        pressures: before and after the sweeps.
        rows: of `advance`.
        at: row of the pressure before the sweeps in `rows`.
        b: (ny, nx) right-hand side.
        quarter: 1 / 4.
        given: conditions for the pressure.
    """
    raise NotImplementedError("for kernels only")


@overload(sweep_part)
def _code_of_sweep_part(part, count, pressures, rows, at, b, quarter, given):
    return sweeps_in_rings if rows.layout == "C" else one_sweep


@callee
def one_sweep(part, count, pressures, rows, at, b, quarter, given):
    """Take one sweep, as `sweep_part`."""
    first, last, _ = part
    p, q = pressures
    ny, nx = b.shape
    for r in range(first, last):
        sweep_row(p, (r - 1, r, r + 1, r), q, b, r, quarter)
        q[r, nx - 1] = q[r, nx - 2] if given.copies_right else given.right[r]
        q[r, 0] = q[r, 1] if given.copies_left else given.left[r]
    if first == 1 < last:  # the first part has no rows if there are more parts than rows
        set_row(q, 0, 1, given.copies_bottom, given.bottom)
    if last == ny - 1:
        set_row(q, ny - 1, ny - 2, given.copies_top, given.top)


def sweeps_in_rings(part, count, pressures, rows, at, b, quarter, given):
    """Take sweeps as `sweep_part`: sweep s computes row r - s right after sweep s - 1 has row r - s + 1."""
    if count == 1:  # without the choices for each row it is an eighth faster
        one_sweep(part, count, pressures, rows, at, b, quarter, given)
        return
    first, last, ring = part
    ny, nx = b.shape
    end = ny if last == ny - 1 else last
    for front in range(max(1, first - count + 1) + 1, end + count):
        for s in range(1, count + 1):
            r = front - s
            if max(1, first - count + s) <= r < min(ny, end + count - s):
                # Rows r - 1, r, r + 1 of the sweep before, and rows 0, r - 1, r of this one.
                place = ring + 3 * (s - 1)
                if s == 1:
                    south, centre, north = at + r - 1, at + r, at + r + 1
                else:
                    south, centre, north = place + (r + 2) % 3 - 3, place + r % 3 - 3, place + (r + 1) % 3 - 3
                if s == count:
                    bottom, below, out = ny - at, ny - at + r - 1, ny - at + r
                else:
                    bottom, below, out = place, place + (r + 2) % 3, place + r % 3
                if r == ny - 1:
                    set_row(rows, out, below, given.copies_top, given.top)
                else:
                    sweep_row(rows, (south, centre, north, out), rows, b, r, quarter)
                    rows[out, nx - 1] = rows[out, nx - 2] if given.copies_right else given.right[r]
                    rows[out, 0] = rows[out, 1] if given.copies_left else given.left[r]
                if r == 1:
                    set_row(rows, bottom, out, given.copies_bottom, given.bottom)


@callee
def set_row(field, out, beside, copies, fixed):
    """Set a boundary row: a copy of the row beside it, or fixed values."""
    for c in range(field.shape[1]):
        field[out, c] = field[beside, c] if copies else fixed[c]


@callee
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
    set_row(field, 0, 1, given.copies_bottom, given.bottom)
    set_row(field, ny - 1, ny - 2, given.copies_top, given.top)
    for r in range(ny):
        field[r, 0] = field[r, 1] if given.copies_left else given.left[r]
        field[r, nx - 1] = field[r, nx - 2] if given.copies_right else given.right[r]
