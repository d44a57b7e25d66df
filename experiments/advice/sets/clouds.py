"""Clouds of points in metres, as scanners give them: terrain in lines, a city in tiles, clusters.

Every function takes the number of points and a seed, and returns the same arrays for the same two.
"""

from dataclasses import replace

import numpy as np

from experiments.advice.sets.data import SetData

NEIGHBOURS = 8
STRIPS = 8  # of a flight over terrain


def _height(x: np.ndarray, y: np.ndarray, rng: np.random.Generator, side: float) -> np.ndarray:
    """Return the height of terrain: waves, the shorter the lower."""
    height = np.zeros(len(x))
    for octave in range(1, 7):
        for _ in range(3):
            angle, phase = rng.uniform(0, 2 * np.pi, 2)
            along = x * np.cos(angle) + y * np.sin(angle)
            height += 0.04 * side / 2**octave * np.sin(2 * np.pi * 2**octave / side * along + phase)
    return height


def terrain_in_lines(n: int, seed: int, spacing: float = 0.5) -> SetData:
    """Make a scan of terrain from the air: strips flown to and fro, each scanned line by line.

    Args:
        n: number of points.
        seed: of the terrain and of the errors of the points.
        spacing: m between points and between lines.

    Returns:
        `points` and `neighbours`.
    """
    rng = np.random.default_rng(seed)
    each = -(-n // STRIPS)  # points of a strip
    side = spacing * float(np.sqrt(n))
    width = side / STRIPS
    line_points = max(2, round(width * 1.15 / spacing))  # strips overlap
    lines = -(-each // line_points)
    strip, place = np.divmod(np.arange(n), each)
    line, step = np.divmod(place, line_points)
    step = np.where(line % 2, line_points - 1 - step, step)  # the mirror swings back
    line = np.where(strip % 2, lines - 1 - line, line)  # the plane flies back
    x = strip * width + step * (width * 1.15 / line_points) + rng.normal(0, 0.1 * spacing, n)
    y = line * (side / lines) + rng.normal(0, 0.1 * spacing, n)
    z = _height(x, y, rng, side) + rng.normal(0, 0.03, n)
    return SetData(points=np.stack([x, y, z], axis=1), neighbours=NEIGHBOURS)


def terrain_shuffled(n: int, seed: int) -> SetData:
    """Make the scan of `terrain_in_lines` in random order.

    Args:
        n: number of points.
        seed: of the terrain and of the order.

    Returns:
        `points` and `neighbours`.
    """
    data = terrain_in_lines(n, seed)
    assert data.points is not None
    return replace(data, points=data.points[np.random.default_rng([seed, 1]).permutation(n)])


def city_in_tiles(n: int, seed: int, tiles: int = 16, spacing: float = 0.5) -> SetData:
    """Make a city of blocks: ground, roofs and walls, in square tiles, in random order within each.

    Args:
        n: number of points.
        seed: of the buildings, of the points and of their order.
        tiles: along each side.
        spacing: m, about the distance of points on the ground.

    Returns:
        `points` and `cutoff`.
    """
    rng = np.random.default_rng(seed)
    side = spacing * float(np.sqrt(n))
    streets = max(2, round(side / 40))  # blocks of 40 m
    block = side / streets
    heights = rng.gamma(3.0, 5.0, (streets, streets))
    xy = rng.random((n, 2)) * side
    at = np.minimum((xy / block).astype(np.int64), streets - 1)
    inside = xy / block - at - 0.5  # of a block, from its centre
    height = heights[at[:, 0], at[:, 1]]
    is_built = np.abs(inside).max(axis=1) < 0.35
    on_wall = is_built & (rng.random(n) < 0.4)
    to_side = 0.35 / np.maximum(np.abs(inside).max(axis=1), 1e-9)
    xy = np.where(on_wall[:, None], (at + 0.5 + inside * to_side[:, None]) * block, xy)
    z = np.where(is_built, height, 0.0) * np.where(on_wall, rng.random(n), 1.0) + rng.normal(0, 0.02, n)
    tile = np.clip((xy / side * tiles).astype(np.int64), 0, tiles - 1)
    order = np.argsort(tile[:, 0] * tiles + tile[:, 1], kind="stable")
    return SetData(points=np.column_stack([xy, z])[order], cutoff=2 * spacing)


def clusters(n: int, seed: int, background: float = 0.2) -> SetData:
    """Make clusters of very different sizes before a uniform background, in random order.

    Args:
        n: number of points.
        seed: of all.
        background: share of the points in no cluster.

    Returns:
        `points`, in a cube of 1000 m and around it, and `neighbours`.
    """
    rng = np.random.default_rng(seed)
    count = max(4, n // 5000)
    share = rng.pareto(1.2, count) + 0.1
    cluster = np.searchsorted(np.cumsum(share / share.sum())[:-1], rng.random(n))
    centres, widths = rng.random((count, 3)) * 1000, 1.0 + rng.exponential(10.0, count)
    points = centres[cluster] + rng.normal(size=(n, 3)) * widths[cluster, None]
    alone = rng.random(n) < background
    points[alone] = rng.random((int(alone.sum()), 3)) * 1000
    return SetData(points=points, neighbours=NEIGHBOURS)
