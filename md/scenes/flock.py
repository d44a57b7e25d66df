"""Flock of boids: random positions, or clusters that fly together, and random headings."""

from typing import Any

import numpy as np

from md.checks import instance, integer, number
from md.particles.box import Box
from md.particles.state import MAX_PARTICLES, State
from md.scenes.lattice import require_room
from md.scenes.parts import BLOCK, drawn, ids_of, rows_of_part

SOURCE_SIDE, SOURCE_BOIDS = 200.0, 10**6  # side of the cube, and boids in it
SOURCE_DT = 0.2
FASTEST = 1e150  # squares of speeds are finite


def flock(
    n: int,
    box: Box | None = None,
    speed: float = 1.0,
    clusters: int = 0,
    cluster_radius: float = 5.0,
    seed: int = 0,
    part: tuple[int, int] = (0, 1),
) -> State:
    """Make n boids at random positions with random headings, for `md.laws.Boids` and integrator "flight".

    The memory order is random. The case of [flock] is n = 1,000,000 in a cube of side 200 with dt = 0.2.

    Args:
        n: number of boids.
        box: the box; None for a periodic cube with the density of that case, 1/8.
        speed: of each boid, in units of length per time unit, 0 or more.
        clusters: 0 for uniform positions and a heading for each boid; or the number of clusters: each boid
            is in a random one, at a uniform position within `cluster_radius` of the centre, and has the
            heading of the cluster. Centres are uniform in the box; a position beyond a side is wrapped on a
            periodic axis, and is reflected at the side on another.
        cluster_radius: in units of length, positive; with clusters at most half the shortest side of the
            box.
        seed: of all random numbers.
        part: number of a part, from 0 on, and number of parts: only its boids are kept, and their ids. Each
            rank of several makes one, for `md.Division(is_part=True)`.

    Returns:
        The state in float64.

    Raises:
        TypeError: an argument of another class.
        ValueError: a value outside its range.
    """
    n = integer("n", n, 1, MAX_PARTICLES, unit="boids")
    mine = rows_of_part(part, n)
    require_room(min(n, len(mine) + BLOCK))
    if box is None:
        box = Box((float(SOURCE_SIDE * (n / SOURCE_BOIDS) ** (1 / 3)),) * 3)
    instance("box", box, Box, "an md.Box, or None for a cube of density 1/8")
    speed = number("speed", speed, 0, FASTEST, unit="units of length per time unit")
    clusters = integer("clusters", clusters, 0, MAX_PARTICLES)
    most = min(box.lengths) / 2 if clusters else np.inf
    remedy = "with clusters at most half the shortest side of the box"
    radius = number(
        "cluster_radius", cluster_radius, high=most, above=0, unit="units of length", remedy=remedy
    )
    generator = np.random.default_rng(integer("seed", seed, 0))
    lengths = np.array(box.lengths)
    dim, groups = box.dim, clusters or n  # without clusters each boid is one by itself
    theirs = range(groups) if clusters else mine
    member: Any = slice(None)
    if clusters:
        member = drawn(lambda rows: generator.integers(clusters, size=rows), n, mine)
    pos = (drawn(lambda rows: generator.random((rows, dim)), groups, theirs) * lengths)[member]
    headings = drawn(lambda rows: _headings(rows, dim, generator), groups, theirs)[member]
    if clusters:
        away = drawn(lambda rows: _headings(rows, dim, generator), n, mine) * radius
        pos = pos + away * drawn(lambda rows: generator.random((rows, 1)), n, mine) ** (1 / dim)
    pos = box.wrap(pos)
    reflected = np.clip(np.where(pos < 0, -pos, np.where(pos > lengths, 2 * lengths - pos, pos)), 0, lengths)
    return State(np.where(box.periodic, pos, reflected), speed * headings, box, ids_of(mine, n))


def _headings(n: int, dim: int, generator: np.random.Generator) -> np.ndarray:
    """Draw n directions, uniform on the sphere (circle): (n, dim) float64 unit vectors."""
    vectors = generator.standard_normal((n, dim))
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
