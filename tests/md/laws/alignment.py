"""A law that sums two vectors and a count: what its partners' mean velocity and place pull at a particle."""

from dataclasses import dataclass

from md.laws import add_scaled, load, pair_function, sub, zero


@dataclass(frozen=True)
class Alignment:
    """Turns each particle towards the mean velocity of its neighbours, and away from their mean place."""

    rate: float
    push: float
    cutoff: float = 1.0


def none_yet(law, ri):
    """No velocity, no place, no neighbour."""
    return zero(ri), zero(ri), 0


def mean(law, ri, vi, acc):
    """The force of all neighbours."""
    velocities, places, count = acc
    if count == 0:
        return zero(ri)
    return add_scaled(add_scaled(zero(ri), law.rate / count, velocities), law.push, places)


@pair_function(Alignment, initial=none_yet, result=mean)
def interact(law, vel, i, j, r2, dr, vi, acc):
    """The sums, and one neighbour more."""
    if r2 >= law.cutoff * law.cutoff:
        return acc
    velocities, places, count = acc
    apart = sub(load(vel, j, dr), vi)
    return add_scaled(velocities, law.cutoff, apart), add_scaled(places, law.cutoff, dr), count + 1
