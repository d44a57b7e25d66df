"""What is seen of a state on the host: energy, temperature, momentum. The reference of `look`."""

import numpy as np

from md.laws import SpringDashpot
from md.state import State, pair_distances, pair_sizes


def kinetic_energy(state: State) -> float:
    """Kinetic energy per particle, v^2 / 2 averaged (m = 1), summed in float64; NaN for no particles."""
    if not len(state):
        return float("nan")
    return float(0.5 * np.square(state.vel.astype(np.float64)).sum() / len(state))


def temperature(state: State) -> float:
    """Granular temperature m <v^2> / dim, in d^2 / time^2.

    Goldhirsch, Annu. Rev. Fluid Mech. 35 (2003) 267.
    """
    return 2 * kinetic_energy(state) / state.box.dim


def momentum(state: State) -> np.ndarray:
    """Total momentum: (dim,) float64."""
    return state.vel.astype(np.float64).sum(axis=0)


def contact_energy(state: State, pairs: np.ndarray, law: SpringDashpot) -> float:
    """Energy stored in the springs of touching pairs, per particle; NaN for no particles.

    Args:
        state: the particles.
        pairs: (p, 2) ids of touching pairs, from `Simulation.pairs`.
        law: with a `potential`.
    """
    if not len(state):
        return float("nan")
    size = pair_sizes(state.radius, state.id, pairs)
    distance = pair_distances(state.pos, state.id, state.box, pairs) / size
    return float((size * law.potential(distance)).sum() / len(state))
