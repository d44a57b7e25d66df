"""Step of a flock in vectorised numpy with scipy's k-d tree, by the rules of `md.laws.Boids` and "flight".

A step builds one tree, lists the pairs within the largest radius, computes their vectors once, and sums over
neighbours with `numpy.bincount`. numpy and the tree's search for pairs use one thread.

Tree: Bentley, Communications of the ACM 18 (1975) 509. scipy: Virtanen et al., Nature Methods 17 (2020) 261.
"""

import numpy as np
from scipy.spatial import cKDTree

import md
from sfc import checks


def numpy_flock_step(
    pos: np.ndarray, vel: np.ndarray, lengths: np.ndarray, law: md.laws.Boids, max_speed: float, dt: float
) -> tuple[np.ndarray, np.ndarray]:
    """Take one step of a flock in a box that is periodic along every axis.

    Args:
        pos: (n, dim) floats: positions, from 0 up to below the length of the box.
        vel: (n, dim) floats: velocities.
        lengths: (dim,) of the box, at least twice the cutoff of the law.
        law: the rules.
        max_speed: largest speed, in units of length per time unit.
        dt: time step in time units.

    Returns:
        Positions and velocities after the step: (n, dim) float64 each.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: an array of another dtype or shape, a position outside the box, or a box too small.
    """
    law = checks.instance("law", law, md.laws.Boids, "an md.laws.Boids")
    pos = checks.array("pos", pos, "f", "floats", ("n", "dim"), finite=True).astype(float)
    vel = checks.array("vel", vel, "f", "floats", pos.shape, finite=True).astype(float)
    remedy = "enlarge the box, or a particle interacts with two images of another"
    lengths = checks.array(
        "lengths", lengths, "fiu", "numbers", (pos.shape[1],), low=2 * law.cutoff, finite=True, outside=remedy
    ).astype(float)
    if not ((pos >= 0) & (pos < lengths)).all():
        raise ValueError(
            f"pos outside the box of {lengths.tolist()}; allowed: 0 or more, below the length; wrap them, as "
            "md.Box.wrap does"
        )
    increments = _increments(pos, vel, lengths, law)
    vel = vel + increments
    speed = np.sqrt((vel * vel).sum(axis=1, keepdims=True))
    vel *= np.where(speed > max_speed, max_speed / np.where(speed > 0, speed, 1), 1)
    return md.Box(tuple(lengths)).wrap(pos + dt * vel), vel


def _increments(pos: np.ndarray, vel: np.ndarray, lengths: np.ndarray, law: md.laws.Boids) -> np.ndarray:
    """Compute the increment of each velocity: (n, dim)."""
    tree = cKDTree(pos, boxsize=lengths, compact_nodes=False, balanced_tree=False)
    first, second = np.ascontiguousarray(tree.query_pairs(law.cutoff, output_type="ndarray").T)
    columns = (np.ascontiguousarray(x) for x in (*pos.T, *vel.T))
    differences = [x[second] - x[first] for x in columns]
    apart, turns = differences[: len(lengths)], differences[len(lengths) :]
    distance2 = np.zeros(len(first))
    for d, length in zip(apart, lengths, strict=True):
        d -= length * np.rint(d / length)
        distance2 += d * d

    def summed(radius: float, vectors: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Sum vectors over the neighbours within a radius; return (n, dim) sums and (n, 1) numbers."""
        i, j, n = first, second, len(pos)
        inside = distance2 < radius * radius
        if not inside.all():
            chosen = np.flatnonzero(inside)
            i, j, *vectors = (array[chosen] for array in (i, j, *vectors))
        sums = [np.bincount(i, v, n) - np.bincount(j, v, n) for v in vectors]
        return np.column_stack(sums), (np.bincount(i, minlength=n) + np.bincount(j, minlength=n))[:, None]

    centre, close = summed(law.cohesion_radius, apart)
    turned, aligned = summed(law.alignment_radius, turns)
    away, _ = summed(law.separation_radius, apart)
    towards = law.cohesion * centre / np.maximum(close, 1)
    return towards + law.alignment * turned / np.maximum(aligned, 1) - law.separation * away
