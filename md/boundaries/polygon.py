"""Signed distance of points from a closed polygon."""

import numpy as np

from sfc.compile import callee, in_parts, kernel

COLUMNS = 8  # of a segment: start, end, outward normal, turn of the outline at the start, length^2
CHUNK = 8  # consecutive segments with a common bounding box, which is tested first
FEW = 2**10  # points for which threads are not worth their start
SURELY = 1e-5  # relative margin for rounding in the test of a bounding box
STRAIGHT = 1e-5  # radians; a smaller turn of the outline has a sign that depends on rounding, and counts as 0


def segments_of(outline: np.ndarray) -> np.ndarray:
    """Return the segments of a closed polygon, (m, 8) float64: `COLUMNS`.

    The turn is 1 for a convex corner, -1 for a concave one, 0 for none.

    Args:
        outline: (m, 2) points in d, counter-clockwise.
    """
    end = np.roll(outline, -1, axis=0)
    along = end - outline
    length = np.hypot(*along.T)
    normal = np.column_stack([along[:, 1], -along[:, 0]]) / length[:, None]
    before = np.roll(along, 1, axis=0)
    across = before[:, 0] * along[:, 1] - before[:, 1] * along[:, 0]
    turn = np.arctan2(across, (before * along).sum(axis=1))
    sign = np.where(np.abs(turn) < STRAIGHT, 0, np.sign(turn))
    return np.column_stack([outline, end, normal, sign, length**2])


def packed(segments: np.ndarray) -> np.ndarray:
    """Pack segments for kernels: 8 numbers each, then the left, lower, right, upper side of each chunk's box.

    Args:
        segments: (m, 8), with the columns of `COLUMNS`.

    Returns:
        (8 m + 4 chunks,) numbers.
    """
    first = np.arange(0, len(segments), CHUNK)
    ends = segments[:, :2], segments[:, 2:4]
    low = np.minimum.reduceat(np.minimum(*ends), first, axis=0)
    high = np.maximum.reduceat(np.maximum(*ends), first, axis=0)
    return np.concatenate([segments.ravel(), np.column_stack([low, high]).ravel()])


@callee
def from_outline(count, segments, within2, x, y):
    """Compute the segment of the polygon nearest to a point, the signed distance, and the outward normal.

    The segment is -1 if none is nearer than the square root of `within2`.
    """
    best, at, nearest = -1, x - x, within2
    for first in range(0, count, CHUNK):
        k = COLUMNS * count + 4 * (first // CHUNK)
        dx = max(max(segments[k] - x, x - segments[k + 2]), x - x)
        dy = max(max(segments[k + 1] - y, y - segments[k + 3]), y - y)
        gap2 = dx * dx + dy * dy
        if gap2 - SURELY * gap2 > nearest:
            continue
        for s in range(first, min(first + CHUNK, count)):
            k = COLUMNS * s
            ax, ay = x - segments[k], y - segments[k + 1]
            bx, by = segments[k + 2] - segments[k], segments[k + 3] - segments[k + 1]
            share = min(max((ax * bx + ay * by) / segments[k + 7], x - x), segments[k + 7] / segments[k + 7])
            dx, dy = ax - share * bx, ay - share * by
            d2 = dx * dx + dy * dy
            if d2 < nearest:
                best, at, nearest = s, share, d2
    if best < 0:
        return best, x - x, x - x, x - x
    k = COLUMNS * best
    nx, ny = segments[k + 4], segments[k + 5]
    edge = k if at <= 0 else COLUMNS * ((best + 1) % count)
    if 0 < at < 1 or segments[edge + 6] == 0:
        return best, (x - segments[k]) * nx + (y - segments[k + 1]) * ny, nx, ny
    turn, away = segments[edge + 6], np.sqrt(nearest)  # outside of a convex corner, inside of a concave one
    if away > 0:
        nx, ny = turn * (x - segments[edge]) / away, turn * (y - segments[edge + 1]) / away
    return best, turn * away, nx, ny


def distances(outline: np.ndarray, pos: np.ndarray) -> np.ndarray:
    """Return the signed distance of each point from a polygon, negative inside: (n,) float64.

    Args:
        outline: (m, 2) points, counter-clockwise.
        pos: (n, 2) float64 points in the unit of the outline.
    """
    count, segments, found = len(outline), packed(segments_of(outline)), np.empty(len(pos))
    in_parts(lambda part: _distances(count, pos[part], segments, found[part]), len(pos), FEW)
    return found


@kernel
def _distances(count, pos, segments, found):
    """Store the signed distance of point i from the polygon in found[i]."""
    for i in range(len(pos)):
        found[i] = from_outline(count, segments, np.inf, pos[i, 0], pos[i, 1])[1]
