"""Kernel of the steps of a cavity with its points stored in any order, and their neighbours in tables."""

from __future__ import annotations

import numba

from md.cavity.row_kernels import not_finite, tentative
from sfc.compile import inlined, kernel


@kernel(parallel=True)
def advance(steps, sweeps, fields, factors, stencil, u_edges, v_edges, p_edges):
    """Take steps, until a field is not finite.

    `fields` are `md.cavity.memory.Fields` of (n,) arrays; after an odd number of sweeps in all the pressure
    is in `p_next`. `factors` are `md.cavity.scheme.Coefficients`, and `stencil` is a
    `md.cavity.memory.Stencil`. The last three are the `md.cavity.boundary.BoundaryTable` of the fields, with
    places in memory for the numbers of points. Returns `steps`, or -k if a field is not finite after k steps.
    """
    u, v, p, ut, vt, q, b = fields
    at, west, east, south, north = stencil
    for step in range(steps):
        for k in range(len(u_edges.points)):
            ut[u_edges.points[k]], vt[u_edges.points[k]] = u[u_edges.points[k]], v[u_edges.points[k]]
        for k in numba.prange(len(at)):
            i, w, e, s, n = at[k], west[k], east[k], south[k], north[k]
            ut[i] = tentative(u[i], u[w], u[e], u[s], u[n], u[i], v[i], factors)
            vt[i] = tentative(v[i], v[w], v[e], v[s], v[n], u[i], v[i], factors)
        for k in numba.prange(len(at)):
            divergence = (ut[east[k]] - ut[west[k]]) + (vt[north[k]] - vt[south[k]])
            b[at[k]] = factors.source * divergence
        for _ in range(sweeps):
            for k in numba.prange(len(at)):
                around = p[west[k]] + p[east[k]] + p[south[k]] + p[north[k]]
                q[at[k]] = (around - b[at[k]]) * factors.quarter
            set_edges(q, p_edges)
            p, q = q, p
        bad = 0
        for k in numba.prange(len(at)):
            i = at[k]
            u[i] = ut[i] - factors.gradient * (p[east[k]] - p[west[k]])
            v[i] = vt[i] - factors.gradient * (p[north[k]] - p[south[k]])
            bad += not_finite(u[i]) | not_finite(v[i]) | not_finite(p[i])
        set_edges(u, u_edges)
        set_edges(v, v_edges)
        if bad > 0:
            return -(step + 1)
    return steps


@inlined
def set_edges(field, edges):
    """Set the boundary values of a field from its table."""
    for k in range(len(edges.points)):
        source = edges.sources[k]
        field[edges.points[k]] = field[source] if source >= 0 else edges.values[k]
