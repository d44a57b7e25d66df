"""Mixture of a few large spheres and many small ones."""

from __future__ import annotations

import numpy as np

from md.backend import Backend
from md.checks import instance, number
from md.laws import SpringDashpot
from md.particles.state import LARGEST, State
from md.scenes.spheres import checked_seed
from md.simulation import Simulation


def with_large_spheres(
    state: State, share: float, diameter: float, seed: int = 0, backend: str | Backend = "auto"
) -> State:
    """Replace some spheres of a gas by large ones, and remove the spheres that overlap them.

    Args:
        state: of spheres of diameter 1 that do not overlap.
        share: fraction of the spheres to replace, above 0 and at most 1; of two large spheres that would
            overlap, only one is kept.
        diameter: of the large spheres, in d, at least 1; with a share of 1 % and 4 d they fill about as much
            as the others.
        seed: of the choice of spheres.
        backend: of the search for pairs.

    Returns:
        Fewer spheres, in the order of the state and with its ids.

    Raises:
        TypeError: an argument of another class.
        ValueError: a value outside its range, spheres that have radii already, or large spheres too large for
            the box (`md.particles.cell_grid.CellGrid`).
    """
    instance("state", state, State, "an md.State")
    share = number("share of large spheres", share, above=0, high=1)
    diameter = number("diameter of large spheres", diameter, 1, 2 * LARGEST, unit="d")
    if state.radius is not None and (state.radius != 0.5).any():
        raise ValueError(
            f"state of radii {state.radius.min():g} to {state.radius.max():g} d; allowed: all of 0.5, as in "
            "State(radius=None)"
        )
    large = np.random.default_rng(checked_seed(seed)).random(len(state)) < share
    radius = np.where(large, diameter / 2, 0.5)
    overlapping = State(state.pos, state.vel, state.box, np.arange(len(state)), radius)
    law = SpringDashpot(0.0, 0.0)
    pairs = Simulation(overlapping, law, search="lbvh", dt=1.0, backend=backend, allow_overlap=True).pairs()
    removed = np.zeros(len(state), bool)
    for first, second in pairs[large[pairs].all(axis=1)]:  # in order, so that some of each cluster are kept
        removed[second] |= not removed[first]
    mixed = pairs[large[pairs].any(axis=1) & ~removed[pairs].any(axis=1)]
    removed[mixed[~large[mixed]]] = True
    kept = np.flatnonzero(~removed)
    return State(state.pos[kept], state.vel[kept], state.box, state.id[kept], radius[kept])
