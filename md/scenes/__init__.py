"""Scenes: initial states of simulations. A new scene is its own file and one line here."""

from md.scenes.clusters import in_clusters
from md.scenes.cooling import cooling_gas
from md.scenes.flock import SOURCE_DT, flock
from md.scenes.granular import (
    SHARED_DT,
    SHARED_LAW,
    SHARED_TEMPERATURE,
    box_for,
    copies_for,
    granular_gas,
    in_memory_order,
    tiled_gas,
)
from md.scenes.lattice import lattice_sites
from md.scenes.maxwell import maxwell_velocities
from md.scenes.mixture import with_large_spheres
from md.scenes.shaken import THESIS_LENGTHS, shaken_box
from md.scenes.shared import shared_gas
from md.scenes.wing import LiftCase, newtonian_lift, wing_tunnel

__all__ = [
    "SHARED_DT",
    "SHARED_LAW",
    "SHARED_TEMPERATURE",
    "SOURCE_DT",
    "THESIS_LENGTHS",
    "LiftCase",
    "box_for",
    "cooling_gas",
    "copies_for",
    "flock",
    "granular_gas",
    "in_clusters",
    "in_memory_order",
    "lattice_sites",
    "maxwell_velocities",
    "newtonian_lift",
    "shaken_box",
    "shared_gas",
    "tiled_gas",
    "wing_tunnel",
    "with_large_spheres",
]
