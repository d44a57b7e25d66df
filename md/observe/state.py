"""What is seen of a state on the host: energy, temperature, momentum. The reference of `look`."""

import numpy as np

from md.state import State


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


def contact_energy(state: State, pairs: np.ndarray, stiffness: float) -> float:
    """Energy stored in the springs of touching pairs, per particle: K (d - r)^2 / (2 d) each.

    Args:
        state: the particles.
        pairs: (p, 2) ids of touching pairs, from `Simulation.pairs`.
        stiffness: K of the law.
    """
    ordered = state.by_id()
    first, second = np.searchsorted(ordered.id, pairs.T)
    pos = ordered.pos.astype(np.float64)
    dr = pos[first] - pos[second]
    dr -= np.where(state.box.periodic, np.round(dr / state.box.lengths) * state.box.lengths, 0)
    overlap = 1 - np.sqrt(np.square(dr).sum(axis=1))
    return float(0.5 * stiffness * np.square(overlap).sum() / len(state))
