"""Observables of a state on the host: energy, temperature, momentum. The reference of `look`."""

import numpy as np

from md import checks
from md.laws.pair import EnergyLaw
from md.particles.state import State, pair_distances, pair_sizes


def kinetic_energy(state: State) -> float:
    """Compute the kinetic energy per particle, <v^2> / 2 (m = 1), summed in float64; NaN for no particles.

    Raises:
        TypeError: no `md.State`.
    """
    if not len(_checked(state)):
        return float("nan")
    return float(0.5 * np.square(state.vel.astype(np.float64)).sum() / len(state))


def temperature(state: State) -> float:
    """Compute the granular temperature m <v^2> / dim, in d^2 / time^2.

    Raises:
        TypeError: no `md.State`.

    Goldhirsch, Annu. Rev. Fluid Mech. 35 (2003) 267.
    """
    return 2 * kinetic_energy(_checked(state)) / state.box.dim


def momentum(state: State) -> np.ndarray:
    """Compute the total momentum: (dim,) float64, in m d / time.

    Raises:
        TypeError: no `md.State`.
    """
    return _checked(state).vel.astype(np.float64).sum(axis=0)


def contact_energy(state: State, pairs: np.ndarray, law: EnergyLaw) -> float:
    """Compute the energy in the springs of touching pairs, per particle; NaN for no particles.

    Args:
        state: the particles.
        pairs: (p, 2) ids of touching pairs, from `Simulation.pairs`.
        law: with a `potential`.

    Returns:
        The energy in m d^2 / time^2.

    Raises:
        TypeError: no `md.State`, pairs that cannot be converted to an array, or a law without a `potential`.
        ValueError: pairs of another shape or dtype, or an id of no particle.
    """
    _checked(state)
    pairs = checks.array("pairs", pairs, "iu", "integers, ids of particles", ("p", 2))
    if isinstance(law, type) or not isinstance(law, EnergyLaw):
        raise checks.refuse_class("law", law, "a law with a `potential`", "such as md.laws.SpringDashpot")
    unknown = pairs[~np.isin(pairs, state.id)]
    if len(unknown):
        raise ValueError(f"pairs hold the id {unknown[0]}; allowed: ids of the {len(state)} particles")
    if not len(state):
        return float("nan")
    size = pair_sizes(state.radius, state.id, pairs)
    distance = pair_distances(state.pos, state.id, state.box, pairs) / size
    return float((size**2 * law.potential(distance)).sum() / len(state))


def _checked(state: State) -> State:
    """Check the class of a state, and return the state."""
    return checks.instance("state", state, State, "an md.State", "take the `state` of a simulation")
