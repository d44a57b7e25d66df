"""Simulate granular gases: dissipative spheres with interchangeable laws, searches and memory orders.

Units: particle diameter d = 1 and mass m = 1; the time unit is whatever the law's contact time and the
velocities share. `scenes` make a `State`; `Simulation(state, law, search=..., reorder=..., backend=...)`
takes steps; `laws`, `search`, `reorder`, `integrate` and `boundaries` hold its choices; `observe` measures.
The map of the rooms is `md/README.md`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from md import backend, boundaries, integrate, laws, observe, preparation, reorder, scenes, search
from md.boundaries import Inflow, ShakenWalls, Walls, Wing
from md.boundaries.airfoil import Airfoil, naca
from md.boundaries.airfoil_file import read_airfoil
from md.domain.communicator import Communicator
from md.domain.division import Division
from md.errors import (
    BackendUnavailableError,
    CheckpointError,
    ConvertedPoints,
    EnergyExploded,
    FrozenPrecision,
    HaloOutrun,
    ListOverflow,
    NonFiniteField,
    NonFiniteState,
    NotYetReordered,
    OverdampedContact,
    OverlappingStart,
    ParticleEscaped,
    RankFailedError,
    SimulationFault,
    SkippedText,
    UnstableTimeStep,
)
from md.io.checkpoint import PACKAGE, Checkpoint
from md.io.read import read
from md.io.trajectory import Trajectory
from md.observe import Observer, Profile
from md.particles.box import Box
from md.particles.state import State
from md.reorder import Decayed, Reorder
from md.reorder.triggers import Every, Moved, Never
from md.simulation import Simulation

if TYPE_CHECKING:
    from md import cavity
    from md.cavity import Cavity

__all__ = [
    "Airfoil",
    "BackendUnavailableError",
    "Box",
    "Cavity",
    "Checkpoint",
    "CheckpointError",
    "Communicator",
    "ConvertedPoints",
    "Decayed",
    "Division",
    "EnergyExploded",
    "Every",
    "FrozenPrecision",
    "HaloOutrun",
    "Inflow",
    "ListOverflow",
    "Moved",
    "Never",
    "NonFiniteField",
    "NonFiniteState",
    "NotYetReordered",
    "Observer",
    "OverdampedContact",
    "OverlappingStart",
    "ParticleEscaped",
    "Profile",
    "RankFailedError",
    "Reorder",
    "ShakenWalls",
    "Simulation",
    "SimulationFault",
    "SkippedText",
    "State",
    "Trajectory",
    "UnstableTimeStep",
    "Walls",
    "Wing",
    "backend",
    "boundaries",
    "cavity",
    "integrate",
    "laws",
    "naca",
    "observe",
    "preparation",
    "read",
    "read_airfoil",
    "reorder",
    "scenes",
    "search",
]

__version__ = PACKAGE


def __getattr__(name: str) -> Any:
    """Load the room of the cavity, which no other needs, when it is first used."""
    if name not in ("Cavity", "cavity"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    room = import_module("md.cavity")
    return room if name == "cavity" else room.Cavity
