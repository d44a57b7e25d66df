"""A few large spheres among small ones."""

from __future__ import annotations

import numpy as np

from md.checks import instance, number
from md.laws import SpringDashpot
from md.particles.state import LARGEST, State
from md.scenes.granular import checked_seed
from md.simulation import Simulation


def with_large_spheres(
    state: State, share: float, diameter: float, seed: int = 0, backend: str = "auto"
) -> State:
    """A gas in which some spheres have grown, and those in their way are gone.

    Args:
        state: of spheres of diameter 1 that do not overlap.
        share: of the spheres that grow, above 0 and at most 1; of two that would touch, one does.
        diameter: of the grown ones, in d, at least 1; with a share of 1 % and 4 d they fill about as much as
            the others.
        seed: of who grows.
        backend: where pairs are sought.

    Returns:
        Fewer spheres, in the order of the state and with its ids.

    Raises:
        TypeError: an argument of another class.
        ValueError: a value outside its range, spheres that have radii already, or some too large for the box
            (`md.particles.cell_grid.CellGrid`).
    """
    instance("state", state, State, "an md.State")
    share = number("share of large spheres", share, above=0, high=1)
    diameter = number("diameter of large spheres", diameter, 1, 2 * LARGEST, unit="d")
    if state.radius is not None and (state.radius != 0.5).any():
        raise ValueError(
            f"state of radii {state.radius.min():g} to {state.radius.max():g} d; allowed: all of 0.5, as in "
            "State(radius=None)"
        )
    grows = np.random.default_rng(checked_seed(seed)).random(len(state)) < share
    radius = np.where(grows, diameter / 2, 0.5)
    grown = State(state.pos, state.vel, state.box, np.arange(len(state)), radius)
    law = SpringDashpot(0.0, 0.0)
    pairs = Simulation(grown, law, search="lbvh", dt=1.0, backend=backend, allow_overlap=True).pairs()
    gone = np.zeros(len(state), bool)
    for first, second in pairs[grows[pairs].all(axis=1)]:  # in order, so that some of each cluster stay
        gone[second] |= not gone[first]
    beside = pairs[grows[pairs].any(axis=1) & ~gone[pairs].any(axis=1)]
    gone[beside[~grows[beside]]] = True
    kept = np.flatnonzero(~gone)
    return State(state.pos[kept], state.vel[kept], state.box, state.id[kept], radius[kept])
