"""Alignment law: sums two vectors and a count, for the mean velocity and position of the partners."""

from dataclasses import dataclass

from md.laws import add_scaled, load, pair_function, sub, zero


@dataclass(frozen=True)
class Alignment:
    """Force towards the mean velocity of the neighbours, and away from their mean position."""

    rate: float
    push: float
    cutoff: float = 1.0


def empty_sums(law, ri):
    """Make the sums of no neighbour: velocity, position, count."""
    return zero(ri), zero(ri), 0


def mean(law, ri, vi, acc):
    """Compute the force of all neighbours."""
    velocities, places, count = acc
    if count == 0:
        return zero(ri)
    return add_scaled(add_scaled(zero(ri), law.rate / count, velocities), law.push, places)


@pair_function(Alignment, initial=empty_sums, result=mean)
def interact(law, vel, i, j, r2, dr, vi, acc):
    """Add one neighbour to the sums."""
    if r2 >= law.cutoff * law.cutoff:
        return acc
    velocities, places, count = acc
    relative = sub(load(vel, j, dr), vi)
    return add_scaled(velocities, law.cutoff, relative), add_scaled(places, law.cutoff, dr), count + 1
