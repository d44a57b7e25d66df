"""Initial states. A new scene is its own file and one line here."""

from md.scenes.granular import (
    SHARED_DT,
    SHARED_LAW,
    SHARED_TEMPERATURE,
    box_for,
    granular_gas,
    in_memory_order,
    maxwell_velocities,
    shared_gas,
)
from md.scenes.lattice import lattice_sites

__all__ = [
    "SHARED_DT",
    "SHARED_LAW",
    "SHARED_TEMPERATURE",
    "box_for",
    "granular_gas",
    "in_memory_order",
    "lattice_sites",
    "maxwell_velocities",
    "shared_gas",
]
