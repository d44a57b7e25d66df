"""Boids: cohesion, separation and alignment of a flock, as increments of velocity a step.

For boid i with neighbours j != i, d = x_j - x_i to the nearest image and r = |d|, the increment of velocity
is

    cohesion * mean of d               over r < cohesion_radius
    - separation * sum of d            over r < separation_radius
    + alignment * mean of (v_j - v_i)  over r < alignment_radius

where a mean over no neighbour is zero. It is added at each step, and is not multiplied by dt. Rules of
[flock]; the numbers are those of the course project it names. Reynolds, Computer Graphics 21 (1987) 25.
"""

from dataclasses import dataclass

from md.backend.prelude import add_scaled, like, load, sub, zero
from md.checks import number, set_fields
from md.laws.pair import pair_function

RADII = "cohesion_radius", "separation_radius", "alignment_radius"
RATES = "cohesion", "separation", "alignment"
LARGEST = 1e9  # radii and rates; their products with distances are far from the limits of float32


@dataclass(frozen=True)
class Boids:
    """Rules of a flock, for `integrator="flight"`: increments of velocity by neighbours within three radii.

    Boids have no size: the state has no radii, no overlap is a fault, and there is no energy to monitor.

    Args:
        cohesion_radius: distance up to which a boid moves to the mean position of its neighbours, in units of
            length of the box; positive, as the next two.
        separation_radius: distance up to which it moves away from each neighbour.
        alignment_radius: distance up to which it adapts to the mean velocity of its neighbours.
        cohesion: share of the distance to the mean position that is added to the velocity, in 1 / time units.
        separation: share of the sum of distances that is subtracted, in 1 / time units.
        alignment: share of the difference to the mean velocity that is added.

    Raises:
        TypeError: a value that is not a number.
        ValueError: a radius that is not positive, or a rate that is negative; or one above 1e9.
    """

    cohesion_radius: float = 5.0
    separation_radius: float = 3.0
    alignment_radius: float = 5.0
    cohesion: float = 0.01
    separation: float = 0.1
    alignment: float = 0.1

    def __post_init__(self) -> None:
        radii = {name: number(name, getattr(self, name), high=LARGEST, above=0) for name in RADII}
        set_fields(self, **radii, **{name: number(name, getattr(self, name), 0, LARGEST) for name in RATES})

    @property
    def cutoff(self) -> float:
        """Largest of the three radii."""
        return max(self.windows)

    @property
    def windows(self) -> tuple[float, float, float]:
        """The three radii, for `md.search.Tensor`: all sums are over the neighbours within one of them."""
        return self.cohesion_radius, self.separation_radius, self.alignment_radius


def no_neighbours(law, ri):
    """Make the sums of no neighbour.

    They are: differences of position to those to keep apart from, of velocity, and of position to those to
    stay close to, all of the boid less the neighbour; and the numbers of neighbours in the last two.
    """
    return zero(ri), zero(ri), zero(ri), 0, 0


def increment(law, ri, vi, acc):
    """Compute the increment of velocity from the sums over all neighbours."""
    apart, velocities, centre, aligned, close = acc
    away = add_scaled(zero(ri), law.separation, apart)
    turned = add_scaled(away, -law.alignment / like(ri, max(aligned, 1)), velocities)
    return add_scaled(turned, -law.cohesion / like(ri, max(close, 1)), centre)


@pair_function(Boids, fields=(*RADII, *RATES), initial=no_neighbours, result=increment, increments=True)
def interact(law, vel, i, j, r2, dr, vi, acc):
    """Add one neighbour to the sums.

    The velocity is loaded outside the branches: in one of them Numba would count references to `vel` at every
    neighbour, at two to five times the cost of a step.
    """
    apart, velocities, centre, aligned, close = acc
    widest = max(law.cohesion_radius, law.separation_radius, law.alignment_radius)
    if r2 >= widest * widest:
        return acc
    one = like(dr, 1)
    turn = sub(vi, load(vel, j, dr))
    if r2 < law.cohesion_radius * law.cohesion_radius:
        centre = add_scaled(centre, one, dr)
        close += 1
    if r2 < law.alignment_radius * law.alignment_radius:
        velocities = add_scaled(velocities, one, turn)
        aligned += 1
    if r2 < law.separation_radius * law.separation_radius:
        apart = add_scaled(apart, one, dr)
    return apart, velocities, centre, aligned, close
