"""A closed outline in segments, seen from points around it."""

import numba
import numpy as np
from numba.extending import register_jitable

from md.backend.jit import kernel

COLUMNS = 8  # of a segment: start, end, outward normal, how the outline turns at the start, length^2


@register_jitable
def from_outline(count, segments, x, y):
    """The outline seen from a point: nearest segment, signed distance, outward normal there."""
    best, at, nearest = -1, x - x, x - x
    for s in range(count):
        k = COLUMNS * s
        ax, ay = x - segments[k], y - segments[k + 1]
        bx, by = segments[k + 2] - segments[k], segments[k + 3] - segments[k + 1]
        share = min(max((ax * bx + ay * by) / segments[k + 7], x - x), segments[k + 7] / segments[k + 7])
        dx, dy = ax - share * bx, ay - share * by
        d2 = dx * dx + dy * dy
        if best < 0 or d2 < nearest:
            best, at, nearest = s, share, d2
    k = COLUMNS * best
    nx, ny = segments[k + 4], segments[k + 5]
    edge = k if at <= 0 else COLUMNS * ((best + 1) % count)
    if 0 < at < 1 or segments[edge + 6] == 0:
        return best, (x - segments[k]) * nx + (y - segments[k + 1]) * ny, nx, ny
    dx, dy, away = x - segments[edge], y - segments[edge + 1], np.sqrt(nearest)
    if segments[edge + 6] < 0:
        dx, dy, sign = -dx, -dy, -away
    else:
        sign = away
    if away > 0:
        nx, ny = dx / away, dy / away
    return best, sign, nx, ny


@kernel(parallel=True)
def distances(n, pos, segments, found):
    """found[i] = signed distance of a point from the outline; `segments` is (m, 8)."""
    flat = segments.ravel()
    for i in numba.prange(n):
        found[i] = from_outline(len(segments), flat, pos[i, 0], pos[i, 1])[1]
